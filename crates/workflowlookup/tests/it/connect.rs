//! `connect`: every client's configuration, and merging it into files that hold more than that.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use super::*;

const CLIENTS: [&str; 7] =
    ["claude-code", "claude-desktop", "cursor", "vscode", "windsurf", "codex", "zed"];

/// What a user sees, with the executable's place masked.
pub(super) fn masked(done: &Done) -> String {
    let own = fs::canonicalize(env!("CARGO_BIN_EXE_workflowlookup")).unwrap();
    let folder = own.parent().unwrap().to_str().unwrap();
    done.shown().replace(own.to_str().unwrap(), "[EXE]").replace(folder, "[FOLDER]")
}

/// The same command where the executable is on the PATH.
pub(super) fn installed(place: &Place, arguments: &[&str]) -> Command {
    let folder = place.root.path().join("bin");
    if !folder.exists() {
        fs::create_dir(&folder).unwrap();
        symlink(env!("CARGO_BIN_EXE_workflowlookup"), folder.join("workflowlookup")).unwrap();
    }
    let mut command = place.command(arguments);
    command.env("PATH", &folder);
    command
}

fn run_installed(place: &Place, arguments: &[&str]) -> Done {
    place.finish(installed(place, arguments), "")
}

fn read(place: &Place, file: &str) -> String {
    fs::read_to_string(place.project().join(file)).unwrap()
}

