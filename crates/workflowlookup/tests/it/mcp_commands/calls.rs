//! `mcp call`: what is typed, and what comes of it.

use super::*;

/// A server whose tools do this and that.
fn various() -> Place {
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 0, "progress": 1}});
    let sum = json!({
        "content": [{"type": "text", "text": "{\"sum\":3.5}"}], "structuredContent": {"sum": 3.5},
    });
    let failed = json!({"content": [{"type": "text", "text": "no such file"}], "isError": true});
    fake(
        Fake::new()
            .call("echo", json!({"text": "hello"}), text("hello"))
            .call("echo", json!({"text": "two"}), json!({"content": [
                {"type": "text", "text": "one"}, {"type": "text", "text": "two\n"},
            ]}))
            .call("add", json!({"a": 1.5, "b": 2}), sum.clone())
            .call("add", json!({"a": 1, "b": 2, "exact": true, "labels": ["x", "y"], "who": {"name": "Ann"}}), sum)
            .call("add", json!({"a": 0, "b": 0}), json!({"content": [], "structuredContent": {"sum": "none"}}))
            .call("plain", json!({"fail": true}), failed)
            .exchange("tools/call", json!({"name": "plain", "arguments": {"error": 5}}), &[],
                Some(("error", json!({"code": -32099, "message": "it is closed", "data": {"until": "monday"}}))))
            .asked("tools/call", json!({"name": "plain", "arguments": {"progress": 1}}), &[progress], Some(text("done")))
            .asked("tools/call", json!({"name": "plain", "arguments": {"never": true}}), &[], None),
    )
}

fn call(place: &Place, words: &[&str]) -> Done {
    place.run(&[&["mcp", "call"], words].concat())
}

