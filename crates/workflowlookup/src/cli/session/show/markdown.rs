//! A session as a report that a person attaches to a review: what was produced, who decided, what did not count in
//! the end, and whether the log can be believed.

use std::fmt::Write as _;

use engine::{Decision, ImportOrigin, LoopGate, Pending, Submission};
use store::Version;
use workflow::Context;

use super::chapters::{Chapter, Ending, Failure, Why, Work, chapters};
use super::marks::{code, fenced, indented, inline, line};
use crate::cli::session::story::{Story, Told, current_title, decider, import_name};
use service::sessions::time_text;
use service::words::plural;

/// How much is shown of an output that failed its checks. What a person has decided about is shown whole.
const FAILED_BYTES_MAX: usize = 4 * 1024;

pub(super) fn report(story: &Story) -> String {
    let session = &*story.session;
    let mut report = Report { story, text: String::new() };
    report.paragraph(&format!("# Session report: {}", inline(&session.workflow.name)));
    report.facts();
    match session.state.pending() {
        Some(Pending::Output(submission)) => report.waiting(submission),
        Some(Pending::Loops(gate)) => report.loop_gate(gate),
        None => {}
    }
    report.paragraph("## Steps");
    let chapters = chapters(story);
    if chapters.is_empty() {
        report.paragraph("Nothing was handed in yet.");
    }
    let mut number = 0;
    for chapter in &chapters {
        match chapter {
            Chapter::Work(work) => {
                number += 1;
                report.work(number, work);
            }
            Chapter::Back { told, reason } => report.back(told, reason),
            Chapter::Loop { told, decision, is_approved } => {
                report.loop_decision(told, decision, *is_approved);
            }
            Chapter::Import { told, origin } => report.import(told, origin),
        }
    }
    if !session.state.context.is_empty() {
        report.paragraph("## Context");
        report.context(&session.state.context);
    }
    report.ending();
    report.text
}

struct Report<'a> {
    story: &'a Story,
    text: String,
}

