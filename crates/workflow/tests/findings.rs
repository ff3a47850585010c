//! Every file in `cases/` is read as an author's definition; the snapshot is what the author is shown.
//! A case named after a code must show that code. Adding a case means adding a file.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "a test reads its cases from files")]

use std::path::Path;

use workflow::finding::render;
use workflow::{Code, Format, Scrutiny, read};

fn shown(path: &Path) -> (String, Vec<Code>) {
    let bytes = std::fs::read(path).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    let mut reading = read(&bytes, Format::of(name).unwrap(), Scrutiny::Compile);
    let text = String::from_utf8_lossy(&bytes);
    let usable = if reading.workflow.is_some() { "can be used" } else { "cannot be used" };
    let mut shown = format!("{usable}\n");
    for finding in &mut reading.findings {
        finding.file = Some(name.into());
        shown.push('\n');
        shown.push_str(&render(finding, Some(&text)));
    }
    (shown, reading.findings.iter().map(|finding| finding.code).collect())
}

#[test]
fn cases() {
    insta::glob!("../cases", "*.*", |path| {
        let (shown, codes) = shown(path);
        let stem = path.file_stem().unwrap().to_str().unwrap();
        if let Some(code) = stem.split('-').next().filter(|first| first.starts_with('w')) {
            let names: Vec<&str> = codes.iter().map(|code| code.name()).collect();
            assert!(names.contains(&code.to_uppercase().as_str()), "{stem} shows {names:?}");
        }
        insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!(shown) });
    });
}
