//! Promises that failed and that nobody looked at: they are told at the end, for they are mostly forgotten `await`s.

use std::rc::Rc;

use rquickjs::runtime::RejectionTracker;
use rquickjs::{Ctx, Persistent, Value};

use super::console::show;
use super::state::State;
use crate::size::LINE_CHARS_MAX;

/// So many are remembered.
const REMEMBERED_MAX: usize = 20;

/// Promises, and what they failed with.
#[derive(Default)]
pub(super) struct Rejections(Vec<(Persistent<Value<'static>>, Persistent<Value<'static>>)>);

/// Runs in the middle of the engine's work: nothing of the program may run in here.
pub(super) fn tracker(state: &Rc<State>) -> RejectionTracker {
    // The runtime holds this, and the state holds values of the runtime.
    let state = Rc::downgrade(state);
    Box::new(move |ctx: Ctx<'_>, promise: Value<'_>, reason: Value<'_>, is_handled: bool| {
        let Some(state) = state.upgrade() else { return };
        if is_handled {
            let kept = std::mem::take(&mut state.rejections.borrow_mut().0);
            let others = kept
                .into_iter()
                .filter(|(own, _)| own.clone().restore(&ctx).is_ok_and(|own| own != promise));
            state.rejections.borrow_mut().0 = others.collect();
        } else if state.rejections.borrow().0.len() < REMEMBERED_MAX {
            let kept = (Persistent::save(&ctx, promise), Persistent::save(&ctx, reason));
            state.rejections.borrow_mut().0.push(kept);
        }
    })
}

/// Writes a line about each, but for the program's own promises, whose failure is its end.
pub(super) fn tell(ctx: &Ctx<'_>, state: &State) {
    for (_, reason) in state.rejections.take().0 {
        if let Ok(reason) = reason.restore(ctx) {
            let shown = show(ctx, state, &reason, LINE_CHARS_MAX);
            state.line(format!("error: nobody caught {shown}"));
        }
    }
}
