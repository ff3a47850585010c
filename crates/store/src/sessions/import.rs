//! Importing a session: every event of the file is decided again, as if it were happening, under the rules number of the
//! session. Its kind and the position that it leads to are compared, never its wording. What the engine cannot decide is
//! taken as it is and counted as unverified: people's decisions, and the beginning of a copy, whose original is not in the
//! file. Every size and number is bounded, and nothing here recurses.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{
    Budget, Checker, Command, Decision, Event, ImportOrigin, Origin, OutputLocation, Place,
    REASON_BYTES_MAX, Rules, State, Submission, check_state, decide,
};
use sha2::{Digest as _, Sha256};
use workflow::{Context, Format, Scrutiny, Step, Workflow, read, read_trusted, schema};

use super::history::ELSEWHERE;
use super::stored::{
    check_criteria, content_hash, head, json, kind, new_event, read_event, searched,
};
use super::{Error, Sessions};
use crate::export::{ExportedEvent, ExportedHead, ExportedLog};
use crate::import::{Adoption, ImportFile};
use crate::limits::{
    EVENTS_MAX, ID_BYTES_MAX, IMPORT_AHEAD_MAX_MS, IMPORT_STEPS_MAX, PRINCIPAL_BYTES_MAX,
};
use crate::model::{Head, Version};

/// How many bytes of a state are written as JSON and hashed in one step.
const DIGEST_BYTES_PER_STEP: usize = 4;
/// The variable that holds the outputs of steps. A context that sets it could pass for them.
const OUTPUTS_VARIABLE: &str = "steps";

/// Who takes a session in, and when.
#[derive(Debug, Clone)]
pub struct Importer {
    /// The owner from then on, whoever it was before.
    pub owner: String,
    pub time: u64,
}

/// Where a file says something else than what would have happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why} (at `{pointer}`)")]
pub struct Mismatch {
    /// A JSON pointer into the file.
    pub pointer: String,
    pub why: String,
}

impl Mismatch {
    fn at(pointer: &str, why: impl Into<String>) -> Self {
        Self { pointer: pointer.to_owned(), why: why.into() }
    }
}

impl Sessions {
    /// Takes in an exported session. It belongs to the importer from then on; the key that it was started with, and with
    /// whom it was shared, are left behind. Says where it came from.
    pub fn import(&self, file: &ImportFile, importer: &Importer) -> Result<ImportOrigin, Error> {
        let log = &file.log;
        // Before anything is computed.
        if log.events.len() as Version >= EVENTS_MAX {
            return Err(crate::Error::TooMany { max: EVENTS_MAX }.into());
        }
        let (state, unverified) = self.redecide(log, importer.time).map_err(Error::Mismatch)?;
        let ExportedHead { status, step, revision, .. } = &log.head;
        let given = Head { status: *status, step: step.clone(), revision: *revision };
        if head(&state) != given {
            return Err(Error::Mismatch(Mismatch::at("/head", ELSEWHERE)));
        }
        let origin = ImportOrigin {
            session: log.session.id.clone(),
            owner: log.session.owner.clone(),
            digest: file.digest.clone(),
            unverified,
        };
        let event = new_event(&Event::Imported { origin: origin.clone() }, None)?;
        let adoption = Adoption { owner: importer.owner.clone(), event, time: importer.time };
        let search = |event: &crate::Event| searched(&read_event(&event.body).ok()?);
        self.store.import(log, &adoption, &search)?;
        Ok(origin)
    }

