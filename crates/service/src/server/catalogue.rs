//! Workflows as resources and prompts: `workflow://{id}` and the schema to read, each workflow as a
//! command that a client offers to its user.

use catalog::Snapshot;
use mcp::content::{
    Block, Held, Listed, Message, Page, Prompt, PromptArgument, Resource, ResourceContents,
    ResourceTemplate,
};
use mcp::{Outcome, Reference};
use untrusted_text::sanitize;
use workflow::Workflow;

use super::session_resources;
use super::upstreams::resources;
use crate::app;

const SCHEME: &str = "workflow://";
const SCHEMA_URI: &str = "workflow-schema://definition";
const JSON: &str = "application/json";
/// How many entries one page of a list holds.
const PAGE: usize = 100;
/// How many completions a client gets at once: the protocol's own bound.
pub(super) const COMPLETIONS_MAX: usize = 100;

pub(super) fn uri(id: &str) -> String {
    format!("{SCHEME}{id}")
}

/// The sessions are on the first page.
pub(super) fn list_resources(
    snapshot: &Snapshot,
    cursor: Option<&str>,
    sessions: impl FnOnce() -> Vec<Resource>,
) -> Outcome {
    page(snapshot, cursor, |workflow| {
        Listed::Own(Resource {
            uri: uri(&workflow.id),
            name: workflow.id.to_string(),
            title: sanitize(&workflow.name).into_owned(),
            description: sanitize(&workflow.description).into_owned(),
            mime_type: JSON,
        })
    })
    .map_or_else(Outcome::BadParams, |mut page| {
        if cursor.is_none() {
            let first = std::iter::once(schema_resource()).chain(sessions());
            page.items.splice(0..0, first.map(Listed::Own));
            // A session may begin at any time.
            page.is_live = true;
        }
        Outcome::Resources(page)
    })
}

fn schema_resource() -> Resource {
    Resource {
        uri: SCHEMA_URI.to_owned(),
        name: "workflow-schema".to_owned(),
        title: "Workflow schema".to_owned(),
        description: "The JSON Schema of a workflow definition".to_owned(),
        mime_type: JSON,
    }
}

pub(super) fn list_templates(has_upstreams: bool) -> Outcome {
    let workflow = ResourceTemplate {
        uri_template: format!("{SCHEME}{{id}}"),
        name: "workflow".to_owned(),
        title: "Workflow".to_owned(),
        description: "A workflow's definition, by its id".to_owned(),
        mime_type: JSON,
    };
    let own = std::iter::once(workflow).chain(session_resources::templates());
    let upstreams = has_upstreams.then(resources::template);
    Outcome::Templates(own.chain(upstreams).collect())
}

pub(super) fn read_resource(snapshot: &Snapshot, uri: String) -> Outcome {
    let text = if uri == SCHEMA_URI {
        Some(workflow::schema_text())
    } else {
        let id = uri.strip_prefix(SCHEME);
        let workflow = id.and_then(|id| app::find(snapshot, id).ok());
        workflow.and_then(|workflow| serde_json::to_string_pretty(workflow).ok())
    };
    match text {
        Some(text) => {
            let contents = ResourceContents { uri, mime_type: JSON, held: Held::Text(text) };
            Outcome::Resource { contents, is_live: false }
        }
        None => Outcome::NoResource { uri },
    }
}

pub(super) fn list_prompts(snapshot: &Snapshot, cursor: Option<&str>) -> Outcome {
    page(snapshot, cursor, |workflow| Prompt {
        name: workflow.id.to_string(),
        title: sanitize(&workflow.name).into_owned(),
        description: sanitize(&workflow.description).into_owned(),
        arguments: questions(workflow)
            .map(|(name, question)| PromptArgument {
                name,
                description: sanitize(question).into_owned(),
                required: false,
            })
            .collect(),
    })
    .map_or_else(Outcome::BadParams, Outcome::Prompts)
}

/// The clarification questions of a workflow, as arguments `q1`, `q2`, …
fn questions(workflow: &Workflow) -> impl Iterator<Item = (String, &str)> {
    let numbered = workflow.clarification_prompts.iter().enumerate();
    numbered.map(|(index, question)| (format!("q{}", index + 1), &**question))
}

