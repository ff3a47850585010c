//! Every bound on a definition, in one place: the schema, the rules and the messages name these.

pub const ID_MIN: usize = 3;
pub const ID_MAX: usize = 64;
pub const ID_PATTERN: &str = r"^[a-z0-9_-]+(\.[a-z0-9_-]+)?$";
pub const NAME_MAX: usize = 128;
pub const DESCRIPTION_MAX: usize = 512;
pub const TITLE_MAX: usize = 128;
pub const PROMPT_MAX: usize = 8192;
pub const ITERATIONS_MIN: u32 = 1;
pub const ITERATIONS_MAX: u32 = 1000;
pub const DEFAULT_CATEGORY: &str = "general";
pub const VARIABLE_PATTERN: &str = "^[A-Za-z_][A-Za-z0-9_]*$";
/// Semantic versioning 2.0.0, as its specification spells it for JSON Schema.
pub const VERSION_PATTERN: &str = r"^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$";

/// Prompts beyond this length still work, but agents lose the thread.
pub const PROMPT_RECOMMENDED: usize = 2048;
/// Preconditions, questions, advice and messages read best within this length.
pub const TEXT_RECOMMENDED: usize = 256;

/// How many bytes a reference to an output comes to at most, in a filled text.
pub const REFERENCE_BYTES_MAX: usize = 16 * 1024;

/// The largest file that is read.
pub const FILE_BYTES_MAX: usize = 1024 * 1024;
/// How deep objects and lists may nest.
pub const NESTING_MAX: usize = 64;
/// How many loops may stand inside each other, by name or not.
pub const LOOP_LEVELS_MAX: usize = 32;
/// How many values a YAML file may come to once its aliases are expanded.
pub const YAML_VALUES_MAX: usize = 100_000;

/// Whether `id` may name a workflow or a step.
pub fn is_id(id: &str) -> bool {
    let part_is_good = |part: &str| {
        let good = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
        !part.is_empty() && part.bytes().all(good)
    };
    let mut parts = id.splitn(2, '.');
    (ID_MIN..=ID_MAX).contains(&id.len()) && parts.all(part_is_good)
}

/// Whether `name` may be bound by a loop.
pub fn is_variable_name(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
}
