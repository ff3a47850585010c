//! The files of clients, as they lie in a home folder and in a project, on three platforms.

use std::fs;
use std::path::{Path, PathBuf};

use registry::clients::{Client, Folders, Found, Scope, found, named};

fn write(path: PathBuf, case: &str) {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::copy(cases.join(case), path).unwrap();
}

/// The client, whose file it is, its name, and the ids in it.
fn shown(found: &[Found], root: &Path) -> Vec<String> {
    let lines = found.iter().map(|found| {
        let ids = found.reading.servers.iter().map(|server| server.draft.id.as_str());
        let path = found.path.strip_prefix(root).unwrap().display().to_string().replace('\\', "/");
        let client = found.client.map_or("-", Client::word);
        format!("{client} {:?} {path}: {}", found.scope, ids.collect::<Vec<_>>().join(" "))
    });
    lines.collect()
}

#[test]
fn every_clients_files_are_found() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let home = root.join("home");
    for (file, case) in [
        (".claude.json", "claude-code-user.json"),
        (".config/Claude/claude_desktop_config.json", "claude-desktop.json"),
        (".cursor/mcp.json", "cursor.json"),
        (".config/Code/User/mcp.json", "vscode.json"),
        (".codeium/windsurf/mcp_config.json", "windsurf.json"),
        (".codex/config.toml", "codex.toml"),
        (".config/zed/settings.json", "zed.json"),
    ] {
        write(home.join(file), case);
    }
    let project = root.join("project");
    for (file, case) in [
        (".mcp.json", "claude-code-project.json"),
        (".cursor/mcp.json", "cursor.json"),
        (".vscode/mcp.json", "vscode.json"),
        (".codex/config.toml", "codex.toml"),
        // Nothing about servers in it, and nothing that could be read.
        (".zed/settings.json", "no-servers.json"),
    ] {
        write(project.join(file), case);
    }
    let folders = Folders {
        application: home.join(".config"),
        config: home.join(".config"),
        claude: None,
        codex: None,
        home,
    };
    let all = found(Some(&folders), &project, &crate::variables());
    insta::assert_snapshot!(shown(&all, root).join("\n"), @"
    claude-code Project project/.mcp.json: api-server needs-variable db
    claude-code User home/.claude.json: shared airtable sentry asana internal helper socket
    claude-desktop User home/.config/Claude/claude_desktop_config.json: filesystem brave-search-2 brave-search remote
    cursor Project project/.cursor/mcp.json: local oauth headers
    cursor User home/.cursor/mcp.json: local oauth headers
    vscode Project project/.vscode/mcp.json: ui-testing perplexity github boxed socket config
    vscode User home/.config/Code/User/mcp.json: ui-testing perplexity github boxed socket config
    windsurf User home/.codeium/windsurf/mcp_config.json: figma github git odd
    codex Project project/.codex/config.toml: docs figma-remote off login wrong
    codex User home/.codex/config.toml: docs figma-remote off login wrong
    zed User home/.config/zed/settings.json: local-mcp-server older remote-mcp-server off
    ");
    let named = named(&project.join(".vscode/mcp.json"), &crate::variables()).unwrap();
    assert_eq!((named.client, named.reading.servers.len()), (None, 6));
    assert!(found(None, &root.join("nowhere"), &crate::variables()).is_empty());
}

#[test]
fn other_platforms_have_other_folders() {
    let file = |client: Client, folders: &Folders| {
        client.user_file(folders).display().to_string().replace('\\', "/")
    };
    let mac = Folders {
        home: "/Users/anna".into(),
        application: "/Users/anna/Library/Application Support".into(),
        config: "/Users/anna/.config".into(),
        claude: None,
        codex: None,
    };
    let windows = Folders {
        home: "C:/Users/anna".into(),
        application: "C:/Users/anna/AppData/Roaming".into(),
        config: "C:/Users/anna/AppData/Roaming".into(),
        claude: Some("D:/claude".into()),
        codex: Some("D:/codex".into()),
    };
    let lines: Vec<String> = [mac, windows]
        .iter()
        .flat_map(|folders| Client::ALL.iter().map(move |client| file(*client, folders)))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    /Users/anna/.claude.json
    /Users/anna/Library/Application Support/Claude/claude_desktop_config.json
    /Users/anna/.cursor/mcp.json
    /Users/anna/Library/Application Support/Code/User/mcp.json
    /Users/anna/.codeium/windsurf/mcp_config.json
    /Users/anna/.codex/config.toml
    /Users/anna/.config/zed/settings.json
    D:/claude/.claude.json
    C:/Users/anna/AppData/Roaming/Claude/claude_desktop_config.json
    C:/Users/anna/.cursor/mcp.json
    C:/Users/anna/AppData/Roaming/Code/User/mcp.json
    C:/Users/anna/.codeium/windsurf/mcp_config.json
    D:/codex/config.toml
    C:/Users/anna/AppData/Roaming/zed/settings.json
    ");
}

#[test]
fn a_home_folder_that_is_the_project_counts_once() {
    let root = tempfile::tempdir().unwrap();
    let home = root.path().to_path_buf();
    write(home.join(".cursor/mcp.json"), "cursor.json");
    let folders = Folders {
        application: home.join(".config"),
        config: home.join(".config"),
        claude: None,
        codex: None,
        home: home.clone(),
    };
    let found = Client::Cursor.found(Some(&folders), &home, &crate::variables());
    assert_eq!(found.iter().map(|found| found.scope).collect::<Vec<_>>(), [Scope::Project]);
}
