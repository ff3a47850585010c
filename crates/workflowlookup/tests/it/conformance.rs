//! The official conformance suite against the product itself: it passes everything that can be passed without the
//! tools, prompts and resources that the suite expects of a server made for it. That server is an example of the crate
//! `transport`, with a test of its own there. Nothing is excused: each scenario stands below, and one that comes out
//! differently fails the test, also for the better.

#[path = "../../../transport/tests/conformance/suite.rs"]
mod suite;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use suite::{Outcome, Tested};

use super::Place;
use super::http_server::Listening;

/// What comes of the scenarios of a revision.
struct Expected {
    revision: &'static str,
    passes: &'static [&'static str],
    /// Passes but for checks that need something of the fixture's.
    partly: &'static [(&'static str, &'static [(&'static str, &'static str)])],
    /// Cannot be passed without something of the fixture's: what, and by which scenarios.
    needs: &'static [(&'static str, &'static [&'static str])],
}

#[test]
#[ignore = "needs the suite that `cargo xtask test` installs"]
fn with_a_handshake() {
    check(&Expected {
        revision: "2025-11-25",
        passes: &[
            "dns-rebinding-protection",
            "ping",
            "prompts-list",
            "resources-list",
            "resources-subscribe",
            "resources-unsubscribe",
            "server-initialize",
            "server-session-lifecycle",
            "server-sse-multiple-streams",
            // Without the fixture's `test_reconnection` it has nothing to look at, and says so.
            "server-sse-polling",
            "tools-list",
        ],
        partly: &[],
        needs: &[
            // Our log is on standard error, and is none of the client's business.
            ("the capability `logging`", &["logging-set-level", "tools-call-with-logging"]),
            (
                "prompts `test_…`",
                &[
                    "completion-complete",
                    "prompts-get-embedded-resource",
                    "prompts-get-simple",
                    "prompts-get-with-args",
                    "prompts-get-with-image",
                ],
            ),
            (
                "resources `test://…`",
                &["resources-read-binary", "resources-read-text", "resources-templates-read"],
            ),
            (
                "tools `test_…`",
                &[
                    "elicitation-sep1034-defaults",
                    "elicitation-sep1330-enums",
                    "tools-call-audio",
                    "tools-call-elicitation",
                    "tools-call-embedded-resource",
                    "tools-call-error",
                    "tools-call-image",
                    "tools-call-mixed-content",
                    "tools-call-sampling",
                    "tools-call-simple-text",
                    "tools-call-with-progress",
                ],
            ),
            ("the tool `json_schema_2020_12_tool`", &["json-schema-2020-12"]),
        ],
    });
}

#[test]
#[ignore = "needs the suite that `cargo xtask test` installs"]
fn without_a_handshake() {
    check(&Expected {
        revision: "2026-07-28",
        passes: &[
            "caching",
            "dns-rebinding-protection",
            "http-header-validation",
            // Of these two the suite sees little without the fixture's tools: it warns, and fails nothing.
            "input-required-result-ignore-extra-params",
            "input-required-result-missing-input-response",
            "input-required-result-unsupported-methods",
            "input-required-result-validate-input",
            "prompts-list",
            "resources-list",
            "sep-2164-resource-not-found",
            "server-sse-multiple-streams",
            // The suite skips all of it in this version.
            "tasks-status-notifications",
            "tools-list",
        ],
        partly: &[(
            "server-stateless",
            &[
                (
                    "sep-2575-server-rejects-undeclared-capability",
                    "the tool `test_missing_capability`",
                ),
                ("sep-2575-missing-capability-http-400", "the tool `test_missing_capability`"),
                (
                    "sep-2575-http-server-no-independent-requests-on-stream",
                    "the tool `test_streaming_elicitation`",
                ),
                ("sep-2575-server-no-log-without-loglevel", "the tool `test_logging_tool`"),
            ],
        )],
        needs: &[
            (
                "prompts `test_…`",
                &[
                    "completion-complete",
                    "input-required-result-non-tool-request",
                    "prompts-get-embedded-resource",
                    "prompts-get-simple",
                    "prompts-get-with-args",
                    "prompts-get-with-image",
                ],
            ),
            (
                "resources `test://…`",
                &["resources-read-binary", "resources-read-text", "resources-templates-read"],
            ),
            (
                "tools `test_…`",
                &[
                    "input-required-result-basic-elicitation",
                    "input-required-result-basic-list-roots",
                    "input-required-result-basic-sampling",
                    "input-required-result-capability-check",
                    "input-required-result-multi-round",
                    "input-required-result-multiple-input-requests",
                    "input-required-result-request-state",
                    "input-required-result-result-type",
                    "input-required-result-tampered-state",
                    "tools-call-audio",
                    "tools-call-embedded-resource",
                    "tools-call-error",
                    "tools-call-image",
                    "tools-call-mixed-content",
                    "tools-call-simple-text",
                    "tools-call-with-progress",
                ],
            ),
            ("the tool `json_schema_2020_12_tool`", &["json-schema-2020-12"]),
            ("a tool with `x-mcp-header`", &["http-custom-header-server-validation"]),
            // An extension that is optional, with tools of its own.
            (
                "tasks",
                &[
                    "tasks-capability-negotiation",
                    "tasks-dispatch-and-envelope",
                    "tasks-lifecycle",
                    "tasks-mrtr-composition",
                    "tasks-mrtr-input",
                    "tasks-request-headers",
                    "tasks-request-state-removal",
                    "tasks-required-task-error",
                    "tasks-wire-fields",
                ],
            ),
        ],
    });
}

fn check(expected: &Expected) {
    let place = Place::new();
    let server = Listening::start(&place);
    let outcome = suite::run(Tested::Server { url: &server.url() }, expected.revision, None);
    assert_eq!(server.end(), [""; 0], "nothing was worth a word");
    assert_eq!(outcome.status, Some(1), "what needs the fixture counts as failed");
    let wrong = differences(expected, &outcome);
    assert!(wrong.is_empty(), "{wrong}\n{}", outcome.summary());
}

fn differences(expected: &Expected, outcome: &Outcome) -> String {
    let mut wrong = String::new();
    let mut failed: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    for (scenario, checks) in &outcome.scenarios {
        let checks = checks.iter().filter(|check| check.has_failed);
        failed.insert(scenario, checks.map(|check| (&*check.id, &*check.message)).collect());
    }
    let mut take = |scenario: &str, wrong: &mut String| {
        let taken = failed.remove(scenario);
        if taken.is_none() {
            writeln!(wrong, "{scenario}: is not run any more, or stands here twice").unwrap();
        }
        taken.unwrap_or_default()
    };
    for scenario in expected.passes {
        for (check, message) in take(scenario, &mut wrong) {
            writeln!(wrong, "{scenario}: {check}: {message}").unwrap();
        }
    }
    for (scenario, needs) in expected.partly {
        let mut failed = take(scenario, &mut wrong);
        for (check, what) in *needs {
            if failed.remove(check).is_none() {
                writeln!(wrong, "{scenario}: {check} passes without {what}").unwrap();
            }
        }
        for (check, message) in failed {
            writeln!(wrong, "{scenario}: {check}: {message}").unwrap();
        }
    }
    for (what, scenarios) in expected.needs {
        for scenario in *scenarios {
            if take(scenario, &mut wrong).is_empty() {
                writeln!(wrong, "{scenario}: passes without {what}").unwrap();
            }
        }
    }
    for scenario in failed.keys() {
        writeln!(wrong, "{scenario}: is new, and stands nowhere here").unwrap();
    }
    wrong
}