#[test]
fn values_are_read_as_the_schema_wants_them() {
    let place = various();
    insta::assert_snapshot!(call(&place, &["fake.echo", "text=hello"]).shown(), @"
    exit 0
    --- stdout
    hello
    ");
    insta::assert_snapshot!(call(&place, &["fake.echo", "text=two"]).shown(), @"
    exit 0
    --- stdout
    one

    two
    ");
    insta::assert_snapshot!(call(&place, &["fake.add", "a=1.5", "b=2"]).shown(), @r#"
    exit 0
    --- stdout
    {"sum":3.5}
    "#);
    let words = ["fake.add", "a:=1", "b=2", "exact=true", "labels=x,y", "who.name=Ann"];
    assert_eq!(call(&place, &words).status, 0, "{}", call(&place, &words).shown());
    let whole = r#"{"a": 1.5, "b": 2}"#;
    assert_eq!(call(&place, &["fake.add", "--args", whole]).status, 0);
    let read = place.run_with_input(&["mcp", "call", "fake.add", "--args", "-"], whole);
    assert_eq!(read.stdout, "{\"sum\":3.5}\n", "{}", read.shown());
    insta::assert_snapshot!(call(&place, &["fake.add", "a=1.5", "b=2", "--json"]).shown(), @r#"
    exit 0
    --- stdout
    {
      "content": [
        {
          "text": "{\"sum\":3.5}",
          "type": "text"
        }
      ],
      "structuredContent": {
        "sum": 3.5
      }
    }
    "#);
    assert_eq!(call(&place, &["fake.plain", "progress:=1"]).stdout, "done\n");
}

#[test]
fn what_does_not_fit_is_not_sent() {
    let place = various();
    insta::assert_snapshot!(call(&place, &["fake.add", "a=one", "b=2.5", "exakt=true", "c"]).shown(), @"
    exit 1
    --- stderr
    error: the arguments do not fit `fake.add`:
    - `a` wants number, and `one` is none
    - `b` wants integer, and `2.5` is none
    - `exakt` is not known; did you mean `exact`?
    - `c` has no `=`; write `key=value`, or `key:=JSON`
      try: workflowlookup mcp call fake.add a=1 b=1
    ");
    insta::assert_snapshot!(call(&place, &["fake.add", "b=2"]).shown(), @"
    exit 1
    --- stderr
    error: the arguments do not fit `fake.add`:
    - /a: `a` is missing: number, One of them
      try: workflowlookup mcp call fake.add b=2 a=1
    ");
    insta::assert_snapshot!(call(&place, &["fake.add", "b=2", "--json"]).shown(), @r#"
    exit 1
    --- stdout
    {
      "error": {
        "code": -32602,
        "message": "Invalid params",
        "data": {
          "details": "the arguments do not fit `fake.add`:\n- /a: `a` is missing: number, One of them",
          "problems": [
            {
              "expected": "number",
              "kind": "missing",
              "message": "`a` is missing: number, One of them",
              "pointer": "/a"
            }
          ]
        }
      }
    }
    "#);
    insta::assert_snapshot!(call(&place, &["fake.add", "a:=[", "b=1"]).shown(), @"
    exit 1
    --- stderr
    error: the arguments do not fit `fake.add`:
    - what follows `a:=` is not JSON: EOF while parsing a list at line 1 column 1
      try: workflowlookup mcp call fake.add b=1 a=1
    ");
    insta::assert_snapshot!(call(&place, &["fake.add", "--args", "{\"a\": 1,"]).shown(), @r#"
    exit 1
    --- stderr
    error: the arguments are not JSON: EOF while parsing a value at line 1 column 8
      try: `--args '{"key": "value"}'`, or `key=value` without `--args`
    "#);
    insta::assert_snapshot!(call(&place, &["fake.add", "--args", "[1]"]).shown(), @r#"
    exit 1
    --- stderr
    error: the arguments are JSON, but no object
      try: `--args '{"key": "value"}'`, or `key=value` without `--args`
    "#);
    insta::assert_snapshot!(call(&place, &["fake.add", "a=x", "--json"]).shown(), @r#"
    exit 1
    --- stdout
    {
      "error": {
        "code": -32602,
        "message": "Invalid params",
        "data": {
          "details": "the arguments do not fit `fake.add`",
          "problems": [
            {
              "message": "`a` wants number, and `x` is none",
              "pointer": "/a"
            }
          ]
        }
      }
    }
    "#);
    let big = "12345678901234567890123";
    insta::assert_snapshot!(call(&place, &["fake.add", &format!("a={big}"), "b=1"]).shown());
    let whole = format!("{{\"a\": {big}, \"b\": 1}}");
    insta::assert_snapshot!(call(&place, &["fake.add", "--args", &whole]).shown());
    insta::assert_snapshot!(call(&place, &["fake.ecko", "text=hello"]).shown(), @"
    exit 1
    --- stderr
    error: `fake` has no tool `ecko`; did you mean `echo`?
    ");
    insta::assert_snapshot!(call(&place, &["fake.something", "text=hello", "--json"]).shown(), @r#"
    exit 1
    --- stdout
    {
      "error": {
        "code": -32602,
        "message": "Invalid params",
        "data": {
          "details": "`fake` has no tool `something`; describe the server to see its tools",
          "nearest": []
        }
      }
    }
    "#);
    insta::assert_snapshot!(call(&place, &["fakke.echo", "text=hello"]).shown(), @"
    exit 1
    --- stderr
    error: there is no server `fakke` in the registry; did you mean `fake`?
    ");
}

#[test]
fn what_the_tool_and_the_server_say_no_to() {
    let place = various();
    insta::assert_snapshot!(call(&place, &["fake.plain", "fail:=true"]).shown(), @"
    exit 1
    --- stderr
    error: `fake.plain` failed: no such file
    ");
    let json = call(&place, &["fake.plain", "fail:=true", "--json"]);
    assert_eq!((json.status, &json.json()["isError"]), (1, &json!(true)));
    insta::assert_snapshot!(call(&place, &["fake.plain", "error:=5"]).shown(), @r#"
    exit 1
    --- stderr
    error: `fake` answers with error -32099: it is closed
    its data: {"until":"monday"}
    "#);
    insta::assert_snapshot!(call(&place, &["fake.plain", "error:=5", "--json"]).shown(), @r#"
    exit 1
    --- stdout
    {
      "error": {
        "code": -32099,
        "message": "it is closed",
        "data": {
          "until": "monday"
        }
      }
    }
    "#);
    // Not what it promised, and still what it said.
    insta::assert_snapshot!(call(&place, &["fake.add", "a=0", "b=0"]).shown(), @r#"
    exit 0
    --- stdout
    {
      "sum": "none"
    }
    --- stderr
    warning: `structuredContent` is not what `outputSchema` says: /sum: wanted number, found a string
    "#);
    insta::assert_snapshot!(call(&place, &["fake.plain", "never:=true", "--timeout", "300ms"]).told(), @"
    exit 1
    --- stderr
    error: Request timeout: `fake` did not answer within [TIME]; raise `timeoutMs` of its entry where it needs longer
      try: `--timeout 60s` gives it longer
    ");
    insta::assert_snapshot!(call(&place, &["fake.plain", "never:=true", "--timeout", "300ms", "--json"]).told(), @r#"
    exit 1
    --- stdout
    {
      "error": {
        "code": -32009,
        "message": "Request timeout",
        "data": {
          "details": "Request timeout: `fake` did not answer within [TIME]; raise `timeoutMs` of its entry where it needs longer"
        }
      }
    }
    "#);
}

#[test]
fn servers_that_do_not_work() {
    let place = Place::new();
    let call = |command: &str| {
        let words = ["mcp", "call", "--stdio", command, "--timeout", "20s", "tool"];
        place.run(&words).told()
    };
    insta::assert_snapshot!(call("/bin/sh -c 'echo it is broken >&2; exit 3'"), @"
    exit 1
    --- stderr
    error: cannot connect to `server`: its process ended with status 3; its last words:
      it is broken
    ");
    insta::assert_snapshot!(call("/bin/sh -c 'echo this is no server; read line; exit 0'"), @"
    exit 1
    --- stderr
    error: cannot connect to `server`: its process ended with status 0; its last words:
      this is no server
    ");
    Fake::silent().asked("initialize", json!({}), &[], None).write(&place, "mute.jsonl");
    let command = format!("{BINARY} mcp replay mute.jsonl");
    let done = place.run(&["mcp", "call", "--stdio", &command, "--timeout", "300ms", "tool"]);
    insta::assert_snapshot!(done.told(), @"
    exit 1
    --- stderr
    error: Request timeout: `server` did not get ready within [TIME]
      try: `--timeout 60s` gives it longer
    ");
}

#[test]
fn a_persons_call_is_not_confirmed() {
    let place = various();
    let args = ["mcp", "replay", "fake.jsonl"];
    let entry =
        json!({"id": "fake", "sensitivity": "high", "mcp": {"command": BINARY, "args": args}});
    place.write_trusted("high.json", json!([entry]).to_string());
    let done = place.run(&["--registry", "high.json", "mcp", "call", "fake.echo", "text=hello"]);
    assert_eq!(done.shown(), "exit 0\n--- stdout\nhello\n");
}

#[test]
fn this_product_is_a_server_too() {
    let place = project(&[]);
    insta::assert_snapshot!(call(&place, &["self.workflow_list"]).shown(), @"
    exit 0
    --- stdout
    - tidy (Tidy up, general, 1.0.0): For a test
    Start one with workflow_start, or resume a session with workflow_status.
    ");
    let next =
        call(&place, &["self.workflow_next", "workflowId=tidy", "completedSteps:=[]", "--json"]);
    assert_eq!(next.json()["structuredContent"]["step"]["id"], "only");
    insta::assert_snapshot!(call(&place, &["self.workflow_get", "id=tidi"]).shown(), @r#"
    exit 1
    --- stderr
    error: `self.workflow_get` failed: No workflow has the id `tidi`. Did you mean `tidy`? `workflow_list` shows all ids.

    {"code":-32001,"data":{"nearest":"tidy","workflowId":"tidi"},"message":"Workflow not found"}
    "#);
}

#[test]
fn what_is_asked_stays_open_where_nobody_can_answer() {
    let question = json!({
        "jsonrpc": "2.0", "id": 0, "method": "elicitation/create",
        "params": {"message": "Who are you?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}},
    });
    let asking = Fake::new().asked(
        "tools/call",
        json!({"name": "plain", "arguments": {}}),
        &[question],
        Some(text("never mind")),
    );
    let place = fake(asking);
    let done = place.run(&["mcp", "--log-wire", "wire.jsonl", "call", "fake.plain"]);
    insta::assert_snapshot!(done.shown(), @"
    exit 0
    --- stdout
    never mind
    --- stderr
    `fake` asks, and nobody is at a terminal to answer; it is told so:
    | Who are you?
    ");
    let wire = fs::read_to_string(place.project().join("wire.jsonl")).unwrap();
    assert!(wire.contains(r#""result":{"action":"cancel"}"#), "{wire}");
}

/// Its server would refuse it, after it was told everything.
#[test]
fn a_tool_that_runs_only_as_a_task_is_not_called() {
    let capabilities = json!({"tools": {}});
    let info = json!({"name": "fake", "version": "1"});
    let hello =
        json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info});
    let tool = json!({"name": "research", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}});
    let server = Fake::silent().asked("initialize", json!({}), &[], Some(hello)).asked(
        "tools/list",
        json!({}),
        &[],
        Some(json!({"tools": [tool]})),
    );
    let place = fake(server);
    insta::assert_snapshot!(call(&place, &["fake.research"]).shown(), @"
    exit 1
    --- stderr
    error: `fake.research` cannot be called, for it runs only as a task, and tasks are not begun here
    ");
    insta::assert_snapshot!(place.run(&["mcp", "list", "fake"]).told(), @"
    exit 0
    --- stdout
    fake (fake 1, 2025-11-25)

    research()
      cannot be called here: it runs only as a task
    --- stderr
    note: 1 tool in [TIME]
    ");
    let listed = place.run(&["mcp", "describe", "fake", "--json"]).json();
    assert_eq!(listed["tools"][0]["hints"], json!(["taskOnly"]));
    assert_eq!(listed["tools"][0].get("call"), None);
}

#[test]
fn what_was_typed_and_is_good_stays_in_what_to_try() {
    let place = various();
    let done = call(&place, &["fake.add", "a=7", "b=two", "labels=x,y z", "who.name=Ann"]);
    assert!(
        done.stderr.contains(
            "try: workflowlookup mcp call fake.add a=7 'labels=x,y z' who.name=Ann b=1\n"
        ),
        "{}",
        done.shown()
    );
}

#[test]
fn a_recording_that_cannot_be_written_is_told_once() {
    let place = various();
    let done = place.run(&["mcp", "--log-wire", "/dev/full", "call", "fake.echo", "text=hello"]);
    assert_eq!((done.status, done.stdout.as_str()), (0, "hello\n"), "{}", done.shown());
    assert_eq!(done.stderr.matches("the recording lacks some").count(), 1, "{}", done.shown());
}