    /// The state that the events of a log lead to, and how many of them are unverified.
    fn redecide(&self, log: &ExportedLog, now: u64) -> Result<(State, u64), Mismatch> {
        let workflow = definition(log)?;
        let latest = now.saturating_add(IMPORT_AHEAD_MAX_MS);
        if log.session.created > latest {
            return Err(Mismatch::at("/session/created", "it lies in the future"));
        }
        let is_rewound = log.events.iter().any(|event| event.kind == "rewound");
        let mut replay = Replay {
            id: &log.session.id,
            workflow: &workflow,
            checker: &self.checker,
            state: None,
            arrivals: Vec::new(),
            is_rewound,
            unverified: 0,
            steps: 0,
        };
        for (version, exported) in (1..).zip(&log.events) {
            let pointer = format!("/events/{}", version - 1);
            if exported.time > latest {
                return Err(Mismatch::at(&format!("{pointer}/time"), "it lies in the future"));
            }
            replay.take(version, exported).map_err(|Mismatch { pointer: inner, why }| {
                Mismatch { pointer: pointer + &inner, why: format!("event {version}: {why}") }
            })?;
        }
        let Replay { state, unverified, .. } = replay;
        let state = state.ok_or_else(|| Mismatch::at("/events", "there are none"))?;
        if state.goal.as_deref().unwrap_or_default() != log.session.goal {
            return Err(Mismatch::at("/session/goal", "the session started with another goal"));
        }
        if state.workflow_id != log.session.workflow {
            return Err(Mismatch::at("/session/workflow", "the session follows another workflow"));
        }
        Ok((state, unverified))
    }
}

/// The definition, if a new session could be started with it.
fn definition(log: &ExportedLog) -> Result<Workflow, Mismatch> {
    let at = |why: String| Mismatch::at("/definition/text", why);
    let text = &log.definition.text;
    if content_hash(text) != log.definition.hash {
        let why = "the definition is not the one that the session began with";
        return Err(Mismatch::at("/definition/hash", why));
    }
    let reading = read(text.as_bytes(), Format::Json, Scrutiny::Syntax);
    let Some(workflow) = reading.workflow else {
        let error = reading.findings.iter().find(|finding| finding.is_error());
        let (place, why) = match error {
            Some(finding) => (&*finding.pointer, finding.message.to_string()),
            None => ("", "it cannot be read".to_owned()),
        };
        return Err(at(format!("no session can be started with this definition: {why} ({place})")));
    };
    check_criteria(&workflow).map_err(|refusal| at(refusal.to_string()))?;
    // What the session goes on with is read without the rules, and must be the same.
    match read_trusted(text, Format::Json) {
        Some(trusted) if trusted == workflow => Ok(workflow),
        _ => Err(at("the definition is not written as a session keeps it".to_owned())),
    }
}

struct Replay<'a> {
    /// Of the session.
    id: &'a str,
    workflow: &'a Workflow,
    checker: &'a Checker,
    /// None before the first event.
    state: Option<State>,
    /// Where the session can go back to: what was superseded does not count.
    arrivals: Vec<Arrival>,
    /// Somebody goes back somewhere in the log.
    is_rewound: bool,
    unverified: u64,
    /// The cost of deciding and hashing so far.
    steps: u64,
}

/// An event after which a step was current.
struct Arrival {
    version: Version,
    step: String,
    /// Of the context and the position: copies of all of them could be large.
    digest: [u8; 32],
}

