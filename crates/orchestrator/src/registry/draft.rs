//! A server as its file has it, in our own terms: what an entry is made of, and what is written where it is imported.
//! Variables stay as they were written.

use std::fmt;

use super::entry::{HIDDEN, Secret, Sensitivity, Visibility};

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
    Stdio { command: Text, args: Vec<Text>, env: Vec<(String, Text)>, cwd: Option<Text> },
    Http { url: Text, headers: Vec<(String, Text)>, auth: Option<Credentials> },
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
        let texts: Vec<&Text> = match &self.reached {
            None => Vec::new(),
            Some(Reached::Stdio { args, env, .. }) => {
                args.iter().chain(env.iter().map(|(_, text)| text)).collect()
            }
            Some(Reached::Http { url, headers, auth }) => {
                let auth = match auth {
                    Some(Credentials::Bearer(token)) => Some(token),
                    Some(Credentials::OAuth { client_secret, .. }) => client_secret.as_ref(),
                    None => None,
                };
                let headers = headers.iter().map(|(_, text)| text);
                std::iter::once(url).chain(headers).chain(auth).collect()
            }
        };
        texts.iter().any(|text| text.filled.to_string().contains(HIDDEN))
    }

    /// Whether both are reached in the same way, whatever else is said about them.
    pub fn is_reached_as(&self, other: &Self) -> bool {
        self.reached == other.reached
    }

    /// The same, reached as another is.
    pub fn reached_as(&self, other: &Self) -> Self {
        Self { reached: other.reached.clone(), ..self.clone() }
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
