//! The completed steps of a session. A state is copied with every event and searched with every call, so neither a copy nor a
//! search starts from the first step.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Ids that a copy copies. All earlier ones are shared.
const RECENT_MAX: usize = 64;

/// The ids of the completed steps, in the order in which they were completed.
#[derive(Debug, Default)]
pub struct Completed {
    shared: Arc<[Arc<str>]>,
    recent: Vec<Arc<str>>,
    walked: Walked,
}

/// How far the search for the next step has got: every top-level step before it is completed. It only grows, because
/// completed steps are only added.
#[derive(Debug, Default)]
struct Walked(AtomicU64);

/// A place in a search through the top-level steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SearchStart {
    /// The first step that may not be completed.
    pub(crate) step: u32,
    /// How many of the completed ids were met before it, in their order.
    pub(crate) met: u32,
}

impl Completed {
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.shared.iter().chain(&self.recent).map(|id| &**id)
    }

    pub(crate) fn extend(&mut self, ids: &[String]) {
        for id in ids {
            if self.recent.len() == RECENT_MAX {
                self.shared = self.shared.iter().cloned().chain(self.recent.drain(..)).collect();
            }
            self.recent.push(id.as_str().into());
        }
    }

    pub(crate) fn search_start(&self) -> SearchStart {
        let packed = self.walked.0.load(Ordering::Relaxed);
        SearchStart { step: (packed >> 32) as u32, met: packed as u32 }
    }

    /// Remembers where a search in the workflow of this session can start.
    pub(crate) fn set_search_start(&self, start: SearchStart) {
        let packed = (u64::from(start.step) << 32) | u64::from(start.met);
        self.walked.0.store(packed, Ordering::Relaxed);
    }
}

impl Clone for Completed {
    fn clone(&self) -> Self {
        let walked = Walked(AtomicU64::new(self.walked.0.load(Ordering::Relaxed)));
        Self { shared: Arc::clone(&self.shared), recent: self.recent.clone(), walked }
    }
}

impl PartialEq for Completed {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Serialize for Completed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Completed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let shared = Vec::<Arc<str>>::deserialize(deserializer)?.into();
        Ok(Self { shared, ..Self::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completed_ids_keep_their_order_and_are_stored_as_a_list() {
        let mut completed = Completed::default();
        let ids: Vec<String> = (0..3 * RECENT_MAX + 1).map(|at| format!("step-{at}")).collect();
        for id in &ids {
            let before = completed.clone();
            completed.extend(std::slice::from_ref(id));
            assert_ne!(before, completed);
        }
        assert!(completed.iter().eq(ids.iter().map(String::as_str)));
        let json = serde_json::to_string(&completed).unwrap();
        assert_eq!(json, serde_json::to_string(&ids).unwrap());
        assert_eq!(serde_json::from_str::<Completed>(&json).unwrap(), completed);
        assert!(completed.recent.len() <= RECENT_MAX);
    }
}
