//! What an agent knows of one session, over all the crashes: what it was answered, and what it still waits for. After
//! each of them it holds that against the server.

use serde_json::{Value, json};

use super::Random;
use crate::agent::{Agent, Heard, advance, structured};

/// Long, with outputs that come back and steps that wait for a person.
pub(super) const DEFINITION: &str = r#"{
    "id": "long-one", "name": "Long", "description": "For a test", "version": "1.0.0",
    "steps": [
        {"id": "rounds", "type": "loop", "title": "Rounds",
         "loop": {"type": "for", "count": 30, "maxIterations": 30},
         "body": [
            {"id": "draft", "title": "Draft", "prompt": "Draft number {{currentIteration}}.",
             "validationCriteria": [{"type": "contains", "value": "good", "message": "Be good"}]},
            {"id": "confirm", "title": "Confirm", "prompt": "Have it confirmed.", "requireConfirmation": true},
            {"id": "note", "title": "Note", "prompt": "Note it. The last was {{number}}."}
         ]},
        {"id": "hand-in", "title": "Hand in", "prompt": "Hand it in."}
    ]
}"#;

pub(super) struct Run {
    /// Chosen by us, so that a start that was not answered can be made again.
    key: String,
    /// Every advance that was answered: its arguments, and its answer.
    pub(super) answers: Vec<(Value, Value)>,
    /// How many of them have been asked again.
    repeated: usize,
    /// Where the session stands by the last answer. Null before its start was answered.
    stands: Value,
    /// The arguments of what waits for a person.
    waiting: Option<Value>,
    /// The call that has no answer.
    under_way: Option<Call>,
    /// Calls without an answer that had been stored when their server died,
    pub(super) found: usize,
    /// and those that had not.
    pub(super) applied: usize,
    outputs: u64,
}

#[derive(Clone)]
enum Call {
    Start,
    Advance(Value),
}

impl Run {
    pub(super) fn new(number: usize) -> Self {
        Self {
            key: format!("run-{number}"),
            answers: Vec::new(),
            repeated: 0,
            stands: Value::Null,
            waiting: None,
            under_way: None,
            found: 0,
            applied: 0,
            outputs: 0,
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.stands["isComplete"] == true
    }

    /// Makes the next call, or again the one that was not answered; its id. None where all is done.
    pub(super) fn go_on(&mut self, agent: &mut Agent, random: &mut Random) -> Option<u64> {
        if self.under_way.is_none() && self.is_complete() {
            return None;
        }
        let call = match self.under_way.take() {
            Some(call) => call,
            None if self.stands.is_null() => Call::Start,
            None => Call::Advance(self.waiting.clone().unwrap_or_else(|| self.next(random))),
        };
        let call = self.under_way.insert(call).clone();
        Some(self.make(agent, &call))
    }

    fn make(&self, agent: &mut Agent, call: &Call) -> u64 {
        match call {
            Call::Start => agent.begin_call("workflow_start", &self.start()),
            Call::Advance(arguments) => agent.begin_call("workflow_advance", arguments),
        }
    }

    fn start(&self) -> Value {
        json!({"workflowId": "long-one", "goal": self.key, "key": self.key})
    }

    /// Another output each time, mostly a good one.
    fn next(&mut self, random: &mut Random) -> Value {
        self.outputs += 1;
        let quality = if random.one_in(4) { "bad" } else { "good" };
        let output = format!("a {quality} output, number {}", self.outputs);
        let step = self.stands["step"]["id"].as_str().unwrap();
        let mut arguments = advance(self.id(), self.revision(), step, &output);
        if random.one_in(2) {
            arguments["context"] = json!({"number": self.outputs});
        }
        arguments
    }

    /// Takes the answer of the call that is under way.
    pub(super) fn answered(&mut self, result: Value) {
        let stands = structured(&result).clone();
        let revision = stands["revision"].as_u64().unwrap();
        match self.under_way.take().expect("something was asked") {
            Call::Start => assert_eq!(revision, 0, "{result}"),
            Call::Advance(arguments) if stands.get("waiting").is_some() => {
                assert_eq!(revision, self.revision(), "nothing is decided: {result}");
                self.waiting = Some(arguments);
            }
            Call::Advance(arguments) => {
                assert_eq!(revision, self.revision() + 1, "one more with each answer: {result}");
                assert!(stands["accepted"].is_boolean(), "{result}");
                self.waiting = None;
                self.answers.push((arguments, result));
            }
        }
        self.stands = stands;
    }

    /// After a crash: the session stands where the last answer said, or one further by the call that had none. What
    /// was answered since the last time is answered in the same way again.
    pub(super) fn check(&mut self, agent: &mut Agent) {
        if self.stands.is_null() {
            return;
        }
        let status = agent.status(self.id());
        let (revision, now) = (self.revision(), status["revision"].as_u64().unwrap());
        assert!(now >= revision, "lost what revision {revision} had answered: {status}");
        if now == revision {
            for field in ["step", "isComplete"] {
                assert_eq!(status[field], self.stands[field], "{status}");
            }
            // What waited still does. What was handed in without an answer may wait now.
            assert!(self.waiting.is_none() || status.get("waiting").is_some(), "{status}");
            self.applied += usize::from(self.under_way.is_some());
        } else {
            assert_eq!(now, revision + 1, "only one call was under way: {status}");
            assert!(self.under_way.is_some(), "nobody asked for this: {status}");
            self.found += 1;
        }
        self.repeat(agent, self.repeated);
        self.repeated = self.answers.len();
        let again = agent.status(self.id());
        assert_eq!(again, status, "what is asked again changes nothing");
        if let Some(call) = self.under_way.clone() {
            self.finish(agent, &call);
        }
    }

    /// It began once, every revision was answered once, and each call still has its answer.
    pub(super) fn check_all_answers(&self, agent: &mut Agent) {
        if self.stands.is_null() {
            return;
        }
        let started = agent.call("workflow_start", &self.start());
        assert_eq!(structured(&started)["sessionId"], self.id());
        for (at, (arguments, answer)) in self.answers.iter().enumerate() {
            assert_eq!(arguments["revision"], at);
            assert_eq!(structured(answer)["revision"], at + 1);
        }
        self.repeat(agent, 0);
    }

    fn repeat(&self, agent: &mut Agent, from: usize) {
        for (arguments, answer) in &self.answers[from..] {
            assert_eq!(&agent.call("workflow_advance", arguments), answer);
        }
    }

    /// Makes a call that had no answer again, and stays until it has one.
    fn finish(&mut self, agent: &mut Agent, call: &Call) {
        let made = self.make(agent, call);
        loop {
            match agent.hear().unwrap() {
                Heard::Answer { id, result } => {
                    assert_eq!(id, made);
                    return self.answered(result);
                }
                Heard::Asked { id, .. } => {
                    let approved = json!({"action": "accept", "content": {"decision": "approve"}});
                    agent.reply(&id, &approved);
                }
                Heard::Told { .. } => {}
            }
        }
    }

    fn id(&self) -> &str {
        self.stands["sessionId"].as_str().unwrap()
    }

    fn revision(&self) -> u64 {
        self.stands["revision"].as_u64().unwrap()
    }
}