impl Report<'_> {
    /// With an empty line between it and the one before.
    fn paragraph(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text.trim_end_matches('\n'));
        self.text.push('\n');
    }

    /// A step by its title and its id, as the session stands.
    fn step(&self, id: &str) -> String {
        let Story { open, session, .. } = self.story;
        self.titled(id, &current_title(&open.sessions, session, id))
    }

    /// The step that an event is about, as it was called then.
    fn told_step(&self, told: &Told) -> Option<String> {
        told.step.as_deref().map(|id| self.titled(id, &told.title))
    }

    fn titled(&self, id: &str, title: &str) -> String {
        match self.story.session.workflow.step(id) {
            Some(_) => format!("{} ({})", inline(title), code(id)),
            None => code(id),
        }
    }

    fn facts(&mut self) {
        let session = &*self.story.session;
        let state = &session.state;
        let mut table = "| | |\n|---|---|\n".to_owned();
        let mut fact = |name: &str, value: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(table, "| {name} | {value} |");
        };
        if let Some(goal) = &state.goal {
            fact("Goal", inline(goal));
        }
        let version = inline(&session.workflow.version);
        fact("Workflow", format!("{} {version}", code(&state.workflow_id)));
        fact("Session", code(&session.id));
        fact("Owner", inline(&session.owner));
        if !self.story.shared_with.is_empty() {
            fact("Shared with", inline(&self.story.shared_with.join(", ")));
        }
        fact("Status", session.status().name().to_owned());
        if let Some(gate) = &state.loop_gate {
            let loops: Vec<String> = gate.loops.iter().map(|id| self.step(id)).collect();
            fact("Stands before", format!("loop {}", loops.join(", ")));
        } else if let Some(step) = &state.step {
            fact("Stands at", self.step(step));
        }
        fact("Revision", state.revision.to_string());
        fact("Began", time_text(self.story.began()));
        fact("Last touched", time_text(self.story.touched()));
        if let Some(origin) = self.story.imported() {
            let count = usize::try_from(origin.unverified).unwrap_or(usize::MAX);
            let unverified = plural(count, "event");
            fact("Imported", format!("{}; {unverified} unverified", inline(&import_name(origin))));
        }
        if let Some(origin) = self.story.origin() {
            let (from, why) = (code(&origin.session), because(origin.reason.as_deref()));
            fact("Copied from", format!("session {from} after its event {}{why}", origin.version));
            let done: Vec<String> =
                self.story.done_before().iter().map(|step| code(step)).collect();
            if !done.is_empty() {
                fact("Done before the copy", done.join(", "));
            }
        }
        self.paragraph(&table);
    }

    fn waiting(&mut self, submission: &Submission) {
        self.paragraph("## Waiting for a person");
        let step = self.step(&submission.step);
        let version = self.story.session.version;
        self.paragraph(&format!(
            "{step} passed its checks, and a person has to confirm its output, version {version}:"
        ));
        self.paragraph(&fenced(&submission.output, ""));
        if !submission.context.is_empty() {
            self.paragraph("It reports besides:");
            self.context(&submission.context);
        }
    }

    fn loop_gate(&mut self, gate: &LoopGate) {
        self.paragraph("## Waiting for a person");
        let loops: Vec<String> = gate.loops.iter().map(|id| self.step(id)).collect();
        self.paragraph(&format!("A person has to approve that loop {} begins.", loops.join(", ")));
        if let Some(rejection) = &gate.rejection {
            self.paragraph(&format!("It was rejected before {}.", decided(rejection)));
        }
    }

    fn loop_decision(&mut self, told: &Told, decision: &Decision, is_approved: bool) {
        let name = self.told_step(told).unwrap_or_default();
        self.heading("", &format!("Loop {name}"), told.superseded_by);
        let verb = if is_approved { "Approved" } else { "Rejected" };
        let (time, mark) = (time_text(told.time), unverified(told));
        self.paragraph(&format!("{verb} {time} {}.{mark}", decided(decision)));
    }

    fn import(&mut self, told: &Told, origin: &ImportOrigin) {
        self.heading("", "Imported", told.superseded_by);
        self.paragraph(&format!(
            "Event {}, {}: everything above was imported {}. What people had decided there is unverified.",
            told.version,
            time_text(told.time),
            inline(&import_name(origin))
        ));
    }

    fn context(&mut self, context: &Context) {
        // What came out of JSON goes into it again.
        let json = serde_json::to_string_pretty(context).unwrap_or_default();
        self.paragraph(&fenced(&json, "json"));
    }

    /// A heading, and whether what is below it still counts.
    fn heading(&mut self, prefix: &str, name: &str, superseded_by: Option<Version>) {
        let Some(by) = superseded_by else {
            return self.paragraph(&format!("### {prefix}{name}"));
        };
        self.paragraph(&format!("### {prefix}**Superseded:** {name}"));
        self.paragraph(&format!(
            "> The session went back at event {by}: this does not count any more."
        ));
    }

    fn back(&mut self, told: &Told, reason: &str) {
        let to = self.told_step(told).unwrap_or_else(|| "the end".to_owned());
        self.heading("", &format!("Back to {to}"), told.superseded_by);
        let (time, why) = (time_text(told.time), because(Some(reason)));
        let superseded = told.supersedes().unwrap_or_else(|| "nothing".to_owned());
        self.paragraph(&format!(
            "Event {}, {time}{why}. It supersedes {superseded}.",
            told.version
        ));
    }

    fn work(&mut self, number: usize, work: &Work<'_>) {
        let step = self.titled(work.step, work.title);
        self.heading(&format!("{number}. "), &step, work.superseded_by);
        match work.ending {
            Ending::Open => self.paragraph("Not done: no output was accepted."),
            Ending::Waiting { told, output } => {
                let time = time_text(told.time);
                let is_now = work.superseded_by.is_none();
                let waits = if is_now { "waits" } else { "waited" };
                self.paragraph(&format!(
                    "Handed in {time}; it {waits} for a person to confirm it."
                ));
                // What waits now stands at the top already.
                if !is_now {
                    self.paragraph(&fenced(output, ""));
                }
            }
            Ending::Accepted { told, output } => {
                self.paragraph(&format!("Accepted {}.", time_text(told.time)));
                self.paragraph(&fenced(output, ""));
            }
            Ending::Approved { told, output, decision } => {
                self.paragraph(&format!(
                    "Approved {} {}.{}",
                    time_text(told.time),
                    decided(decision),
                    unverified(told)
                ));
                self.paragraph(&fenced(output, ""));
            }
        }
        if !work.failures.is_empty() {
            let is_done = !matches!(work.ending, Ending::Open);
            self.paragraph(if is_done { "Tried before:" } else { "Tried so far:" });
            let failures: String = work.failures.iter().map(failure).collect();
            self.paragraph(&failures);
        }
    }

    fn ending(&mut self) {
        let events = plural(self.story.events.len(), "event");
        self.paragraph("---");
        if self.story.flaws.is_empty() {
            let imported = match self.story.imported() {
                Some(_) => " What was imported is only as good as the file that it came from.",
                None => "",
            };
            self.paragraph(&format!(
                "Verified: the chain of {events} holds, and their replay leads here.{imported}"
            ));
            return;
        }
        let flaws: Vec<String> = self.story.flaws.iter().map(|flaw| inline(flaw)).collect();
        self.paragraph(&format!(
            "**Not verified:** the log of {events} is not as it was written: {}.",
            flaws.join(", ")
        ));
    }
}

/// An entry of a list, with what was wrong and what was handed in below it.
fn failure(Failure { told, output, why }: &Failure<'_>) -> String {
    let time = time_text(told.time);
    let attempt = told.attempt.unwrap_or(1);
    let mut entry = format!("- Attempt {attempt}, {time}: ");
    match why {
        Why::Issues(issues) => {
            entry.push_str("not accepted\n");
            for issue in *issues {
                entry.push_str(&format!("  - {}\n", line(issue)));
            }
        }
        Why::Rejected(decision) => {
            entry.push_str(&format!("rejected {}{}\n", decided(decision), unverified(told)));
        }
        Why::Replaced => entry.push_str("handed in anew before it was decided about\n"),
    }
    let shown = match why {
        Why::Issues(_) => &output[..output.floor_char_boundary(FAILED_BYTES_MAX)],
        Why::Rejected(_) | Why::Replaced => output,
    };
    entry.push('\n');
    entry.push_str(&indented(&fenced(shown, "")));
    let left = output.len() - shown.len();
    if left > 0 {
        entry.push_str(&format!(
            "\n  {} left out here; `session show --json` has all of it.\n",
            plural(left, "byte")
        ));
    }
    entry.push('\n');
    entry
}

/// A mark for what a file says that a person has decided.
fn unverified(told: &Told) -> &'static str {
    if told.is_unverified { " (unverified: it was imported)" } else { "" }
}

fn decided(decision: &Decision) -> String {
    format!("{}{}", inline(&decider(decision)), because(decision.reason.as_deref()))
}

fn because(reason: Option<&str>) -> String {
    match reason.map(inline).filter(|reason| !reason.is_empty()) {
        Some(reason) => format!(": {reason}"),
        None => String::new(),
    }
}
