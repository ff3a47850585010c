//! Patterns without look-around and back-references, as an automaton that is built while it is used. The library's own
//! searches cannot be interrupted, and take time in proportion to text and pattern together; so the automaton is driven
//! byte by byte here, and every state that it has to build is paid for.

use std::panic::{RefUnwindSafe, UnwindSafe};

use regex_automata::Input;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::{self, Compiler, WhichCaptures};
use regex_automata::util::pool::Pool;
use regex_syntax::ParserBuilder;

use super::{COMPILED_BYTES_MAX, Error, Translated};
use crate::{Budget, Exhausted};

/// What the automaton of one thread may take; when it is full, it is built anew.
pub(super) const CACHE_BYTES: usize = 256 * 1024;
/// How many bytes are searched between two looks at the budget.
const BLOCK_BYTES: usize = 256;
/// How many bytes an automaton that is built already searches in one step.
const BYTES_PER_STEP: usize = 4;

pub(super) struct Linear {
    dfa: DFA,
    caches: Pool<Cache, MakeCache>,
    /// What building one state may cost: each state of the pattern is looked at.
    state_steps: u64,
    program_bytes: usize,
    /// What one more state adds to the cache at least.
    state_bytes: usize,
}

type MakeCache = Box<dyn Fn() -> Cache + Send + Sync + UnwindSafe + RefUnwindSafe>;

impl Linear {
    pub(super) fn compile(translated: &Translated) -> Result<Self, Error> {
        let Translated { text, flags, .. } = translated;
        let hir = ParserBuilder::new()
            .case_insensitive(flags.ignore_case)
            .multi_line(flags.multi_line)
            .dot_matches_new_line(flags.dot_all)
            // In JavaScript `$` under `m` stands before `\r` too.
            .crlf(flags.multi_line)
            .build()
            .parse(text)
            .map_err(|error| match error {
                regex_syntax::Error::Parse(error) => Error::Other(error.kind().to_string()),
                regex_syntax::Error::Translate(error) => Error::Other(error.kind().to_string()),
                error => Error::Other(error.to_string()),
            })?;
        let config = thompson::Config::new()
            .nfa_size_limit(Some(COMPILED_BYTES_MAX))
            .which_captures(WhichCaptures::None);
        let nfa = Compiler::new().configure(config).build_from_hir(&hir);
        let nfa = nfa.map_err(|error| match error.size_limit() {
            Some(_) => Error::TooLarge,
            None => Error::Other(error.to_string()),
        })?;
        let program_bytes = nfa.memory_usage();
        let state_steps = nfa.states().len() as u64 / 4 + 8;
        let config = DFA::config().cache_capacity(CACHE_BYTES).skip_cache_capacity_check(true);
        let dfa = DFA::builder().configure(config).build_from_nfa(nfa);
        let dfa = dfa.map_err(|error| Error::Other(error.to_string()))?;
        let state_bytes = size_of::<u32>() << dfa.byte_classes().stride2();
        let own = dfa.clone();
        let caches = Pool::new(Box::new(move || own.create_cache()) as MakeCache);
        Ok(Self { dfa, caches, state_steps, program_bytes, state_bytes })
    }

    pub(super) fn is_match(&self, text: &str, budget: &Budget) -> Result<bool, Exhausted> {
        let mut cache = self.caches.get();
        let mut meter = Meter { linear: self, budget, bytes: 0, clears: 0 };
        meter.start(&cache);
        let found = self.search(text.as_bytes(), &mut cache, &mut meter);
        // What an early end leaves unpaid.
        meter.pay(&cache, 0)?;
        found
    }

    fn search(
        &self,
        text: &[u8],
        cache: &mut Cache,
        meter: &mut Meter<'_>,
    ) -> Result<bool, Exhausted> {
        // Without bytes to quit at and without giving up there are no errors.
        let give_up = || meter.budget.exhausted();
        let start = self.dfa.start_state_forward(cache, &Input::new(text));
        let mut state = start.map_err(|_| give_up())?;
        for block in text.chunks(BLOCK_BYTES) {
            for byte in block {
                state = self
                    .dfa
                    .next_state(cache, state, *byte)
                    .map_err(|_| meter.budget.exhausted())?;
                if state.is_tagged() {
                    if state.is_match() {
                        return Ok(true);
                    }
                    if state.is_dead() {
                        return Ok(false);
                    }
                }
            }
            meter.pay(cache, block.len())?;
        }
        let end = self.dfa.next_eoi_state(cache, state).map_err(|_| meter.budget.exhausted())?;
        Ok(end.is_match())
    }

    pub(super) fn bytes(&self) -> usize {
        self.program_bytes() + CACHE_BYTES
    }

    pub(super) fn program_bytes(&self) -> usize {
        self.program_bytes
    }
}

/// Pays for what was searched, and for the states that were built for it.
struct Meter<'a> {
    linear: &'a Linear,
    budget: &'a Budget,
    /// The cache as it was when it was last paid for.
    bytes: usize,
    clears: usize,
}

impl Meter<'_> {
    fn start(&mut self, cache: &Cache) {
        self.bytes = cache.memory_usage();
        self.clears = cache.clear_count();
    }

    fn pay(&mut self, cache: &Cache, searched: usize) -> Result<(), Exhausted> {
        let grown = cache.memory_usage().saturating_sub(self.bytes);
        let built = if cache.clear_count() == self.clears {
            grown / self.linear.state_bytes
        } else {
            // Nobody knows how many; no more than one for each byte.
            BLOCK_BYTES
        };
        self.start(cache);
        let building = self.linear.state_steps.saturating_mul(built as u64);
        self.budget.spend((searched / BYTES_PER_STEP) as u64 + 1 + building)
    }
}

impl std::fmt::Debug for Linear {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Linear")
    }
}
