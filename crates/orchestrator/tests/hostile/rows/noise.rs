//! Servers that say much beside what was asked.

use serde_json::json;

use crate::row::{Asked, Row};

pub(super) fn rows() -> Vec<Row> {
    let hostile = |does, word: &'static str| Row::process(does, &["--hostile", word]);
    let mebibyte = 1024 * 1024;
    vec![
        hostile("writes lines that are no messages before each answer", "garbage"),
        Row::tool("writes 100 kB of binary before its answer", "binary", json!({})),
        Row::tool("writes an array of 26 million numbers before its answer", "batch", json!({})),
        Row::tool("writes a line without an end", "line_without_end", json!({})).in_vain(),
        Row::tool("writes lines without end", "lines_without_end", json!({})).in_vain(),
        Row::tool(
            "writes 100 MiB to standard error",
            "flood_stderr",
            json!({"bytes": 100 * mebibyte}),
        ),
        hostile("answers everything twice", "twice"),
        hostile("answers what nobody asked, before each answer", "wrong-ids"),
        Row::process("answers the last question first", &[])
            .asked(Asked::Together { tool: "out_of_order", times: 20 }),
        Row::tool(
            "sends 100,000 notifications before its answer",
            "flood_notifications",
            json!({"count": 100_000}),
        ),
        Row::tool(
            "sends 3,000 notifications of changes, each of 500 kB",
            "flood_updates",
            json!({"count": 3_000, "bytes": 500_000}),
        ),
        Row::tool("asks for something with 50 MiB", "huge_question", json!({})).only(&["legacy"]),
        hostile("wants something itself, without an end", "floods-requests").only(&["legacy"]),
    ]
}
