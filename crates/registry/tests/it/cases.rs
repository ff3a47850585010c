//! Each file in `cases/` is read; a snapshot shows the servers and the findings. Nothing secret may be in it.

use std::fmt::{Debug, Write as _};
use std::fs;
use std::path::Path;

use registry::entry::Connect;
use registry::{Entry, Finding, Format, Reader, Reading};

#[test]
fn every_case() {
    insta::glob!("../cases", "*.*", |path| {
        let text = fs::read_to_string(path).unwrap();
        insta::assert_snapshot!(shown(&read(path, &text)));
    });
}

fn read(path: &Path, text: &str) -> Reading {
    let variables = super::variables();
    let base = Some(Path::new("/home/anna/project"));
    let file = path.file_name().unwrap().to_str().unwrap();
    Reader { file: Some(file), format: Format::of(path), base, variables: &variables }.read(text)
}

/// What no case may show.
const SECRETS: &[&str] = &["fromTheEnvironment", "key-of-the-environment", "geheim"];

fn shown(reading: &Reading) -> String {
    let mut out = String::new();
    for server in &reading.servers {
        let draft = &server.draft;
        let name = draft.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        writeln!(out, "{}{name}: {}", draft.id, draft.shown()).unwrap();
        match &server.entry {
            Some(entry) => out.push_str(&told(entry)),
            None if draft.is_disabled => writeln!(out, "  disabled").unwrap(),
            None => writeln!(out, "  cannot be used").unwrap(),
        }
    }
    let findings: Vec<String> = reading.findings.iter().map(Finding::to_string).collect();
    write!(out, "---\n{}", findings.join("\n")).unwrap();
    for secret in SECRETS {
        assert!(!out.contains(secret), "{secret} in {out}");
    }
    out
}

/// What an entry says beyond the defaults.
fn told(entry: &Entry) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: &dyn Debug| writeln!(out, "  {name} {value:?}").unwrap();
    match &entry.connect {
        Connect::Stdio { command, args, env, cwd, unconfined } => {
            line("command", command);
            line("args", args);
            env.iter().for_each(|(name, value)| line(name, value));
            cwd.iter().for_each(|cwd| line("cwd", cwd));
            unconfined.then(|| line("unconfined", unconfined));
        }
        Connect::Http { url, headers, auth } => {
            line("url", url);
            headers.iter().for_each(|(name, value)| line(name, value));
            auth.iter().for_each(|auth| line("auth", auth));
        }
    }
    let texts = [("title", &entry.title), ("summary", &entry.summary)];
    texts.iter().for_each(|(name, text)| text.iter().for_each(|text| line(name, text)));
    let lists = [
        ("domains", &entry.domains),
        ("tags", &entry.tags),
        ("examples", &entry.examples),
        ("alwaysAllow", &entry.always_allow),
        ("allow", &entry.allow),
        ("deny", &entry.deny),
    ];
    lists.iter().filter(|(_, list)| !list.is_empty()).for_each(|(name, list)| line(name, list));
    if (entry.sensitivity, entry.visibility) != Default::default() {
        line("sensitivity", &entry.sensitivity);
        line("visibility", &entry.visibility);
    }
    if (entry.priority, entry.auto_discover_tools) != (5, true) {
        line("priority", &entry.priority);
        line("autoDiscoverTools", &entry.auto_discover_tools);
    }
    entry.own_timeout.iter().for_each(|timeout| line("timeout", timeout));
    entry.own_calls_per_minute.iter().for_each(|calls| line("calls per minute", calls));
    out
}
