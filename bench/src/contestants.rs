//! Who takes part: how each is started, and what it is asked. All get an empty home, an empty folder and
//! an empty environment, and each line they are sent has the same length from call to call.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::programs::Programs;
use crate::server::Server;

/// Ids begin here, so that all have the same number of digits, and all answers of one contestant the
/// same length.
const FIRST_ID: usize = 1_000_000;

pub struct Contestants {
    pub ours: Contestant,
    /// Ours, asked for more.
    pub ours_in_loop: Contestant,
    /// Ours with many files in its catalogue.
    pub ours_with_files: Contestant,
    pub bare: Contestant,
    /// The bare loop that writes answers together, as we do.
    pub bare_together: Contestant,
    /// The same with an answer that is, byte by byte, ours.
    pub canned: Contestant,
    pub rmcp: Contestant,
    pub rmcp_pipes: Contestant,
}

#[derive(Clone)]
pub struct Contestant {
    pub name: &'static str,
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub folder: PathBuf,
    /// The parameters of a `tools/call`.
    call: Value,
}

impl Contestants {
    pub fn new(programs: &Programs, home: &Path, files: &Path) -> Self {
        let folder = home.join("empty");
        std::fs::create_dir_all(&folder).expect("the empty folder");
        let contestant = |name, program: &Path, arguments: &[&str], call: &Value| Contestant {
            name,
            program: program.to_path_buf(),
            arguments: arguments.iter().map(OsString::from).collect(),
            folder: folder.clone(),
            call: call.clone(),
        };
        // An agent in the middle of the first bundled workflow. The answer is a little longer than the
        // median of all steps of the bundled workflows.
        let next = json!({"name": "workflow_next", "arguments": {
            "workflowId": "ai-task-implementation",
            "completedSteps": ["understand"],
            "context": {"taskId": "TASK-123", "taskSize": "medium"},
        }});
        // Two steps are done and the third begins a loop: about the most work that a call can be.
        let next_in_loop = json!({"name": "workflow_next", "arguments": {
            "workflowId": "investigate-bug",
            "completedSteps": ["reproduce", "collect-evidence"],
            "context": {"severity": "high"},
        }});
        let echo = json!({"name": "echo", "arguments": {"text": "a short text that comes back"}});

        let ours = contestant("workflowlookup", &programs.product, &["serve"], &next);
        let ours_in_loop = Contestant {
            name: "workflowlookup, a step in a loop",
            call: next_in_loop,
            ..ours.clone()
        };
        let mut ours_with_files = ours.clone();
        ours_with_files.name = "workflowlookup, 5,000 files";
        ours_with_files.arguments.extend(["--workflows".into(), files.into()]);
        let canned = home.join("canned.json");
        std::fs::write(&canned, result_of_a_call(&ours)).expect("the canned answer");
        let bare_loop = &*programs.bare_loop;
        let mut canned_loop =
            contestant("bare loop, canned answers together", bare_loop, &["--together"], &next);
        canned_loop.arguments.push(canned.into());
        Self {
            ours,
            ours_in_loop,
            ours_with_files,
            bare: contestant("bare loop", bare_loop, &[], &echo),
            bare_together: contestant("bare loop, together", bare_loop, &["--together"], &echo),
            canned: canned_loop,
            rmcp: contestant("rmcp, `stdio()`", &programs.rmcp_echo, &[], &echo),
            rmcp_pipes: contestant("rmcp, `stdio_pipes()`", &programs.rmcp_echo, &["pipes"], &echo),
        }
    }

    /// Those that are called over and over.
    pub fn called(&self) -> [&Contestant; 7] {
        let Self { ours, ours_in_loop, bare, bare_together, canned, rmcp, rmcp_pipes, .. } = self;
        [ours, bare, bare_together, canned, rmcp, rmcp_pipes, ours_in_loop]
    }
}

impl Contestant {
    /// One that is asked for something else.
    pub fn without_call(
        name: &'static str,
        program: PathBuf,
        arguments: Vec<OsString>,
        folder: PathBuf,
    ) -> Self {
        Self { name, program, arguments, folder, call: Value::Null }
    }

    /// So many calls, a line each.
    pub fn requests(&self, count: usize) -> Vec<String> {
        let line = |number| {
            let id = FIRST_ID + number;
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{}}}"#, self.call)
        };
        (0..count).map(|number| line(number) + "\n").collect()
    }

    /// How long the answer to a call is, with its line end, once it is seen to be a good one.
    pub fn answer_length(&self) -> usize {
        let mut server = Server::start(self);
        server.shake_hands();
        let request = &self.requests(1)[0];
        let answer = server.ask(request.as_bytes());
        let value: Value = serde_json::from_slice(answer).expect("JSON");
        assert_eq!(value["id"], FIRST_ID, "{}: {value}", self.name);
        let text = &value["result"]["content"][0]["text"];
        assert!(text.is_string() && value["result"]["isError"] != true, "{}: {value}", self.name);
        let length = answer.len();
        server.end();
        length
    }
}

fn result_of_a_call(contestant: &Contestant) -> String {
    #[derive(serde::Deserialize)]
    struct Answer<'a> {
        #[serde(borrow)]
        result: &'a RawValue,
    }
    let mut server = Server::start(contestant);
    server.shake_hands();
    let answer = server.ask(contestant.requests(1)[0].as_bytes());
    let answer: Answer<'_> = serde_json::from_slice(answer).expect("an answer with a result");
    let result = answer.result.get().to_owned();
    server.end();
    result
}
