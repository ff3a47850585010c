//! A tool's JSON Schema as everything that is made of it: checks of arguments and results, TypeScript types, signatures, and
//! words of a command line. It begins with a [`tool::Tool`], as its server lists it; a [`arguments::Checker`] checks values
//! against its schemas. Schemas are strangers', so everything is bounded, and nothing is fetched for them. Pure.

pub mod arguments;
pub mod exact;
pub mod nearest;
pub mod pointer;
mod schema;
pub mod shallow;
pub mod signature;
pub mod tool;
pub mod typed;
pub mod types;
