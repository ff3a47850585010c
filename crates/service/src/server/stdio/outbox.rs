//! What has changed elsewhere and is to be told to the client, from threads that must not wait for it. A client that does
//! not read hears of everything at once when it does.

use std::collections::BTreeMap;

use mcp::{Changed, Private};
use parking_lot::Mutex;

/// So many resources are remembered that have changed. More than a client can follow are none of its business.
const RESOURCES_MAX: usize = 2_000;

#[derive(Debug, Default)]
pub(super) struct Outbox(Mutex<Option<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    changed: Changed,
    /// By their URIs: the last word counts.
    private: BTreeMap<String, Private>,
}

impl Outbox {
    pub(super) fn add(&self, more: Changed) {
        let mut slot = self.0.lock();
        let Waiting { changed, private } = slot.get_or_insert_default();
        changed.tools |= more.tools;
        changed.resources |= more.resources;
        changed.prompts |= more.prompts;
        for (all, more) in [(&mut changed.uris, more.uris), (&mut changed.settled, more.settled)] {
            let is_new = |uri: &String| !all.contains(uri);
            let more: Vec<String> = more.into_iter().filter(is_new).collect();
            all.extend(more);
            all.truncate(RESOURCES_MAX);
        }
        for one in more.private {
            if private.len() < RESOURCES_MAX || private.contains_key(&one.uri) {
                private.insert(one.uri.clone(), one);
            }
        }
    }

    pub(super) fn take(&self) -> Option<Changed> {
        let waiting = self.0.lock().take()?;
        let private = waiting.private.into_values().collect();
        Some(Changed { private, ..waiting.changed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_told_once_and_does_not_grow() {
        let outbox = Outbox::default();
        assert_eq!(outbox.take(), None);
        for number in 0..3 * RESOURCES_MAX {
            let uri = format!("a:{}", number % (RESOURCES_MAX + 10));
            let private = vec![Private { uri: uri.clone(), ..Private::default() }];
            let resources = number == 7;
            outbox.add(Changed { resources, uris: vec![uri], private, ..Changed::default() });
        }
        let changed = outbox.take().unwrap();
        assert!(changed.resources && !changed.tools);
        assert_eq!((changed.uris.len(), changed.private.len()), (RESOURCES_MAX, RESOURCES_MAX));
        assert_eq!(outbox.take(), None);
    }
}
