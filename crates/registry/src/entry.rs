//! One upstream, as its entry says, with every variable filled in.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use process_guard::Spawn;

/// What stands where a secret would.
pub const HIDDEN: &str = "***";

/// One server that can be called.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Small letters, digits and `-`; unique.
    pub id: String,
    pub title: Option<String>,
    pub summary: Option<String>,
    pub domains: Vec<String>,
    pub tags: Vec<String>,
    pub examples: Vec<String>,
    pub connect: Connect,
    /// Tools that skip a confirmation.
    pub always_allow: Vec<String>,
    pub sensitivity: Sensitivity,
    pub visibility: Visibility,
    /// From 1 to 10; breaks ties.
    pub priority: u8,
    /// Connect and list tools when described; otherwise only when called.
    pub auto_discover_tools: bool,
    /// Globs: which of its tools there are for us. Nothing in `allow` is everything.
    pub allow: Vec<String>,
    pub deny: Vec<String>,
    /// How long a call may take, where the entry says so itself.
    pub own_timeout: Option<Duration>,
    /// How many calls a minute, where the entry says so itself.
    pub own_calls_per_minute: Option<u32>,
}

/// How it is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum Connect {
    Stdio {
        command: String,
        args: Vec<Secret>,
        env: BTreeMap<String, Secret>,
        cwd: Option<PathBuf>,
        /// Whether it may use setuid programs and reach processes outside its own.
        unconfined: bool,
    },
    Http {
        /// The whole of it, path included.
        url: Secret,
        headers: BTreeMap<String, Secret>,
        auth: Option<Auth>,
    },
}

impl Connect {
    /// The command that starts it; none if it is reached over HTTP.
    pub fn to_spawn(&self) -> Option<Spawn> {
        let Self::Stdio { command, args, env, cwd, unconfined } = self else { return None };
        let env = env.iter().map(|(name, value)| (name.clone(), value.reveal().to_owned()));
        Some(Spawn {
            command: command.clone(),
            args: args.iter().map(|arg| arg.reveal().to_owned()).collect(),
            env: env.collect(),
            cwd: cwd.clone(),
            unconfined: *unconfined,
        })
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Auth {
    Bearer(Secret),
    OAuth {
        /// For servers that register nobody: a client that was registered by hand.
        client_id: Option<String>,
        client_secret: Option<Secret>,
        scopes: Vec<String>,
        /// The port that such a client was registered to be called back at.
        callback_port: Option<u16>,
    },
}

/// What a mistake with this server can cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sensitivity {
    Low,
    #[default]
    Medium,
    High,
}

/// Who comes to see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Visibility {
    #[default]
    Default,
    /// Only when named.
    OptIn,
    /// Only when asked for.
    Experimental,
}

impl Sensitivity {
    pub const WORDS: &[(&str, Self)] =
        &[("low", Self::Low), ("medium", Self::Medium), ("high", Self::High)];

    pub fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    pub fn timeout(self) -> Duration {
        Duration::from_millis(match self {
            Self::Low => 10_000,
            Self::Medium => 7_500,
            Self::High => 5_000,
        })
    }

    pub fn calls_per_minute(self) -> u32 {
        match self {
            Self::Low => 50,
            Self::Medium => 20,
            Self::High => 10,
        }
    }
}

impl Visibility {
    pub const WORDS: &[(&str, Self)] = &[
        ("default", Self::Default),
        ("opt_in", Self::OptIn),
        ("experimental", Self::Experimental),
    ];

    pub fn word(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::OptIn => "opt_in",
            Self::Experimental => "experimental",
        }
    }
}

impl Connect {
    /// The name of the transport.
    pub fn transport(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::Http { .. } => "http",
        }
    }

    /// What must not be seen anywhere.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let all: Vec<&Secret> = match self {
            Self::Stdio { args, env, .. } => args.iter().chain(env.values()).collect(),
            Self::Http { url, headers, auth } => {
                let auth = match auth {
                    Some(Auth::Bearer(token)) => Some(token),
                    Some(Auth::OAuth { client_secret, .. }) => client_secret.as_ref(),
                    None => None,
                };
                std::iter::once(url).chain(headers.values()).chain(auth).collect()
            }
        };
        all.into_iter().flat_map(Secret::secrets)
    }
}

impl Entry {
    /// The priority of an entry that names none.
    pub(super) const PRIORITY: u8 = 5;

    pub fn timeout(&self) -> Duration {
        self.own_timeout.unwrap_or_else(|| self.sensitivity.timeout())
    }

    pub fn calls_per_minute(&self) -> u32 {
        self.own_calls_per_minute.unwrap_or_else(|| self.sensitivity.calls_per_minute())
    }
}

/// A text that may be secret, or have secrets in it. Whoever prints it shows what its file says, without what is secret
/// there, and never what a variable held.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// With everything filled in.
    value: String,
    /// As the file has it, with variables by their names, and stars for what is secret in the file itself.
    shown: String,
    /// What of the value is secret.
    parts: Vec<Range<usize>>,
}

impl Secret {
    /// Filled in from a text that may be shown. Where that is another text, the value is secret.
    pub fn new(value: impl Into<String>, shown: impl Into<String>) -> Self {
        let (value, shown) = (value.into(), shown.into());
        let parts = if value == shown { Vec::new() } else { whole(&value) };
        Self { value, shown, parts }
    }

    /// Nothing in it is secret.
    pub fn plain(value: impl Into<String>) -> Self {
        let value = value.into();
        Self { shown: value.clone(), value, parts: Vec::new() }
    }

    /// Never to be shown.
    pub fn hidden(value: impl Into<String>) -> Self {
        let value = value.into();
        Self { parts: whole(&value), value, shown: HIDDEN.to_owned() }
    }

    /// Secret in some places; each range is one of the value's.
    pub(super) fn in_parts(value: String, shown: String, parts: Vec<Range<usize>>) -> Self {
        Self { value, shown, parts }
    }

    /// The real one, for whoever sends it.
    pub fn reveal(&self) -> &str {
        &self.value
    }

    /// What must not be seen anywhere.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| self.value.get(part.clone()))
    }
}

#[expect(clippy::single_range_in_vec_init, reason = "a list of one range is meant")]
fn whole(value: &str) -> Vec<Range<usize>> {
    vec![0..value.len()]
}

impl fmt::Display for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.shown)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "`{self}`")
    }
}
