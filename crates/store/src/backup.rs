//! What a copy of a store holds.

/// The copy is as the store is, flaws included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Backup {
    pub sessions: u64,
    pub events: u64,
    /// What is not as it was written, each in a sentence.
    pub flaws: Vec<String>,
}
