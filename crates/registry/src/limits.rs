//! How much a registry may hold. No honest one comes near.

/// Of a registry's file. Clients keep more than servers in some of theirs.
pub const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// How many servers one file may name.
pub const ENTRIES_MAX: usize = 500;
/// How many findings one file may have; the rest would be more of the same.
pub(crate) const FINDINGS_MAX: usize = 1_000;
/// How long an id may be: it stands in front of every tool's name.
pub(crate) const ID_MAX: usize = 64;
/// A title, a tag, the name of a tool or of a header.
pub(crate) const SHORT_TEXT_MAX: usize = 256;
/// A summary or an example.
pub(crate) const LONG_TEXT_MAX: usize = 4_096;
/// A command, an argument, a value of the environment or of a header, an address.
pub(crate) const VALUE_MAX: usize = 32 * 1024;
/// The same, once variables are filled in.
pub(crate) const FILLED_MAX: usize = 128 * 1024;
/// How many items a list, or fields a map, may have.
pub(crate) const LIST_MAX: usize = 1_000;
/// What an entry may ask for itself: a day, and more calls than any server answers.
pub(crate) const TIMEOUT_MS_MAX: u64 = 24 * 60 * 60 * 1_000;
pub(crate) const CALLS_PER_MINUTE_MAX: u64 = 1_000_000;
/// How much of what a registry holds may be secret: all of it is looked for in whatever is shown.
pub(crate) const SECRET_BYTES_MAX: usize = 128 * 1024;
/// The same, with what was secret in former states of the registry.
pub(crate) const MASK_BYTES_MAX: usize = 2 * SECRET_BYTES_MAX;
