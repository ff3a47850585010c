//! Where registries are looked for, and which wins.

use std::fs;
use std::path::Path;

use registry::limits::{ENTRIES_MAX, FILE_BYTES_MAX};
use registry::place::FILE_NAME;
use registry::{Code, Places, Registry, Standing, State};

fn places(root: &Path) -> Places {
    let folder = |name: &str| {
        let folder = root.join(name);
        fs::create_dir_all(&folder).unwrap();
        Some(folder)
    };
    Places {
        named: None,
        project: folder("project"),
        user: folder("user"),
        variables: crate::variables(),
        trust: crate::trusting(),
    }
}

fn codes(registry: &Registry) -> Vec<Code> {
    registry.findings.iter().map(|finding| finding.code).collect()
}

#[test]
fn the_first_file_wins_whether_its_entry_can_be_used_or_not() {
    let root = tempfile::tempdir().unwrap();
    let places = places(root.path());
    let all = |command: &str| {
        let entry = |id: &str| format!(r#"{{"id": "{id}", "mcp": {{"command": "{command}"}}}}"#);
        format!("[{}, {}, {}, {}]", entry("used"), entry("off"), entry("broken"), entry("other"))
    };
    fs::write(root.path().join("user").join(FILE_NAME), all("user")).unwrap();
    fs::write(
        root.path().join("project").join(FILE_NAME),
        r#"[
            {"id": "used", "mcp": {"command": "project"}},
            {"id": "off", "disabled": true, "mcp": {"command": "project"}},
            {"id": "broken", "mcp": {}}
        ]"#,
    )
    .unwrap();
    let registry = Registry::load(&places);
    let ids: Vec<&str> = registry.entries.iter().map(|entry| entry.id.as_str()).collect();
    assert_eq!(ids, ["used", "other"]);
    assert!(format!("{:?}", registry.get("used").unwrap().connect).contains("project"));
    let standings = |file: usize| -> Vec<Standing> {
        registry.files[file].servers.iter().map(|listed| listed.standing).collect()
    };
    use Standing::{Disabled, Hidden, Unusable, Used};
    assert_eq!(standings(0), [Used, Disabled, Unusable]);
    assert_eq!(standings(1), [Hidden, Hidden, Hidden, Used]);
    let shadows: Vec<&str> = registry.shadows.iter().map(|shadow| shadow.id.as_str()).collect();
    assert_eq!(shadows, ["used", "off", "broken"]);
    assert!(registry.shadows[0].by.ends_with("project/mcp.registry.json"));
}

#[test]
fn a_named_file_is_the_only_one_and_must_be_there() {
    let root = tempfile::tempdir().unwrap();
    let mut places = places(root.path());
    fs::write(root.path().join("user").join(FILE_NAME), r#"[{"id": "a", "command": "x"}]"#)
        .unwrap();
    places.named = Some(root.path().join("config.toml"));
    let registry = Registry::load(&places);
    assert_eq!(codes(&registry), [Code::Unreadable]);
    assert_eq!((registry.entries.len(), registry.files[0].state), (0, State::Absent));
    fs::write(root.path().join("config.toml"), "[mcp_servers.b]\ncommand = 'x'\n").unwrap();
    let registry = Registry::load(&places);
    assert_eq!(registry.entries[0].id, "b");
}

#[test]
fn a_folder_to_start_in_is_relative_to_the_file() {
    let root = tempfile::tempdir().unwrap();
    let places = places(root.path());
    let text = r#"[{"id": "a", "mcp": {"command": "x", "cwd": "tools"}}]"#;
    fs::write(root.path().join("project").join(FILE_NAME), text).unwrap();
    let connect = format!("{:?}", Registry::load(&places).entries[0].connect);
    let wanted = root.path().join("project").join("tools");
    assert!(connect.contains(wanted.to_str().unwrap()), "{connect}");
}

#[test]
fn what_cannot_be_read_is_told() {
    let root = tempfile::tempdir().unwrap();
    let mut places = places(root.path());
    let check = |places: &Places, code: Code| {
        let registry = Registry::load(places);
        assert_eq!(codes(&registry), [code], "{:?}", registry.findings);
        assert_eq!(registry.files[0].state, State::Broken);
    };
    // A folder, a device, another encoding, too much.
    places.named = Some(root.path().to_path_buf());
    check(&places, Code::Unreadable);
    #[cfg(unix)]
    {
        places.named = Some("/dev/zero".into());
        check(&places, Code::Unreadable);
    }
    let file = root.path().join("r.json");
    places.named = Some(file.clone());
    fs::write(&file, [0xff, 0xfe, b'{']).unwrap();
    check(&places, Code::Unreadable);
    fs::File::create(&file).unwrap().set_len(FILE_BYTES_MAX + 1).unwrap();
    check(&places, Code::TooLarge);
}

#[test]
fn there_may_be_too_many_servers() {
    let root = tempfile::tempdir().unwrap();
    let mut places = places(root.path());
    let entry = |number: usize| format!(r#"{{"id": "s-{number}", "command": "x"}}"#);
    let entries: Vec<String> = (0..=ENTRIES_MAX).map(entry).collect();
    let file = root.path().join("r.json");
    fs::write(&file, format!("[{}]", entries.join(","))).unwrap();
    places.named = Some(file);
    let registry = Registry::load(&places);
    assert_eq!(registry.entries.len(), ENTRIES_MAX);
    assert_eq!(codes(&registry), [Code::TooLarge]);
}

#[cfg(unix)]
#[test]
fn a_file_that_everybody_may_change_is_told_of() {
    use std::os::unix::fs::PermissionsExt as _;

    let root = tempfile::tempdir().unwrap();
    let mut places = places(root.path());
    let file = root.path().join("r.json");
    fs::write(&file, "[]").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    places.named = Some(file);
    assert_eq!(codes(&Registry::load(&places)), [Code::Exposed]);
}

#[test]
fn there_may_be_more_secrets_than_can_be_hidden() {
    let root = tempfile::tempdir().unwrap();
    let mut places = places(root.path());
    let secret = "x".repeat(30_000);
    let entry = |id: &str| {
        format!(
            r#"{{"id": "{id}", "mcp": {{"command": "x", "env": {{"TOKEN": "{id}{secret}"}}}}}}"#
        )
    };
    let entries: Vec<String> = ["a", "b", "c", "d", "e", "f"].map(entry).into();
    let file = root.path().join("r.json");
    fs::write(&file, format!("[{}]", entries.join(","))).unwrap();
    places.named = Some(file);
    let registry = Registry::load(&places);
    assert_eq!((registry.entries.len(), codes(&registry)), (4, vec![Code::TooLarge; 2]));
    assert_eq!(registry.masks().hide(&format!("d{secret}")), "***");
}