impl Replay<'_> {
    fn take(&mut self, version: Version, exported: &ExportedEvent) -> Result<(), Mismatch> {
        let body = exported.body.get();
        let event = read_event(body).map_err(|error| Mismatch::at("/body", error.to_string()))?;
        if exported.kind != kind(&event) {
            let why =
                format!("its kind is `{}`, and its body is `{}`", exported.kind, kind(&event));
            return Err(Mismatch::at("/kind", why));
        }
        let revision = match &event {
            Event::Started { .. } | Event::Imported { .. } => None,
            _ => self.state.as_ref().map(|state| state.revision),
        };
        if exported.revision != revision {
            return Err(Mismatch::at("/revision", "the session was at another revision"));
        }
        if exported.digest.is_some() {
            return Err(Mismatch::at("/digest", "events of sessions have none"));
        }
        let state = match self.state.take() {
            None => self.begin(&event)?,
            Some(state) => self.step(state, version, &event)?,
        };
        if is_arrival(&event)
            && self.is_rewound
            && let Some(step) = state.step.clone()
        {
            let digest = self.digest(&state)?;
            self.arrivals.push(Arrival { version, step, digest });
        }
        self.state = Some(state);
        Ok(())
    }

    fn begin(&mut self, event: &Event) -> Result<State, Mismatch> {
        let Event::Started {
            rules,
            goal,
            context,
            forked_from,
            gated,
            strict,
            imported,
            references_outputs,
            outputs,
            ..
        } = event
        else {
            return Err(Mismatch::at("/body/type", "a session begins with `started`"));
        };
        if !rules.is_known() {
            let why = format!("this program does not know the rules {rules}; use a newer one");
            return Err(Mismatch::at("/body/rules", why));
        }
        self.check_references(*rules, *references_outputs)?;
        let mut state = State::default();
        state.apply(event);
        if let Some(origin) = forked_from {
            check_origin(origin)?;
            self.check_context("/body/context", context)?;
            match references_outputs {
                true => self.check_outputs(origin, outputs)?,
                false if outputs.is_empty() => {}
                false => {
                    let why = "the session does not refer to outputs";
                    return Err(Mismatch::at("/body/outputs", why));
                }
            }
            imported.as_ref().map_or(Ok(()), |origin| check_import(origin, EVENTS_MAX))?;
            check_state(self.workflow, &state, &Budget::for_call())
                .map_err(|refusal| Mismatch::at("/body/place", refusal.to_string()))?;
            self.unverified += 1;
            return Ok(state);
        }
        if imported.is_some() || !gated.is_empty() || !outputs.is_empty() {
            let why = "only a copy brings gates, outputs or an import with it";
            return Err(Mismatch::at("/body", why));
        }
        let command = Command::Start {
            goal: goal.clone(),
            context: context.clone(),
            strict: *strict,
            rules: *rules,
        };
        self.compare(None, command, event)?;
        Ok(state)
    }

    fn step(
        &mut self,
        mut state: State,
        version: Version,
        event: &Event,
    ) -> Result<State, Mismatch> {
        let advance = |submission: &Submission| Command::Advance {
            revision: state.revision,
            submission: submission.clone(),
        };
        let decision = |decision: &Decision| match decision.who.len() > PRINCIPAL_BYTES_MAX {
            true => Err(Mismatch::at("/body/decision/who", "it is too long")),
            false => Ok(decision.clone()),
        };
        match event {
            Event::Started { .. } => {
                return Err(Mismatch::at("/body/type", "the session has begun already"));
            }
            Event::Accepted { submission, .. }
            | Event::Returned { submission, .. }
            | Event::Submitted { submission } => {
                self.check_context("/body/submission/context", &submission.context)?;
                self.compare(Some(&state), advance(submission), event)?;
            }
            Event::Approved { decision: made, .. } | Event::LoopApproved { decision: made } => {
                self.compare(Some(&state), Command::Approve(decision(made)?), event)?;
                self.unverified += 1;
            }
            Event::Declined { decision: made } | Event::LoopDeclined { decision: made } => {
                self.compare(Some(&state), Command::Decline(decision(made)?), event)?;
                self.unverified += 1;
            }
            Event::Rewound { reason, version: to, place, .. } => {
                self.rewind(reason, *to, place)?;
            }
            Event::Imported { origin } => check_import(origin, version)?,
        }
        state.apply(event);
        if let Event::Rewound { .. } = event {
            let digest = self.digest(&state)?;
            if self.arrivals.last().is_none_or(|arrival| arrival.digest != digest) {
                let why = "the session did not stand there when it came to the step";
                return Err(Mismatch::at("/body/place", why));
            }
        }
        Ok(state)
    }

    /// Whether a session refers to outputs is decided by its workflow. Sessions of rules 1 may be older than such
    /// references, and then have none.
    fn check_references(&self, rules: Rules, references_outputs: bool) -> Result<(), Mismatch> {
        let wanted = self.workflow.uses_reserved_names();
        if references_outputs == wanted || !references_outputs && rules == Rules::FIRST {
            return Ok(());
        }
        let why = match wanted {
            true => "texts of the workflow refer to outputs, and the session does not",
            false => "no text of the workflow refers to an output, and the session does",
        };
        Err(Mismatch::at("/body/referencesOutputs", why))
    }

    /// Refuses a context that could pass for outputs of steps. The engine does so too, but knows nothing of the context
    /// that a copy begins with, and of sessions without references.
    fn check_context(&self, pointer: &str, context: &Context) -> Result<(), Mismatch> {
        let is_taken = |key: &String| key.split('.').next() == Some(OUTPUTS_VARIABLE);
        match self.workflow.uses_reserved_names() && context.keys().any(is_taken) {
            true => {
                let why = format!(
                    "it sets `{OUTPUTS_VARIABLE}`, by which texts refer to outputs of steps"
                );
                Err(Mismatch::at(pointer, why))
            }
            false => Ok(()),
        }
    }

    /// Checks where a copy says that the outputs are that it goes on with: in the session that it was copied from, or in
    /// one that this was copied from in turn. Neither is in the file.
    fn check_outputs(
        &self,
        origin: &Origin,
        outputs: &BTreeMap<Arc<str>, OutputLocation>,
    ) -> Result<(), Mismatch> {
        for (step, OutputLocation { session, version }) in outputs {
            let session = session.as_deref().unwrap_or_default();
            let latest = if session == origin.session { origin.version } else { EVENTS_MAX };
            let why = if !matches!(self.workflow.step(step), Some(Step::Plain(_))) {
                "the workflow has no such step that has outputs"
            } else if session.is_empty() || session == self.id || session.len() > ID_BYTES_MAX {
                "the output is not in a session that this one was copied from"
            } else if !(2..=latest).contains(version) {
                "no event before the copy can hold the output"
            } else {
                continue;
            };
            return Err(Mismatch::at(&schema::join("/body/outputs", step), why));
        }
        Ok(())
    }

    /// Hashes what going back restores, and counts the work.
    fn digest(&mut self, state: &State) -> Result<[u8; 32], Mismatch> {
        let State { context, completed, loops, step, loop_gate, outputs, .. } = state;
        let gates = loop_gate.as_ref().map(|gate| &gate.loops);
        // What came out of JSON goes into it again.
        let text = json(&(context, completed, loops, step, gates, outputs)).unwrap_or_default();
        self.spend((text.len() / DIGEST_BYTES_PER_STEP) as u64)?;
        Ok(Sha256::digest(text.as_bytes()).into())
    }

    /// Counts steps against [`IMPORT_STEPS_MAX`].
    fn spend(&mut self, steps: u64) -> Result<(), Mismatch> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > IMPORT_STEPS_MAX {
            let why = "to decide it again, and all before it, takes more work than an import may";
            return Err(Mismatch::at("/body", why));
        }
        Ok(())
    }

    /// Finds where the session goes back to, and forgets what that supersedes.
    fn rewind(&mut self, reason: &str, to: Version, place: &Place) -> Result<(), Mismatch> {
        if reason.len() > REASON_BYTES_MAX {
            return Err(Mismatch::at("/body/reason", "it is too long"));
        }
        let step = place.step.as_deref().unwrap_or_default();
        let last = self.arrivals.iter().rposition(|arrival| arrival.step == step);
        match last.filter(|at| self.arrivals[*at].version == to) {
            Some(at) => {
                self.arrivals.truncate(at + 1);
                Ok(())
            }
            None => {
                let why =
                    format!("after event {to} the session did not come to step `{step}` last");
                Err(Mismatch::at("/body/version", why))
            }
        }
    }

    /// Decides, and compares the kind of the event and the position that it leads to.
    fn compare(
        &mut self,
        state: Option<&State>,
        command: Command<'_>,
        event: &Event,
    ) -> Result<(), Mismatch> {
        let budget = Budget::for_call();
        let decided = decide(self.workflow, self.checker, state, command, &budget);
        self.spend(budget.steps())?;
        let decided = decided
            .map_err(|refusal| Mismatch::at("/body", format!("it is refused: {refusal}")))?;
        let Some(decided) = decided else {
            return Err(Mismatch::at("/body", "it changes nothing, and is no event"));
        };
        if kind(&decided) != kind(event) {
            let why = format!("it says `{}`, and is decided as `{}`", kind(event), kind(&decided));
            return Err(Mismatch::at("/body/type", why));
        }
        let (Some(given), Some(wanted)) = (place(event), place(&decided)) else { return Ok(()) };
        let field = if given.step != wanted.step {
            "step"
        } else if given.completed != wanted.completed {
            "completed"
        } else if given.loops != wanted.loops {
            "_loops"
        } else if given.gates != wanted.gates {
            "gates"
        } else {
            return Ok(());
        };
        let why = format!(
            "it leads to {}, and not where the session would go",
            given.step.as_ref().map_or("the end".to_owned(), |step| format!("step `{step}`"))
        );
        Err(Mismatch::at(&format!("/body/place/{field}"), why))
    }
}

