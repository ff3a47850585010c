//! What a client answered. An answer says by its shape what it answers: a client without handshake brings it back to a
//! process that may never have asked. Whether it is the kind that was asked for is for whoever asked to see.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::Error as _;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The largest answer that is read.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// What came back, by the names under which it was asked. What is missing was not answered.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answers {
    pub given: BTreeMap<String, Answer>,
    pub state: Option<String>,
    /// The client has made the call again by itself, and can do so once more.
    pub can_be_repeated: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The fields of a form, as the user filled them in. Nobody has checked them yet.
    Accepted(Map<String, Value>),
    Declined,
    /// The user, or the client, made no choice.
    Cancelled,
    /// What the client's model wrote.
    Sampled(Sampled),
    /// The folders that the client works in.
    Roots(Vec<Root>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Sampled {
    pub model: String,
    /// Content blocks, as they came. Nobody has checked them yet.
    pub blocks: Vec<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Root {
    pub uri: String,
    #[serde(default)]
    pub name: Option<String>,
}

impl Sampled {
    /// The first text, if there is one.
    pub fn text(&self) -> Option<&str> {
        self.blocks.iter().find_map(|block| block.get("text")?.as_str())
    }
}

impl Answer {
    pub(crate) fn read(raw: &RawValue) -> serde_json::Result<Self> {
        if raw.get().len() > ANSWER_BYTES_MAX {
            return Err(serde_json::Error::custom(format!("it may have {ANSWER_BYTES_MAX} bytes")));
        }
        #[derive(Deserialize)]
        struct Kind {
            #[serde(default)]
            roots: Option<serde::de::IgnoredAny>,
            #[serde(default)]
            role: Option<serde::de::IgnoredAny>,
        }
        match serde_json::from_str(raw.get()) {
            Ok(Kind { roots: Some(_), .. }) => read_roots(raw),
            Ok(Kind { role: Some(_), .. }) => read_sampled(raw),
            _ => read_choice(raw),
        }
    }
}

fn read_choice(raw: &RawValue) -> serde_json::Result<Answer> {
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Choice {
        Accept,
        Decline,
        Cancel,
    }
    #[derive(Deserialize)]
    #[serde(expecting = "an object with `action`")]
    struct Chosen {
        action: Choice,
        #[serde(default)]
        content: Option<Map<String, Value>>,
    }
    let Chosen { action, content } = serde_json::from_str(raw.get())?;
    Ok(match action {
        Choice::Accept => Answer::Accepted(content.unwrap_or_default()),
        Choice::Decline => Answer::Declined,
        Choice::Cancel => Answer::Cancelled,
    })
}

fn read_sampled(raw: &RawValue) -> serde_json::Result<Answer> {
    /// One block, or several.
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a content block, or several")]
    enum Content {
        One(Map<String, Value>),
        Several(Vec<Map<String, Value>>),
    }
    #[derive(Deserialize)]
    struct Written {
        model: String,
        content: Content,
    }
    let Written { model, content } = serde_json::from_str(raw.get())?;
    let blocks = match content {
        Content::One(block) => vec![block],
        Content::Several(blocks) => blocks,
    };
    let blocks = blocks.into_iter().map(Value::Object).collect();
    Ok(Answer::Sampled(Sampled { model, blocks }))
}

fn read_roots(raw: &RawValue) -> serde_json::Result<Answer> {
    #[derive(Deserialize)]
    struct Listed {
        roots: Vec<Root>,
    }
    let Listed { roots } = serde_json::from_str(raw.get())?;
    Ok(Answer::Roots(roots))
}