/// A message that sets an agent going: what the workflow is, what the user has settled, how to begin.
pub(super) fn get_prompt(
    snapshot: &Snapshot,
    name: &str,
    arguments: &[(String, String)],
) -> Outcome {
    let workflow = match app::find(snapshot, name) {
        Ok(workflow) => workflow,
        Err(refusal) => return Outcome::BadParams(refusal.to_string()),
    };
    let known: Vec<(String, &str)> = questions(workflow).collect();
    if let Some((unknown, _)) =
        arguments.iter().find(|(name, _)| !known.iter().any(|(q, _)| q == name))
    {
        return Outcome::BadParams(format!("the prompt has no argument `{unknown}`"));
    }
    let mut text = format!(
        "Work through the workflow `{}` ({}): {}\n",
        workflow.id, workflow.name, workflow.description
    );
    let mut list = |heading: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            text.push_str(&format!("\n{heading}\n- {}\n", lines.join("\n- ")));
        }
    };
    let texts = |lines: &[Box<str>]| lines.iter().map(ToString::to_string).collect::<Vec<_>>();
    list("Before you start, make sure that:", texts(&workflow.preconditions));
    let answered = |name: &str| arguments.iter().find(|(given, _)| given == name);
    let settled = known.iter().filter_map(|(name, question)| {
        answered(name).map(|(_, answer)| format!("{question} {answer}"))
    });
    list("Settled:", settled.collect());
    let open = known.iter().filter(|(name, _)| answered(name).is_none());
    list("Ask first:", open.map(|(_, question)| (*question).to_owned()).collect());
    list("All the way:", texts(&workflow.meta_guidance));
    text.push_str(&format!(
        "\nBegin with `workflow_start` (workflowId `{}`, goal: what this is for). It hands you the first step; hand in \
         what you produce with `workflow_advance`, which hands you the next one, and go on until it is complete. `workflow_status` \
         resumes a session.\n",
        workflow.id
    ));
    // Clients show it to the user who asked for it.
    let messages = vec![Message::user(Block::Text(sanitize(&text).into_owned()))];
    let description = sanitize(&workflow.description).into_owned();
    Outcome::Prompt { description, messages }
}

/// Ids that begin with what is typed; the arguments of prompts are free text.
pub(super) fn complete(
    snapshot: &Snapshot,
    reference: &Reference,
    argument: &str,
    typed: &str,
) -> Outcome {
    let is_id = match reference {
        Reference::Resource(template) => {
            if !template.starts_with(SCHEME) {
                return Outcome::BadParams(format!("there is no template `{template}`"));
            }
            argument == "id"
        }
        Reference::Prompt(name) => {
            if app::find(snapshot, name).is_err() {
                return Outcome::BadParams(format!("there is no prompt `{name}`"));
            }
            false
        }
    };
    let ids = snapshot.workflows().map(|workflow| &*workflow.id);
    let matching: Vec<&str> = ids.filter(|id| is_id && id.starts_with(typed)).collect();
    let values = matching.iter().take(COMPLETIONS_MAX).map(|id| (*id).to_owned()).collect();
    Outcome::Completion { values, total: matching.len() }
}

/// What a cursor looks like. Any word could be an id, so that a bare one would let every made-up cursor
/// pass for one of ours.
const CURSOR: &str = "after:";

/// The cursor of the page that begins after this id.
pub(super) fn cursor_after(id: &str) -> String {
    format!("{CURSOR}{id}")
}

/// The id that a page begins after. Ids are in order, so it does so even if that workflow is gone.
pub(super) fn read_cursor(cursor: &str) -> Result<&str, String> {
    let id = cursor.strip_prefix(CURSOR).filter(|id| workflow::limits::is_id(id));
    id.ok_or_else(|| format!("unknown cursor `{cursor}`"))
}

/// One page of the workflows in the order of ids.
fn page<T>(
    snapshot: &Snapshot,
    cursor: Option<&str>,
    make: impl Fn(&Workflow) -> T,
) -> Result<Page<T>, String> {
    let after = cursor.map(read_cursor).transpose()?;
    let mut rest = snapshot
        .workflows()
        .filter(|workflow| after.is_none_or(|after| &*workflow.id > after))
        .peekable();
    let taken: Vec<&Workflow> = rest.by_ref().take(PAGE).collect();
    let has_more = rest.peek().is_some();
    let next = taken.last().filter(|_| has_more).map(|last| cursor_after(&last.id));
    Ok(Page { items: taken.into_iter().map(make).collect(), next, is_live: false })
}