/// Whether a step is current from this event on that was not before, or was not handed out.
fn is_arrival(event: &Event) -> bool {
    place(event).is_some() || matches!(event, Event::LoopApproved { .. })
}

fn place(event: &Event) -> Option<&Place> {
    match event {
        Event::Started { place, .. }
        | Event::Accepted { place, .. }
        | Event::Approved { place, .. }
        | Event::Rewound { place, .. } => Some(place),
        Event::Returned { .. }
        | Event::Submitted { .. }
        | Event::Declined { .. }
        | Event::LoopApproved { .. }
        | Event::LoopDeclined { .. }
        | Event::Imported { .. } => None,
    }
}

fn check_origin(Origin { session, version, reason }: &Origin) -> Result<(), Mismatch> {
    let reason = reason.as_deref().unwrap_or_default();
    let is_good = session.len() <= ID_BYTES_MAX
        && (1..=EVENTS_MAX).contains(version)
        && reason.len() <= REASON_BYTES_MAX;
    match is_good {
        true => Ok(()),
        false => Err(Mismatch::at("/body/forkedFrom", "no session can have been copied so")),
    }
}

/// The mark of an earlier import, before which there were so many events at most.
fn check_import(origin: &ImportOrigin, events: Version) -> Result<(), Mismatch> {
    let ImportOrigin { session, owner, digest, unverified } = origin;
    let is_good = session.len() <= ID_BYTES_MAX
        && owner.len() <= PRINCIPAL_BYTES_MAX
        && digest.len() == 64
        && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
        && *unverified <= events;
    match is_good {
        true => Ok(()),
        false => Err(Mismatch::at("/body", "no import is recorded so")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;
    use serde_json::{Value, json};

    use super::*;

    const CONTEXT_BYTES: usize = 200_000;

    /// Replays the beginning of a session with a large context.
    fn begin(is_rewound: bool, steps: u64) -> Result<u64, Mismatch> {
        let step = json!({"id": "plan", "title": "Plan", "prompt": "Plan."});
        let workflow = serde_json::from_value(json!({
            "id": "shed", "name": "Shed", "description": "Builds a shed", "version": "1.0.0", "steps": [step],
        }));
        let mut replay = Replay {
            id: "s1",
            workflow: &workflow.unwrap(),
            checker: &Checker::default(),
            state: None,
            arrivals: Vec::new(),
            is_rewound,
            unverified: 0,
            steps,
        };
        let body: Value = json!({
            "type": "started", "rules": 2, "workflowId": "shed", "place": {"step": "plan"},
            "context": {"notes": "a".repeat(CONTEXT_BYTES)},
        });
        let event = ExportedEvent {
            version: 1,
            time: 1,
            kind: "started".to_owned(),
            revision: None,
            digest: None,
            body: to_raw_value(&body).unwrap(),
            hash: String::new(),
        };
        replay.take(1, &event)?;
        Ok(replay.steps)
    }

    #[test]
    fn hashed_arrivals_count_against_the_limit() {
        let deciding = begin(false, 0).unwrap();
        let hashing = begin(true, 0).unwrap() - deciding;
        assert!(hashing >= (CONTEXT_BYTES / DIGEST_BYTES_PER_STEP) as u64, "{hashing}");
        let almost = IMPORT_STEPS_MAX - deciding;
        assert_eq!(begin(false, almost), Ok(IMPORT_STEPS_MAX));
        assert_eq!(begin(true, almost).unwrap_err().pointer, "/body");
    }
}
