//! A server as its file has it, in our own terms: what an entry is made of, and what is written where it is imported.
//! Variables stay as they were written.

use std::collections::BTreeSet;
use std::fmt;

use super::entry::{HIDDEN, Secret, Sensitivity, Visibility};
use super::variables::{From, Piece, Variable, of_input, parse};

#[derive(Clone, PartialEq)]
pub struct Draft {
    /// In kebab-case, unique in its file.
    pub id: String,
    /// What its client calls it, where that is something else.
    pub name: Option<String>,
    /// Not to be used.
    pub is_disabled: bool,
    pub(super) title: Option<String>,
    pub(super) summary: Option<String>,
    pub(super) domains: Vec<String>,
    pub(super) tags: Vec<String>,
    pub(super) examples: Vec<String>,
    /// Nothing where that could not be read.
    pub(super) reached: Option<Reached>,
    pub(super) always_allow: Vec<String>,
    pub(super) sensitivity: Option<Sensitivity>,
    pub(super) visibility: Option<Visibility>,
    pub(super) priority: Option<u8>,
    pub(super) auto_discover_tools: Option<bool>,
    pub(super) allow: Vec<String>,
    pub(super) deny: Vec<String>,
    pub(super) timeout_ms: Option<u64>,
    pub(super) calls_per_minute: Option<u32>,
}

/// How it is reached.
#[derive(Clone, PartialEq)]
pub(super) enum Reached {
    Stdio {
        command: Text,
        args: Vec<Text>,
        env: Vec<(String, Text)>,
        cwd: Option<Text>,
        unconfined: bool,
    },
    Http {
        url: Text,
        headers: Vec<(String, Text)>,
        auth: Option<Credentials>,
    },
}

#[derive(Clone, PartialEq)]
pub(super) enum Credentials {
    Bearer(Text),
    OAuth {
        client_id: Option<Text>,
        client_secret: Option<Text>,
        scopes: Vec<String>,
        callback_port: Option<u16>,
    },
}

/// A text as it is written in a registry, and filled in.
#[derive(Clone)]
pub(super) struct Text {
    pub(super) raw: String,
    pub(super) filled: Secret,
}

impl Draft {
    /// How it is reached, for people: without anything secret.
    pub fn shown(&self) -> String {
        match &self.reached {
            None => "?".to_owned(),
            Some(Reached::Stdio { command, args, .. }) => {
                let words = std::iter::once(command).chain(args);
                let words: Vec<String> =
                    words.map(|word| quoted(&word.filled.to_string())).collect();
                words.join(" ")
            }
            Some(Reached::Http { url, .. }) => url.filled.to_string(),
        }
    }

    /// The command line or the URL exactly as the file has it: nothing is expanded, nothing is redacted. For a person who
    /// decides whether to run it.
    pub fn verbatim(&self) -> String {
        match &self.reached {
            None => "?".to_owned(),
            Some(Reached::Stdio { command, args, .. }) => {
                let words = std::iter::once(command).chain(args);
                let words: Vec<String> = words.map(|word| quoted(&word.raw)).collect();
                words.join(" ")
            }
            Some(Reached::Http { url, .. }) => url.raw.clone(),
        }
    }

