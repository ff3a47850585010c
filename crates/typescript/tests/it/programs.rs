//! The programs that the tests share: files with parts that each have a name and the value that they come to.
//!
//! ```text
//! //// name of the program
//! //// => the value, as JSON
//! the program
//! ```

use std::fs;
use std::path::Path;

pub(crate) struct Sample {
    /// `file: name of the program`
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) value: String,
}

pub(crate) fn all() -> Vec<Sample> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files.iter().flat_map(|file| read(file)).collect()
}

pub(crate) fn read(file: &Path) -> Vec<Sample> {
    let text = fs::read_to_string(file).unwrap();
    let topic = file.file_stem().unwrap().to_str().unwrap();
    let mut samples: Vec<Sample> = Vec::new();
    for line in text.split_inclusive('\n') {
        match (line.strip_prefix("//// "), samples.last_mut()) {
            (Some(head), last) => match (head.strip_prefix("=> "), last) {
                (Some(value), Some(sample)) => sample.value = value.trim_end().to_owned(),
                _ => samples.push(Sample {
                    name: format!("{topic}: {}", head.trim_end()),
                    source: String::new(),
                    value: String::new(),
                }),
            },
            (None, Some(sample)) => sample.source.push_str(line),
            (None, None) => panic!("`{topic}` begins with a program that has no name"),
        }
    }
    samples
}
