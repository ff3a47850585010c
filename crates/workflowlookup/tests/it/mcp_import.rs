//! `mcp import`: what clients have, listed and brought into a registry. No secret is ever printed.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

/// The clients' files of somebody who uses several.
fn furnished() -> Place {
    let place = Place::new();
    let files = [
        (
            ".claude.json",
            r#"{"mcpServers": {
                "github": {"type": "http", "url": "https://api.example.com/mcp", "headers": {"Authorization": "Bearer ${GITHUB_TOKEN}"}},
                "workflowlookup": {"command": "/opt/workflowlookup", "args": ["serve"]}
            }, "projects": {}}"#,
        ),
        (
            ".cursor/mcp.json",
            r#"{"mcpServers": {
                "github": {"url": "https://other.example.com/mcp"},
                "Brave Search": {"command": "npx", "args": ["-y", "brave"], "env": {"BRAVE_API_KEY": "geheim-brave"}},
                "mine": {"command": "./bin/workflowlookup", "args": ["serve"]},
                "nowhere": {"comand": "x"}
            }}"#,
        ),
        (
            ".codex/config.toml",
            "[mcp_servers.docs]\ncommand = \"npx\"\nargs = [\"--api-key\", \"geheim-docs\", \"${X}\"]\n\n\
             [mcp_servers.off]\ncommand = \"x\"\nenabled = false\n",
        ),
    ];
    for (file, text) in files {
        let path = place.home().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    place.write(
        ".vscode/mcp.json",
        r#"{"servers": {"local": {"type": "stdio", "command": "${workspaceFolder}/x"}}}"#,
    );
    place
}

/// What a command shows, which has no secret in it.
#[track_caller]
fn seen(done: &Done) -> String {
    let shown = done.shown();
    assert!(!shown.contains("geheim"), "{shown}");
    shown
}

