//! A session for people at a terminal: where it stands, what waits, what is known, and what happened, a line an event.

use std::io;

use engine::{Event, Place};

use crate::cli::Terminal;
use crate::cli::session::ruling::print_waiting;
use crate::cli::session::story::{Story, Told, decider, import_name, loop_name, step_name};
use crate::cli::terminal::{DIM, GREEN, HEADING, RED, YELLOW};
use service::sessions::time_text;
use service::words::{one_line, plural};

/// How much of a text of somebody else's goes on a line; `--json` and `--markdown` have all of it.
const LINE_CHARS_MAX: usize = 100;
const GOAL_CHARS_MAX: usize = 1_000;

pub(super) fn print(story: &Story, terminal: &mut Terminal) -> io::Result<()> {
    let (sessions, session) = (&story.open.sessions, &*story.session);
    terminal.styled(HEADING, &one_line(&session.workflow.name, LINE_CHARS_MAX))?;
    for (name, value) in facts(story) {
        terminal.line(&format!("  {name:<12} {value}"))?;
    }
    if let Some(pending) = session.state.pending() {
        terminal.line("")?;
        print_waiting(sessions, session, pending, terminal)?;
        terminal.styled(DIM, "  decide with:")?;
        for verb in ["approve", "reject"] {
            let id = &session.id;
            let line = match session.state.strict {
                true => format!("POST /sessions/{id}/{verb}, with a token that may approve"),
                false => format!("workflowlookup session {verb} {id}"),
            };
            terminal.line(&format!("    {line}"))?;
        }
    }
    if !session.state.context.is_empty() {
        terminal.line("")?;
        terminal.styled(HEADING, "Context")?;
        for (name, value) in &session.state.context {
            let name = one_line(name, LINE_CHARS_MAX);
            terminal
                .line(&format!("  {name} = {}", one_line(&value.to_string(), LINE_CHARS_MAX)))?;
        }
    }
    terminal.line("")?;
    terminal.styled(HEADING, "History")?;
    for told in &story.events {
        print_event(story, told, terminal)?;
    }
    terminal.line("")?;
    let events = plural(story.events.len(), "event");
    if let Some(origin) = story.imported() {
        let unverified = plural(usize::try_from(origin.unverified).unwrap_or(usize::MAX), "event");
        let note = format!("it came from a file, of which {unverified} could not be verified");
        terminal.styled(YELLOW, &note)?;
    }
    if story.flaws.is_empty() {
        return terminal.styled(GREEN, &format!("{events}, all as they were written"));
    }
    terminal.styled(RED, &format!("{events}, not as they were written:"))?;
    story.flaws.iter().try_for_each(|flaw| terminal.line(&format!("  - {flaw}")))
}

fn facts(story: &Story) -> Vec<(&'static str, String)> {
    let (sessions, session) = (&story.open.sessions, &*story.session);
    let state = &session.state;
    let workflow = format!("{} {}", state.workflow_id, session.workflow.version);
    let mut facts = vec![
        ("session", session.id.clone()),
        ("workflow", one_line(&workflow, LINE_CHARS_MAX)),
        ("owner", one_line(&session.owner, LINE_CHARS_MAX)),
        ("status", session.status().name().to_owned()),
    ];
    if !story.shared_with.is_empty() {
        let names = one_line(&story.shared_with.join(", "), LINE_CHARS_MAX);
        facts.insert(3, ("shared with", names));
    }
    if state.strict {
        facts.push(("decided", "only with a token that may approve".to_owned()));
    }
    if let Some(goal) = &state.goal {
        facts.insert(2, ("goal", one_line(goal, GOAL_CHARS_MAX)));
    }
    if let Some(gate) = &state.loop_gate {
        let loops = gate.loops.iter().map(|id| loop_name(sessions, session, id));
        let loops: Vec<String> = loops.collect();
        facts.push(("stands", format!("before {}", loops.join(" and "))));
    } else if let Some(step) = &state.step {
        let tried = match state.attempts {
            0 => String::new(),
            attempts => format!(", after {}", plural(attempts as usize, "failed attempt")),
        };
        facts.push(("stands at", format!("{}{tried}", step_name(sessions, session, step))));
    }
    facts.push(("revision", state.revision.to_string()));
    facts.push(("began", time_text(story.began())));
    facts.push(("last touched", time_text(story.touched())));
    if let Some(origin) = story.imported() {
        facts.push(("imported", import_name(origin)));
    }
    if let Some(origin) = story.origin() {
        let from = format!("session `{}` after its event {}", origin.session, origin.version);
        facts.push(("copied from", with_reason(&from, origin.reason.as_deref())));
    }
    facts
}