    /// The name of the transport.
    pub fn transport(&self) -> Option<&'static str> {
        self.reached.as_ref().map(|reached| match reached {
            Reached::Stdio { .. } => "stdio",
            Reached::Http { .. } => "http",
        })
    }

    /// What is started, as the file says.
    pub fn command(&self) -> Option<&str> {
        match &self.reached {
            Some(Reached::Stdio { command, .. }) => Some(&command.raw),
            _ => None,
        }
    }

    /// What it is started with, as the file says.
    pub fn args(&self) -> impl Iterator<Item = &str> {
        let args = match &self.reached {
            Some(Reached::Stdio { args, .. }) => args.as_slice(),
            _ => &[],
        };
        args.iter().map(|arg| arg.raw.as_str())
    }

    /// Whether a secret itself stands in the file, and not only the name of a variable.
    pub fn has_secret(&self) -> bool {
        self.texts().iter().any(|text| text.filled.to_string().contains(HIDDEN))
    }

    /// Whether both are reached in the same way, whatever else is said about them.
    pub fn is_reached_as(&self, other: &Self) -> bool {
        self.reached == other.reached
    }

    /// The same, reached as another is.
    pub fn reached_as(&self, other: &Self) -> Self {
        Self { reached: other.reached.clone(), ..self.clone() }
    }

    /// Whether it allows nothing that `trusted` does not: it is the same but for a policy that is tighter, or it is disabled.
    pub(super) fn is_no_looser_than(&self, trusted: &Self) -> bool {
        if self.is_disabled {
            return true;
        }
        let is_subset = |some: &[String], of: &[String]| some.iter().all(|one| of.contains(one));
        // Nothing in `allow` is everything.
        let allows_less = trusted.allow.is_empty()
            || (!self.allow.is_empty() && is_subset(&self.allow, &trusted.allow));
        let is_same_but_for_policy = {
            let Self { allow, deny, always_allow, .. } = trusted.clone();
            Self { allow, deny, always_allow, ..self.clone() } == *trusted
        };
        allows_less
            && is_subset(&trusted.deny, &self.deny)
            && is_subset(&self.always_allow, &trusted.always_allow)
            && is_same_but_for_policy
    }

    /// The variables that the command gets, or the headers that are sent: exactly as the file has them, like
    /// [`Self::verbatim`].
    pub fn verbatim_settings(&self) -> Vec<(&str, &str)> {
        let set = match &self.reached {
            Some(Reached::Stdio { env, .. }) => env.as_slice(),
            Some(Reached::Http { headers, .. }) => headers.as_slice(),
            None => &[],
        };
        set.iter().map(|(name, text)| (name.as_str(), text.raw.as_str())).collect()
    }

    /// The credentials that are sent, by their names in the file, exactly as the file has them.
    pub fn verbatim_credentials(&self) -> Vec<(&'static str, &str)> {
        let Some(Reached::Http { auth: Some(auth), .. }) = &self.reached else { return Vec::new() };
        match auth {
            Credentials::Bearer(token) => vec![("bearer token", token.raw.as_str())],
            Credentials::OAuth { client_id, client_secret, .. } => {
                let id = client_id.iter().map(|text| ("client id", text.raw.as_str()));
                let secret = client_secret.iter().map(|text| ("client secret", text.raw.as_str()));
                id.chain(secret).collect()
            }
        }
    }

    /// Whether no call ever needs a confirmation, also of a tool that says it is destructive.
    pub fn is_never_confirmed(&self) -> bool {
        self.sensitivity == Some(Sensitivity::Low)
    }

    /// The folder that the command is started in, where the file names one.
    pub fn cwd(&self) -> Option<&str> {
        match &self.reached {
            Some(Reached::Stdio { cwd, .. }) => cwd.as_ref().map(|cwd| cwd.raw.as_str()),
            _ => None,
        }
    }

    /// Whether its guard is not to be isolated from it.
    pub fn is_unconfined(&self) -> bool {
        matches!(&self.reached, Some(Reached::Stdio { unconfined: true, .. }))
    }

    /// The tools that no confirmation is asked for.
    pub fn always_allowed(&self) -> &[String] {
        &self.always_allow
    }

    /// The names of the variables of the environment that it reads.
    pub fn variables(&self) -> BTreeSet<String> {
        let pieces = self.texts().into_iter().flat_map(|text| parse(&text.raw).unwrap_or_default());
        let names = pieces.filter_map(|piece| match piece {
            Piece::Variable(Variable { from: From::Environment(name), .. }) => {
                Some(name.to_owned())
            }
            Piece::Variable(Variable { from: From::Input(id), .. }) => Some(of_input(id)),
            _ => None,
        });
        names.collect()
    }

    /// Every text in which variables are expanded.
    fn texts(&self) -> Vec<&Text> {
        match &self.reached {
            None => Vec::new(),
            Some(Reached::Stdio { command, args, env, cwd, .. }) => {
                let env = env.iter().map(|(_, text)| text);
                std::iter::once(command).chain(args).chain(env).chain(cwd).collect()
            }
            Some(Reached::Http { url, headers, auth }) => {
                let auth: Vec<&Text> = match auth {
                    Some(Credentials::Bearer(token)) => vec![token],
                    Some(Credentials::OAuth { client_id, client_secret, .. }) => {
                        client_id.iter().chain(client_secret).collect()
                    }
                    None => Vec::new(),
                };
                let headers = headers.iter().map(|(_, text)| text);
                std::iter::once(url).chain(headers).chain(auth).collect()
            }
        }
    }

    /// Whether both say the same, whatever they are called.
    pub fn is_same(&self, other: &Self) -> bool {
        let nameless = |draft: &Self| Self { id: String::new(), name: None, ..draft.clone() };
        nameless(self) == nameless(other)
    }
}

/// Two texts are the same where they are written in the same way.
impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

/// A word of a command, as one would type it.
fn quoted(word: &str) -> String {
    if word.is_empty()
        || word.contains(|letter: char| letter.is_whitespace() || "\"'`".contains(letter))
    {
        format!("\"{}\"", word.replace('"', "\\\""))
    } else {
        word.to_owned()
    }
}

impl fmt::Debug for Draft {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Draft({}: {})", self.id, self.shown())
    }
}
