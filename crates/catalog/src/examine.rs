//! Looking at files for an author: everything in a file or folder, read with full scrutiny, together
//! with the text so that findings can be shown in place. Nothing is served from here.

use std::io;
use std::path::{Path, PathBuf};

use workflow::{Budget, Exhausted, Finding, Format, Reading, Scrutiny, read};

use crate::load::{Found, find, read_with};

/// A file that was looked at.
#[derive(Debug, PartialEq)]
pub struct Examined {
    pub path: PathBuf,
    pub reading: Reading,
    /// What the file says, where it is text.
    pub text: Option<String>,
}

/// What was found in a folder, or in one file.
#[derive(Debug, Default, PartialEq)]
pub struct Examination {
    pub files: Vec<Examined>,
    /// Findings about folders.
    pub findings: Vec<Finding>,
}

/// Looks at a file, whatever its name, or at every workflow file of a folder.
pub fn examine(path: &Path) -> io::Result<Examination> {
    let metadata = std::fs::metadata(path)?;
    if metadata.is_dir() {
        let (found, findings) = find(path);
        let files = found.into_iter().filter_map(|found| match found {
            Found::File(path, _) => examine_file(path),
            Found::Refused(path, finding) => {
                let reading = Reading { workflow: None, id: None, findings: vec![finding] };
                Some(Examined { path, reading, text: None })
            }
        });
        return Ok(Examination { files: files.collect(), findings });
    }
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(Examination {
        files: examine_file(path.to_path_buf()).into_iter().collect(),
        findings: Vec::new(),
    })
}

fn examine_file(path: PathBuf) -> Option<Examined> {
    let name = path.display().to_string();
    let (reading, content) = read_with(&path, |bytes| {
        let reading = read(bytes, choose_format(bytes, Some(&name)), Scrutiny::Compile);
        with_file_name(reading, Some(&name))
    })?;
    let text = content.and_then(|(bytes, _)| String::from_utf8(bytes).ok());
    Some(Examined { path, reading, text })
}

/// Checks a definition for its author within a budget, wherever its text comes from. The file name, if any, decides the
/// format and becomes part of the findings.
pub fn examine_text(
    bytes: &[u8],
    file_name: Option<&str>,
    budget: &Budget,
) -> Result<Reading, Exhausted> {
    let format = choose_format(bytes, file_name);
    let reading = Reading::from_bytes(bytes, format, Scrutiny::Compile, budget)?;
    Ok(with_file_name(reading, file_name))
}

fn with_file_name(mut reading: Reading, file_name: Option<&str>) -> Reading {
    for finding in &mut reading.findings {
        finding.file = file_name.map(Into::into);
    }
    reading
}

fn choose_format(bytes: &[u8], file_name: Option<&str>) -> Format {
    file_name.and_then(Format::of).unwrap_or_else(|| detect_format(bytes))
}

/// The format of a text whose name does not tell. A definition in JSON begins with a brace, no block of YAML does, and
/// a slash can only begin a misplaced comment.
fn detect_format(bytes: &[u8]) -> Format {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match bytes.trim_ascii_start().first() {
        Some(b'{' | b'[' | b'/') => Format::Json,
        _ => Format::Yaml,
    }
}
