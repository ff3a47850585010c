//! What may happen: the definition language. Types, conditions, patterns, templates and findings,
//! from text to a workflow that the engine can run. Pure: no files, no clock, no threads.

pub mod condition;
pub mod criteria;
pub mod definition;
pub mod derived;
pub mod finding;
pub mod limits;
pub mod nearest;
pub mod pointer;
mod read;
mod rules;
mod serial;
mod shape;
pub mod template;
mod tree;
pub mod variables;

pub use budget::{Budget, Exhausted, pattern, schema};
pub use condition::Condition;
pub use definition::{Step, Workflow};
pub use finding::{Code, Finding, Severity};
pub use read::{Format, Reading, Scrutiny, read, read_trusted, too_large};
pub use shape::schema_text;
pub use variables::{Context, Variables};

/// The product's version, against which `minServerVersion` is held.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
