//! Handshakes that were ended before their time, remembered until they would have ended anyway.

use std::collections::{HashSet, VecDeque};

use crate::handshake_token::Id;
use crate::limits::ENDED_MAX;

#[derive(Debug, Default)]
pub(crate) struct Ended {
    ids: HashSet<Id>,
    /// With when each would have ended: about in that order.
    order: VecDeque<(u64, Id)>,
}

impl Ended {
    pub(crate) fn add(&mut self, id: Id, until: u64) {
        if self.ids.insert(id) {
            self.order.push_back((until, id));
        }
        if self.order.len() > ENDED_MAX {
            self.forget_first();
        }
    }

    pub(crate) fn has(&self, id: &Id) -> bool {
        self.ids.contains(id)
    }

    pub(crate) fn sweep(&mut self, now: u64) {
        while self.order.front().is_some_and(|(until, _)| *until < now) {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some((_, id)) = self.order.pop_front() {
            self.ids.remove(&id);
        }
    }
}
