//! Programs as they run: TypeScript to JavaScript by erasing. What is only for types becomes spaces, so that nearly
//! every line and column of what runs is the one that its author wrote; where text has to be put in (enums, parameter
//! properties), `Places` leads back. Pure: no files, no clock, no threads.
//!
//! Parsing and walking recurse as deep as a program is nested. `stack_bytes` says how large a stack that needs at most,
//! and whoever calls `strip` makes a thread with such a stack.

mod edits;
mod entry;
mod erase;
mod limits;
mod parse;
mod places;
mod problem;
mod tokens;

pub use limits::{SOURCE_BYTES_MAX, TOKENS_MAX, stack_bytes};
pub use places::Places;
pub use problem::Problem;

/// What the value of a program's last expression is exported as.
pub const VALUE_NAME: &str = "$$value$$";

/// What a program is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    TypeScript,
    JavaScript,
}

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The file that is run: its `main`, or the value of its last expression, is exported.
    Entry,
    /// A file that others import.
    Module,
}

/// A program that can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// An ES module.
    pub code: String,
    /// Where a place in `code` is in the source.
    pub places: Places,
    /// What it imports, in the order of the source. Imports of types are not there any more.
    pub imports: Vec<Import>,
    /// Whether it exports something as `main`. Only in an entry, which exports its `main` even if it does not say so.
    pub has_main: bool,
    /// Whether it calls `main` itself while it is loaded. Only in an entry that has one.
    pub calls_main: bool,
    /// Whether it has a default export of any form.
    pub has_default: bool,
    /// Whether it exports the value of its last expression as `VALUE_NAME`. Only in an entry.
    pub has_value: bool,
}

/// `import … from "…"`, `export … from "…"` or `import("…")`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    pub specifier: String,
    /// Where the specifier begins in the source.
    pub line: u32,
    pub column: u32,
}

/// Makes a program one that runs, or says what is wrong first. Needs the stack that `stack_bytes` says.
pub fn strip(source: &str, language: Language, role: Role) -> Result<Script, Problem> {
    limits::measure(source)?;
    parse::with_program(source, language, |program, tokens| {
        let types = erase::statement::type_names(program);
        let entry = match role {
            Role::Entry => entry::Entry::of(program, &types),
            Role::Module => entry::Entry::none(program, &types),
        };
        let erased = erase::erase(source, language, program, tokens, types, &entry)?;
        if language == Language::JavaScript
            && let Some(offset) = erased.first_type
        {
            return Err(parse::not_javascript(source, offset));
        }
        let (code, places) = erased.edits.apply(source);
        Ok(Script {
            code,
            places,
            imports: erased.imports,
            has_main: entry.has_main,
            calls_main: entry.calls_main,
            has_default: entry.has_default,
            has_value: entry.value.is_some(),
        })
    })
}
