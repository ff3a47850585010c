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
    amount: usize,
}

impl Admission {
    pub(crate) fn new(max: usize, per_principal_max: usize) -> Arc<Self> {
        Arc::new(Self { max, per_principal_max, counts: Mutex::default() })
    }

    /// None where there is no place now.
    pub(crate) fn enter(self: &Arc<Self>, principal: Option<&Principal>) -> Option<Place> {
        self.enter_with(principal, 1)
    }

    /// The same for something that counts as so many.
    pub(crate) fn enter_with(
        self: &Arc<Self>,
        principal: Option<&Principal>,
        amount: usize,
    ) -> Option<Place> {
        let principal = principal.map(|principal| Arc::clone(&principal.name));
        let mut place = Place { admission: Arc::clone(self), principal, amount: 0 };
        place.resize(amount).then_some(place)
    }

    pub(crate) fn under_way(&self) -> usize {
        self.counts().all
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Counts as so many from now on. Less is always possible, more only as long as there is room.
    pub(crate) fn resize(&mut self, amount: usize) -> bool {
        let mut counts = self.admission.counts();
        let all = counts.all - self.amount + amount;
        let own = counts.by_principal.get(&self.principal).copied().unwrap_or_default();
        let own = own - self.amount + amount;
        let is_more = amount > self.amount;
        if is_more && (all > self.admission.max || own > self.admission.per_principal_max) {
            return false;
        }
        counts.all = all;
        match own {
            // Nobody is remembered who has nothing here.
            0 => drop(counts.by_principal.remove(&self.principal)),
            own => drop(counts.by_principal.insert(self.principal.clone(), own)),
        }
        drop(counts);
        self.amount = amount;
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.resize(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_crowds_out_the_others() {
        let admission = Admission::new(3, 2);
        let [ann, bob] = ["ann", "bob"].map(|name| Principal {
            name: name.into(),
            scope: "".into(),
            until: None,
        });
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
