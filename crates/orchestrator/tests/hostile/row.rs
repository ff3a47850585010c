//! A row of the table: a server, and what is asked of it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::web::Does;

/// The time limit where a call is to be answered, and where it is not.
pub(crate) const PATIENT: Duration = Duration::from_secs(60);
pub(crate) const SHORT: Duration = Duration::from_secs(2);
/// The longest call whatever its server says meanwhile.
pub(crate) const TOTAL: Duration = Duration::from_secs(5);

/// Memory that is not given back after a row: what an allocator keeps.
pub(crate) const MEMORY_KEPT_MAX: u64 = 32 * 1024 * 1024;
/// Memory at any time during a row: a message of 72 MiB in a few forms.
pub(crate) const MEMORY_PEAK_MAX: u64 = 256 * 1024 * 1024;

pub(crate) struct Row {
    /// What the server does: the end of a sentence.
    pub(crate) does: &'static str,
    pub(crate) server: Server,
    pub(crate) eras: &'static [&'static str],
    /// Whether the connection is there, and the tools are known, before anything is asked.
    pub(crate) is_prepared: bool,
    pub(crate) asked: Asked,
    pub(crate) limit: Duration,
    /// Whether it is seen to that the server's answer is not read any more.
    pub(crate) lets_go: bool,
}

pub(crate) enum Server {
    /// The example, with these arguments.
    Process(Vec<&'static str>),
    /// One that this test has.
    Web(Does),
}

pub(crate) enum Asked {
    Tools,
    /// A resource.
    Read(&'static str),
    Call {
        tool: &'static str,
        arguments: Value,
    },
    /// The same tool so many times at once. Each has a text of its own to be told.
    Together {
        tool: &'static str,
        times: usize,
    },
}

const BOTH: &[&str] = &["legacy", "modern"];

impl Row {
    fn new(does: &'static str, server: Server) -> Self {
        let asked = Asked::Call { tool: "echo", arguments: json!({"text": "hello"}) };
        Self { does, server, eras: BOTH, is_prepared: true, asked, limit: PATIENT, lets_go: false }
    }

    /// A server that is a process, and is called well.
    pub(crate) fn process(does: &'static str, arguments: &[&'static str]) -> Self {
        Self::new(does, Server::Process(arguments.to_vec()))
    }

    /// One that does something wrong when this tool is called.
    pub(crate) fn tool(does: &'static str, tool: &'static str, arguments: Value) -> Self {
        Self { asked: Asked::Call { tool, arguments }, ..Self::process(does, &[]) }
    }

    /// A server over HTTP, which does something wrong when `slow` is called, or always.
    pub(crate) fn web(does: &'static str, how: Does) -> Self {
        let asked = Asked::Call { tool: "slow", arguments: json!({"ms": 1}) };
        Self { asked, ..Self::new(does, Server::Web(how)) }
    }

    pub(crate) fn asked(self, asked: Asked) -> Self {
        Self { asked, ..self }
    }

    /// There will be no answer.
    pub(crate) fn in_vain(self) -> Self {
        Self { limit: SHORT, ..self }
    }

    /// It goes wrong before anything can be asked.
    pub(crate) fn at_first(self) -> Self {
        Self { is_prepared: false, ..self }
    }

    pub(crate) fn only(self, eras: &'static [&'static str]) -> Self {
        Self { eras, ..self }
    }

    pub(crate) fn lets_go(self) -> Self {
        Self { lets_go: true, ..self }
    }
}
