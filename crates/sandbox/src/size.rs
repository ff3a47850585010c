//! How large things may be that leave a program. Looked at where they are made, and again by who gets them: a process that is
//! not ours any more can say anything.

use serde_json::value::RawValue;

use crate::limits::Limits;
use crate::outcome::{Failure, Kind, Place};

/// The longest line of a console. What is longer is cut.
pub(crate) const LINE_CHARS_MAX: usize = 2_000;
/// How much is said of what a program throws.
pub(crate) const MESSAGE_BYTES_MAX: usize = 8 * 1024;
/// How many steps of the way there are told, and how many bytes they may have together.
pub(crate) const FRAMES_MAX: usize = 20;
const STACK_BYTES_MAX: usize = 16 * 1024;
/// How deep lists and objects may be in each other, so that whoever gets them can read them.
const NESTED_MAX: usize = 100;

/// A line of a console.
pub(crate) fn line(text: &str) -> String {
    match text.char_indices().nth(LINE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// What a program throws, or a part of it.
pub(crate) fn message(text: &str) -> String {
    bytes(text, MESSAGE_BYTES_MAX)
}

fn bytes(text: &str, most: usize) -> String {
    match text.floor_char_boundary(most) {
        end if end < text.len() => format!("{}…", &text[..end]),
        _ => text.to_owned(),
    }
}

/// A failure as somebody else tells it.
pub(crate) fn failure(failure: Failure, files: &[String]) -> Failure {
    let is_there = |place: &Place| files.contains(&place.file);
    Failure {
        kind: failure.kind,
        message: message(&failure.message),
        place: failure.place.filter(is_there),
        stack: failure.stack.map(|stack| bytes(&stack, STACK_BYTES_MAX)),
    }
}

pub(crate) fn check_result(json: &RawValue, limits: &Limits) -> Result<(), Failure> {
    if json.get().len() > limits.result {
        return Err(too_large(json.get().len(), limits));
    }
    match is_readable(json) {
        true => Ok(()),
        false => Err(Failure::new(
            Kind::Result,
            format!("the result has lists or objects in each other, more than {NESTED_MAX} deep"),
        )),
    }
}

pub(crate) fn too_large(bytes: usize, limits: &Limits) -> Failure {
    let message = format!(
        "the result has {} of JSON, and {} are allowed; return less of it, for instance only what is needed",
        told(bytes),
        told(limits.result)
    );
    Failure::new(Kind::Result, message)
}

/// Whether lists and objects are not too deep in each other.
pub(crate) fn is_readable(json: &RawValue) -> bool {
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    for byte in json.get().bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            _ if is_text => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > NESTED_MAX {
            return false;
        }
    }
    true
}

/// Bytes, as they are best read, and exactly.
pub(crate) fn told(bytes: usize) -> String {
    const KIB: usize = 1024;
    const MIB: usize = 1024 * KIB;
    match bytes {
        MIB.. if bytes.is_multiple_of(MIB) => format!("{} MiB", bytes / MIB),
        KIB.. if bytes.is_multiple_of(KIB) => format!("{} KiB", bytes / KIB),
        bytes => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_texts_is_not_nested() {
        let json = |text: String| RawValue::from_string(text).unwrap();
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(is_readable(&json(nested(NESTED_MAX))));
        assert!(!is_readable(&json(nested(NESTED_MAX + 1))));
        assert!(is_readable(&json(format!(r#"["\\\"{}"]"#, "[".repeat(500)))));
        assert!(is_readable(&json(format!("[{}1]", "[],".repeat(500)))));
    }
}
