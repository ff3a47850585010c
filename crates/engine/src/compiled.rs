//! Compiled patterns and schemas, made on first use, once, and kept within a bound of bytes: the least
//! recently used goes first. Keyed by content, so that a reload of unchanged rules costs nothing
//! and equal rules of different workflows share.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use budget::{Budget, Exhausted};
use parking_lot::Mutex;
use workflow::criteria::Embedded;
use workflow::pattern::{self, Matcher};
use workflow::schema::{self, Malformed, Options, Schema};

/// What all compiled patterns and schemas together may take.
const CACHE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// What compiling takes, at least and for each byte of the text. Patterns are bounded by the program that they come to,
/// not by their text.
const COMPILE_STEPS: u64 = 20_000;
const COMPILE_STEPS_PER_BYTE: u64 = 40;
/// What a pattern comes to is known once it is compiled, and paid for then: so many bytes of program in one step.
const PROGRAM_BYTES_PER_STEP: usize = 2;
/// What a compiled schema takes, as a multiple of its text. Measured between 20 and 60.
const SCHEMA_BYTES_FACTOR: usize = 64;

#[derive(Debug)]
pub(crate) enum Machine {
    Pattern(Result<Matcher, pattern::Error>),
    Schema(Result<Box<Schema>, Malformed>),
}

/// What compiling came to.
struct Made {
    machine: Machine,
    /// What is kept.
    bytes: usize,
    /// The programs of its patterns.
    program_bytes: usize,
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
    pub(crate) fn pattern(
        &self,
        pattern: &str,
        flags: &str,
        budget: &Budget,
    ) -> Result<Arc<OnceLock<Machine>>, Exhausted> {
        let key = Key::Pattern { pattern: pattern.into(), flags: flags.into() };
        self.get(key, pattern.len(), budget, || {
            let compiled = pattern::compile(pattern, flags);
            let bytes = compiled.as_ref().map_or(0, Matcher::bytes) + pattern.len();
            let program_bytes = compiled.as_ref().map_or(0, Matcher::program_bytes);
            Made { machine: Machine::Pattern(compiled), bytes, program_bytes }
        })
    }

    pub(crate) fn schema(
        &self,
        schema: &Embedded,
        budget: &Budget,
    ) -> Result<Arc<OnceLock<Machine>>, Exhausted> {
        self.get(Key::Schema(schema.text().into()), schema.text().len(), budget, || {
            let value = schema.value();
            let compiled = schema::check(&value);
            let compiled = compiled.and_then(|()| Schema::compile(&value, Options::default()));
            let mut bytes = SCHEMA_BYTES_FACTOR * schema.text().len();
            let mut program_bytes = 0;
            if let Ok(compiled) = &compiled {
                bytes += compiled.pattern_bytes();
                program_bytes =
                    compiled.patterns().map(|(_, matcher)| matcher.program_bytes()).sum();
            }
            Made { machine: Machine::Schema(compiled.map(Box::new)), bytes, program_bytes }
        })
    }

    /// The machine for a key. Compiling happens outside the lock, so that nobody waits for somebody
    /// else's pattern; who wants the same one waits for it, and it is made once.
    fn get(
        &self,
        key: Key,
        length: usize,
        budget: &Budget,
        make: impl FnOnce() -> Made,
    ) -> Result<Arc<OnceLock<Machine>>, Exhausted> {
        budget.spend_scan(length)?;
        if !self.lock().slots.contains_key(&key) {
            budget.spend(COMPILE_STEPS + COMPILE_STEPS_PER_BYTE * length as u64)?;
        }
        let machine = self.lock().slot(key.clone());
        let mut made = None;
        machine.get_or_init(|| {
            let Made { machine, bytes, program_bytes } = make();
            made = Some((bytes, program_bytes));
            machine
        });
        if let Some((bytes, program_bytes)) = made {
            self.lock().charge(&key, bytes);
            budget.spend((program_bytes / PROGRAM_BYTES_PER_STEP) as u64)?;
        }
        Ok(machine)
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, Cache> {
        // Nothing inside can panic half-way, so a poisoned cache is still a good one.
        self.cache.lock()
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

    fn get(compiled: &Compiled, pattern: &str, flags: &str) -> Arc<OnceLock<Machine>> {
        compiled.pattern(pattern, flags, &Budget::for_call()).unwrap()
    }

    #[test]
    fn equal_patterns_are_compiled_once() {
        let compiled = Compiled::default();
        let first = get(&compiled, "a+", "i");
        assert!(Arc::ptr_eq(&first, &get(&compiled, "a+", "i")));
        assert!(!Arc::ptr_eq(&first, &get(&compiled, "a+", "")));
    }

    #[test]
    fn the_cache_stays_within_its_bytes() {
        let compiled = Compiled::default();
        let kept = get(&compiled, "kept", "");
        for number in 0..1_000 {
            get(&compiled, &format!("pattern{number}"), "");
            get(&compiled, "kept", "");
        }
        let cache = compiled.lock();
        assert!(cache.bytes <= CACHE_BYTES_MAX, "{}", cache.bytes);
        assert!(cache.slots.len() > 100, "{}", cache.slots.len());
        let sum: usize = cache.slots.values().map(|slot| slot.bytes).sum();
        assert_eq!(cache.bytes, sum);
        drop(cache);
        assert!(Arc::ptr_eq(&kept, &get(&compiled, "kept", "")), "what is used stays");
    }

    #[test]
    fn patterns_of_schemas_are_charged_and_paid_for() {
        let compiled = Compiled::default();
        let schema = |count: usize| -> Embedded {
            let each = |at| format!(r#"{{"pattern": "\\p{{L}}{{20}}x{at}"}}"#);
            let all: Vec<String> = (0..count).map(each).collect();
            serde_json::from_str(&format!(r#"{{"allOf": [{}]}}"#, all.join(","))).unwrap()
        };
        let budget = Budget::for_call();
        let machine = compiled.schema(&schema(20), &budget).unwrap();
        let Some(Machine::Schema(Ok(made))) = machine.get() else { panic!("{machine:?}") };
        assert!(compiled.lock().bytes > made.pattern_bytes());
        assert!(made.pattern_bytes() > 20 * 256 * 1024);
        assert!(budget.steps() > 1_000_000, "{} steps", budget.steps());
        let machine = compiled.schema(&schema(65), &budget).unwrap();
        let Some(Machine::Schema(Err(error))) = machine.get() else { panic!("{machine:?}") };
        assert!(error.message.ends_with("the schema has more than 64 patterns"), "{error}");
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
