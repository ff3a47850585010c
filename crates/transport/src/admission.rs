//! How much is under way at once: in all, and for one principal, so that nobody crowds out the others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::host::Principal;

/// Counts what is let in.
#[derive(Debug)]
pub(crate) struct Admission {
    max: usize,
    per_principal_max: usize,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    by_principal: HashMap<Option<Arc<str>>, usize>,
}

/// A place that is given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    admission: Arc<Admission>,
    principal: Option<Arc<str>>,
}

impl Admission {
    pub(crate) fn new(max: usize, per_principal_max: usize) -> Arc<Self> {
        Arc::new(Self { max, per_principal_max, counts: Mutex::default() })
    }

    /// None where there is no place now.
    pub(crate) fn enter(self: &Arc<Self>, principal: Option<&Principal>) -> Option<Place> {
        let mut counts = self.counts();
        if counts.all >= self.max {
            return None;
        }
        let principal = principal.map(|principal| Arc::clone(&principal.name));
        let own = counts.by_principal.entry(principal.clone()).or_default();
        if *own >= self.per_principal_max {
            return None;
        }
        *own += 1;
        counts.all += 1;
        Some(Place { admission: Arc::clone(self), principal })
    }

    pub(crate) fn under_way(&self) -> usize {
        self.counts().all
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.admission.counts();
        counts.all -= 1;
        if let Some(own) = counts.by_principal.get_mut(&self.principal) {
            *own -= 1;
            if *own == 0 {
                counts.by_principal.remove(&self.principal);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_crowds_out_the_others() {
        let admission = Admission::new(3, 2);
        let [ann, bob] = ["ann", "bob"].map(|name| Principal { name: name.into(), until: None });
        let first = admission.enter(Some(&ann)).unwrap();
        let _second = admission.enter(Some(&ann)).unwrap();
        assert!(admission.enter(Some(&ann)).is_none());
        let _third = admission.enter(Some(&bob)).unwrap();
        assert!(admission.enter(None).is_none(), "full");
        drop(first);
        assert!(admission.enter(None).is_some());
        assert_eq!(admission.under_way(), 2);
        assert_eq!(admission.counts().by_principal.len(), 2, "nobody is remembered who is gone");
    }
}
