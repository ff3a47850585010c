//! Compiled patterns and schemas, made on first use, once, and kept within a bound of bytes: the least
//! recently used goes first. Keyed by content, so that a reload of unchanged rules costs nothing
//! and equal rules of different workflows share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jsonschema::Validator;
use workflow::criteria::Embedded;
use workflow::pattern::{self, Matcher};
use workflow::schema::{self, Malformed};

/// What all compiled patterns and schemas together may take.
const CACHE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// What a compiled schema takes, as a multiple of its text. Measured between 20 and 60.
const SCHEMA_BYTES_FACTOR: usize = 64;

#[derive(Debug)]
pub(crate) enum Machine {
    Pattern(Result<Matcher, pattern::Error>),
    Schema(Result<Box<Validator>, Malformed>),
}

#[derive(Debug, Default)]
pub(crate) struct Compiled {
    cache: Mutex<Cache>,
}

#[derive(Debug, Default)]
struct Cache {
    slots: HashMap<Key, Slot>,
    bytes: usize,
    clock: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Pattern { pattern: Box<str>, flags: Box<str> },
    Schema(Box<str>),
}

#[derive(Debug)]
struct Slot {
    machine: Arc<OnceLock<Machine>>,
    bytes: usize,
    used: u64,
}

impl Compiled {
    pub(crate) fn pattern(&self, pattern: &str, flags: &str) -> Arc<OnceLock<Machine>> {
        let key = Key::Pattern { pattern: pattern.into(), flags: flags.into() };
        self.get(key, || {
            let compiled = pattern::compile(pattern, flags);
            let bytes = compiled.as_ref().map_or(0, Matcher::bytes);
            (Machine::Pattern(compiled), bytes + pattern.len())
        })
    }

    pub(crate) fn schema(&self, schema: &Embedded) -> Arc<OnceLock<Machine>> {
        self.get(Key::Schema(schema.text().into()), || {
            let value = schema.value();
            let compiled = schema::check(&value).and_then(|()| schema::compile(&value));
            (Machine::Schema(compiled.map(Box::new)), SCHEMA_BYTES_FACTOR * schema.text().len())
        })
    }

    /// The machine for a key. Compiling happens outside the lock, so that nobody waits for somebody
    /// else's pattern; who wants the same one waits for it, and it is made once.
    fn get(&self, key: Key, make: impl FnOnce() -> (Machine, usize)) -> Arc<OnceLock<Machine>> {
        let machine = self.lock().slot(key.clone());
        let mut made = None;
        machine.get_or_init(|| {
            let (machine, bytes) = make();
            made = Some(bytes);
            machine
        });
        if let Some(bytes) = made {
            self.lock().charge(&key, bytes);
        }
        machine
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Cache> {
        // Nothing inside can panic half-way, so a poisoned cache is still a good one.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cache {
    fn slot(&mut self, key: Key) -> Arc<OnceLock<Machine>> {
        self.clock += 1;
        let used = self.clock;
        let slot = self.slots.entry(key).or_insert_with(|| Slot {
            machine: Arc::default(),
            bytes: 0,
            used,
        });
        slot.used = used;
        Arc::clone(&slot.machine)
    }

    fn charge(&mut self, key: &Key, bytes: usize) {
        if let Some(slot) = self.slots.get_mut(key) {
            // Evicted while it compiled and asked for again, it is made and charged twice.
            self.bytes = self.bytes - slot.bytes + bytes;
            slot.bytes = bytes;
        }
        while self.bytes > CACHE_BYTES_MAX && self.slots.len() > 1 {
            let oldest = self.slots.iter().min_by_key(|(_, slot)| slot.used);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else {
                return;
            };
            if let Some(slot) = self.slots.remove(&oldest) {
                self.bytes -= slot.bytes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_patterns_are_compiled_once() {
        let compiled = Compiled::default();
        let first = compiled.pattern("a+", "i");
        assert!(Arc::ptr_eq(&first, &compiled.pattern("a+", "i")));
        assert!(!Arc::ptr_eq(&first, &compiled.pattern("a+", "")));
    }

    #[test]
    fn the_cache_stays_within_its_bytes() {
        let compiled = Compiled::default();
        let kept = compiled.pattern("kept", "");
        for number in 0..1_000 {
            compiled.pattern(&format!("pattern{number}"), "");
            compiled.pattern("kept", "");
        }
        let cache = compiled.lock();
        assert!(cache.bytes <= CACHE_BYTES_MAX, "{}", cache.bytes);
        assert!(cache.slots.len() > 100, "{}", cache.slots.len());
        let sum: usize = cache.slots.values().map(|slot| slot.bytes).sum();
        assert_eq!(cache.bytes, sum);
        drop(cache);
        assert!(Arc::ptr_eq(&kept, &compiled.pattern("kept", "")), "what is used stays");
    }

    #[test]
    fn what_is_charged_twice_counts_once() {
        let mut cache = Cache::default();
        let key = Key::Schema("{}".into());
        cache.slot(key.clone());
        cache.charge(&key, 10);
        cache.charge(&key, 10);
        assert_eq!(cache.bytes, 10);
    }
}
