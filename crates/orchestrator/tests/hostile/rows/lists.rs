//! Servers whose lists of tools are too long, or not true.

use serde_json::{Value, json};

use crate::row::{Asked, Row};

pub(super) fn rows() -> Vec<Row> {
    let list = |does, arguments: &[&'static str]| {
        Row::process(does, arguments).at_first().asked(Asked::Tools)
    };
    let lies = |does, tool: &'static str, arguments: Value| {
        Row::process(does, &["--hostile", "lies"]).asked(Asked::Call { tool, arguments })
    };
    let many_letters = json!({"text": format!("{}!", "a".repeat(40))});
    vec![
        list("has a million tools, in one page", &["--more-tools", "1000000"]),
        list(
            "has a million tools, in pages of 1,000",
            &["--more-tools", "1000000", "--page", "1000"],
        ),
        list("has pages of tools without an end", &["--hostile", "endless-pages"]),
        list("has pages of tools that begin anew", &["--hostile", "circular-pages"]),
        list("has a tool of 50 MiB, and one with 50,000 fields", &["--hostile", "large-tools"]),
        list("describes its tools with everything wrong", &["--hostile", "lies"]),
        lies("has an `inputSchema` that is a text", "in_text", json!({"a": 1})),
        lies("has an `inputSchema` that is none", "in_broken", json!({"a": 1})),
        lies("refers to a schema elsewhere", "in_remote", json!({"a": 1})),
        lies("refers to a file of ours as a schema", "in_file", json!({"a": 1})),
        lies("has a schema that refers to itself", "in_itself", json!({"a": 1})),
        lies("has a schema that takes for ever", "in_for_ever", json!({"a": 1})),
        lies("has a pattern that takes for ever", "in_pattern", many_letters),
        lies("has a schema of 500 kB", "in_large", json!({"a": 1})),
        lies("has an `outputSchema` that is none", "out_broken", json!({})),
        lies("refers to an `outputSchema` elsewhere", "out_remote", json!({})),
        lies("has an `outputSchema` that takes for ever", "out_for_ever", json!({})),
        lies("answers what does not fit its `outputSchema`", "lies", json!({})),
        lies("answers without `structuredContent`", "silent", json!({})),
    ]
}
