//! Servers over HTTP: this product, with a door and without.

use super::*;
use crate::http_server::Listening;

#[test]
fn a_server_by_its_address() {
    let place = project(&[]);
    let listening = Listening::start(&place);
    let url = listening.url();
    let run = |words: &[&str]| {
        let done = place.run(words);
        done.told().replace(&url, "[URL]")
    };
    insta::assert_snapshot!(run(&["mcp", "call", "--http", &url, "workflow_list", "query=tidy"]), @"
    exit 0
    --- stdout
    - tidy (Tidy up, general, 1.0.0): For a test
    Start one with workflow_start, or resume a session with workflow_status.
    ");
    insta::assert_snapshot!(run(&["mcp", "ping", "--http", &url]), @"
    exit 0
    --- stdout
    server	ok	connected in [TIME], answered in [TIME] (Workflow Lookup 0.1.0, 2026-07-28)
    ");
    insta::assert_snapshot!(run(&["mcp", "call", "--http", &url, "workflow_get", "id=nothing"]), @r#"
    exit 1
    --- stderr
    error: `server.workflow_get` failed: No workflow has the id `nothing`. `workflow_list` shows all ids.

    {"code":-32001,"data":{"nearest":null,"workflowId":"nothing"},"message":"Workflow not found"}
    "#);
    let list = place.run(&["mcp", "list", "--http", &url, "--json"]).json();
    let call = list["tools"][0]["call"].as_str().unwrap().replace(&url, "[URL]");
    assert_eq!(call, "workflowlookup mcp call --http [URL] workflow_list");
    let servers = json!({"mcpServers": {"by-address": {"url": url}}});
    place.write_trusted("client.json", servers.to_string());
    let words = ["--registry", "client.json", "mcp", "call", "by-address.workflow_list"];
    assert_eq!(place.run(&words).status, 0, "{}", place.run(&words).shown());
    assert_eq!(listening.end(), [""; 0]);
}

#[test]
fn a_door_that_wants_a_token() {
    let place = project(&[]);
    let token = place.run(&["token", "new", "me"]).stdout.trim().to_owned();
    let listening = Listening::start(&place);
    let url = listening.url();
    let done = place.run(&["mcp", "list", "--http", &url]);
    insta::assert_snapshot!(done.told().replace(&url, "[URL]"), @r#"
    exit 1
    --- stderr
    error: `server` does not let us in (HTTP 401): no credentials were sent (it says: Bearer realm="workflowlookup"; Unauthorized)
      try: `workflowlookup mcp login --http [URL]`
    "#);
    let mut command =
        place.command(&["mcp", "call", "--http", &url, "--bearer-env", "MINE", "workflow_list"]);
    command.env("MINE", &token);
    let done = place.finish(command, "");
    assert_eq!(done.status, 0, "{}", done.shown());
    let words = ["mcp", "--log-wire", "wire.jsonl", "--log-level", "debug", "call", "--http", &url];
    let mut command = place.command(&words);
    command
        .args(["--header", "Authorization: Bearer ${MINE}", "workflow_list"])
        .env("MINE", &token);
    let done = place.finish(command, "");
    assert_eq!(done.status, 0, "{}", done.shown());
    assert!(done.stderr.contains("[MCP →] server: {"), "{}", done.shown());
    let wire = fs::read_to_string(place.project().join("wire.jsonl")).unwrap();
    let secret = token.rsplit('_').next().unwrap();
    assert!(
        wire.contains("tools/call") && !wire.contains(secret) && !done.shown().contains(secret)
    );
    let port = "http://127.0.0.1:1/mcp";
    let done = place.run(&["mcp", "ping", "--http", port, "--timeout", "5s"]);
    assert_eq!(done.status, 1, "{}", done.shown());
}
