//! `doctor`: what is well, what is not, and what to try. How it takes servers that answer badly is
//! tested beside the handshake itself.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::connect::{installed, masked};
use super::*;

/// What `doctor` says of guards before Linux 6.12, and from then on.
const GUARDS: [&str; 2] = [
    "note: other MCP servers could kill their guard processes; what they leave is killed as long as this program runs\n  \
     try: Linux 6.12 or later with Landlock and seccomp keeps guards out of reach",
    "ok: other MCP servers cannot reach their guard processes",
];

/// What a user sees, without what differs from run to run and from kernel to kernel.
fn seen(done: &Done) -> String {
    let shown = masked(done).replace(GUARDS[0], GUARDS[1]);
    let version = env!("CARGO_PKG_VERSION");
    let shown = shown.replace(&format!("version {version}"), "version [VERSION]");
    match shown.split_once("all within ") {
        Some((before, after)) => {
            let after = after.trim_start_matches(|letter: char| letter.is_ascii_digit());
            format!("{before}all within [TIME]{after}")
        }
        None => shown,
    }
}

fn doctor(place: &Place, arguments: &[&str]) -> Done {
    place.finish(installed(place, &[&["doctor"], arguments].concat()), "")
}

/// The lines of a part.
pub(super) fn about(done: &Done, part: &str) -> Vec<String> {
    let checks = done.json();
    let checks = checks["checks"].as_array().unwrap().iter();
    let checks = checks.filter(|check| check["check"] == part);
    checks
        .map(|check| {
            let hint = check["hint"].as_str().map(|hint| format!("\n  try: {hint}"));
            let (level, message) = (&check["level"], check["message"].as_str().unwrap());
            format!("{}: {message}{}", level.as_str().unwrap(), hint.unwrap_or_default())
        })
        .collect()
}

