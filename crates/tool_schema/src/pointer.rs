//! JSON pointers.

/// `pointer` with one more segment.
pub fn join(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}
