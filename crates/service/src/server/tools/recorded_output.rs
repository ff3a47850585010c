//! One output of a session, read back in pages: for an agent that has lost its context, and for `session://` URIs.

use mcp::Outcome;
use serde::{Deserialize, Serialize};
use store::sessions::{Attempt, AttemptLookup, AttemptQuery, Session};
use workflow::Step;

use super::status;
use crate::error::Refusal;
use crate::sessions::{Open, refusal, time_text};

/// How much of an output one page holds.
const PAGE_BYTES_MAX: usize = 16 * 1024;

/// Which output, and from which byte on.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct OutputQuery {
    pub(crate) step_id: String,
    pub(crate) iteration: Option<u32>,
    pub(crate) attempt: Option<u32>,
    pub(crate) offset: Option<usize>,
}

/// A page of an output.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OutputPage {
    session_id: String,
    step_id: String,
    iteration: u32,
    iterations: u32,
    attempt: u32,
    attempts: u32,
    outcome: &'static str,
    time: String,
    offset: usize,
    total_bytes: usize,
    output: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<NextPage>,
}

/// The call that returns the next page.
#[derive(Debug, Serialize)]
struct NextPage {
    tool: &'static str,
    arguments: NextArguments,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct NextArguments {
    session_id: String,
    step_id: String,
    iteration: u32,
    attempt: u32,
    offset: usize,
}

pub(crate) fn read(
    open: &Open,
    session: &Session,
    query: &OutputQuery,
) -> Result<OutputPage, Refusal> {
    let OutputQuery { step_id, iteration, attempt, offset } = query;
    let refused = |details: String| Refusal::InvalidParams { details, hint: None };
    match session.workflow.step(step_id) {
        Some(Step::Plain(_)) => {}
        Some(Step::Loop(_)) => {
            let details = format!("`{step_id}` is a loop; its steps have outputs");
            return Err(refused(details));
        }
        // Steps that come later are not named.
        None => return Err(refused(format!("the session has no output of step `{step_id}`"))),
    }
    let attempt_query = AttemptQuery { iteration: *iteration, attempt: *attempt };
    let found = open.sessions.attempt(session, step_id, attempt_query);
    let found = match found.map_err(|error| refusal(&session.id, error))? {
        AttemptLookup::Found(found) => found,
        AttemptLookup::Missing { earlier } => {
            let of = match (iteration, attempt) {
                (None, None) => String::new(),
                (Some(iteration), None) => format!(" in iteration {iteration}"),
                (None, Some(attempt)) => format!(" in attempt {attempt}"),
                (Some(iteration), Some(attempt)) => {
                    format!(" in iteration {iteration}, attempt {attempt}")
                }
            };
            let mut details = format!("the session has no output of step `{step_id}`{of}");
            if let Some(why) = earlier {
                details += &format!(", and what came before the copy is not available: {why}");
            }
            return Err(refused(details));
        }
    };
    let Attempt { iteration, iterations, attempt, attempts, outcome, output, time } = found;
    let offset = offset.unwrap_or_default();
    if offset > output.len() || !output.is_char_boundary(offset) {
        let details = format!(
            "offset {offset} is not the beginning of a page: take it from `next` of the page before"
        );
        return Err(refused(details));
    }
    let end = output.floor_char_boundary(output.len().min(offset + PAGE_BYTES_MAX));
    let next = (end < output.len()).then(|| NextPage {
        tool: status::TOOL.name,
        arguments: NextArguments {
            session_id: session.id.clone(),
            step_id: step_id.clone(),
            iteration,
            attempt,
            offset: end,
        },
    });
    Ok(OutputPage {
        session_id: session.id.clone(),
        step_id: step_id.clone(),
        iteration,
        iterations,
        attempt,
        attempts,
        outcome: outcome.name(),
        time: time_text(time),
        offset,
        total_bytes: output.len(),
        output: output[offset..end].to_owned(),
        next,
    })
}

impl OutputPage {
    pub(crate) fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(crate) fn outcome(&self) -> Outcome {
        Outcome::Tool { text: self.text().into(), structured: self.json() }
    }

    fn text(&self) -> String {
        let Self { session_id, step_id, iteration, iterations, attempt, attempts, .. } = self;
        let (end, total) = (self.offset + self.output.len(), self.total_bytes);
        let mut text = format!("Output of step `{step_id}`");
        let mut which = String::new();
        if *iterations > 1 {
            text.push_str(&format!(", iteration {iteration} of {iterations}"));
            which.push_str(&format!(" iteration={iteration}"));
        }
        if *attempts > 1 {
            text.push_str(&format!(", attempt {attempt} of {attempts}"));
            which.push_str(&format!(" attempt={attempt}"));
        }
        text.push_str(&format!(" ({})", self.outcome));
        if self.offset > 0 || self.next.is_some() {
            text.push_str(&format!(", bytes {} to {end} of {total}", self.offset));
        }
        text.push_str(&format!(":\n\n{}", self.output));
        if self.next.is_some() {
            text.push_str(&format!(
                "\n\nNext: {} sessionId={session_id} stepId={step_id}{which} offset={end}",
                status::TOOL.name
            ));
        }
        text
    }
}

/// The query of a URI: `step?iteration=2&attempt=1&offset=16384`.
pub(crate) fn from_uri(rest: &str) -> Option<OutputQuery> {
    let (step, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let mut query = OutputQuery { step_id: step.to_owned(), ..OutputQuery::default() };
    for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=')?;
        let number: u32 = value.parse().ok()?;
        match name {
            "iteration" => query.iteration = Some(number),
            "attempt" => query.attempt = Some(number),
            "offset" => query.offset = Some(usize::try_from(number).ok()?),
            _ => return None,
        }
    }
    Some(query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_ends_in_the_call_for_the_next_one() {
        let arguments = NextArguments {
            session_id: "7k2m".to_owned(),
            step_id: "plan".to_owned(),
            iteration: 2,
            attempt: 1,
            offset: 3,
        };
        let mut page = OutputPage {
            session_id: "7k2m".to_owned(),
            step_id: "plan".to_owned(),
            iteration: 2,
            iterations: 2,
            attempt: 1,
            attempts: 1,
            outcome: "accepted",
            time: String::new(),
            offset: 0,
            total_bytes: 5,
            output: "One".to_owned(),
            next: Some(NextPage { tool: status::TOOL.name, arguments }),
        };
        let next = "Next: workflow_status sessionId=7k2m stepId=plan iteration=2 offset=3";
        assert!(page.text().ends_with(&format!(":\n\nOne\n\n{next}")), "{}", page.text());
        (page.iterations, page.attempts) = (1, 3);
        let next = "Next: workflow_status sessionId=7k2m stepId=plan attempt=1 offset=3";
        assert!(page.text().ends_with(next), "{}", page.text());
    }
}
