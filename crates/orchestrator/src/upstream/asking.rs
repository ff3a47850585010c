//! What an upstream wants to know from a person. In the old way it asks in the middle of a call; in the modern way its
//! answer to the call is the question, and the call is made again with what the person said.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp::client::{InputRequest, InputRequired, Request};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::call_context::CallContext;
use super::connection::Connection;
use super::failure::Failure;
use super::info::Era;
use super::router::Outcome;
use super::whom::{CANNOT_ASK, Whom};
use crate::call::{Answer, Form, Wanted};

/// So many times in a row an upstream may answer with questions.
const ROUNDS_MAX: usize = 10;
/// The parameters of `elicitation/create`, as every revision has them.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    #[serde(default)]
    message: String,
    #[serde(default)]
    mode: Option<String>,
    #[serde(default)]
    requested_schema: Value,
    url: Option<String>,
    elicitation_id: Option<String>,
}

/// Asks the person behind a call, and words the answer as the protocol wants it.
pub(crate) async fn elicit(server: &str, params: Value, whom: &Whom) -> Value {
    let (by, beside) = match whom {
        Whom::Caller { by, beside } => (by.context(), beside),
        Whom::Nobody { why, concerned } => return not_asked(server, why, concerned),
    };
    let all = || std::iter::once(by).chain(beside);
    let Ok(params) = serde_json::from_value::<Params>(params) else {
        return not_asked(server, "it cannot be read", all());
    };
    let wanted = match (params.mode.as_deref(), params.url) {
        (Some("url"), Some(url)) => Wanted::Visit { url, id: params.elicitation_id },
        (Some("url"), None) => return not_asked(server, "it has no address to open", all()),
        _ => Wanted::Values { schema: params.requested_schema },
    };
    let Some(asker) = &by.asker else { return not_asked(server, CANNOT_ASK, all()) };
    let form = Form { server: server.to_owned(), message: params.message, wanted };
    let is_visit = matches!(form.wanted, Wanted::Visit { .. });
    // Whichever of them it belongs to waits for the person.
    let _waiting: Vec<_> = all().map(|context| context.deadline.question()).collect();
    match asker.ask(form).await {
        // Nothing was filled in.
        Answer::Accepted(_) if is_visit => json!({"action": "accept"}),
        Answer::Accepted(content) => json!({"action": "accept", "content": content}),
        Answer::Declined => json!({"action": "decline"}),
        Answer::Cancelled => json!({"action": "cancel"}),
        Answer::NotAsked(why) => not_asked(server, &why, all()),
    }
}

/// No person has declined, so nothing is: that nobody answered is all that can be said. The agents hear of it with their
/// results, for what the server makes of it may be a surprise.
fn not_asked<'c>(
    server: &str,
    why: &str,
    concerned: impl IntoIterator<Item = &'c Arc<CallContext>>,
) -> Value {
    tracing::warn!(server, "a question is not passed on: {why}");
    for context in concerned {
        context.add_warning(format!("the server asked for input, which was not passed on: {why}"));
    }
    json!({"action": "cancel"})
}

/// Makes a request, and again with what the person said as long as the server wants to know more.
pub(super) async fn ask(
    connection: &Arc<Connection>,
    request: impl Fn() -> Request,
    context: &Arc<CallContext>,
) -> Outcome {
    let mut asked = request();
    for _ in 0..ROUNDS_MAX {
        let raw = connection.request(asked, context).await?;
        if connection.info().era == Era::Legacy {
            return Ok(raw);
        }
        let required = InputRequired::read(&raw).map_err(|why| Failure::Protocol { why })?;
        let Some(InputRequired { requests, state }) = required else { return Ok(raw) };
        context.deadline.extend();
        let answers = answers(requests, connection.server(), context).await?;
        asked = request().with_answers(answers, state);
    }
    Err(Failure::Unanswered { why: "it does not stop asking".to_owned() })
}

/// Asks one after the other: a person has one pair of eyes.
async fn answers(
    requests: BTreeMap<String, InputRequest>,
    server: &str,
    context: &Arc<CallContext>,
) -> Result<Map<String, Value>, Failure> {
    let mut answers = Map::new();
    for (name, InputRequest { method, params }) in requests {
        let answer = match method.as_str() {
            "elicitation/create" if context.asker.is_none() => {
                let why = "this client cannot ask its user; make the call from one that can";
                return Err(Failure::Unanswered { why: why.to_owned() });
            }
            "elicitation/create" => {
                let whom = Whom::just(context);
                tokio::select! {
                    answer = elicit(server, params, &whom) => answer,
                    () = context.cancelled.cancelled() => return Err(Failure::Cancelled),
                    () = context.deadline.passed() => {
                        return Err(super::connection::late(context));
                    }
                }
            }
            "roots/list" => json!({"roots": []}),
            _ => {
                let why = format!("it wants `{method}`, which is not offered");
                return Err(Failure::Unanswered { why });
            }
        };
        answers.insert(name, answer);
    }
    Ok(answers)
}

/// For a confirmation: whether the person said yes.
pub(crate) async fn confirm(
    server: &str,
    tool: &str,
    message: String,
    arguments: &Map<String, Value>,
    context: &CallContext,
) -> Option<bool> {
    let asker = context.asker.as_ref()?;
    let wanted = Wanted::Confirmation { tool: tool.to_owned(), arguments: arguments.clone() };
    let form = Form { server: server.to_owned(), message, wanted };
    let _question = context.deadline.question();
    let answer = tokio::select! {
        answer = asker.ask(form) => answer,
        () = context.cancelled.cancelled() => Answer::Cancelled,
        () = context.deadline.passed() => Answer::Cancelled,
    };
    Some(matches!(answer, Answer::Accepted(_)))
}
