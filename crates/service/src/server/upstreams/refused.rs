//! Why there is no result of an upstream, for agents: what happened, what to try, and the error for a machine. What the
//! upstream itself answered stays in its words.

use std::borrow::Cow;

use mcp::Outcome;
use mcp::content::Block;
use orchestrator::Error;
use registry::Masks;
use serde_json::{Map, Value, json};

use crate::error::upstream::{SECURITY, UPSTREAM, code, data, said};
use crate::server::tools::capitalised;
use crate::words::one_line;

const STATE: (i32, &str) = (-32005, "State error");

/// How much is said of what happened: a program that crashes may have said very much.
const WHAT_BYTES_MAX: usize = 1_200;
/// How much of an upstream's message is in a sentence of ours.
const MESSAGE_CHARS_MAX: usize = 200;

/// For what a client brings back that is not an answer to what it was asked.
pub(super) const NOT_OURS: &str = "the requestState is not ours, belongs to another call, was used already, or is too \
    old; make the call again without it";

pub(crate) fn refused(error: &Error, masks: &Masks) -> Outcome {
    let what = what(error);
    let what = masks.hide(&what);
    let what = match error {
        // Bounded, and each line of it counts.
        Error::Arguments { .. } => what,
        _ => shortened(&what),
    };
    let advice = sentences(&what, next(error));
    if let Some((code, message, data)) = said(error, masks) {
        let mut said = json!({"code": code, "message": message});
        if let Some(data) = data {
            said["data"] = data;
        }
        let blocks = vec![Block::text(advice), Block::text(said.to_string())];
        return Outcome::Blocks { blocks, structured: None, is_error: true };
    }
    let mut data = data(error, &what);
    if let Some(fields) = data.as_object_mut() {
        // The sentence has said it.
        fields.remove("details");
    }
    refusal(code(error), &advice, data)
}

/// What happened. What to try then is said in terms of our own tools.
fn what(error: &Error) -> String {
    match error {
        Error::NoServer { id, nearest } if nearest.is_empty() => {
            format!("there is no server `{id}` in the registry")
        }
        Error::NoTool(missing) if missing.nearest.is_empty() => {
            format!("`{}` has no tool `{}`", missing.server, missing.tool)
        }
        // Its words stand behind, whole.
        Error::Upstream { server, code, message, .. } => {
            format!(
                "`{server}` answers with error {code}: {}",
                one_line(message, MESSAGE_CHARS_MAX)
            )
        }
        error => error.to_string(),
    }
}

/// The beginning and the end of a long text: how a program ended is what it said last.
fn shortened(text: &str) -> Cow<'_, str> {
    if text.len() <= WHAT_BYTES_MAX {
        return Cow::Borrowed(text);
    }
    let begin = text.floor_char_boundary(WHAT_BYTES_MAX / 4);
    let end = text.ceil_char_boundary(text.len() - WHAT_BYTES_MAX * 3 / 4);
    Cow::Owned(format!("{} … {}", &text[..begin], &text[end..]))
}

fn sentences(what: &str, next: &str) -> String {
    let stop = if what.ends_with(['?', '.', '!', '…']) { "" } else { "." };
    format!("{}{stop} {next}", capitalised(what)).trim_end().to_owned()
}

/// The same for who has no place for advice: an error of the protocol.
pub(super) fn as_error(error: &Error, masks: &Masks) -> Outcome {
    match said(error, masks) {
        Some((code, message, data)) => {
            let code = i32::try_from(code).unwrap_or(UPSTREAM.0);
            let error = mcp::Error::said(code, message, data);
            Outcome::Refused { advice: String::new(), error }
        }
        None => {
            let details = error.to_string();
            let details = masks.hide(&details);
            refusal(code(error), "", data(error, &shortened(&details)))
        }
    }
}

/// What the agent should do next.
fn next(error: &Error) -> &'static str {
    match error {
        Error::NoServer { nearest, .. } if nearest.is_empty() => {
            "`list_mcp_capabilities` shows the servers."
        }
        Error::NoTool(missing) if missing.nearest.is_empty() => {
            "`describe_mcp` with detail \"tools\" shows its tools."
        }
        Error::Arguments { .. } => "`describe_mcp` with detail \"schema\" shows what it takes.",
        Error::Uncheckable { .. } => "Call it with smaller arguments, or do without it.",
        Error::Denied(_) => "Tell your user, and look for no way around it.",
        Error::Untrusted { .. } => "Tell your user, who decides; do not run it yourself.",
        Error::Unusable { .. } => "Tell your user, who keeps the registry.",
        Error::Unauthorized { .. } => "Tell your user.",
        Error::Transport { sent: true, .. } => "See whether it was done before you call again.",
        _ => "",
    }
}

