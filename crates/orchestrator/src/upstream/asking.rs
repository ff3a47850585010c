//! What an upstream wants to know from a person. In the old way it asks in the middle of a call; in the modern way its
//! answer to the call is the question, and the call is made again with what the person said.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::failure::Failure;
use super::ticket::Course;
use super::whom::{CANNOT_ASK, Whom};
use crate::call::{Answer, Form, Wanted};

/// So many times in a row an upstream may answer with questions.
pub(crate) const ROUNDS_MAX: usize = 10;
/// So many questions it may have at a time.
const QUESTIONS_MAX: usize = 16;
const QUESTIONS_BYTES_MAX: usize = 1024 * 1024;

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
        Whom::Caller { by, beside } => (by.course(), beside),
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
    let _waiting: Vec<_> = all().map(|course| course.deadline.question()).collect();
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
    concerned: impl IntoIterator<Item = &'c Arc<Course>>,
) -> Value {
    tracing::warn!(server, "a question is not passed on: {why}");
    for course in concerned {
        course.remark(format!("the server asked for input, which was not passed on: {why}"));
    }
    json!({"action": "cancel"})
}

/// A result that is a question.
#[derive(Debug)]
pub(crate) struct Questions {
    questions: BTreeMap<String, Question>,
    /// To be handed back as it is.
    pub(crate) state: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Question {
    method: String,
    #[serde(default)]
    params: Value,
}

impl Questions {
    /// Nothing where the result is one.
    pub(crate) fn in_result(result: &RawValue) -> Result<Option<Self>, Failure> {
        // Most results are not looked at any closer.
        if !result.get().contains("input_required") {
            return Ok(None);
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Fields<'r> {
            #[serde(default, borrow)]
            result_type: Option<std::borrow::Cow<'r, str>>,
            #[serde(default, borrow)]
            input_requests: Option<&'r RawValue>,
            request_state: Option<String>,
        }
        let Ok(fields) = serde_json::from_str::<Fields<'_>>(result.get()) else { return Ok(None) };
        if fields.result_type.as_deref() != Some("input_required") {
            return Ok(None);
        }
        let size = fields.input_requests.map_or(0, |requests| requests.get().len());
        if size > QUESTIONS_BYTES_MAX {
            return Err(Failure::Protocol { why: format!("its questions are {size} bytes long") });
        }
        let questions = fields.input_requests.map(|requests| serde_json::from_str(requests.get()));
        let questions = questions.transpose().map_err(|error| Failure::Protocol {
            why: format!("its questions cannot be read: {error}"),
        })?;
        let questions: BTreeMap<String, Question> = questions.unwrap_or_default();
        if questions.len() > QUESTIONS_MAX {
            let why = format!("it has {} questions at a time", questions.len());
            return Err(Failure::Protocol { why });
        }
        Ok(Some(Self { questions, state: fields.request_state }))
    }

    /// Asks them one after the other: a person has one pair of eyes.
    pub(crate) async fn answers(
        self,
        server: &str,
        course: &Arc<Course>,
    ) -> Result<BTreeMap<String, Value>, Failure> {
        let mut answers = BTreeMap::new();
        for (name, Question { method, params }) in self.questions {
            let answer = match method.as_str() {
                "elicitation/create" if course.asker.is_none() => {
                    let why = "this client cannot ask its user; make the call from one that can";
                    return Err(Failure::Unanswered { why: why.to_owned() });
                }
                "elicitation/create" => elicit(server, params, &Whom::just(course)).await,
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
}

/// For a confirmation: whether the person said yes.
pub(crate) async fn confirm(
    server: &str,
    tool: &str,
    message: String,
    arguments: &Map<String, Value>,
    course: &Course,
) -> Option<bool> {
    let asker = course.asker.as_ref()?;
    let wanted = Wanted::Confirmation { tool: tool.to_owned(), arguments: arguments.clone() };
    let form = Form { server: server.to_owned(), message, wanted };
    let _question = course.deadline.question();
    let answer = tokio::select! {
        answer = asker.ask(form) => answer,
        () = course.cancelled.cancelled() => Answer::Cancelled,
        () = course.deadline.passed() => Answer::Cancelled,
    };
    Some(matches!(answer, Answer::Accepted(_)))
}