fn chmod(place: &Place, file: &str, mode: u32) {
    fs::set_permissions(place.project().join(file), fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn all_is_well_where_it_is() {
    let place = Place::new();
    insta::assert_snapshot!(seen(&doctor(&place, &[])), @"
    exit 0
    --- stdout
    ok: this is version [VERSION], `[EXE]`
    ok: `workflowlookup` on your PATH is this one
    ok: the product itself holds 9 workflows
    ok: your folder `[ROOT]/home/.local/share/workflowlookup/workflows` does not exist, and need not
    ok: the project's folder `workflows` does not exist, and need not
    ok: the project's folder `.workflowlookup/workflows` does not exist, and need not
    ok: there are no sessions yet; they will be kept in `[ROOT]/home/.local/state/workflowlookup/sessions.db`
    note: no registry names other MCP servers that could be called
      try: `workflowlookup mcp import` shows those that your clients know
    ok: programs are confined by Landlock and seccomp
    ok: other MCP servers cannot reach their guard processes
    ok: the server answers as revisions 2025-11-25 and 2026-07-28: 7 tools, 9 workflows, nothing else on standard output, all within [TIME] ms
    note: no client's configuration mentions this server
      try: `workflowlookup connect CLIENT` prints what to put there
    0 problems, 0 warnings
    ");
    insta::assert_snapshot!(seen(&place.run(&["doctor"])).lines().take(4).collect::<Vec<_>>().join("\n"), @"
    exit 0
    --- stdout
    ok: this is version [VERSION], `[EXE]`
    warning: `workflowlookup` is not on your PATH
    ");
}

#[test]
fn for_machines_it_is_json() {
    let place = Place::new();
    let done = doctor(&place, &["--no-bundled", "--workflows", "nowhere", "--json"]);
    assert_eq!(done.status, 1);
    let json = done.json();
    assert_eq!((&json["problems"], &json["warnings"]), (&1.into(), &1.into()));
    insta::assert_snapshot!(about(&done, "source").join("\n"), @"
    ok: your folder `[ROOT]/home/.local/share/workflowlookup/workflows` does not exist, and need not
    ok: the project's folder `workflows` does not exist, and need not
    ok: the project's folder `.workflowlookup/workflows` does not exist, and need not
    problem: the folder `nowhere` does not exist
      try: create it, or correct `--workflows`
    warning: there is no workflow to hand out
      try: `workflowlookup new ID` writes one to start from
    ");
    assert_eq!(about(&done, "handshake").len(), 1);
    assert!(done.stdout.starts_with("{\n  \"problems\": 1,\n"), "{}", done.stdout);
}

#[test]
fn all_workflows_are_counted_on_however_many_pages() {
    let place = Place::new();
    for number in 0..120 {
        place.write(&format!("workflows/{number}.json"), definition(&format!("w-{number}"), "W"));
    }
    let done = doctor(&place, &["--no-bundled", "--json"]);
    let handshake = about(&done, "handshake").join("\n");
    assert!(handshake.contains(" 7 tools, 120 workflows,"), "{handshake}");
}

#[test]
fn sources_that_were_asked_for_must_be_there() {
    let place = Place::new();
    place.write("file", "");
    let mut command = installed(&place, &["--workflows", "typo", "doctor"]);
    command.env("WORKFLOW_STORAGE_PATH", "gone:file");
    insta::assert_snapshot!(seen(&place.finish(command, "")), @"
    exit 1
    --- stdout
    ok: this is version [VERSION], `[EXE]`
    ok: `workflowlookup` on your PATH is this one
    ok: the product itself holds 9 workflows
    ok: your folder `[ROOT]/home/.local/share/workflowlookup/workflows` does not exist, and need not
    ok: the project's folder `workflows` does not exist, and need not
    ok: the project's folder `.workflowlookup/workflows` does not exist, and need not
    problem: the folder `gone` does not exist
      try: create it, or correct `WORKFLOW_STORAGE_PATH`
    problem: the folder `file` cannot be read: Not a directory (os error 20)
      try: see whether it is a folder, and whether you may look into it
    problem: the folder `typo` does not exist
      try: create it, or correct `--workflows`
    ok: nobody but their owners and groups can write the workflows' files and folders
    ok: there are no sessions yet; they will be kept in `[ROOT]/home/.local/state/workflowlookup/sessions.db`
    note: no registry names other MCP servers that could be called
      try: `workflowlookup mcp import` shows those that your clients know
    ok: programs are confined by Landlock and seccomp
    ok: other MCP servers cannot reach their guard processes
    ok: the server answers as revisions 2025-11-25 and 2026-07-28: 7 tools, 9 workflows, nothing else on standard output, all within [TIME] ms
    note: no client's configuration mentions this server
      try: `workflowlookup connect CLIENT` prints what to put there
    3 problems, 0 warnings
    ");
}

#[test]
fn broken_and_hidden_workflows_are_named() {
    let place = Place::new();
    place.write("workflows/good.json", definition("good", "Good"));
    place.write("workflows/broken.json", "{ \"id\": \"broken\", ");
    let rule = r#""prompt": "Do it.", "validationCriteria": [{"type": "regex", "pattern": "(", "message": "M"}]"#;
    let flawed = definition("flawed", "Flawed").replace(r#""prompt": "Do it.""#, rule);
    place.write("workflows/flawed.json", flawed);
    place.write("workflows/warned.json", definition("warned", "W").replace("Do it.", "Do {{it}}."));
    place.write("workflows/deep/ours.yaml", definition("handle-incident", "Our own way"));
    symlink("/etc", place.project().join("workflows/out")).unwrap();
    place.trust();
    let done = doctor(&place, &[]);
    insta::assert_snapshot!(seen(&done), @"
    exit 1
    --- stdout
    ok: this is version [VERSION], `[EXE]`
    ok: `workflowlookup` on your PATH is this one
    ok: the product itself holds 9 workflows
    ok: your folder `[ROOT]/home/.local/share/workflowlookup/workflows` does not exist, and need not
    ok: the project's folder `workflows` holds 5 workflows
    problem: 1 of 5 workflows in the project's folder `workflows` cannot be used
      try: `workflowlookup validate workflows` shows what is wrong
    problem: 1 of 5 workflows in the project's folder `workflows` can be used only in part
      try: `workflowlookup validate workflows` shows what is wrong
    note: 1 of 5 workflows in the project's folder `workflows` could be better
      try: `workflowlookup validate workflows` shows what is wrong
    problem: `workflows/out`: the link leads out of its folder and was not followed
      try: copy what it leads to, or add that folder with `--workflows`
    ok: the project's folder `.workflowlookup/workflows` does not exist, and need not
    note: `workflows/deep/ours.yaml` hides `handle-incident.json`: both are `handle-incident`
    ok: nobody but their owners and groups can write the workflows' files and folders
    ok: there are no sessions yet; they will be kept in `[ROOT]/home/.local/state/workflowlookup/sessions.db`
    note: no registry names other MCP servers that could be called
      try: `workflowlookup mcp import` shows those that your clients know
    ok: programs are confined by Landlock and seccomp
    ok: other MCP servers cannot reach their guard processes
    ok: the server answers as revisions 2025-11-25 and 2026-07-28: 7 tools, 12 workflows, nothing else on standard output, all within [TIME] ms
    note: no client's configuration mentions this server
      try: `workflowlookup connect CLIENT` prints what to put there
    3 problems, 0 warnings
    ");
}

#[test]
fn long_lists_are_cut() {
    let place = Place::new();
    for number in 0..12 {
        place.write(&format!("workflows/{number:02}.json"), definition("same", "Same"));
        chmod(&place, &format!("workflows/{number:02}.json"), 0o666);
    }
    let done = doctor(&place, &["--json"]);
    insta::assert_snapshot!(about(&done, "permissions")[9..].join("\n"), @"
    warning: everybody on this machine can write `workflows/09.json`, and so steer your agent
      try: `chmod o-w workflows/09.json`
    warning: the same holds for 2 places more
    ");
    let hidden = about(&done, "source");
    insta::assert_snapshot!(hidden[hidden.len() - 2..].join("\n"), @"
    note: `workflows/11.json` hides `workflows/09.json`: both are `same`
    note: 1 file more hidden in this way
      try: `workflowlookup sources` shows them all
    ");
}

#[test]
fn what_everybody_can_write_is_a_warning() {
    let place = Place::new();
    place.write("workflows/deep/a.json", definition("aaa", "A"));
    place.write("workflows/b.json", definition("bbb", "B"));
    let permissions = |place: &Place| about(&doctor(place, &["--json"]), "permissions").join("\n");
    insta::assert_snapshot!(permissions(&place), @"ok: nobody but their owners and groups can write the workflows' files and folders");
    chmod(&place, "workflows/deep", 0o777);
    chmod(&place, "workflows/b.json", 0o666);
    insta::assert_snapshot!(permissions(&place), @"
    warning: everybody on this machine can write `workflows/b.json`, and so steer your agent
      try: `chmod o-w workflows/b.json`
    warning: everybody on this machine can write `workflows/deep`, and so steer your agent
      try: `chmod o-w workflows/deep`
    ");
    assert_eq!(doctor(&place, &[]).status, 0, "a warning is no problem");
    chmod(&place, "workflows/deep", 0o775);
    chmod(&place, "workflows/b.json", 0o664);
    chmod(&place, "workflows", 0o1777);
    insta::assert_snapshot!(permissions(&place), @"
    warning: everybody on this machine can write `workflows`, and so steer your agent
      try: `chmod o-w workflows`
    ");
}

#[cfg(target_os = "linux")]
#[test]
fn folders_without_permission_are_problems() {
    let place = Place::new();
    let user = place.home().join(".local/share/workflowlookup/workflows");
    fs::create_dir_all(&user).unwrap();
    place.write("workflows/shut/inner.json", definition("inner", "Inner"));
    place.write("workflows/closed.json", definition("closed", "Closed"));
    place.write(".cursor/mcp.json", "{}");
    fs::set_permissions(&user, fs::Permissions::from_mode(0o000)).unwrap();
    chmod(&place, "workflows/shut", 0o000);
    chmod(&place, "workflows/closed.json", 0o000);
    chmod(&place, ".cursor/mcp.json", 0o000);
    let mut command = place.powerless(&["--no-bundled", "doctor"]);
    command.env("PATH", place.root.path());
    insta::assert_snapshot!(seen(&place.finish(command, "")), @"
    exit 1
    --- stdout
    ok: this is version [VERSION], `[ROOT]/workflowlookup`
    ok: `workflowlookup` on your PATH is this one
    problem: your folder `[ROOT]/home/.local/share/workflowlookup/workflows` cannot be read: Permission denied (os error 13)
      try: allow yourself to read it: `chmod u+rx [ROOT]/home/.local/share/workflowlookup/workflows`
    ok: the project's folder `workflows` holds 1 workflow
    problem: 1 of 1 workflow in the project's folder `workflows` cannot be used
      try: `workflowlookup validate workflows` shows what is wrong
    problem: `workflows/shut`: cannot be read: Permission denied (os error 13)
      try: allow yourself to read it
    ok: the project's folder `.workflowlookup/workflows` does not exist, and need not
    warning: there is no workflow to hand out
      try: `workflowlookup new ID` writes one to start from
    ok: nobody but their owners and groups can write the workflows' files and folders
    ok: there are no sessions yet; they will be kept in `[ROOT]/home/.local/state/workflowlookup/sessions.db`
    note: no registry names other MCP servers that could be called
      try: `workflowlookup mcp import` shows those that your clients know
    ok: programs are confined by Landlock and seccomp
    ok: other MCP servers cannot reach their guard processes
    ok: the server answers as revisions 2025-11-25 and 2026-07-28: 7 tools, 0 workflows, nothing else on standard output, all within [TIME] ms
    warning: Cursor: `.cursor/mcp.json` cannot be read: Permission denied (os error 13)
      try: the client may not be able to read it either
    3 problems, 2 warnings
    ");
    fs::set_permissions(&user, fs::Permissions::from_mode(0o755)).unwrap();
    chmod(&place, "workflows/shut", 0o755);
}

#[test]
fn another_executable_on_the_path_is_a_warning() {
    let place = Place::new();
    let other = place.root.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("workflowlookup"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(other.join("workflowlookup"), fs::Permissions::from_mode(0o755)).unwrap();
    place.write(
        ".mcp.json",
        r#"{"mcpServers": {"workflowlookup": {"command": "workflowlookup", "args": ["serve"]}}}"#,
    );
    let mut command = place.command(&["doctor", "--json"]);
    command.env("PATH", &other);
    let done = place.finish(command, "");
    insta::assert_snapshot!(about(&done, "executable")[1], @"
    warning: `workflowlookup` on your PATH is another one, `[ROOT]/other/workflowlookup`
      try: remove one of them, or let agents start this one by its path
    ");
    insta::assert_snapshot!(about(&done, "client").join("\n"), @"note: Claude Code: `.mcp.json` starts `workflowlookup` by `workflowlookup`, another executable than this: `[ROOT]/other/workflowlookup`");
}

#[test]
fn the_clients_configurations_are_looked_at() {
    let place = Place::new();
    let user = |file: &str, text: &str| {
        let path = place.home().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    place.write("plain", "");
    let project = place.project().canonicalize().unwrap();
    // Claude Code: good ones, one that says nothing about tools, and one that is for this project only.
    place.write(
        ".mcp.json",
        r#"{"mcpServers": {
            "workflowlookup": {"command": "workflowlookup", "args": ["serve", "--tools", "sessions"]},
            "all": {"command": "workflowlookup", "args": ["serve", "--tools=all"]},
            "older": {"command": "workflowlookup", "args": ["serve"]}
        }}"#,
    );
    let own = format!(
        r#"{{"projects": {{"/else": {{"mcpServers": {{"workflowlookup": {{}}}}}}, "{}": {{"mcpServers": {{"flows": {{"command": "/gone/workflowlookup"}}}}}}}}}}"#,
        project.display()
    );
    user(".claude.json", &own);
    // Claude Desktop: bad JSON. Cursor: no `serve`, and one by a URL.
    user(".config/Claude/claude_desktop_config.json", "{\n  \"mcpServers\": {\n");
    place.write(".cursor/mcp.json", r#"{"mcpServers": {"flows": {"command": "workflowlookup", "args": []}, "else": {"command": "gone"}}}"#);
    user(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"workflowlookup": {"url": "https://example.com/mcp"}}}"#,
    );
    // VS Code: comments are fine; the command is not to be executed, or for the client to find.
    place.write(".vscode/mcp.json", r#"{ /* ours */ "servers": {"workflowlookup": {"type": "stdio", "command": "./plain", "args": ["serve"],},}, }"#);
    user(
        ".config/Code/User/mcp.json",
        r#"{"servers": {"workflowlookup": {"command": "${userHome}/bin/workflowlookup", "args": ["serve"]}}}"#,
    );
    // Windsurf: not on the PATH, and not ours to judge what it does with `serve`. Zed: a relative path.
    user(
        ".codeium/windsurf/mcp_config.json",
        r#"{"mcpServers": {"workflowlookup": {"command": "no-such-wrapper"}}}"#,
    );
    user(
        ".codex/config.toml",
        "[mcp_servers.workflowlookup]\ncommand = \"/gone/workflowlookup\"\nargs = [\"serve\"]\n",
    );
    user(
        ".config/zed/settings.json",
        "// settings\n{\"context_servers\": {\"workflowlookup\": {\"command\": \"bin/workflowlookup\"}}}",
    );
    let done = doctor(&place, &["--json"]);
    assert_eq!(done.status, 0, "{}", done.shown());
    insta::assert_snapshot!(about(&done, "client").join("\n"), @"
    ok: Claude Code: `.mcp.json` starts `workflowlookup` by `workflowlookup`
    ok: Claude Code: `.mcp.json` starts `all` by `workflowlookup`
    note: Claude Code: `.mcp.json` starts `older` by `workflowlookup` with tools that record nothing
      try: `workflowlookup connect claude-code --name older --write` puts this executable there, with `--tools sessions`
    warning: Claude Code: `[ROOT]/home/.claude.json` starts `flows` by `/gone/workflowlookup`, which does not exist
      try: `workflowlookup connect claude-code --name flows` prints what to put there
    warning: Claude Desktop: `[ROOT]/home/.config/Claude/claude_desktop_config.json` is not JSON at line 2, column 17: unterminated object
      try: repair it there
    warning: Cursor: `.cursor/mcp.json` starts `flows` by `workflowlookup` without `serve`
      try: `workflowlookup connect cursor --name flows --write` puts this executable there
    note: Cursor: `[ROOT]/home/.cursor/mcp.json` has `workflowlookup`, which is not started by a command
    warning: VS Code: `.vscode/mcp.json` starts `workflowlookup` by `./plain`, which cannot be executed
      try: `workflowlookup connect vscode --write` puts this executable there
    note: VS Code: `[ROOT]/home/.config/Code/User/mcp.json` starts `workflowlookup` by `${userHome}/bin/workflowlookup`, which only the client can find
    warning: Windsurf: `[ROOT]/home/.codeium/windsurf/mcp_config.json` starts `workflowlookup` by `no-such-wrapper`, which is not on your PATH
      try: `workflowlookup connect windsurf` prints what to put there
    warning: Codex: `[ROOT]/home/.codex/config.toml` starts `workflowlookup` by `/gone/workflowlookup`, which does not exist
      try: `workflowlookup connect codex` prints what to put there
    note: Zed: `[ROOT]/home/.config/zed/settings.json` starts `workflowlookup` by `bin/workflowlookup`, which only the client can find
    ");
}

/// What is wrong with the store shows before an agent meets it.
#[cfg(unix)]
#[test]
fn the_store_of_sessions_is_looked_at() {
    use std::os::unix::fs::PermissionsExt as _;

    let place = Place::new();
    place.write("workflows/short.json", definition("short", "Short"));
    place.run_with_input(&["run", "short"], "Done.\n.\n");
    let sessions = |place: &Place| about(&doctor(place, &["--json"]), "sessions").join("\n");
    insta::assert_snapshot!(sessions(&place), @"ok: sessions are kept in `[ROOT]/home/.local/state/workflowlookup/sessions.db`");
    let key = place.home().join(".local/state/workflowlookup/key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    insta::assert_snapshot!(sessions(&place), @"
    ok: sessions are kept in `[ROOT]/home/.local/state/workflowlookup/sessions.db`
    warning: others on this machine can read `[ROOT]/home/.local/state/workflowlookup/key`, and so forge the logs of sessions
      try: `chmod go-rwx [ROOT]/home/.local/state/workflowlookup/key`
    ");
    std::fs::write(&key, "not a key").unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    insta::assert_snapshot!(sessions(&place), @"
    problem: the key `[ROOT]/home/.local/state/workflowlookup/key` cannot be used: it is not 64 hexadecimal digits
      try: put the right one back, or move it away together with its store to begin anew
    ");
}

#[test]
fn the_registry_is_looked_at() {
    let place = Place::new();
    let registry = |place: &Place, arguments: &[&str]| {
        let done = doctor(place, &[arguments, &["--json"]].concat());
        about(&done, "registry").join("\n")
    };
    insta::assert_snapshot!(registry(&place, &[]), @"
    note: no registry names other MCP servers that could be called
      try: `workflowlookup mcp import` shows those that your clients know
    ");
    let text = r#"{"servers": [
        {"id": "good", "mcp": {"command": "x", "env": {"TOKEN": "geheim"}}},
        {"id": "off", "disabled": true, "mcp": {"command": "x"}},
        {"id": "bad", "mcp": {"command": "x", "args": ["${NOT_SET}"]}},
        {"id": "odd", "mcp": {"command": "x", "headers": {}}}
    ]}"#;
    place.write_trusted("mcp.registry.json", text);
    chmod(&place, "mcp.registry.json", 0o644);
    let folder = place.home().join(".config/workflowlookup");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("mcp.registry.json"), r#"[{"id": "good", "mcp": {"command": "y"}}]"#)
        .unwrap();
    insta::assert_snapshot!(registry(&place, &[]), @"
    ok: the project's registry `mcp.registry.json` names 2 servers that can be called, 1 disabled, 1 that cannot be used
    warning: others on this machine can read `mcp.registry.json`, and the secrets in it
      try: `chmod go-rwx mcp.registry.json`, or put them into variables: `${NAME}`
    ok: your registry `[ROOT]/home/.config/workflowlookup/mcp.registry.json` names 0 servers that can be called, 1 hidden
    problem: `mcp.registry.json:4:57` (`bad`): the variable `NOT_SET` in `args[0]` is not set
      try: set it where this program is started, or write `${NOT_SET:-default}`
    warning: `mcp.registry.json:5:47` (`odd`): `headers` has no effect with a command
      try: remove it
    note: `mcp.registry.json` hides `good` of `[ROOT]/home/.config/workflowlookup/mcp.registry.json`
    ");
    insta::assert_snapshot!(registry(&place, &["--registry", "nowhere.json"]), @"
    problem: `nowhere.json`: there is no such file
      try: see whether the path is right
    ");
}
