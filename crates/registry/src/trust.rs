//! Trust in registry files. An entry can start a program and hand it the environment, so an entry of a file that nobody
//! has trusted takes no effect: nothing is started, nothing is connected to, and no variable is expanded.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::place::Kind;
use super::read::{Reader, Reading};

/// What a person has consented to in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// This content, or the file needs no consent.
    Given,
    /// Other content, which the file had before.
    Outdated {
        trusted: String,
    },
    Missing,
}

/// Knows what a person has trusted.
pub trait TrustPolicy: Send + Sync {
    fn trust(&self, kind: Kind, path: &Path, text: &str) -> Trust;

    /// Changes whenever the answers may have changed.
    fn revision(&self) -> u64;

    /// The file that consent is recorded in, for who watches files. Its folder is there, if it can be.
    fn record(&self) -> Option<PathBuf>;
}

/// Reads a file as far as it is trusted. Entries that are not have no [`super::Server::entry`].
pub(super) fn read_trusted(reader: &Reader<'_>, text: &str, trust: &Trust) -> Reading {
    match trust {
        Trust::Given => reader.read(text),
        Trust::Missing => reader.read_unexpanded(text),
        Trust::Outdated { trusted } => {
            let before = reader.read_unexpanded(trusted);
            let now = reader.read_unexpanded(text);
            let is_kept = |server: &&super::Server| {
                let mut before = before.servers.iter().map(|server| &server.draft);
                before.any(|before| {
                    before.id == server.draft.id && server.draft.is_no_looser_than(before)
                })
            };
            let kept: BTreeSet<&str> =
                now.servers.iter().filter(is_kept).map(|server| server.pointer.as_str()).collect();
            reader.read_some(text, &|pointer| kept.contains(pointer))
        }
    }
}

/// The command by which a person trusts a file, in whatever folder it is typed.
pub(super) fn command(kind: Kind, path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // Consent is recorded for the file in its folder without links.
    let folder = absolute.parent().and_then(|folder| std::fs::canonicalize(folder).ok());
    let absolute = match (folder, absolute.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => absolute,
    };
    match (kind, absolute.parent()) {
        (Kind::Project, Some(folder)) => {
            format!("workflowlookup trust {}", quoted(&folder.display().to_string()))
        }
        _ => {
            let file = quoted(&absolute.display().to_string());
            format!("workflowlookup --registry {file} trust")
        }
    }
}

/// A word as one types it in a shell.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,+@%".contains(letter);
    match word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Format, Variables};
    use super::*;

    const TRUSTED: &str = r#"{"id": "a", "mcp": {"command": "x", "alwaysAllow": ["p", "q"]},
        "tools": {"allow": ["p", "q", "r"], "deny": ["s"]}}"#;

    /// The ids that can be used after an edit.
    fn used(trusted: &str, now: &str) -> Vec<String> {
        let variables = Variables::given([("T", "secret")]);
        let reader = Reader { file: None, format: Format::Json, base: None, variables: &variables };
        let trust = Trust::Outdated { trusted: format!("[{trusted}]") };
        let reading = read_trusted(&reader, &format!("[{now}]"), &trust);
        let used = reading.servers.into_iter().filter_map(|server| server.entry);
        used.map(|entry| entry.id).collect()
    }

    fn is_kept(now: &str) -> bool {
        used(TRUSTED, now) == ["a"]
    }

    #[test]
    fn same_entry_stays_trusted_however_it_is_written() {
        assert!(is_kept(TRUSTED));
        assert!(is_kept(&TRUSTED.replace('\n', " // a comment\n")));
    }

    #[test]
    fn tighter_policy_applies() {
        assert!(is_kept(&TRUSTED.replace(r#"["s"]"#, r#"["s", "t"]"#)));
        assert!(is_kept(&TRUSTED.replace(r#"["p", "q", "r"]"#, r#"["r"]"#)));
        assert!(is_kept(&TRUSTED.replace(r#"["p", "q"]}"#, r#"["q"]}"#)));
        assert!(is_kept(&TRUSTED.replace(r#", "alwaysAllow": ["p", "q"]"#, "")));
        let all = r#"{"id": "a", "mcp": {"command": "x"}}"#;
        let some = r#"{"id": "a", "mcp": {"command": "x"}, "tools": {"allow": ["p"]}}"#;
        assert_eq!(used(all, some), ["a"]);
    }

    #[test]
    fn anything_else_is_not_trusted() {
        for (from, to) in [
            (r#", "deny": ["s"]"#, ""),
            (r#"["s"]"#, r#"["t"]"#),
            (r#"["p", "q", "r"]"#, r#"["p", "q", "r", "u"]"#),
            (r#""allow": ["p", "q", "r"], "#, ""),
            (r#"["p", "q"]}"#, r#"["p", "q", "r"]}"#),
            (r#""command": "x""#, r#""command": "y""#),
            (r#""command": "x""#, r#""command": "x", "args": ["y"]"#),
            (r#""command": "x""#, r#""command": "x", "env": {"A": "${T}"}"#),
            (r#""command": "x""#, r#""command": "x", "cwd": "/""#),
            (r#""id": "a""#, r#""id": "a", "title": "Other""#),
            (r#""id": "a""#, r#""id": "a", "sensitivity": "low""#),
            (r#""id": "a""#, r#""id": "b""#),
        ] {
            let now = TRUSTED.replace(from, to);
            assert_ne!(now, TRUSTED);
            assert!(used(TRUSTED, &now).is_empty(), "{now}");
        }
        // What was switched off is not switched on.
        let off = TRUSTED.replace(r#""id": "a""#, r#""id": "a", "disabled": true"#);
        assert!(used(&off, TRUSTED).is_empty());
        assert!(used(TRUSTED, &off).is_empty(), "nothing runs while it is off");
    }

    #[test]
    fn one_entry_says_nothing_about_another() {
        let new = r#"{"id": "b", "mcp": {"command": "y", "env": {"A": "${T}"}}}"#;
        assert_eq!(used(TRUSTED, &format!("{TRUSTED}, {new}")), ["a"]);
        assert_eq!(used(&format!("{TRUSTED}, {new}"), new), ["b"]);
    }

    #[test]
    fn nothing_of_an_untrusted_entry_is_expanded() {
        let variables = Variables::given([("T", "secret")]);
        let reader = Reader { file: None, format: Format::Json, base: None, variables: &variables };
        let text = r#"[{"id": "a", "mcp": {"command": "${T}", "args": ["${T}", "${NONE}"]}}]"#;
        let reading = read_trusted(&reader, text, &Trust::Missing);
        assert_eq!(reading.servers[0].entry, None);
        assert_eq!(reading.servers[0].draft.shown(), "${T} ${T} ${NONE}");
        assert!(reading.findings.is_empty(), "{:?}", reading.findings);
    }

    #[test]
    fn command_names_the_folder() {
        let path = Path::new("/a b/mcp.registry.json");
        assert_eq!(command(Kind::Project, path), "workflowlookup trust '/a b'");
        assert_eq!(
            command(Kind::Named, path),
            "workflowlookup --registry '/a b/mcp.registry.json' trust"
        );
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        std::fs::create_dir(folder.join("sub")).unwrap();
        let named = folder.join("sub/../mine.json");
        let plain = folder.join("mine.json").display().to_string();
        assert_eq!(
            command(Kind::Named, &named),
            format!("workflowlookup --registry {plain} trust")
        );
    }
}
