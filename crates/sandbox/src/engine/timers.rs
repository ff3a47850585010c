//! `setTimeout` and `setInterval`, within the program's time.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rquickjs::convert::Coerced;
use rquickjs::function::{Opt, Rest};
use rquickjs::{Ctx, Exception, Function, Persistent, Result, Value};

use super::state::State;

/// So many may wait at a time.
const TIMERS_MAX: usize = 1_000;
/// How much a timer may hand on to its function. It is kept outside of the program's memory.
const GIVEN_MAX: usize = 100;
/// The shortest time of one that comes again and again.
const INTERVAL_MIN: Duration = Duration::from_millis(1);

#[derive(Default)]
pub(super) struct Timers {
    last: u32,
    /// By when they are due, and in the order in which they were set.
    waiting: BTreeMap<(Instant, u32), Timer>,
}

struct Timer {
    function: Persistent<Function<'static>>,
    given: Vec<Persistent<Value<'static>>>,
    every: Option<Duration>,
}

impl Timers {
    pub(super) fn next(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((due, _), _)| *due)
    }

    fn take_due(&mut self) -> Option<(u32, Timer)> {
        let entry = self.waiting.first_entry()?;
        let (due, id) = *entry.key();
        (due <= Instant::now()).then(|| (id, entry.remove()))
    }

    fn remove(&mut self, id: u32) -> Option<Timer> {
        let key = *self.waiting.keys().find(|(_, own)| *own == id)?;
        self.waiting.remove(&key)
    }
}

pub(super) fn set<'js>(ctx: &Ctx<'js>, state: &Rc<State>) -> Result<()> {
    for (name, again) in [("setTimeout", false), ("setInterval", true)] {
        let state = Rc::clone(state);
        let begin = Function::new(
            ctx.clone(),
            move |ctx: Ctx<'js>,
                  function: Function<'js>,
                  time: Opt<Coerced<f64>>,
                  given: Rest<Value<'js>>| {
                begin(&ctx, &state, function, time.0.map_or(0.0, |time| time.0), given.0, again)
            },
        )?;
        ctx.globals().set(name, begin)?;
    }
    for name in ["clearTimeout", "clearInterval"] {
        let state = Rc::clone(state);
        let end = Function::new(ctx.clone(), move |id: Opt<Value<'js>>| {
            let id = id.0.and_then(|id| id.as_number());
            if let Some(id) = id.filter(|id| (0.0..=f64::from(u32::MAX)).contains(id)) {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "it is one"
                )]
                let removed = state.timers.borrow_mut().remove(id as u32);
                drop(removed);
            }
        })?;
        ctx.globals().set(name, end)?;
    }
    Ok(())
}

fn begin<'js>(
    ctx: &Ctx<'js>,
    state: &State,
    function: Function<'js>,
    ms: f64,
    given: Vec<Value<'js>>,
    again: bool,
) -> Result<u32> {
    // Code of the program may run wherever something is thrown: nothing is borrowed then.
    let refused = |why: &str| Err(Exception::throw_range(ctx, why));
    if state.timers.borrow().waiting.len() >= TIMERS_MAX {
        return refused("too many timers wait already");
    }
    if given.len() > GIVEN_MAX {
        return refused("too much is handed on to a timer");
    }
    // Whatever is longer than the program may run is never due.
    let longest = state.limits.time.as_secs_f64() + 1.0;
    let seconds = if ms.is_finite() { (ms / 1_000.0).clamp(0.0, longest) } else { 0.0 };
    let time = Duration::from_secs_f64(seconds);
    let mut timers = state.timers.borrow_mut();
    timers.last = timers.last.wrapping_add(1);
    let id = timers.last;
    let timer = Timer {
        function: Persistent::save(ctx, function),
        given: given.into_iter().map(|value| Persistent::save(ctx, value)).collect(),
        every: again.then(|| time.max(INTERVAL_MIN)),
    };
    timers.waiting.insert((Instant::now() + time, id), timer);
    Ok(id)
}

/// Calls one that is due. What it throws is told like what nobody catches elsewhere.
pub(super) fn fire(ctx: &Ctx<'_>, state: &State) -> Result<()> {
    let due = state.timers.borrow_mut().take_due();
    let Some((id, Timer { function, given, every })) = due else { return Ok(()) };
    let call = function.clone().restore(ctx)?;
    let values: Result<Vec<Value<'_>>> =
        given.iter().map(|value| value.clone().restore(ctx)).collect();
    if let Some(every) = every {
        let timer = Timer { function, given, every: Some(every) };
        state.timers.borrow_mut().waiting.insert((Instant::now() + every, id), timer);
    }
    call.call((Rest(values?),))
}
