//! Who may call what: an entry's `allow` and `deny` say which tools there are for us, its sensitivity which calls a person
//! confirms first. What a tool says about itself can make us ask once more, never once less.
//!
//! An entry's visibility is no part of this. It decides what is shown to somebody who looks around ([`is_shown`]). Whoever
//! describes or calls a server names it, and so knows of it already. To keep a tool from agents there is `deny`.

use std::fmt;

use crate::entry::{Entry, Sensitivity, Visibility};

pub(crate) mod glob;

use glob::Glob;
use tool_schema::tool::Annotations;

/// Who wants the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedBy {
    Agent,
    /// Somebody at a command line. Their own call is never asked about.
    Person,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Allowed,
    /// A person must say yes first. Where nobody can be asked, see [`Confirmation::nobody_to_ask`].
    Confirm(Confirmation),
    Denied(Denied),
}

/// Why a person is asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{server}.{tool}` needs a person's yes, because {why}")]
pub struct Confirmation {
    pub server: String,
    pub tool: String,
    pub why: Why,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The server's sensitivity is `high`.
    HighSensitivity,
    /// The server's sensitivity is `medium`, and the tool says that it destroys.
    Destructive,
}

/// Why a call is not made, and who may change that. Agents read this: it tells them no way around the person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    #[error(
        "`{server}.{tool}` is denied by `{pattern}` in `tools.deny` of `{server}`; only the user who keeps the registry may change that"
    )]
    Deny { server: String, tool: String, pattern: String },
    #[error(
        "`{server}.{tool}` is not among `tools.allow` of `{server}`; only the user who keeps the registry may change that"
    )]
    NotAllowed { server: String, tool: String },
    #[error(
        "{0}, and this client cannot ask for it; the user has to allow it, who may add the tool to `mcp.alwaysAllow` of \
         `{server}` in the registry", server = .0.server
    )]
    NobodyToAsk(Confirmation),
}

impl Confirmation {
    /// For clients that cannot ask their user.
    pub fn nobody_to_ask(self) -> Denied {
        Denied::NobodyToAsk(self)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::HighSensitivity => "the sensitivity of the server is `high`",
            Self::Destructive => "the tool says that it may destroy something (`destructiveHint`)",
        })
    }
}

/// The rules of one entry, compiled once.
#[derive(Debug, Clone)]
pub struct Policy {
    server: String,
    sensitivity: Sensitivity,
    allow: Vec<Glob>,
    /// Nothing in `allow` is everything; nothing usable in it is nothing.
    allows_all: bool,
    deny: Vec<Glob>,
    /// A pattern in `deny` that cannot be read denies everything.
    unreadable: Option<String>,
    always_allow: Vec<Glob>,
}

impl Policy {
    pub fn new(entry: &Entry) -> Self {
        let readable = |patterns: &[String]| -> Vec<Glob> {
            patterns.iter().filter_map(|pattern| Glob::new(pattern).ok()).collect()
        };
        let unreadable = entry.deny.iter().find(|pattern| Glob::new(pattern).is_err());
        Self {
            server: entry.id.clone(),
            sensitivity: entry.sensitivity,
            allow: readable(&entry.allow),
            allows_all: entry.allow.is_empty(),
            deny: readable(&entry.deny),
            unreadable: unreadable.map(|pattern| pattern.chars().take(40).chain(['…']).collect()),
            always_allow: readable(&entry.always_allow),
        }
    }

    /// Whether the tool is there for us at all. Others are neither listed nor found nor called.
    pub fn offers(&self, tool: &str) -> Result<(), Denied> {
        let (server, tool) = (&self.server, tool.to_owned());
        let denying = self.deny.iter().find(|glob| glob.matches(&tool)).map(Glob::text);
        if let Some(pattern) = denying.or(self.unreadable.as_deref()) {
            return Err(Denied::Deny { server: server.clone(), tool, pattern: pattern.to_owned() });
        }
        if self.allows_all || self.allow.iter().any(|glob| glob.matches(&tool)) {
            return Ok(());
        }
        Err(Denied::NotAllowed { server: server.clone(), tool })
    }

    pub fn decide(&self, tool: &str, annotations: &Annotations, asked_by: AskedBy) -> Decision {
        if let Err(denied) = self.offers(tool) {
            return Decision::Denied(denied);
        }
        let why = match self.sensitivity {
            Sensitivity::Low => None,
            // Only a tool that says so itself: by the specification one that says nothing may destroy too, and asking about
            // every tool of every server would teach people to say yes.
            Sensitivity::Medium => {
                (annotations.destructive == Some(true)).then_some(Why::Destructive)
            }
            Sensitivity::High => Some(Why::HighSensitivity),
        };
        match (why, asked_by) {
            (None, _) | (_, AskedBy::Person) => Decision::Allowed,
            _ if self.always_allow.iter().any(|glob| glob.matches(tool)) => Decision::Allowed,
            (Some(why), AskedBy::Agent) => Decision::Confirm(Confirmation {
                server: self.server.clone(),
                tool: tool.to_owned(),
                why,
            }),
        }
    }
}

/// What somebody who looks around wants to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wish {
    /// The server was named.
    pub named: bool,
    /// Those that are tried out were asked for.
    pub experimental: bool,
}

