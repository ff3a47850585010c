//! How often a store was written, sealed, so that an older copy of it is told from the newest one by somebody who has
//! written the count down elsewhere.

use crate::chain::Hash;

/// How far a store has come. The count never goes back, so one that is smaller than it was is of an older copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    /// Tells the store from every other, in hexadecimal.
    pub store: String,
    pub count: u64,
    /// What is counted: `writes`, or `checkpoints` where a server makes one for all the writes of about a second.
    pub unit: &'static str,
}

/// The sum of the seals of all sessions, modulo 2^256: an append takes the old seal out and puts the new one in, so it
/// costs the same however many sessions there are. Nobody without the key knows which seals add up to the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SealSum([u64; 4]);

impl SealSum {
    pub(crate) fn add(&mut self, seal: &Hash) {
        self.join(&Self::from_bytes(seal));
    }

    pub(crate) fn remove(&mut self, seal: &Hash) {
        // Minus a number is its complement plus one.
        let complement = Self(Self::from_bytes(seal).0.map(|limb| !limb));
        self.join(&complement);
        self.join(&Self([1, 0, 0, 0]));
    }

    pub(crate) fn join(&mut self, other: &Self) {
        let mut carry = false;
        for (limb, other) in self.0.iter_mut().zip(other.0) {
            let (sum, first) = limb.overflowing_add(other);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            (*limb, carry) = (sum, first || second);
        }
    }

    pub(crate) fn from_bytes(bytes: &Hash) -> Self {
        let mut limbs = [0; 4];
        for (limb, bytes) in limbs.iter_mut().zip(bytes.as_chunks().0) {
            *limb = u64::from_le_bytes(*bytes);
        }
        Self(limbs)
    }

    pub(crate) fn to_bytes(self) -> Hash {
        let mut bytes = Hash::default();
        for (bytes, limb) in bytes.as_chunks_mut().0.iter_mut().zip(self.0) {
            *bytes = limb.to_le_bytes();
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_can_be_removed_in_any_order() {
        let seals = [[0xff; 32], [1; 32], [0; 32], [0x80; 32]];
        let mut sum = SealSum::default();
        seals.iter().for_each(|seal| sum.add(seal));
        assert_ne!(sum, SealSum::default());
        assert_eq!(SealSum::from_bytes(&sum.to_bytes()), sum);
        seals.iter().rev().for_each(|seal| sum.remove(seal));
        assert_eq!(sum, SealSum::default());
        let mut max = SealSum::from_bytes(&[0xff; 32]);
        max.add(&SealSum([1, 0, 0, 0]).to_bytes());
        assert_eq!(max, SealSum::default(), "it wraps around");
    }
}
