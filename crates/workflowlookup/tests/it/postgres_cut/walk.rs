//! A client that hands in one output after the other, and remembers what it was told.

use serde_json::{Value, json};

use super::{Answer, Client};
use crate::Place;
use crate::agent::{Era, advance};

pub(super) struct Walk {
    era: Era,
    pub(super) id: String,
    /// The outputs that the server has taken, and has said so.
    taken: Vec<String>,
}

impl Walk {
    pub(super) fn start(client: &Client, era: Era) -> Self {
        let begun = client.call(era, "workflow_start", &json!({"workflowId": "long-one"})).good();
        let id = begun["structuredContent"]["sessionId"].as_str().unwrap().to_owned();
        Self { era, id, taken: Vec::new() }
    }

    /// Hands in the next output: the same as before, where that came to nothing.
    pub(super) fn go_on(&mut self, client: &Client) -> Answer {
        let revision = self.taken.len() as u64;
        let output = format!("output {revision} of {}", self.id);
        let arguments = advance(&self.id, revision, "round", &output);
        let answer = client.call(self.era, "workflow_advance", &arguments);
        if let Answer::Good(result) = &answer {
            let stands = &result["structuredContent"];
            assert_eq!(stands["accepted"], true, "{stands}");
            assert_eq!(stands["revision"], revision + 1, "{stands}");
            self.taken.push(output);
        }
        answer
    }

    /// The same, which must succeed.
    pub(super) fn must_go_on(&mut self, client: &Client) {
        self.go_on(client).good();
    }

    pub(super) fn status(&self, client: &Client) -> Answer {
        client.call(self.era, "workflow_status", &json!({"sessionId": self.id}))
    }

    /// Where the server says that it is, is where it is.
    pub(super) fn check_status(&self, client: &Client) {
        let result = self.status(client).good();
        assert_eq!(result["structuredContent"]["revision"], self.taken.len() as u64);
    }

    /// What was taken is in its log, in the order in which it was taken, and once.
    pub(super) fn check_log(&self, place: &Place) {
        let shown = place.run(&["session", "show", &self.id, "--json"]).json();
        let events = shown["events"].as_array().unwrap().iter();
        let stored: Vec<&Value> =
            events.skip(1).map(|event| &event["event"]["submission"]["output"]).collect();
        assert_eq!(stored, self.taken.iter().collect::<Vec<_>>());
    }
}
