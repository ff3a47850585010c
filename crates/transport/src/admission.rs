//! How much is under way at once: in all, and for one owner, so that nobody crowds out the others.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::connections::Owner;
use crate::host::Principal;

/// Counts what is let in.
#[derive(Debug)]
pub(crate) struct Admission {
    max: usize,
    owner_limit: OwnerLimit,
    counts: Mutex<Counts>,
}

/// How much one owner may have.
#[derive(Debug, Clone, Copy)]
enum OwnerLimit {
    Fixed(usize),
    /// One in this many of what all others leave free, so that several owners together leave some as well.
    ShareOfRest(usize),
}

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    by_owner: HashMap<Owner, usize>,
}

/// A place that is given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    admission: Arc<Admission>,
    owner: Owner,
    amount: usize,
}

impl Admission {
    pub(crate) fn new(max: usize, per_principal_max: usize) -> Arc<Self> {
        let owner_limit = OwnerLimit::Fixed(per_principal_max);
        Arc::new(Self { max, owner_limit, counts: Mutex::default() })
    }

    /// Gives each owner at most one in `share` of what all others leave free.
    pub(crate) fn shared(max: usize, share: usize) -> Arc<Self> {
        let owner_limit = OwnerLimit::ShareOfRest(share);
        Arc::new(Self { max, owner_limit, counts: Mutex::default() })
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
        let name = principal.map(|principal| Arc::clone(&principal.name));
        let mut place = self.empty_place(Owner::Principal(name));
        place.resize(amount).then_some(place)
    }

    /// A place that counts as nothing yet.
    pub(crate) fn empty_place(self: &Arc<Self>, owner: Owner) -> Place {
        Place { admission: Arc::clone(self), owner, amount: 0 }
    }

    pub(crate) fn under_way(&self) -> usize {
        self.counts().all
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock()
    }

    /// How much an owner may have while the others have so much.
    fn owner_max(&self, others: usize) -> usize {
        match self.owner_limit {
            OwnerLimit::Fixed(max) => max,
            OwnerLimit::ShareOfRest(share) => self.max.saturating_sub(others) / share,
        }
    }
}

impl Place {
    pub(crate) fn amount(&self) -> usize {
        self.amount
    }

    /// Counts as so many from now on. Less is always possible, more only as long as there is room.
    pub(crate) fn resize(&mut self, amount: usize) -> bool {
        if amount == self.amount {
            return true;
        }
        let mut counts = self.admission.counts();
        let all = counts.all - self.amount + amount;
        let own = counts.by_owner.get(&self.owner).copied().unwrap_or_default();
        let own = own - self.amount + amount;
        let is_more = amount > self.amount;
        if is_more && (all > self.admission.max || own > self.admission.owner_max(all - own)) {
            return false;
        }
        counts.all = all;
        match own {
            // Nobody is remembered who has nothing here.
            0 => drop(counts.by_owner.remove(&self.owner)),
            own => drop(counts.by_owner.insert(self.owner.clone(), own)),
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
        assert_eq!(admission.counts().by_owner.len(), 2, "nobody is remembered who is gone");
    }

    #[test]
    fn owner_share_shrinks_with_what_others_hold() {
        let admission = Admission::shared(64, 4);
        let [mut ann, mut bob, mut cleo] =
            ["ann", "bob", "cleo"].map(|name| admission.empty_place(owner(name)));
        assert!(!ann.resize(17));
        assert!(ann.resize(16), "a quarter");
        assert!(!bob.resize(13));
        assert!(bob.resize(12), "a quarter of what ann leaves");
        assert!(!admission.empty_place(owner("ann")).resize(1), "places of one owner add up");
        drop(ann);
        assert!(cleo.resize(13), "what was given back counts again");
        drop((bob, cleo));
        assert_eq!(admission.under_way(), 0);
    }

    fn owner(name: &str) -> Owner {
        Owner::Principal(Some(name.into()))
    }
}
