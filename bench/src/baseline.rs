//! This version beside an earlier build of the product, in turns: what a call costs now and what it cost then.
//! `cargo xtask bench --baseline PROGRAM` runs it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::contestants::Contestant;
use crate::programs::Programs;
use crate::server::pin_to_one_core;
use crate::table::{Limit, Row, Unit, median};
use crate::upstreams::{self, TEXT, write_registry};

const ROUNDS: usize = 40;
/// Calls in one turn.
const CALLS: usize = 50;
/// More time than this share of the baseline's is a regression.
const ALLOWED: f64 = 1.05;

/// The calls that are compared.
const ADVANCE: &str = "`workflow_advance`, time";
const UPSTREAM_CALL: &str = "`call_mcp_tool`, time";
const NEXT: &str = "`workflow_next`, time";

pub fn rows(programs: &Programs, home: &Path, baseline: &Path) -> Vec<Row> {
    pin_to_one_core();
    let mut versions = [("new", &*programs.product), ("baseline", baseline)]
        .map(|(name, program)| Version::start(programs, &home.join(name), name, program));
    let rows = [ADVANCE, UPSTREAM_CALL, NEXT].map(|what| {
        let mut times: [Vec<f64>; 2] = Default::default();
        // The first round warms up, and does not count.
        for round in 0..=ROUNDS {
            for turn in 0..2 {
                let at = (round + turn) % 2;
                let time = versions[at].turn(what);
                if round > 0 {
                    times[at].push(time);
                }
            }
        }
        let [new, old] = times;
        Row {
            what,
            yardstick: "the baseline's",
            figure: median(new.iter().zip(&old).map(|(new, old)| new / old).collect()),
            unit: Unit::Ratio,
            limit: Limit::AtMost(ALLOWED),
        }
    });
    for version in versions {
        version.agent.server.end();
    }
    rows.into()
}

/// A running server of one version, with a home of its own.
struct Version {
    agent: Agent,
    session: Value,
    revision: u64,
}

impl Version {
    fn start(programs: &Programs, home: &Path, name: &'static str, program: &Path) -> Self {
        let folder = home.join("project");
        let workflows = home.join("workflows");
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::create_dir_all(&workflows).expect("a folder");
        let steps = (0..=CALLS * (ROUNDS + 1)).map(|number| {
            json!({"id": step(number), "title": "A part", "prompt": "Do the next part of the work.",
                "validationCriteria": [{"type": "contains", "value": "tests pass", "message": "Say it"}]})
        });
        let definition = json!({"id": "way", "name": "A way", "description": "For the bench",
            "version": "1.0.0", "steps": steps.collect::<Vec<_>>()});
        std::fs::write(workflows.join("way.json"), definition.to_string()).expect("a workflow");
        std::fs::write(workflows.join("plan.json"), plan().to_string()).expect("a workflow");
        let entry = upstreams::entry(programs, &upstreams::id(0));
        // Outside of the project, where a file that is named on the command line is trusted.
        let registry: PathBuf = write_registry(home, std::iter::once(entry));
        let arguments: [OsString; 5] = [
            "--workflows".into(),
            workflows.into(),
            "serve".into(),
            "--registry".into(),
            registry.into(),
        ];
        let contestant =
            Contestant::without_call(name, program.to_owned(), arguments.into(), folder);
        let mut agent = Agent::start(&contestant);
        let call = json!({"name": "workflow_start", "arguments": {"workflowId": "way"}});
        let begun = agent.ask("tools/call", &call);
        let session = begun["structuredContent"]["sessionId"].clone();
        assert!(session.is_string(), "{name}: {begun}");
        Self { agent, session, revision: 0 }
    }

    /// Seconds for a turn of these calls. The requests are made before the clock runs.
    fn turn(&mut self, what: &str) -> f64 {
        let lines: Vec<String> = (0..CALLS).map(|_| self.line(what)).collect();
        let start = Instant::now();
        for line in &lines {
            let answers = self.agent.server.ask_many(line.as_bytes(), 1);
            let answer = String::from_utf8_lossy(&answers[0]);
            assert!(
                answer.contains("\"result\"") && !answer.contains("\"isError\":true"),
                "{answer}"
            );
        }
        start.elapsed().as_secs_f64()
    }

    fn line(&mut self, what: &str) -> String {
        let (name, arguments) = match what {
            ADVANCE => {
                let arguments = json!({"sessionId": self.session, "revision": self.revision,
                    "stepId": step(usize::try_from(self.revision).expect("a step")),
                    "output": "Both parts are in place, and all tests pass."});
                self.revision += 1;
                ("workflow_advance", arguments)
            }
            UPSTREAM_CALL => {
                let (server, arguments) = (upstreams::id(0), json!({"text": TEXT}));
                ("call_mcp_tool", json!({"server": server, "tool": "echo", "arguments": arguments}))
            }
            _ => (
                "workflow_next",
                json!({"workflowId": "plan", "completedSteps": ["understand"],
                    "context": {"taskId": "TASK-123", "taskSize": "medium"}}),
            ),
        };
        let params = json!({"name": name, "arguments": arguments});
        format!(
            "{}\n",
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        )
    }
}

/// An ordinary workflow. The bundled ones differ between versions, and so do the answers about them.
fn plan() -> Value {
    let rule = |value, message| json!({"type": "contains", "value": value, "message": message});
    let understand = json!({"id": "understand", "title": "Understand the task",
        "prompt": "Study {{taskId}} and the code that it touches. Say how large the change is."});
    let plan = json!({"id": "plan", "title": "Plan the edits and their tests",
        "prompt": "Plan the work on {{taskId}} so that someone else could carry it out.\n\nUnder Changes, number the \
            edits in the order in which you make them. For every edit, give the file and what changes.\nUnder Tests, \
            name the test that proves each requirement.\nUnder Risks, say what could break elsewhere.",
        "guidance": ["Prefer the pattern that the code already uses.", "Plan no edit that serves no requirement."],
        "validationCriteria": [rule("1.", "Number the edits"), rule("Tests", "Name the tests"),
            rule("Risks", "Say what could break")],
        "requireConfirmation": {"var": "taskSize", "not_equals": "small"}});
    json!({"id": "plan", "name": "A plan", "description": "For the bench", "version": "1.0.0",
        "steps": [understand, plan]})
}

fn step(number: usize) -> String {
    format!("part-{number:05}")
}
