//! How calls came out, counted: by what was called, from a table that is made at the start and never grows. What a client
//! writes is never a name here.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mcp::{Outcome, Revision};
use store::{Histogram, Latency};

/// What can be called besides tools, as the protocol names it.
const METHODS: [&str; 6] = [
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
    "completion/complete",
];
/// An answer to a question that another process has asked, and a question that nobody will answer.
const OF_QUESTIONS: [&str; 2] = ["settle", "forget"];
pub(super) const CALL_TOOL: &str = "tools/call";

/// The codes that refusals have. What has another one is counted as `other`.
const CODES: [i32; 12] = [
    -32000, -32001, -32002, -32003, -32004, -32005, -32006, -32007, -32008, -32009, -32021, -32602,
];

/// The store cannot be used, and something else of ours went wrong.
const STORE: i32 = -32006;
const FAULT: i32 = -32603;

#[derive(Debug)]
pub(crate) struct Calls {
    counted: Vec<Counted>,
    /// By code, and last all others.
    refused: [AtomicU64; CODES.len() + 1],
}

#[derive(Debug)]
struct Counted {
    name: &'static str,
    is_tool: bool,
    ended: [AtomicU64; Ended::ALL.len()],
    times: Histogram,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Ok,
    /// The client's user has to say something first.
    Asked,
    Refused,
    Fault,
    /// Taken back, or turned away because too many waited, before there was an outcome.
    Dropped,
}

impl Ended {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Ok, "ok"),
        (Self::Asked, "asked"),
        (Self::Refused, "refused"),
        (Self::Fault, "fault"),
        (Self::Dropped, "dropped"),
    ];

    pub(super) fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// What was counted of one call.
pub(crate) struct Count<'c> {
    pub(crate) method: &'static str,
    pub(crate) tool: Option<&'static str>,
    counted: &'c Counted,
}

impl Calls {
    pub(super) fn new(tools: impl Iterator<Item = &'static str>) -> Self {
        let counted = |name, is_tool| Counted {
            name,
            is_tool,
            ended: Default::default(),
            times: Histogram::default(),
        };
        let tools = tools.map(|name| counted(name, true));
        let methods = METHODS.into_iter().chain(OF_QUESTIONS).map(|name| counted(name, false));
        Self { counted: tools.chain(methods).collect(), refused: Default::default() }
    }

    pub(super) fn count(
        &self,
        name: &str,
        ended: Ended,
        code: Option<i32>,
        time: Option<Duration>,
    ) {
        if let Some(counted) = self.counted.iter().find(|counted| counted.name == name) {
            counted.ended[ended as usize].fetch_add(1, Ordering::Relaxed);
            if let Some(time) = time {
                counted.times.record(time);
            }
        }
        if let (Ended::Refused | Ended::Fault, Some(code)) = (ended, code)
            && code != FAULT
        {
            let at = CODES.iter().position(|own| *own == code).unwrap_or(CODES.len());
            self.refused[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = Count<'_>> {
        self.counted.iter().map(|counted| Count {
            method: if counted.is_tool { CALL_TOOL } else { counted.name },
            tool: counted.is_tool.then_some(counted.name),
            counted,
        })
    }

    /// By code.
    pub(crate) fn refused(&self) -> impl Iterator<Item = (String, u64)> {
        let codes = CODES.iter().map(i32::to_string).chain(["other".to_owned()]);
        codes.zip(self.refused.iter().map(|count| count.load(Ordering::Relaxed)))
    }
}

impl Count<'_> {
    /// By how they ended.
    pub(crate) fn ended(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.counted.ended.iter().map(|count| count.load(Ordering::Relaxed));
        Ended::ALL.into_iter().map(|(_, name)| name).zip(counts)
    }

    pub(crate) fn times(&self) -> Latency {
        self.counted.times.snapshot()
    }
}

pub(super) fn ended(outcome: &Outcome) -> Ended {
    match outcome {
        Outcome::Tool { .. }
        | Outcome::Blocks { is_error: false, .. }
        | Outcome::ForeignContents(_)
        | Outcome::Resources(_)
        | Outcome::Templates(_)
        | Outcome::Resource { .. }
        | Outcome::Prompts(_)
        | Outcome::Prompt { .. }
        | Outcome::Completion { .. } => Ended::Ok,
        Outcome::Foreign(result) if !result.is_error => Ended::Ok,
        Outcome::Ask(_) => Ended::Asked,
        // A store that cannot be used is nobody's fault but ours.
        Outcome::Refused { error, .. } if error.code == STORE => Ended::Fault,
        Outcome::Blocks { is_error: true, .. }
        | Outcome::Foreign(_)
        | Outcome::Refused { .. }
        | Outcome::BadArguments(_)
        | Outcome::NoResource { .. }
        | Outcome::BadParams(_) => Ended::Refused,
        // Too many waited.
        Outcome::Busy => Ended::Dropped,
        Outcome::Fault => Ended::Fault,
    }
}

/// The JSON-RPC code of what did not come out well; as the newest revision has it, where it is not known which is spoken.
pub(super) fn code(outcome: &Outcome, revision: Option<Revision>) -> Option<i32> {
    match outcome {
        Outcome::Refused { error, .. } => Some(error.code),
        Outcome::NoResource { .. }
            if revision.is_some_and(|revision| !revision.traits().is_modern) =>
        {
            Some(-32002)
        }
        Outcome::BadArguments(_) | Outcome::NoResource { .. } | Outcome::BadParams(_) => {
            Some(-32602)
        }
        Outcome::Busy => Some(-32000),
        Outcome::Fault => Some(FAULT),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_where_their_endings_do() {
        for (at, (ended, name)) in Ended::ALL.into_iter().enumerate() {
            assert_eq!((ended as usize, ended.name()), (at, name));
        }
    }

    #[test]
    fn only_what_is_in_the_table_is_counted_by_name() {
        let calls = Calls::new(["tidy_up"].into_iter());
        calls.count("tidy_up", Ended::Refused, Some(-32005), Some(Duration::from_millis(1)));
        calls.count("of a client's", Ended::Refused, Some(7), None);
        let names: Vec<_> = calls.all().map(|count| (count.method, count.tool)).collect();
        assert_eq!(names[0], ("tools/call", Some("tidy_up")));
        assert_eq!(names.len(), 1 + METHODS.len() + OF_QUESTIONS.len());
        let refused: Vec<_> = calls.refused().filter(|(_, count)| *count > 0).collect();
        assert_eq!(refused, [("-32005".to_owned(), 1), ("other".to_owned(), 1)]);
        let first = calls.all().next().unwrap();
        assert_eq!(first.ended().map(|(_, count)| count).sum::<u64>(), 1);
        assert_eq!(first.times().count(), 1);
    }
}
