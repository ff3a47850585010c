//! The files of a program as they run, and the way back from there to the agent's own lines.

use std::collections::HashMap;

use typescript::{Problem, Role, Script, strip};

use crate::outcome::{Failure, Kind, Place};
use crate::program::{Program, names_meant};

pub(super) struct Scripts {
    entrypoint: String,
    files: HashMap<String, Script>,
}

impl Scripts {
    pub(super) fn read(program: &Program) -> Result<Self, Failure> {
        program.check().map_err(|why| Failure::new(Kind::Import, why))?;
        let mut files = HashMap::new();
        for file in &program.files {
            let role = match file.name == program.entrypoint {
                true => Role::Entry,
                false => Role::Module,
            };
            let script = strip(&file.text, file.language(), role)
                .map_err(|problem| syntax(&file.name, problem))?;
            files.insert(file.name.clone(), script);
        }
        Ok(Self { entrypoint: program.entrypoint.clone(), files })
    }

    pub(super) fn entrypoint(&self) -> &str {
        &self.entrypoint
    }

    /// The file that is run first, then by name.
    pub(super) fn all(&self) -> Vec<(&str, &Script)> {
        let all = self.files.iter().map(|(name, script)| (name.as_str(), script));
        let mut all: Vec<_> = all.collect();
        all.sort_by_key(|(name, _)| (*name != self.entrypoint, *name));
        all
    }

    pub(super) fn get(&self, name: &str) -> Option<&Script> {
        self.files.get(name)
    }

    /// The agent's own place for one of the engine's.
    pub(super) fn place(&self, file: &str, line: u32, column: u32) -> Option<Place> {
        let (line, column) = self.files.get(file)?.places.original(line, column);
        Some(Place { file: file.to_owned(), line, column })
    }

    /// Where something is imported.
    pub(super) fn import(&self, specifier: &str) -> Option<Place> {
        self.all().into_iter().find_map(|(name, script)| {
            let import = script.imports.iter().find(|import| import.specifier == specifier)?;
            Some(Place { file: name.to_owned(), line: import.line, column: import.column })
        })
    }

    /// The file that `specifier` means in the file `base`.
    pub(super) fn resolve(&self, base: &str, specifier: &str) -> Option<String> {
        names_meant(&joined(base, specifier)?).find(|name| self.files.contains_key(name))
    }

    /// What files import that is none of them.
    pub(super) fn missing(&self) -> Vec<String> {
        let imports = self.files.iter().flat_map(|(name, script)| {
            script.imports.iter().map(move |import| (name, import.specifier.as_str()))
        });
        let relative = imports.filter(|(_, specifier)| is_relative(specifier));
        let missing = relative.filter(|(name, specifier)| self.resolve(name, specifier).is_none());
        let mut missing: Vec<String> =
            missing.filter_map(|(name, specifier)| joined(name, specifier)).collect();
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    pub(super) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.files.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }
}

/// Whether it is one of the program's own files that is meant.
pub(super) fn is_relative(specifier: &str) -> bool {
    specifier.starts_with("./") || specifier.starts_with("../") || matches!(specifier, "." | "..")
}

/// The path that `specifier` means in the file `base`; none outside of the program.
fn joined(base: &str, specifier: &str) -> Option<String> {
    let mut parts: Vec<&str> = base.split('/').collect();
    parts.pop();
    for part in specifier.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn syntax(file: &str, problem: Problem) -> Failure {
    let Problem { message, line, column, help } = problem;
    let message = match help {
        Some(help) => format!("{message}; {help}"),
        None => message,
    };
    Failure::new(Kind::Syntax, message).at(Some(Place { file: file.to_owned(), line, column }))
}
