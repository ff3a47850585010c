//! The same programs, made by the TypeScript compiler and run by Node, come to the same values.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;
use typescript::{Language, Role, strip};

use crate::{programs, quickjs};

#[test]
#[ignore = "needs the TypeScript compiler, which `cargo xtask test` installs"]
fn the_compiler_agrees() {
    let Some(clients) = std::env::var_os("WORKFLOWLOOKUP_CLIENTS") else {
        panic!("`WORKFLOWLOOKUP_CLIENTS` says where the compiler is; `cargo xtask test` sets it");
    };
    let samples = programs::all();
    let programs: Vec<_> = samples
        .iter()
        .map(|sample| {
            let script = strip(&sample.source, Language::TypeScript, Role::Entry).unwrap();
            json!({
                "source": sample.source,
                "kind": quickjs::Kind::of(&script).name(),
                "exportsMain": script.code.ends_with("\nexport { main };"),
            })
        })
        .collect();
    let input = json!({ "library": quickjs::LIBRARY, "programs": programs }).to_string();
    let folder = tempfile::tempdir().unwrap();
    let mut node = Command::new("node")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transpile.mjs"))
        .arg(Path::new(&clients).join("compiler"))
        .arg(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    node.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success());
    let values: Vec<String> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(values.len(), samples.len());
    let wrong: Vec<String> = samples
        .iter()
        .zip(values)
        .filter(|(sample, value)| sample.value != *value)
        .map(|(sample, value)| {
            format!("{}\n  expected {}\n  is {value}", sample.name, sample.value)
        })
        .collect();
    assert!(wrong.is_empty(), "{} programs:\n{}", wrong.len(), wrong.join("\n"));
}
