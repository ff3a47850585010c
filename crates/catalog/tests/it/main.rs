//! The catalogue on real folders and files.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bounds;
mod broken;
mod sources;
mod watching;

use std::fs;
use std::path::Path;

use catalog::{Catalog, Kind, Source};

/// A small good definition.
fn definition(id: &str, name: &str) -> String {
    format!(
        r#"{{"id": "{id}", "name": "{name}", "description": "For a test", "version": "1.0.0",
            "steps": [{{"id": "only", "title": "Only", "prompt": "Do it."}}]}}"#
    )
}

fn write(folder: &Path, file: &str, text: &str) {
    let path = folder.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn folder(path: &Path) -> Source {
    Source::Folder { kind: Kind::Option, path: path.to_path_buf() }
}

fn open(path: &Path) -> Catalog {
    Catalog::open(vec![folder(path)])
}

/// The ids that can be used.
fn usable(catalog: &Catalog) -> Vec<String> {
    catalog.snapshot().workflows().map(|workflow| workflow.id.to_string()).collect()
}

/// The codes that an id answers with.
fn codes(catalog: &Catalog, id: &str) -> Vec<&'static str> {
    let snapshot = catalog.snapshot();
    let entry = snapshot.get(id).unwrap_or_else(|| panic!("no entry {id}"));
    entry.findings.iter().map(|finding| finding.code.name()).collect()
}
