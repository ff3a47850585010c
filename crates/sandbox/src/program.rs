//! A program as it is handed in: files, and which of them is run.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use typescript::Language;

use crate::size;

/// How many files a program may have.
pub const FILES_MAX: usize = 50;
/// How much text they may have together.
pub const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// What a program is called that has no name.
pub const UNNAMED: &str = "program.ts";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Program {
    pub files: Vec<File>,
    /// The name of the file that is run.
    pub entrypoint: String,
    /// What `main` is called with, and what the program knows as `input`.
    pub input: Option<Box<RawValue>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// With `/` between folders, as other files import it.
    pub name: String,
    pub text: String,
    /// It is JavaScript and nothing else. TypeScript is JavaScript as well.
    pub is_plain: bool,
}

impl Program {
    /// One file without a name.
    pub fn of(text: impl Into<String>) -> Self {
        let file = File { name: UNNAMED.to_owned(), text: text.into(), is_plain: false };
        Self { files: vec![file], entrypoint: UNNAMED.to_owned(), input: None }
    }
}

impl File {
    pub(crate) fn language(&self) -> Language {
        match self.is_plain {
            true => Language::JavaScript,
            false => Language::TypeScript,
        }
    }
}

/// The longest name of a file.
const NAME_BYTES_MAX: usize = 200;

impl Program {
    /// Whether it can be run at all; if not, what is wrong with how it was handed in.
    pub fn check(&self) -> Result<(), String> {
        if self.files.len() > FILES_MAX {
            return Err(format!("a program has at most {FILES_MAX} files"));
        }
        if self.files.iter().map(|file| file.text.len()).sum::<usize>() > TEXT_BYTES_MAX {
            let most = size::told(TEXT_BYTES_MAX);
            return Err(format!("the files of a program have at most {most} together"));
        }
        for (at, file) in self.files.iter().enumerate() {
            if !is_name(&file.name) {
                return Err(format!(
                    "`{}` can be no file's name: letters, digits, `.`, `-`, `_` and `/` between folders",
                    file.name.escape_default()
                ));
            }
            if self.files[..at].iter().any(|other| other.name == file.name) {
                return Err(format!("there are two files `{}`", file.name));
            }
        }
        if !self.files.iter().any(|file| file.name == self.entrypoint) {
            let names: Vec<&str> = self.files.iter().map(|file| file.name.as_str()).collect();
            return Err(format!(
                "there is no file `{}` to run; there are `{}`",
                self.entrypoint.escape_default(),
                names.join("`, `")
            ));
        }
        Ok(())
    }
}

fn is_name(name: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part != "." && part != "..";
    let is_sign = |sign: char| sign.is_ascii_alphanumeric() || "._-/".contains(sign);
    name.len() <= NAME_BYTES_MAX && name.split('/').all(is_part) && name.chars().all(is_sign)
}

/// The files that an import of this path may mean, the likeliest first: it may leave out the end of a name.
pub fn names_meant(path: &str) -> impl Iterator<Item = String> {
    const ENDINGS: [&str; 5] = ["", ".ts", ".js", "/index.ts", "/index.js"];
    let named = ENDINGS.iter().map(move |ending| match path.is_empty() {
        true => ending.trim_start_matches('/').to_owned(),
        false => format!("{path}{ending}"),
    });
    // TypeScript names what its file is compiled to.
    let compiled = path.strip_suffix(".js").map(|path| format!("{path}.ts"));
    named.chain(compiled)
}
