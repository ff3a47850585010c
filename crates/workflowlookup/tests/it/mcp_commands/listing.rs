//! `mcp list` and `mcp describe`.

use super::*;

#[test]
fn the_servers_of_a_registry() {
    let place = Place::new();
    let servers = json!({"servers": [
        {
            "id": "github", "title": "GitHub", "sensitivity": "high", "visibility": "opt_in",
            "mcp": {"url": "https://example.com/mcp?key=topsecret99", "auth": {"type": "bearer", "token": "hush-hush-hush"}},
        },
        {
            "id": "files", "summary": "Files\nof ours",
            "mcp": {"command": "npx", "args": ["-y", "files", "--token", "abcdef123"], "env": {"API_KEY": "psst-psst"}},
        },
        {"id": "off", "disabled": true, "mcp": {"command": "x"}},
        {"id": "wrong", "mcp": {"command": "x", "retries": 5}},
    ]});
    place.write_trusted("mcp.registry.json", servers.to_string());
    let listed = place.run(&["mcp", "list"]);
    let as_json = place.run(&["mcp", "list", "--json"]);
    let described = place.run(&["mcp", "describe", "github", "--detail", "summary", "--json"]);
    for done in [&listed, &as_json, &described] {
        for secret in ["topsecret99", "hush", "abcdef123", "psst"] {
            assert!(!done.shown().contains(secret), "{}", done.shown());
        }
    }
    insta::assert_snapshot!(listed.shown(), @"
    exit 0
    --- stdout
    github	ok	high	opt_in	https://example.com/mcp?key=***	GitHub
    files	ok	medium	default	npx -y files --token ***	Files of ours
    off	disabled	-	-	x	
    wrong	unusable	-	-	x	
    --- stderr
    error[registry/unknown-field]: unknown field `retries`
     --> mcp.registry.json:1:421 (/servers/3/mcp/retries)
      = try: remove it; `docs/registry.md` has all fields
    ");
    insta::assert_snapshot!(as_json.shown(), @r#"
    exit 0
    --- stdout
    {
      "servers": [
        {
          "id": "github",
          "title": "GitHub",
          "state": "ok",
          "transport": "http",
          "reached": "https://example.com/mcp?key=***",
          "sensitivity": "high",
          "visibility": "opt_in",
          "file": "mcp.registry.json"
        },
        {
          "id": "files",
          "summary": "Files\nof ours",
          "state": "ok",
          "transport": "stdio",
          "reached": "npx -y files --token ***",
          "sensitivity": "medium",
          "visibility": "default",
          "file": "mcp.registry.json"
        },
        {
          "id": "off",
          "state": "disabled",
          "transport": "stdio",
          "reached": "x",
          "sensitivity": null,
          "visibility": null,
          "file": "mcp.registry.json"
        },
        {
          "id": "wrong",
          "state": "unusable",
          "transport": "stdio",
          "reached": "x",
          "sensitivity": null,
          "visibility": null,
          "file": "mcp.registry.json"
        }
      ],
      "files": [
        {
          "path": "mcp.registry.json",
          "state": "read"
        },
        {
          "path": "[ROOT]/home/.config/workflowlookup/mcp.registry.json",
          "state": "absent"
        }
      ],
      "findings": [
        {
          "code": "registry/unknown-field",
          "severity": "error",
          "file": "mcp.registry.json",
          "line": 1,
          "column": 421,
          "pointer": "/servers/3/mcp/retries",
          "message": "unknown field `retries`",
          "hint": "remove it; `docs/registry.md` has all fields"
        }
      ]
    }
    "#);
    insta::assert_snapshot!(described.shown(), @r#"
    exit 0
    --- stdout
    {
      "server": {
        "id": "github",
        "title": "GitHub",
        "domains": [],
        "tags": [],
        "examples": [],
        "transport": "http",
        "reached": "https://example.com/mcp?key=***",
        "sensitivity": "high",
        "visibility": "opt_in",
        "priority": 5,
        "timeoutMs": 5000,
        "maxCallsPerMinute": 10,
        "alwaysAllow": [],
        "allow": [],
        "deny": []
      }
    }
    "#);
    insta::assert_snapshot!(place.run(&["mcp", "describe", "files", "--detail", "summary"]).shown(), @"
    exit 0
    --- stdout
    files
      summary: Files of ours
      reached by: npx -y files --token ***
      sensitivity: medium (7500 ms and 20 calls a minute)
      visibility: default
      priority: 5
    ");
}

#[test]
fn the_tools_of_a_server() {
    let place = fake(Fake::new());
    insta::assert_snapshot!(place.run(&["mcp", "list", "fake"]).told(), @"
    exit 0
    --- stdout
    fake (fake 1.2.3, 2025-11-25)

    echo(text: string)
      Says it again. As it was.
      workflowlookup mcp call fake.echo text=text

    add(a: number, b: number, exact?: boolean, labels?: string[], who?: {name?: string}): {sum: number}
      Add numbers
      workflowlookup mcp call fake.add a=1 b=1

    plain()
      workflowlookup mcp call fake.plain
    --- stderr
    note: 3 tools in [TIME]
    ");
    let json = place.run(&["mcp", "list", "fake", "--json"]).json();
    assert_eq!(json["info"]["revision"], "2025-11-25");
    assert_eq!(json["tools"][1]["call"], "workflowlookup mcp call fake.add a=1 b=1");
    assert!(json["tookMs"].is_u64(), "{json}");
    // What is typed to reach it is in what is offered to be typed.
    let command = format!("{BINARY} mcp replay fake.jsonl");
    let words = ["mcp", "list", "--stdio", &command, "--env", "API_KEY=psst-psst-psst", "--json"];
    let json = place.run(&words).json();
    let expected = "workflowlookup mcp call --stdio '[BINARY] mcp replay fake.jsonl' --env 'API_KEY=***' echo text=text";
    assert_eq!(json["tools"][0]["call"].as_str().unwrap().replace(BINARY, "[BINARY]"), expected);
}

#[test]
fn only_what_the_entry_lets_through() {
    let place = fake(Fake::new());
    let args = ["mcp", "replay", "fake.jsonl"];
    let entry =
        json!({"id": "fake", "tools": {"deny": ["a*"]}, "mcp": {"command": BINARY, "args": args}});
    place.write_trusted("few.json", json!([entry]).to_string());
    let names = |done: Done| -> Vec<String> {
        let json = done.json();
        json["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        names(place.run(&["--registry", "few.json", "mcp", "list", "fake", "--json"])),
        ["echo", "plain"]
    );
    insta::assert_snapshot!(place.run(&["--registry", "few.json", "mcp", "call", "fake.add", "a=1", "b=2"]).shown(), @"
    exit 1
    --- stderr
    error: `fake.add` is denied by `a*` in `tools.deny` of `fake`; only the user who keeps the registry may change that
    ");
    let list = place.run(&["--registry", "few.json", "mcp", "list", "fake"]);
    assert!(
        list.stdout.contains("mcp call --registry few.json fake.echo text=text"),
        "{}",
        list.shown()
    );
}

#[test]
fn in_more_detail() {
    let place = fake(Fake::new());
    insta::assert_snapshot!(place.run(&["mcp", "describe", "fake"]).told(), @"
    exit 0
    --- stdout
    fake (fake 1.2.3, 2025-11-25)
    Be kind to it.

    echo	Says it again. As it was.
    add	Add numbers
    plain
    ");
    insta::assert_snapshot!(place.run(&["mcp", "describe", "fake.add"]).told(), @r#"
    exit 0
    --- stdout
    add(a: number, b: number, exact?: boolean, labels?: string[], who?: {name?: string}): {sum: number}
    Add numbers
    workflowlookup mcp call fake.add a=1 b=1
    input
    {
      "additionalProperties": false,
      "properties": {
        "a": {
          "description": "One of them",
          "type": "number"
        },
        "b": {
          "type": "integer"
        },
        "exact": {
          "type": "boolean"
        },
        "labels": {
          "items": {
            "type": "string"
          },
          "type": "array"
        },
        "who": {
          "properties": {
            "name": {
              "type": "string"
            }
          },
          "type": "object"
        }
      },
      "required": [
        "a",
        "b"
      ],
      "type": "object"
    }
    output
    {
      "properties": {
        "sum": {
          "type": "number"
        }
      },
      "required": [
        "sum"
      ],
      "type": "object"
    }
    "#);
    insta::assert_snapshot!(place.run(&["mcp", "describe", "fake.add", "--detail", "tools"]).told(), @"
    exit 0
    --- stdout
    add(a: number, b: number, exact?: boolean, labels?: string[], who?: {name?: string}): {sum: number}
    Add numbers
    workflowlookup mcp call fake.add a=1 b=1
    ");
    insta::assert_snapshot!(place.run(&["mcp", "describe", "fake", "--detail", "types"]).told(), @r#"
    exit 0
    --- stdout
    // The tools of `fake`, for programs: import * as fake from "mcp-clients/fake";

    /**
     * Says it again.
     * As it was.
     */
    export function echo(args: { text: string }): Promise<unknown>;

    /** Add numbers */
    export function add(args: {
      /** One of them */
      a: number;
      /** integer */
      b: number;
      exact?: boolean;
      labels?: string[];
      who?: { name?: string };
    }): Promise<{ sum: number }>;

    export function plain(args?: {}): Promise<unknown>;
    "#);
    insta::assert_snapshot!(place.run(&["mcp", "describe", "fake.ad"]).told(), @"
    exit 1
    --- stderr
    error: `fake` has no tool `ad`; did you mean `add`?
    ");
    let json = place.run(&["mcp", "describe", "fake.add", "--json"]).json();
    assert_eq!(json["server"]["id"], "fake");
    assert_eq!(json["tools"][0]["inputSchema"], tools()[1]["inputSchema"]);
    assert_eq!(json["tools"][0]["outputSchema"], tools()[1]["outputSchema"]);
    let whole = place.run(&["mcp", "describe", "fake", "--detail", "schema"]);
    assert_eq!(whole.status, 0, "{}", whole.shown());
    assert_eq!(whole.stdout.matches("\ninput\n").count(), 3, "{}", whole.shown());
    let command = format!("{BINARY} mcp replay fake.jsonl");
    let one = place.run(&["mcp", "describe", "--stdio", &command, "echo"]);
    assert!(
        one.stdout.starts_with("echo(text: string)\nSays it again.\nAs it was.\n"),
        "{}",
        one.shown()
    );
}
