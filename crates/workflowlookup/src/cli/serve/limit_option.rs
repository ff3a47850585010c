//! `--limit NAME=VALUE`: what one principal may use over HTTP, or one address may hold, where it is not the default.

use std::str::FromStr;
use std::time::Duration;

use service::server::http::HostLimits;
use service::server::upstreams::ProgramsWaiting;

use crate::cli::code_options::size;

/// Every limit by its name, with an example of its value.
const NAMES: [(&str, &str); 8] = [
    ("calls", "512"),
    ("streams", "6000"),
    ("cpu-time", "30s"),
    ("bytes", "512MiB"),
    ("waiting-programs", "64"),
    ("open-sessions", "10000"),
    ("stored-bytes", "4GiB"),
    ("connections-per-address", "256"),
];

/// One limit that an operator has set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitOption {
    Calls(usize),
    Streams(usize),
    CpuTime(Duration),
    Bytes(u64),
    WaitingPrograms(usize),
    OpenSessions(u64),
    StoredBytes(u64),
    ConnectionsPerAddress(usize),
}

impl LimitOption {
    pub(super) fn apply(self, limits: &mut HostLimits) {
        match self {
            Self::Calls(count) => limits.requests.requests_per_principal = count,
            Self::Streams(count) => limits.requests.streams_per_principal = count,
            Self::CpuTime(time) => limits.requests.cpu_time_per_principal = time,
            Self::Bytes(bytes) => limits.requests.bytes_per_principal = bytes,
            Self::WaitingPrograms(count) => limits.programs_waiting = ProgramsWaiting(count),
            Self::OpenSessions(count) => limits.quota.open_sessions = count,
            Self::StoredBytes(bytes) => limits.quota.stored_bytes = bytes,
            Self::ConnectionsPerAddress(count) => limits.requests.connections_per_address = count,
        }
    }
}

impl FromStr for LimitOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or_else(|| expected("NAME=VALUE"))?;
        let count = || value.parse::<usize>().ok().filter(|count| *count > 0);
        let bytes = || size(value).ok().filter(|bytes| *bytes > 0).map(|bytes| bytes as u64);
        let limit = match name {
            "calls" => count().map(Self::Calls),
            "streams" => count().map(Self::Streams),
            "cpu-time" => {
                let time = humantime::parse_duration(value).ok().filter(|time| !time.is_zero());
                time.map(Self::CpuTime)
            }
            "bytes" => bytes().map(Self::Bytes),
            "waiting-programs" => count().map(Self::WaitingPrograms),
            "open-sessions" => count().map(|count| Self::OpenSessions(count as u64)),
            "stored-bytes" => bytes().map(Self::StoredBytes),
            "connections-per-address" => count().map(Self::ConnectionsPerAddress),
            _ => return Err(expected("one of these names")),
        };
        let example = NAMES.iter().find(|(own, _)| *own == name).map_or("", |(_, value)| value);
        limit.ok_or_else(|| format!("expected a value as in `{name}={example}`, found `{value}`"))
    }
}

fn expected(what: &str) -> String {
    let names = NAMES.map(|(name, value)| format!("`{name}={value}`")).join(", ");
    format!("expected {what}; the defaults are {names}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_the_defaults() {
        let (mut limits, defaults) = (HostLimits::default(), HostLimits::default());
        for (name, value) in NAMES {
            let limit: LimitOption = format!("{name}={value}").parse().unwrap();
            limit.apply(&mut limits);
        }
        assert_eq!(limits, defaults);
        for odd in ["", "calls", "calls=", "calls=0", "calls=many", "cpu-time=5", "room=1"] {
            assert!(odd.parse::<LimitOption>().is_err(), "{odd}");
        }
    }
}
