//! Tools of another server, found and called through ours by a real client.

use std::process::Command;

use serde_json::json;

use super::{Reached, node, report_of, typescript_folder};
use crate::upstreams::{Upstream, place};

#[test]
#[ignore = "needs the clients that `cargo xtask test` installs"]
fn the_typescript_sdk_calls_other_servers() {
    let upstream = Upstream::start();
    let vault = upstream.entry("vault", json!({"sensitivity": "high", "timeoutMs": 30_000}));
    let folder = typescript_folder();
    for reached in [Reached::Stdio, Reached::Http] {
        for (way, revision) in
            [("v1", "2025-11-25"), ("v2", "2025-11-25"), ("v2-auto", "2026-07-28")]
        {
            let place = place(&[upstream.entry("notes", json!({})), vault.clone()]);
            let report = report_of(reached, &place, |server| {
                let mut client = Command::new(node());
                client.arg(folder.join("upstream.mjs")).args([way, server]);
                client
            });
            let (connected, seen) = report.split_once('\n').unwrap();
            assert!(connected.ends_with(&format!("revision {revision}")), "{connected}");
            insta::allow_duplicates! {
                insta::assert_snapshot!(seen, @r#"
                tools: list_mcp_capabilities, describe_mcp, call_mcp_tool, execute_mcp_code
                found: notes echo, Says a text back to who has sent it
                takes: text
                called: hello, {"text":"hello"}
                  asked: `vault.echo` needs a person's yes, because the sensitivity of the server is `high`. May it be called? With these arguments: { "text": "hello" }
                confirmed: hello
                  asked: `notes` asks: Your name?
                answered: Hello, Ada
                kinds: text, image, audio, resource, resource_link
                refused: The arguments do not fit `notes.echo`:
                failed: it cannot be done
                resources: mcp+notes:note:a, mcp+notes:note:b
                read mcp+notes:note:a: what it says
                "#);
            }
        }
    }
}