/// The user said no, or nothing.
pub(super) fn not_confirmed(server: &str, tool: &str, given: Option<&mcp::Answer>) -> Outcome {
    let (details, next) = match given {
        Some(mcp::Answer::Declined) => {
            (format!("your user does not want `{server}.{tool}` to be called"), "Do without it.")
        }
        _ => (
            format!("`{server}.{tool}` was not called, for your user did not answer"),
            "Call it again when they are there.",
        ),
    };
    let advice = format!("{}. {next}", capitalised(&details));
    refusal(SECURITY, &advice, json!({"details": details}))
}

/// Nobody says yes to what they have not seen.
pub(super) fn not_shown(server: &str, tool: &str, arguments: usize) -> Outcome {
    let details = format!(
        "`{server}.{tool}` was not called: your user has to confirm it, and its arguments ({arguments}) are too many or have \
         names too long to be shown to them"
    );
    let advice = format!("{}. Call it with fewer arguments.", capitalised(&details));
    refusal(SECURITY, &advice, json!({"details": details}))
}

/// An answer to a question that nobody waits with any more.
pub(super) fn too_late(server: &str) -> Outcome {
    unheard(format!("the answer comes too late: `{server}` was told that there is none"))
}

/// The first answer counts.
pub(super) fn answered_already(server: &str) -> Outcome {
    unheard(format!("the question was answered already, and `{server}` has had that answer"))
}

/// An answer to a question that waits where we cannot reach it.
pub(super) fn elsewhere(server: &str) -> Outcome {
    unheard(format!(
        "the answer came to another process than the one that asked; `{server}` is told that there is none"
    ))
}

fn unheard(details: String) -> Outcome {
    let next =
        "See whether the call was carried out, and make it again without requestState if not.";
    let advice = format!("{}. {next}", capitalised(&details));
    refusal(STATE, &advice, json!({"details": details}))
}

fn refusal((code, message): (i32, &'static str), advice: &str, data: Value) -> Outcome {
    let is_empty = data.as_object().is_some_and(Map::is_empty);
    let error = mcp::Error::said(code, message.to_owned(), Some(data).filter(|_| !is_empty));
    Outcome::Refused { advice: advice.to_owned(), error }
}

#[cfg(test)]
mod tests {
    use tool_schema::arguments::NoSuchTool;

    use super::*;

    fn advice(error: &Error) -> (String, Value) {
        match refused(error, &Masks::default()) {
            Outcome::Refused { advice, error } => (advice, json!(error)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn everything_is_said_once() {
        let names = ["files", "mail"];
        let (said, error) = advice(&Error::NoTool(NoSuchTool::new("a", "file", names)));
        insta::assert_snapshot!(said, @"`a` has no tool `file`; did you mean `files`?");
        insta::assert_snapshot!(error, @r#"{"code":-32602,"data":{"nearest":["files"]},"message":"Invalid params"}"#);
        let (said, _) = advice(&Error::NoTool(NoSuchTool::new("a", "zebra", names)));
        insta::assert_snapshot!(said, @r#"`a` has no tool `zebra`. `describe_mcp` with detail "tools" shows its tools."#);
        let (said, _) = advice(&Error::NoServer { id: "b".to_owned(), nearest: Vec::new() });
        insta::assert_snapshot!(said, @"There is no server `b` in the registry. `list_mcp_capabilities` shows the servers.");
        let why = Some("`mcp` is missing".to_owned());
        let (said, _) = advice(&Error::Unusable { id: "b".to_owned(), why });
        insta::assert_snapshot!(said, @"The entry of `b` in the registry cannot be used: `mcp` is missing; `workflowlookup doctor` shows what is wrong with it. Tell your user, who keeps the registry.");
    }

    #[test]
    fn last_words_are_cut_in_the_middle() {
        let why = format!("it began\n{}\nand this is why it ended", "ä line\n".repeat(1_000));
        let (server, sent) = ("a".to_owned(), false);
        let error = Error::Transport { server, why, sent };
        let (said, data) = advice(&error);
        assert!(said.len() < 1_500 && data.to_string().len() < 200, "{said} {data}");
        assert!(said.contains("it began") && said.ends_with("this is why it ended."), "{said}");
        // Where there is no sentence, it is in the error.
        let Outcome::Refused { error, .. } = as_error(&error, &Masks::default()) else { panic!() };
        assert!(json!(error)["data"]["details"].as_str().unwrap().contains("it began"));
    }
}