/// Whether a server is shown to somebody with this wish.
pub fn is_shown(visibility: Visibility, wish: Wish) -> bool {
    match visibility {
        Visibility::Default => true,
        Visibility::OptIn => wish.named,
        Visibility::Experimental => wish.experimental,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::entry::Connect;

    fn entry(sensitivity: Sensitivity) -> Entry {
        Entry {
            id: "github".to_owned(),
            title: None,
            summary: None,
            domains: Vec::new(),
            tags: Vec::new(),
            examples: Vec::new(),
            connect: Connect::Stdio {
                command: "server".to_owned(),
                args: Vec::new(),
                env: Default::default(),
                cwd: None,
                unconfined: false,
            },
            always_allow: vec!["search_*".to_owned()],
            sensitivity,
            visibility: Visibility::Default,
            priority: 5,
            auto_discover_tools: true,
            allow: Vec::new(),
            deny: Vec::new(),
            own_timeout: None,
            own_calls_per_minute: None,
        }
    }

    #[test]
    fn who_is_asked() {
        let hints = |read_only, destructive| Annotations {
            read_only,
            destructive,
            idempotent: None,
            open_world: None,
        };
        let kinds = [
            ("says nothing", hints(None, None)),
            ("destroys", hints(None, Some(true))),
            ("does not destroy", hints(None, Some(false))),
            ("reads", hints(Some(true), None)),
            ("reads and destroys", hints(Some(true), Some(true))),
        ];
        let mut table = String::new();
        for sensitivity in [Sensitivity::Low, Sensitivity::Medium, Sensitivity::High] {
            let policy = Policy::new(&entry(sensitivity));
            for (kind, annotations) in kinds {
                for tool in ["merge", "search_code"] {
                    let by = |asked_by| match policy.decide(tool, &annotations, asked_by) {
                        Decision::Allowed => "allowed".to_owned(),
                        Decision::Confirm(Confirmation { why, .. }) => format!("confirm: {why:?}"),
                        Decision::Denied(_) => "denied".to_owned(),
                    };
                    let (agent, person) = (by(AskedBy::Agent), by(AskedBy::Person));
                    let sensitivity = format!("{sensitivity:?}");
                    let _ = writeln!(
                        table,
                        "{sensitivity:6} | {tool:11} | {kind:18} | {agent:24} | {person}"
                    );
                }
            }
        }
        insta::assert_snapshot!(table);
    }

    #[test]
    fn what_is_there() {
        let offers = |allow: &[&str], deny: &[&str], tool: &str| {
            let owned =
                |patterns: &[&str]| patterns.iter().map(|&pattern| pattern.to_owned()).collect();
            let entry = Entry { allow: owned(allow), deny: owned(deny), ..entry(Sensitivity::Low) };
            Policy::new(&entry).offers(tool)
        };
        let long = "a".repeat(1_000);
        assert!(offers(&[], &[], "anything").is_ok());
        assert!(offers(&["get_*"], &[], "get_issue").is_ok());
        assert!(offers(&["get_*"], &[], "set_issue").is_err());
        assert!(offers(&[], &["*delete*"], "bulk_delete").is_err());
        assert!(offers(&["get_*"], &["get_secret"], "get_issue").is_ok());
        assert!(offers(&["get_*"], &["get_secret"], "get_secret").is_err(), "`deny` wins");
        assert!(offers(&[&long], &[], "get_issue").is_err(), "what cannot be read allows nothing");
        assert!(
            offers(&[], &[&long], "get_issue").is_err(),
            "what cannot be read denies everything"
        );
    }

    #[test]
    fn a_person_is_bound_by_deny_too() {
        let entry = Entry { deny: vec!["merge".to_owned()], ..entry(Sensitivity::Low) };
        let decision =
            Policy::new(&entry).decide("merge", &Annotations::default(), AskedBy::Person);
        assert!(matches!(decision, Decision::Denied(Denied::Deny { .. })));
    }

    #[test]
    fn what_is_said() {
        let (server, tool) = ("github".to_owned(), "merge".to_owned());
        let confirmation = |why| Confirmation { server: server.clone(), tool: tool.clone(), why };
        let said = [
            confirmation(Why::HighSensitivity).to_string(),
            confirmation(Why::Destructive).to_string(),
            confirmation(Why::Destructive).nobody_to_ask().to_string(),
            Denied::NotAllowed { server: server.clone(), tool: tool.clone() }.to_string(),
            Denied::Deny { server: server.clone(), tool: tool.clone(), pattern: "m*".to_owned() }
                .to_string(),
        ];
        insta::assert_snapshot!(said.join("\n"));
    }

    #[test]
    fn who_is_shown() {
        let wish = |named, experimental| Wish { named, experimental };
        for (visibility, shown) in [
            (Visibility::Default, [true, true, true]),
            (Visibility::OptIn, [false, true, false]),
            (Visibility::Experimental, [false, false, true]),
        ] {
            let wishes = [wish(false, false), wish(true, false), wish(false, true)];
            assert_eq!(wishes.map(|wish| is_shown(visibility, wish)), shown, "{visibility:?}");
        }
    }
}
