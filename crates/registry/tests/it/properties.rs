//! What holds for every input: nothing panics, places are within the text, and secrets stay secret.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use registry::{Format, Masks, Reader, Reading, Variables, add};

fn read(text: &str, format: Format) -> Reading {
    let variables = super::variables();
    Reader { file: None, format, base: None, variables: &variables }.read(text)
}

/// The texts of all cases.
fn cases() -> Vec<(String, Format)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let cases = files.map(|path| (fs::read_to_string(&path).unwrap(), Format::of(&path)));
    cases.collect()
}

fn check(text: &str, format: Format) {
    let reading = read(text, format);
    let lines = text.split('\n').count();
    for finding in &reading.findings {
        let place = finding.place.unwrap();
        assert!((1..=lines).contains(&place.line) && place.column >= 1 && place.length >= 1);
        assert!(!finding.message.is_empty() && !finding.to_string().is_empty());
    }
    for server in &reading.servers {
        if let Some(entry) = &server.entry {
            assert!(registry::is_id(&entry.id), "{}", entry.id);
            assert!(reading.findings.len() < 1000);
        }
    }
}

fn format() -> impl Strategy<Value = Format> {
    prop_oneof![Just(Format::Json), Just(Format::Toml)]
}

proptest! {
    #[test]
    fn any_text_is_read(text in any::<String>(), format in format()) {
        check(&text, format);
    }

    #[test]
    fn a_case_with_something_else_in_it_is_read(
        case in 0..1000_usize,
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0..20_usize, "[{}\\[\\]\",:$0-9a-z \\\\ä]{0,6}"), 1..6),
    ) {
        let cases = cases();
        let (text, format) = &cases[case % cases.len()];
        let mut letters: Vec<char> = text.chars().collect();
        for (at, removed, put) in cuts {
            let at = at.index(letters.len() + 1);
            let end = (at + removed).min(letters.len());
            letters.splice(at..end, put.chars());
        }
        check(&letters.into_iter().collect::<String>(), *format);
    }

    #[test]
    fn whatever_is_masked_is_hidden(
        secrets in prop::collection::vec("[a-e%\"\\\\ äé+/=]{4,12}|[a-zA-Z0-9_-]{4,40}", 1..8),
        pieces in prop::collection::vec((any::<prop::sample::Index>(), "[a-e\" ä]{0,5}"), 0..12),
    ) {
        let masks = Masks::new(secrets.clone());
        let mut text = String::new();
        for (secret, between) in &pieces {
            text.push_str(between);
            text.push_str(&secrets[secret.index(secrets.len())]);
        }
        let hidden = masks.hide(&text);
        let json = serde_json::Value::from(text.as_str()).to_string();
        let json = masks.hide(&json);
        for secret in &secrets {
            prop_assert!(!hidden.contains(secret.as_str()), "{secret:?} in {hidden:?}");
            let escaped = serde_json::Value::from(secret.as_str()).to_string();
            prop_assert!(!json.contains(&escaped[1..escaped.len() - 1]), "{secret:?} in {json:?}");
            let debug = format!("{masks:?}");
            prop_assert!(!debug.contains(secret.as_str()), "{debug}");
        }
        // What is hidden once stays so.
        prop_assert_eq!(masks.hide(&hidden), hidden.as_ref());
    }

    #[test]
    fn no_secret_is_ever_shown(
        secret in "[A-Za-z0-9]{16}geheim",
        text in prop_oneof![
            Just(r#"[{"id": "a", "mcp": {"command": "x", "args": ["--api-key", "§"], "env": {"X_TOKEN": "§"}}}]"#),
            Just(r#"[{"id": "a", "mcp": {"url": "https://u:§@h/?key=§", "headers": {"Authorization": "Bearer §"}}}]"#),
            Just(r#"[{"id": "a", "mcp": {"url": "https://h", "auth": {"type": "bearer", "token": "§"}}}]"#),
            Just(r#"{"mcpServers": {"a": {"command": "x", "args": ["-e", "TOKEN=§", "${SECRET_VAR}", "a ${SECRET_VAR:-§}"]}}}"#),
            Just(r#"[{"id": "a", "mcp": {"url": "https://h/${SECRET_VAR}", "headers": {"X": "${SECRET_VAR}"}}}]"#),
            // These are wrong, too.
            Just(r#"[{"id": "a", "mcp": {"url": "h?token=§", "headers": {"Authorization": "§\n§"}, "auth": {"type": "§"}}}]"#),
            Just(r#"[{"id": "a", "sensitivity": "§", "mcp": {"transport": "§", "command": "${§ §}", "env": {"TOKEN": "${§"}}}]"#),
        ],
    ) {
        let variables = Variables::given([("SECRET_VAR", secret.as_str())]);
        let reader = Reader { file: None, format: Format::Json, base: None, variables: &variables };
        let reading = reader.read(&text.replace('§', &secret));
        prop_assert_eq!(reading.servers.len(), 1);
        let shown = format!("{reading:?} {}", reading.servers[0].draft.shown());
        prop_assert!(!shown.contains(&secret), "{shown}");
    }
}

#[test]
fn what_is_written_is_read_again() {
    for (text, format) in cases() {
        let reading = read(&text, format);
        let sound: Vec<_> = reading
            .servers
            .iter()
            .filter(|server| server.is_sound)
            .map(|server| &server.draft)
            .collect();
        let written = add("", &sound).unwrap();
        let again = read(&written, Format::Json);
        let is_same = sound.iter().zip(&again.servers).all(|(old, new)| old.is_same(&new.draft));
        assert!(is_same && again.servers.len() == sound.len(), "{written}");
        // And it does the same: clients have nothing that our format has no word for.
        for (old, new) in
            reading.servers.iter().filter(|server| server.is_sound).zip(&again.servers)
        {
            assert_eq!(old.entry, new.entry, "{written}");
        }
    }
}