/// The names of everything in a folder of the project.
fn names(place: &Place, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(place.project().join(folder)).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn every_client_has_its_configuration() {
    let place = Place::new();
    let mut shown = String::new();
    for client in CLIENTS {
        let done = run_installed(&place, &["connect", client]);
        write!(shown, "# {client}\n{}\n", done.shown()).unwrap();
    }
    insta::assert_snapshot!(shown, @r#"
    # claude-code
    exit 0
    --- stdout
    {
      "mcpServers": {
        "workflowlookup": {
          "command": "workflowlookup",
          "args": ["serve", "--tools", "sessions"]
        }
      }
    }
    --- stderr
    put it into: `.mcp.json` in the project's folder, as `--write` does
    or run: claude mcp add workflowlookup -- workflowlookup serve --tools sessions

    # claude-desktop
    exit 0
    --- stdout
    {
      "mcpServers": {
        "workflowlookup": {
          "command": "[ROOT]/bin/workflowlookup",
          "args": ["serve", "--tools", "sessions"]
        }
      }
    }
    --- stderr
    put it into: `[ROOT]/home/.config/Claude/claude_desktop_config.json`

    # cursor
    exit 0
    --- stdout
    {
      "mcpServers": {
        "workflowlookup": {
          "command": "workflowlookup",
          "args": ["serve", "--tools", "sessions"]
        }
      }
    }
    --- stderr
    put it into: `.cursor/mcp.json` in the project's folder, as `--write` does
    or into: `[ROOT]/home/.cursor/mcp.json`, for all projects

    # vscode
    exit 0
    --- stdout
    {
      "servers": {
        "workflowlookup": {
          "type": "stdio",
          "command": "workflowlookup",
          "args": ["serve", "--tools", "sessions"]
        }
      }
    }
    --- stderr
    put it into: `.vscode/mcp.json` in the project's folder, as `--write` does
    or into: `[ROOT]/home/.config/Code/User/mcp.json`, for all projects

    # windsurf
    exit 0
    --- stdout
    {
      "mcpServers": {
        "workflowlookup": {
          "command": "[ROOT]/bin/workflowlookup",
          "args": ["serve", "--tools", "sessions"]
        }
      }
    }
    --- stderr
    put it into: `[ROOT]/home/.codeium/windsurf/mcp_config.json`

    # codex
    exit 0
    --- stdout
    [mcp_servers.workflowlookup]
    command = "workflowlookup"
    args = ["serve", "--tools", "sessions"]
    --- stderr
    put it into: `[ROOT]/home/.codex/config.toml`
    or run: codex mcp add workflowlookup -- workflowlookup serve --tools sessions

    # zed
    exit 0
    --- stdout
    {
      "context_servers": {
        "workflowlookup": {
          "command": "[ROOT]/bin/workflowlookup",
          "args": ["serve", "--tools", "sessions"]
        }
      }
    }
    --- stderr
    put it into: `[ROOT]/home/.config/zed/settings.json`
    "#);
}

#[test]
fn the_page_shows_what_is_printed() {
    let page = fs::read_to_string(repository().join("docs/connecting.md")).unwrap();
    let place = Place::new();
    for client in CLIENTS {
        let printed = run_installed(&place, &["connect", client]).stdout;
        let printed = printed.replace("[ROOT]/bin/", "/usr/local/bin/");
        let language = if client == "codex" { "toml" } else { "json" };
        let block = format!("```{language}\n{printed}```\n");
        let section = page.split("\n## ").find(|section| section.contains(&format!("`{client}`")));
        let section = section.unwrap_or_else(|| panic!("the page has no section on {client}"));
        assert!(section.contains(&block), "the page shows another configuration for {client}");
    }
}

#[test]
fn an_executable_off_the_path_is_named_by_its_own() {
    let place = Place::new();
    insta::assert_snapshot!(masked(&place.run(&["connect", "codex"])), @r#"
    exit 0
    --- stdout
    [mcp_servers.workflowlookup]
    command = "[EXE]"
    args = ["serve", "--tools", "sessions"]
    --- stderr
    put it into: `[ROOT]/home/.codex/config.toml`
    or run: codex mcp add workflowlookup -- [EXE] serve --tools sessions
    "#);
    // Another one by the same name is not this one, and neither is one that depends on the folder.
    let other = place.root.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("workflowlookup"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(other.join("workflowlookup"), fs::Permissions::from_mode(0o755)).unwrap();
    let expected = place.run(&["connect", "zed"]).stdout;
    for path in [other.to_str().unwrap(), "../bin", ""] {
        let mut command = installed(&place, &["connect", "zed"]);
        command.env("PATH", path);
        assert_eq!(place.finish(command, "").stdout, expected, "{path}");
    }
}

#[test]
fn sources_become_part_of_the_configuration() {
    let place = Place::new();
    fs::create_dir_all(place.project().join("my own")).unwrap();
    fs::create_dir_all(place.root.path().join("team")).unwrap();
    let options = ["--workflows", "my own", "--no-bundled", "--workflows", "../team"];
    let arguments = [&options[..], &["connect", "claude-code", "--name", "our_flows"]].concat();
    insta::assert_snapshot!(run_installed(&place, &arguments).shown(), @r#"
    exit 0
    --- stdout
    {
      "mcpServers": {
        "our_flows": {
          "command": "workflowlookup",
          "args": ["--no-bundled", "--workflows", "[ROOT]/project/my own", "--workflows", "[ROOT]/team", "serve", "--tools", "sessions"]
        }
      }
    }
    --- stderr
    put it into: `.mcp.json` in the project's folder, as `--write` does
    or run: claude mcp add our_flows -- workflowlookup --no-bundled --workflows '[ROOT]/project/my own' --workflows [ROOT]/team serve --tools sessions
    "#);
    insta::assert_snapshot!(run_installed(&place, &["connect", "codex", "--workflows", "say \"hi\"\\\u{7f}"]).shown(), @r#"
    exit 0
    --- stdout
    [mcp_servers.workflowlookup]
    command = "workflowlookup"
    args = ["--workflows", "[ROOT]/project/say \"hi\"\\\u007f", "serve", "--tools", "sessions"]
    --- stderr
    warning: the folder `say "hi"\�` does not exist
    put it into: `[ROOT]/home/.codex/config.toml`
    or run: codex mcp add workflowlookup -- workflowlookup --workflows '[ROOT]/project/say "hi"\�' serve --tools sessions
    "#);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = Place::new();
    insta::assert_snapshot!(place.run(&["connect", "emacs"]).shown(), @"
    exit 1
    --- stderr
    error: invalid value 'emacs' for '<CLIENT>'
      [possible values: claude-code, claude-desktop, cursor, vscode, windsurf, codex, zed]

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(place.run(&["connect", "cursor", "--name", "a b"]).shown(), @"
    exit 1
    --- stderr
    error: `a b` cannot be the name of a server
      try: use at most 64 letters, digits, `-` and `_`
    ");
    assert_eq!(place.run(&["connect", "cursor", "--name", ""]).status, 1);
    for client in ["claude-desktop", "windsurf", "codex", "zed"] {
        let done = place.run(&["connect", client, "--write"]);
        assert_eq!((done.status, done.stdout.as_str()), (1, ""), "{client}");
    }
    insta::assert_snapshot!(place.run(&["connect", "codex", "--write"]).shown(), @"
    exit 1
    --- stderr
    error: Codex has no file in a project that `--write` knows
      try: put what `workflowlookup connect codex` prints into `[ROOT]/home/.codex/config.toml` by hand
    ");
    let mut command = place.command(&["connect", "codex", "--write"]);
    command.env("CODEX_HOME", "/elsewhere");
    assert!(place.finish(command, "").stderr.contains("`/elsewhere/config.toml`"));
    assert_eq!(names(&place, "."), [""; 0]);
}

#[test]
fn write_makes_the_file_and_then_leaves_it_alone() {
    let place = Place::new();
    for (client, file) in [
        ("claude-code", ".mcp.json"),
        ("cursor", ".cursor/mcp.json"),
        ("vscode", ".vscode/mcp.json"),
    ] {
        let done = run_installed(&place, &["connect", client, "--write"]);
        let expected = format!("connected: wrote `{file}` with the server `workflowlookup`\n");
        assert_eq!((done.status, &*done.stdout, &*done.stderr), (0, "", &*expected));
        assert_eq!(read(&place, file), run_installed(&place, &["connect", client]).stdout);
        let again = run_installed(&place, &["connect", client, "--write"]);
        let expected =
            format!("already connected: `{file}` has the server `workflowlookup`, just so\n");
        assert_eq!((again.status, &*again.stdout, &*again.stderr), (0, "", &*expected));
    }
    assert_eq!(names(&place, "."), [".cursor", ".mcp.json", ".vscode"]);
    assert_eq!(names(&place, ".vscode"), ["mcp.json"]);
    insta::assert_snapshot!(masked(&place.run(&["connect", "cursor", "--write", "--name", "second"])), @"
    exit 0
    --- stderr
    connected: added the server `second` to `.cursor/mcp.json`; the old file is `.cursor/mcp.json.bak`
    note: the file names a path on this machine, which others may not have
      try: before you share it, put `workflowlookup` on your PATH and connect again
    ");
    insta::assert_snapshot!(
        run_installed(&place, &["connect", "cursor", "--write", "--name", "third", "--workflows", "w"]).shown(), @"
    exit 0
    --- stderr
    warning: the folder `w` does not exist
    connected: added the server `third` to `.cursor/mcp.json`; the old file is `.cursor/mcp.json.bak.1`
    note: the file names a path on this machine, which others may not have
      try: before you share it, put the workflows into the project's folder `workflows`
    ");
}

const WITH_COMMENTS: &str = r#"{
	// What the team agreed on.
	"inputs": [
		{ "id": "key",   "type": "promptString" }, // asked for once
	],
	"servers": {
		/* Ours, by Ada. */
		"search": {
			"type": "http",
			"url": "https://example.com/mcp",
		},
	},
	"zebra": null,
}
"#;

#[test]
fn write_keeps_comments_order_and_commas() {
    let place = Place::new();
    place.write(".vscode/mcp.json", WITH_COMMENTS);
    insta::assert_snapshot!(run_installed(&place, &["connect", "vscode", "--write"]).shown(), @"
    exit 0
    --- stderr
    connected: added the server `workflowlookup` to `.vscode/mcp.json`; the old file is `.vscode/mcp.json.bak`
    ");
    insta::assert_snapshot!(read(&place, ".vscode/mcp.json"), @r#"
    {
    	// What the team agreed on.
    	"inputs": [
    		{ "id": "key",   "type": "promptString" }, // asked for once
    	],
    	"servers": {
    		/* Ours, by Ada. */
    		"search": {
    			"type": "http",
    			"url": "https://example.com/mcp",
    		},
    		"workflowlookup": {
    			"type": "stdio",
    			"command": "workflowlookup",
    			"args": ["serve", "--tools", "sessions"],
    		},
    	},
    	"zebra": null,
    }
    "#);
    assert_eq!(read(&place, ".vscode/mcp.json.bak"), WITH_COMMENTS);
    assert_eq!(names(&place, ".vscode"), ["mcp.json", "mcp.json.bak"]);
}

#[test]
fn another_entry_is_replaced_and_backups_are_numbered() {
    let place = Place::new();
    let old = |command: &str| {
        format!(
            r#"{{"mcpServers": {{"workflowlookup": {{"command": "{command}", "env": {{"A": "b"}}}}}}}}"#
        )
    };
    place.write(".mcp.json", old("first"));
    insta::assert_snapshot!(run_installed(&place, &["connect", "claude-code", "--write"]).shown(), @"
    exit 0
    --- stderr
    connected: replaced the server `workflowlookup` in `.mcp.json`, which was different; the old file is `.mcp.json.bak`
    ");
    insta::assert_snapshot!(read(&place, ".mcp.json"), @r#"
    {"mcpServers": {"workflowlookup": {
          "command": "workflowlookup",
          "env": {"A": "b"},
          "args": ["serve", "--tools", "sessions"]
        }}}
    "#);
    place.write(".mcp.json", old("second"));
    insta::assert_snapshot!(run_installed(&place, &["connect", "claude-code", "--write"]).shown(), @"
    exit 0
    --- stderr
    connected: replaced the server `workflowlookup` in `.mcp.json`, which was different; the old file is `.mcp.json.bak.1`
    ");
    place.write(".mcp.json", old("third"));
    assert_eq!(run_installed(&place, &["connect", "claude-code", "--write"]).status, 0);
    // What is kept already is not kept once more.
    place.write(".mcp.json", old("second"));
    assert_eq!(run_installed(&place, &["connect", "claude-code", "--write"]).status, 0);
    assert_eq!(
        names(&place, "."),
        [".mcp.json", ".mcp.json.bak", ".mcp.json.bak.1", ".mcp.json.bak.2"]
    );
    let kept = ["", ".1", ".2"].map(|number| read(&place, &format!(".mcp.json.bak{number}")));
    assert_eq!(kept, ["first", "second", "third"].map(old));
}

#[test]
fn a_link_is_followed_and_permissions_stay() {
    let place = Place::new();
    place.write("shared/servers.json", "{}\n");
    let target = place.project().join("shared/servers.json");
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("shared/servers.json", place.project().join(".mcp.json")).unwrap();
    insta::assert_snapshot!(run_installed(&place, &["connect", "claude-code", "--write"]).shown(), @"
    exit 0
    --- stderr
    connected: added the server `workflowlookup` to `.mcp.json`; the old file is `[ROOT]/project/shared/servers.json.bak`
    ");
    assert!(place.project().join(".mcp.json").is_symlink());
    assert!(read(&place, "shared/servers.json").contains("mcpServers"));
    assert_eq!(names(&place, "shared"), ["servers.json", "servers.json.bak"]);
    for name in ["servers.json", "servers.json.bak"] {
        let mode = fs::metadata(place.project().join("shared").join(name)).unwrap().mode();
        assert_eq!(mode & 0o777, 0o640, "{name}");
    }
}

#[test]
fn files_that_cannot_be_merged_are_left_alone() {
    let place = Place::new();
    let refused = |text: &[u8]| {
        place.write(".cursor/mcp.json", text);
        let done = run_installed(&place, &["connect", "cursor", "--write"]);
        assert_eq!(fs::read(place.project().join(".cursor/mcp.json")).unwrap(), text);
        assert_eq!(names(&place, ".cursor"), ["mcp.json"]);
        done.shown()
    };
    insta::assert_snapshot!(refused(b"{\n  \"mcpServers\": {,\n}"), @"
    exit 1
    --- stderr
    error: `.cursor/mcp.json:2:18`: unexpected token in object; the file was not touched
      try: repair it, or put what `workflowlookup connect cursor` prints into it by hand
    ");
    insta::assert_snapshot!(refused(b"{\n  \"mcpServers\": []\n}"), @"
    exit 1
    --- stderr
    error: `.cursor/mcp.json:2:17`: `mcpServers` is not an object; the file was not touched
      try: repair it, or put what `workflowlookup connect cursor` prints into it by hand
    ");
    insta::assert_snapshot!(refused(b"{\"mcpServers\": {}, \"mcpServers\": {}}"), @"
    exit 1
    --- stderr
    error: `.cursor/mcp.json:1:20`: `mcpServers` is there twice; the file was not touched
      try: repair it, or put what `workflowlookup connect cursor` prints into it by hand
    ");
    insta::assert_snapshot!(refused(b"{\"a\": \"\xff\"}"), @"
    exit 1
    --- stderr
    error: `.cursor/mcp.json` is not UTF-8 text; it was not touched
      try: repair it, or put what `workflowlookup connect cursor` prints into it by hand
    ");
    fs::remove_file(place.project().join(".cursor/mcp.json")).unwrap();
    symlink("nowhere.json", place.project().join(".cursor/mcp.json")).unwrap();
    insta::assert_snapshot!(run_installed(&place, &["connect", "cursor", "--write"]).shown(), @"
    exit 1
    --- stderr
    error: `.cursor/mcp.json` is a link that leads nowhere; it was not touched
      try: repair it, or put what `workflowlookup connect cursor` prints into it by hand
    ");
    fs::create_dir(place.project().join(".mcp.json")).unwrap();
    insta::assert_snapshot!(run_installed(&place, &["connect", "claude-code", "--write"]).shown(), @"
    exit 1
    --- stderr
    error: `.mcp.json` is not a regular file; it was not touched
      try: repair it, or put what `workflowlookup connect claude-code` prints into it by hand
    ");
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_cannot_be_written_is_a_fault() {
    let place = Place::new();
    place.write(".cursor/mcp.json", "{}");
    let lock = |mode| {
        let folder = place.project().join(".cursor");
        fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
    };
    lock(0o555);
    let command = place.powerless(&["connect", "cursor", "--write"]);
    insta::assert_snapshot!(place.finish(command, "").shown(), @"
    exit 2
    --- stderr
    fault: cannot keep the old file as `.cursor/mcp.json.bak`: Permission denied (os error 13)
    ");
    assert_eq!(read(&place, ".cursor/mcp.json"), "{}");
    assert_eq!(names(&place, ".cursor"), ["mcp.json"]);
    lock(0o755);
}
