//! Batches under way: answers that go out together, once the last of them is there.

use std::collections::BTreeMap;

use crate::jsonrpc::Id;

/// By a key of the connection's, and so in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Batches(BTreeMap<u64, Batch>);

#[derive(Debug, Default)]
struct Batch {
    /// How many answers it waits for.
    open: usize,
    /// Each with the id that it answers, where one could be read.
    replies: Vec<(Option<Id>, String)>,
}

impl Batches {
    /// Open once for the batch itself, so that it does not end before all members are looked at.
    pub(crate) fn begin(&mut self, key: u64) {
        self.0.insert(key, Batch { open: 1, replies: Vec::new() });
    }

    pub(crate) fn join(&mut self, key: u64) {
        if let Some(batch) = self.0.get_mut(&key) {
            batch.open += 1;
        }
    }

    pub(crate) fn add(&mut self, key: u64, id: Option<&Id>, reply: String) {
        if let Some(batch) = self.0.get_mut(&key) {
            batch.replies.push((id.cloned(), reply));
        }
    }

    /// The answers together, for the last one out.
    pub(crate) fn leave(&mut self, key: u64) -> Option<String> {
        let batch = self.0.get_mut(&key)?;
        batch.open -= 1;
        if batch.open > 0 {
            return None;
        }
        self.0.remove(&key)?.answers()
    }

    /// What is answered already, but held back for the rest of its batch, is not sent to who takes it back.
    pub(crate) fn forget(&mut self, is_wanted: impl Fn(&Id) -> bool) {
        for batch in self.0.values_mut() {
            batch.replies.retain(|(id, _)| !id.as_ref().is_some_and(&is_wanted));
        }
    }

    /// Ends all, with the answers that there are.
    pub(crate) fn end_all(&mut self) -> impl Iterator<Item = String> {
        std::mem::take(&mut self.0).into_values().filter_map(Batch::answers)
    }
}

impl Batch {
    /// A batch of notifications has none.
    fn answers(self) -> Option<String> {
        let replies: Vec<String> = self.replies.into_iter().map(|(_, reply)| reply).collect();
        (!replies.is_empty()).then(|| format!("[{}]", replies.join(",")))
    }
}
