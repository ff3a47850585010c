//! The programs that take part, built for release before anything is measured. Cargo says itself where
//! it has put them, whatever its settings are.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

pub struct Programs {
    pub product: PathBuf,
    pub bare_loop: PathBuf,
    pub rmcp_echo: PathBuf,
    pub bare_axum: PathBuf,
    pub raw_append: PathBuf,
    pub echo_upstream: PathBuf,
    pub bare_call: PathBuf,
    pub peak: PathBuf,
    /// The protocol's own server for everything, which Node runs.
    pub everything: PathBuf,
}

const EVERYTHING: &str =
    "typescript/node_modules/@modelcontextprotocol/server-everything/dist/index.js";

impl Programs {
    pub fn build() -> Self {
        let bench = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = bench.parent().expect("the folder above");
        let product = build(root, &["-p", "workflowlookup"]);
        let yardsticks = build(bench, &["--bins"]);
        Self {
            product: named(&product, "workflowlookup"),
            bare_loop: named(&yardsticks, "bare_loop"),
            rmcp_echo: named(&yardsticks, "rmcp_echo"),
            bare_axum: named(&yardsticks, "bare_axum"),
            raw_append: named(&yardsticks, "raw_append"),
            echo_upstream: named(&yardsticks, "echo_upstream"),
            bare_call: named(&yardsticks, "bare_call"),
            peak: named(&yardsticks, "peak"),
            everything: clients().join(EVERYTHING),
        }
    }
}

/// The programs of others, which `cargo xtask bench` installs.
fn clients() -> PathBuf {
    std::env::var_os("WORKFLOWLOOKUP_CLIENTS")
        .expect("cargo xtask bench says where they are")
        .into()
}

/// Builds in a folder, and returns every executable that comes of it.
fn build(folder: &Path, what: &[&str]) -> Vec<PathBuf> {
    let arguments = [&["build", "--release", "--locked"], what].concat();
    let place = folder.file_name().unwrap_or_default().display();
    eprintln!("bench: cargo {} (in `{place}`)", arguments.join(" "));
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(program)
        .args(arguments)
        .arg("--message-format=json-render-diagnostics")
        .current_dir(folder)
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo");
    assert!(output.status.success(), "the build ended with {}", output.status);
    let messages = output.stdout.split(|byte| *byte == b'\n');
    let messages = messages.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    messages.filter_map(|message| Some(message["executable"].as_str()?.into())).collect()
}

fn named(executables: &[PathBuf], name: &str) -> PathBuf {
    let found = executables.iter().find(|path| path.file_stem().is_some_and(|stem| stem == name));
    found.unwrap_or_else(|| panic!("cargo built no `{name}`")).clone()
}