fn print_event(story: &Story, told: &Told, terminal: &mut Terminal) -> io::Result<()> {
    let step = told.step.as_deref().unwrap_or("the end");
    let attempt = told.attempt.filter(|attempt| *attempt > 1);
    let attempt = attempt.map(|attempt| format!(", attempt {attempt}")).unwrap_or_default();
    let mut below = Vec::new();
    let what = match &told.event {
        Event::Started { place, forked_from, .. } => {
            let how = if forked_from.is_some() { "began as a copy" } else { "began" };
            format!("{how}{}", at(place))
        }
        Event::Accepted { submission, place } => {
            below.push(format!("│ {}", excerpt(&submission.output)));
            format!("`{step}` accepted{attempt}{}", then(place))
        }
        Event::Returned { issues, .. } => {
            below.extend(issues.iter().map(|issue| format!("- {}", excerpt(issue))));
            format!("`{step}` not accepted{attempt}")
        }
        Event::Submitted { submission } => {
            below.push(format!("│ {}", excerpt(&submission.output)));
            format!("`{step}` handed in{attempt}, to be confirmed by a person")
        }
        Event::Approved { decision, place } => {
            let what = format!("`{step}` approved {}", decider(decision));
            with_reason(&what, decision.reason.as_deref()) + &then(place)
        }
        Event::Declined { decision } => {
            let what = format!("`{step}` rejected {}", decider(decision));
            with_reason(&what, decision.reason.as_deref())
        }
        Event::Rewound { reason, .. } => {
            below.extend(told.supersedes().map(|events| format!("supersedes {events}")));
            with_reason(&format!("went back to `{step}`"), Some(reason))
        }
        Event::LoopApproved { decision } => {
            let what = format!("loop `{step}` approved {}", decider(decision));
            with_reason(&what, decision.reason.as_deref()) + "; it begins"
        }
        Event::LoopDeclined { decision } => {
            let what = format!("loop `{step}` rejected {}", decider(decision));
            with_reason(&what, decision.reason.as_deref())
        }
        Event::Imported { origin } => format!("imported {}", import_name(origin)),
    };
    let width = story.events.len().to_string().len();
    let line = format!("  {:>width$}  {}  {what}", told.version, time_text(told.time));
    let (style, mut note) = match told.superseded_by {
        Some(by) => (DIM, format!(" [superseded by {by}]")),
        None => (anstyle::Style::new(), String::new()),
    };
    if told.is_unverified {
        note.push_str(" [unverified]");
    }
    terminal.styled(style, &format!("{line}{note}"))?;
    for line in below {
        terminal.styled(DIM, &format!("  {:width$}  {line}", ""))?;
    }
    Ok(())
}

fn at(place: &Place) -> String {
    if let [id, ..] = &*place.gates {
        return format!(" before loop `{id}`");
    }
    match &place.step {
        Some(step) => format!(" at `{step}`"),
        None => ", with nothing to do".to_owned(),
    }
}

fn then(place: &Place) -> String {
    if let [id, ..] = &*place.gates {
        return format!("; then loop `{id}`, which waits for a person");
    }
    match &place.step {
        Some(step) => format!("; then `{step}`"),
        None => "; that was the last step".to_owned(),
    }
}

fn with_reason(what: &str, reason: Option<&str>) -> String {
    match reason.map(excerpt).filter(|reason| !reason.is_empty()) {
        Some(reason) => format!("{what}: {reason}"),
        None => what.to_owned(),
    }
}

fn excerpt(text: &str) -> String {
    one_line(text, LINE_CHARS_MAX)
}