fn registry(place: &Place) -> PathBuf {
    place.home().join(".config/workflowlookup/mcp.registry.json")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn what_clients_have_is_listed_and_nothing_is_written() {
    let place = furnished();
    insta::assert_snapshot!(seen(&place.run(&["mcp", "import"])), @"
    exit 0
    --- stdout
    github	new	Claude Code	https://api.example.com/mcp
    workflowlookup	this program	Claude Code	/opt/workflowlookup serve
    github	other than above	Cursor	https://other.example.com/mcp
    brave-search	new	Cursor	npx -y brave
    mine	this program	Cursor	./bin/workflowlookup serve
    nowhere	cannot be used	Cursor	?
    local	of this project	VS Code, .vscode/mcp.json	${workspaceFolder}/x
    docs	new	Codex	npx --api-key *** ${X}
    off	disabled	Codex	x
    error[registry/unset-variable]: the variable `GITHUB_TOKEN` in `headers.Authorization` is not set
     --> [ROOT]/home/.claude.json:2:119 (/mcpServers/github/headers/Authorization)
      = try: set it where this program is started, or write `${GITHUB_TOKEN:-default}`
    note[registry/renamed]: `Brave Search` is called `brave-search` here: ids are in kebab-case
     --> [ROOT]/home/.cursor/mcp.json:3:17 (/mcpServers/Brave Search)
    error[registry/missing]: neither `command` nor `url` is there
     --> [ROOT]/home/.cursor/mcp.json:5:28 (/mcpServers/nowhere)
      = try: say how the server is reached
    warning[registry/unknown-field]: unknown field `comand`
     --> [ROOT]/home/.cursor/mcp.json:5:29 (/mcpServers/nowhere/comand)
      = try: did you mean `command`?
    --- stderr
    next: `--write` adds 3 servers to `[ROOT]/home/.config/workflowlookup/mcp.registry.json`
    note: 1 server of this project alone: `[ROOT]/home/.config/workflowlookup/mcp.registry.json` is for all projects
      try: `--registry mcp.registry.json` makes a registry of this project's; `--from FILE` brings them in here
    ");
    assert!(!registry(&place).exists());
}

#[test]
fn what_is_new_is_written_once() {
    let place = furnished();
    insta::assert_snapshot!(seen(&place.run(&["mcp", "import", "--write"])).lines().filter(|line| line.contains("import") || line.contains("note")).collect::<Vec<_>>().join("\n"), @"
    note[registry/renamed]: `Brave Search` is called `brave-search` here: ids are in kebab-case
    imported: 3 servers into `[ROOT]/home/.config/workflowlookup/mcp.registry.json`
    note: there are secrets in the entries of brave-search, docs
    note: 1 server of this project alone: `[ROOT]/home/.config/workflowlookup/mcp.registry.json` is for all projects
    ");
    let path = registry(&place);
    insta::assert_snapshot!(fs::read_to_string(&path).unwrap(), @r#"
    {
      "servers": [
        {
          "id": "github",
          "mcp": {
            "transport": "http",
            "url": "https://api.example.com/mcp",
            "headers": {
              "Authorization": "Bearer ${GITHUB_TOKEN}"
            }
          }
        },
        {
          "id": "brave-search",
          "mcp": {
            "transport": "stdio",
            "command": "npx",
            "args": ["-y", "brave"],
            "env": {
              "BRAVE_API_KEY": "geheim-brave"
            }
          }
        },
        {
          "id": "docs",
          "mcp": {
            "transport": "stdio",
            "command": "npx",
            "args": ["--api-key", "geheim-docs", "$${X}"]
          }
        }
      ]
    }
    "#);
    assert_eq!(mode(&path), 0o600);

    let again = place.run(&["mcp", "import", "--write", "--json"]);
    assert_eq!(again.status, 0);
    assert_eq!(again.json()["written"], serde_json::json!([]));
    assert_eq!(again.json()["backup"], serde_json::Value::Null);
    assert!(again.stderr.is_empty(), "{}", again.shown());
}

#[test]
fn conflicts_are_kept_unless_they_are_to_be_replaced() {
    let place = furnished();
    let old = r#"// Mine.
{
  "servers": [
    {
      "id": "github",
      "summary": "by hand", // keep this
      "mcp": { "url": "https://mine.example.com/mcp" },
      "sensitivity": "high"
    }
  ]
}
"#;
    place.write_trusted("mcp.registry.json", old);
    fs::set_permissions(
        place.project().join("mcp.registry.json"),
        fs::Permissions::from_mode(0o644),
    )
    .unwrap();
    let from = ["mcp", "import", "--from", "claude-code"];
    insta::assert_snapshot!(seen(&place.run(&from)), @"
    exit 0
    --- stdout
    github	other than in the registry	Claude Code	https://api.example.com/mcp
    workflowlookup	this program	Claude Code	/opt/workflowlookup serve
    error[registry/unset-variable]: the variable `GITHUB_TOKEN` in `headers.Authorization` is not set
     --> [ROOT]/home/.claude.json:2:119 (/mcpServers/github/headers/Authorization)
      = try: set it where this program is started, or write `${GITHUB_TOKEN:-default}`
    --- stderr
    note: 1 server by an id that the registry has for another
      try: `--write --replace` takes the clients'
    ");
    let kept = place.run(&[&from[..], &["--write"]].concat());
    insta::assert_snapshot!(seen(&kept), @"
    exit 0
    --- stdout
    github	other than in the registry	Claude Code	https://api.example.com/mcp
    workflowlookup	this program	Claude Code	/opt/workflowlookup serve
    error[registry/unset-variable]: the variable `GITHUB_TOKEN` in `headers.Authorization` is not set
     --> [ROOT]/home/.claude.json:2:119 (/mcpServers/github/headers/Authorization)
      = try: set it where this program is started, or write `${GITHUB_TOKEN:-default}`
    --- stderr
    nothing to do: there is nothing new
    note: 1 server by an id that the registry has for another
      try: `--write --replace` takes the clients'
    ");
    let read = |file: &str| fs::read_to_string(place.project().join(file)).unwrap();
    assert_eq!(read("mcp.registry.json"), old);

    let replaced = place.run(&[&from[..], &["--write", "--replace"]].concat());
    insta::assert_snapshot!(seen(&replaced), @"
    exit 0
    --- stdout
    github	other than in the registry	Claude Code	https://api.example.com/mcp
    workflowlookup	this program	Claude Code	/opt/workflowlookup serve
    error[registry/unset-variable]: the variable `GITHUB_TOKEN` in `headers.Authorization` is not set
     --> [ROOT]/home/.claude.json:2:119 (/mcpServers/github/headers/Authorization)
      = try: set it where this program is started, or write `${GITHUB_TOKEN:-default}`
    --- stderr
    imported: 1 server into `mcp.registry.json`; the old file is `mcp.registry.json.bak`
    ");
    insta::assert_snapshot!(read("mcp.registry.json"), @r#"
    // Mine.
    {
      "servers": [
        {
          "id": "github",
          "summary": "by hand", // keep this
          "mcp": {
            "transport": "http",
            "url": "https://api.example.com/mcp",
            "headers": {
              "Authorization": "Bearer ${GITHUB_TOKEN}"
            }
          },
          "sensitivity": "high"
        }
      ]
    }
    "#);
    assert_eq!(read("mcp.registry.json.bak"), old);
    assert_eq!(mode(&place.project().join("mcp.registry.json")), 0o600);
    assert_eq!(mode(&place.project().join("mcp.registry.json.bak")), 0o644);
}

#[test]
fn a_file_can_be_named_and_so_can_the_registry() {
    let place = Place::new();
    place.write("team.json", r#"{"mcpServers": {"a": {"command": "x"}}}"#);
    place.write("real.json", "[]");
    symlink("real.json", place.project().join("linked.json")).unwrap();
    let done = place.run(&[
        "--registry",
        "linked.json",
        "mcp",
        "import",
        "--from",
        "team.json",
        "--write",
    ]);
    assert_eq!(done.status, 0, "{}", done.shown());
    // A link is followed.
    assert!(place.project().join("linked.json").is_symlink());
    insta::assert_snapshot!(fs::read_to_string(place.project().join("real.json")).unwrap(), @r#"
    [
      {
        "id": "a",
        "mcp": {
          "transport": "stdio",
          "command": "x"
        }
      }
    ]
    "#);

    let mut command = place.command(&["mcp", "import", "--from", "team.json", "--json"]);
    command.env("WORKFLOWLOOKUP_REGISTRY", "real.json");
    let done = place.finish(command, "");
    insta::assert_snapshot!(seen(&done), @r#"
    exit 0
    --- stdout
    {
      "registry": "real.json",
      "written": [],
      "backup": null,
      "servers": [
        {
          "id": "a",
          "status": "known",
          "client": null,
          "file": "team.json",
          "transport": "stdio",
          "reached": "x"
        }
      ],
      "findings": []
    }
    "#);
}

#[test]
fn other_files_are_not_touched() {
    let place = furnished();
    place.write_trusted("client.json", r#"{"mcpServers": {}}"#);
    place.write("broken.json", "{\n  \"servers\": [\n");
    let mut shown = String::new();
    for file in ["client.json", "broken.json"] {
        let before = fs::read(place.project().join(file)).unwrap();
        let done = place.run(&["--registry", file, "mcp", "import", "--from", "cursor", "--write"]);
        writeln!(shown, "{}", seen(&done)).unwrap();
        assert_eq!(fs::read(place.project().join(file)).unwrap(), before);
    }
    writeln!(shown, "{}", seen(&place.run(&["mcp", "import", "--from", "nowhere"]))).unwrap();
    writeln!(shown, "{}", seen(&place.run(&["mcp", "import", "--replace"]))).unwrap();
    writeln!(shown, "{}", seen(&Place::new().run(&["mcp", "import"]))).unwrap();
    insta::assert_snapshot!(shown, @"
    exit 1
    --- stderr
    error: `client.json` is a client's file, and no list of servers; it was not touched
      try: name a registry of its own with `--registry`

    exit 1
    --- stderr
    error: `broken.json:2:14`: unterminated array; the file was not touched
      try: repair it, or name another with `--registry`

    exit 1
    --- stderr
    error: `nowhere` is neither a client nor a file
      try: name a file that is there, or one of `claude-code`, `claude-desktop`, `cursor`, `vscode`, `windsurf`, `codex`, `zed`

    exit 1
    --- stderr
    error: the following required arguments were not provided:
      --write

    Usage: workflowlookup mcp import --write --replace

    For more information, try '--help'.

    exit 0
    --- stderr
    warning: no client has any servers
      try: name a file with `--from FILE`, or write a registry by hand: see docs/registry.md
    ");
}
