//! What goes wrong before anybody is reached: registries, ids, and options.

use super::*;

#[test]
fn without_a_registry_it_is_said_how_to_add_one() {
    let place = Place::new();
    insta::assert_snapshot!(place.run(&["mcp", "list"]).shown(), @"
    exit 0
    --- stderr
    warning: no registry names a server
      try: `workflowlookup mcp import` shows the servers that your clients know, and `--write` adds them; `--stdio` and `--http` call one that is in no registry
    ");
    insta::assert_snapshot!(place.run(&["mcp", "list", "--json"]).shown(), @r#"
    exit 0
    --- stdout
    {
      "servers": [],
      "files": [
        {
          "path": "mcp.registry.json",
          "state": "absent"
        },
        {
          "path": "[ROOT]/home/.config/workflowlookup/mcp.registry.json",
          "state": "absent"
        }
      ],
      "findings": []
    }
    "#);
    insta::assert_snapshot!(place.run(&["mcp", "ping"]).shown(), @"
    exit 0
    --- stderr
    warning: no registry names a server
      try: `workflowlookup mcp import` shows the servers that your clients know, and `--write` adds them; `--stdio` and `--http` call one that is in no registry
    ");
    insta::assert_snapshot!(place.run(&["mcp", "call", "github.search", "q=bees"]).shown(), @"
    exit 1
    --- stderr
    error: there is no server `github`, for no registry names any
      try: `workflowlookup mcp import` shows the servers that your clients know, and `--write` adds them; `--stdio` and `--http` call one that is in no registry
    ");
    insta::assert_snapshot!(place.run(&["mcp", "call", "github.search", "--json"]).shown(), @r#"
    exit 1
    --- stdout
    {
      "error": {
        "code": -32602,
        "message": "Invalid params",
        "data": {
          "details": "there is no server `github`, for no registry names any"
        }
      }
    }
    "#);
    insta::assert_snapshot!(place.run(&["mcp", "resources", "github"]).shown(), @"
    exit 1
    --- stderr
    error: there is no server `github`, for no registry names any
      try: `workflowlookup mcp import` shows the servers that your clients know, and `--write` adds them; `--stdio` and `--http` call one that is in no registry
    ");
    assert_eq!(fs::read_dir(place.home()).unwrap().count(), 0);
}

#[test]
fn a_registry_that_cannot_be_read_is_a_fault() {
    let place = Place::new();
    place.write("broken.json", "{\"servers\": [");
    for words in
        [&["list"][..], &["ping"], &["call", "a.b"], &["read", "a", "b"], &["describe", "a"]]
    {
        let words = [&["--registry", "broken.json", "mcp"], words].concat();
        let done = place.run(&words);
        assert_eq!(done.status, 2, "{}", done.shown());
    }
    insta::assert_snapshot!(place.run(&["--registry", "broken.json", "mcp", "call", "a.b"]).shown(), @"
    exit 2
    --- stderr
    fault: the registry `broken.json` cannot be read
    error[registry/syntax]: unterminated array
     --> broken.json:1:13
      = try: look for a missing quote, comma or bracket
    ");
    insta::assert_snapshot!(place.run(&["--registry", "gone.json", "mcp", "list"]).shown(), @"
    exit 2
    --- stderr
    fault: the registry `gone.json` cannot be read
    error[registry/unreadable]: there is no such file
     --> gone.json
      = try: see whether the path is right
    ");
}

#[test]
fn a_server_that_cannot_be_used_says_why() {
    let place = Place::new();
    let servers = json!({"servers": [
        {"id": "good", "mcp": {"command": "good"}},
        {"id": "unset", "mcp": {"command": "x", "env": {"KEY": "${NOT_SET_HERE}"}}},
        {"id": "off", "disabled": true, "mcp": {"command": "x"}},
    ]});
    place.write_trusted("mcp.registry.json", servers.to_string());
    insta::assert_snapshot!(place.run(&["mcp", "call", "unset.x"]).shown(), @"
    exit 1
    --- stderr
    error: `unset` in `mcp.registry.json` cannot be used
    error[registry/unset-variable]: the variable `NOT_SET_HERE` in `env.KEY` is not set
     --> mcp.registry.json:1:101 (/servers/1/mcp/env/KEY)
      = try: set it where this program is started, or write `${NOT_SET_HERE:-default}`
      try: `workflowlookup mcp list` shows all that is wrong
    ");
    insta::assert_snapshot!(place.run(&["mcp", "ping", "off"]).shown(), @"
    exit 1
    --- stderr
    error: `off` is disabled in `mcp.registry.json`
      try: enable it there to use it
    ");
    insta::assert_snapshot!(place.run(&["mcp", "list", "goood"]).shown(), @"
    exit 1
    --- stderr
    error: there is no server `goood` in the registry; did you mean `good`?
    ");
    insta::assert_snapshot!(place.run(&["mcp", "call", "good"]).shown(), @"
    exit 1
    --- stderr
    error: `good` does not name a server and a tool of it
      try: `workflowlookup mcp list good` shows its tools
    ");
    insta::assert_snapshot!(place.run(&["mcp", "describe"]).shown(), @"
    exit 1
    --- stderr
    error: name a server, or a tool of it
      try: `workflowlookup mcp list` shows the servers
    ");
    insta::assert_snapshot!(place.run(&["mcp", "read", "good"]).shown(), @"
    exit 1
    --- stderr
    error: a server and an address are wanted
      try: `workflowlookup mcp read SERVER URI`; `mcp resources SERVER` shows addresses
    ");
}

#[test]
fn options_for_a_server_without_a_registry() {
    let place = Place::new();
    let ends = |words: &[&str]| place.run(&[&["mcp"], words].concat()).shown();
    insta::assert_snapshot!(ends(&["call", "--stdio", "npx 'x", "tool"]), @"
    exit 1
    --- stderr
    error: the command behind `--stdio` has a quote that is not closed
      try: close it, or put a backslash in front of it
    ");
    insta::assert_snapshot!(ends(&["call", "--stdio", " ", "tool"]), @"
    exit 1
    --- stderr
    error: there is no command behind `--stdio`
      try: `--stdio 'npx -y PACKAGE'`
    ");
    insta::assert_snapshot!(ends(&["call", "--stdio", "x", "--env", "SECRET", "tool"]), @"
    exit 1
    --- stderr
    error: what follows `--env` has no name and no `=`
      try: `--env NAME=VALUE`
    ");
    insta::assert_snapshot!(ends(&["call", "--http", "http://127.0.0.1:1/mcp", "--header", "secret", "tool"]), @"
    exit 1
    --- stderr
    error: what follows `--header` has no `:`
      try: `--header 'NAME: VALUE'`
    ");
    insta::assert_snapshot!(ends(&["call", "--http", "ftp://example.com", "tool"]), @"
    exit 1
    --- stderr
    error: `url` begins neither with `https://` nor with `http://`
      try: write the whole URL, such as `https://example.com/mcp`
    ");
    insta::assert_snapshot!(ends(&["call", "--http", "http://127.0.0.1:1/", "--bearer-env", "NOT_SET_HERE", "tool"]), @"
    exit 1
    --- stderr
    error: the variable `NOT_SET_HERE` of `--bearer-env` is not set
      try: export it, and give the name of the variable alone
    ");
    insta::assert_snapshot!(ends(&["call", "--stdio", "x ${NOT_SET_HERE}", "tool"]), @"
    exit 1
    --- stderr
    error: the variable `NOT_SET_HERE` in `args[0]` is not set
      try: set it where this program is started, or write `${NOT_SET_HERE:-default}`
    ");
    insta::assert_snapshot!(ends(&["list", "--stdio", "/nowhere/at/all"]), @"
    exit 1
    --- stderr
    error: cannot connect to `server`: there is no program `/nowhere/at/all`, which `command` names
    ");
    insta::assert_snapshot!(ends(&["call", "--timeout", "soon", "a.b"]), @"
    exit 1
    --- stderr
    error: invalid value 'soon' for '--timeout <DURATION>': expected number at 0; write `30s` or `2m`

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(ends(&["--log-wire", "nowhere/log", "list"]), @"
    exit 1
    --- stderr
    error: `nowhere/log` cannot be written: No such file or directory (os error 2)
      try: name a file that may be created or appended to
    ");
}

#[test]
fn a_slip_is_told_apart_from_a_command() {
    let place = Place::new();
    insta::assert_snapshot!(place.run(&["mcp", "cal", "a.b"]).shown(), @"
    exit 1
    --- stderr
    error: unrecognized subcommand 'cal'

      tip: a similar subcommand exists: 'call'

    Usage: workflowlookup mcp [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(place.run(&["mcp", "call", "a.b", "--jsn"]).shown(), @"
    exit 1
    --- stderr
    error: unexpected argument '--jsn' found

      tip: a similar argument exists: '--json'

    Usage: workflowlookup mcp call --json <SERVER.TOOL> [KEY=VALUE]...

    For more information, try '--help'.
    ");
    let scripts = ["bash", "zsh", "fish"].map(|shell| place.run(&["completions", shell]).stdout);
    for verb in [
        "list",
        "describe",
        "call",
        "ping",
        "resources",
        "read",
        "subscribe",
        "record",
        "replay",
        "import",
    ] {
        let help = place.run(&["mcp", verb, "--help"]);
        assert!(help.stdout.contains("Example"), "{}", help.shown());
        for script in &scripts {
            assert!(script.contains(verb), "{verb}");
        }
    }
    for script in &scripts {
        assert!(script.contains("bearer-env") && script.contains("log-wire"));
    }
}

/// A registry in which nothing can be used, for two reasons.
fn unusable() -> Place {
    let place = Place::new();
    let servers = json!([
        {"id": "web", "mcp": {"url": "https://example.com/${NOBODY_SET_THIS}"}},
        {"id": "files", "mcp": {"command": ""}},
    ]);
    place.write_trusted("mcp.registry.json", json!({"servers": servers}).to_string());
    place
}

#[test]
fn one_server_has_nothing_to_do_with_what_is_wrong_with_others() {
    let place = unusable();
    insta::assert_snapshot!(place.run(&["mcp", "list", "web"]).shown());
}

#[test]
fn what_cannot_be_used_does_not_answer() {
    let place = unusable();
    let done = place.run(&["mcp", "ping"]);
    insta::assert_snapshot!(done.shown());
    assert!(done.stdout.lines().all(|line| line.contains("\tfailed\t")), "{}", done.shown());
    let json = place.run(&["mcp", "ping", "--json"]);
    assert_eq!((json.status, &json.json()["servers"][1]["ok"]), (1, &json!(false)));
    assert!(json.json()["servers"][0]["error"]["data"]["details"].is_string());
}

/// In a pipe only the list is on standard output.
#[test]
fn findings_do_not_mix_with_a_list() {
    let done = unusable().run(&["mcp", "list"]);
    assert_eq!(done.stdout.lines().count(), 2, "{}", done.shown());
    assert!(done.stderr.contains("error[registry/unset-variable]"), "{}", done.shown());
}

#[test]
fn options_that_cannot_be_meant() {
    let place = Place::new();
    let told = |words: &[&str]| place.run(&[&["mcp"], words].concat()).told();
    let mut all = String::new();
    for words in [
        &["list", "n", "--stdio", "true"][..],
        &["ping", "n", "--http", "http://127.0.0.1:1/mcp"],
        &["call", "--http", "127.0.0.1:1/mcp", "tool"],
        &["call", "--http", "http://127.0.0.1:1/mcp", "--bearer-env", "NOBODY_SET_THIS", "tool"],
        &["call", "--stdio", "/bin/echo hi | cat", "tool"],
        &["record", "f", "--http", "http://127.0.0.1:1/mcp"],
        &["login", "--stdio", "true"],
        &["subscribe", "server"],
    ] {
        all += &format!("$ {}\n{}\n\n", words.join(" "), told(words).trim_end());
    }
    insta::assert_snapshot!(all);
    let told = told(&["call", "--stdio", "A=1 /nowhere/at/all", "tool"]);
    assert!(told.contains("\n  try: no shell is run: `--env A=…` sets a variable\n"), "{told}");
}
