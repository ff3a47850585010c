//! Servers that do not answer a call, or answer it too well.

use serde_json::json;

use crate::row::{Asked, Row};

pub(super) fn rows() -> Vec<Row> {
    let tool = |does, name| Row::tool(does, name, json!({}));
    let mebibyte = 1024 * 1024;
    vec![
        tool("does not answer one call", "never").in_vain(),
        tool("does not answer one call, and ignores that it is cancelled", "deaf").in_vain(),
        Row::process(
            "ignores that it is cancelled, that its input is closed, and SIGTERM",
            &["--hostile", "stubborn"],
        )
        .asked(Asked::Call { tool: "deaf", arguments: json!({}) })
        .in_vain(),
        tool("hangs as a whole", "hang_all").in_vain(),
        Row::tool(
            "ends in the middle of a call",
            "die",
            json!({"status": 7, "secret": "no secret"}),
        ),
        tool("crashes in the middle of a call", "abort"),
        tool("ends in the middle of an answer", "half"),
        tool("ends, and leaves children that do not want to go", "leave_children"),
        tool("closes its input, and lives on", "close_input"),
        Row::process(
            "closes its output, and lives on, whatever it is told",
            &["--hostile", "stubborn"],
        )
        .asked(Asked::Call { tool: "close_output", arguments: json!({}) }),
        tool("answers under another id only", "wrong_id").in_vain(),
        tool("answers neither a result nor an error", "strange"),
        tool("answers with a number", "no_object"),
        tool("answers with fields of the wrong types", "wrong_types"),
        tool("answers with JSON that is nested 10,000 deep", "deep"),
        tool("answers with an error of 300 kB, with a text for a code", "rude_error"),
        tool("answers with an error of 50 MiB", "huge_error"),
        Row::tool("answers with 50 MiB", "big", json!({"bytes": 50 * mebibyte})),
        tool("answers with 26 million numbers", "many_parts"),
        Row::process("has a resource of 26 million numbers", &[]).asked(Asked::Read("test://many")),
        tool("answers with more than a message may have", "too_long"),
        Row::tool("the same, with the id at its end", "too_long", json!({"idLast": true})),
        tool("asks for ever instead of answering", "ask_for_ever").only(&["modern"]),
        tool("tells of progress for ever", "flood_progress").in_vain(),
    ]
}
