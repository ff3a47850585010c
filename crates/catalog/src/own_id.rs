//! The id in a file that cannot be read: its findings are to be found under the name by which people ask
//! for it.

use workflow::Format;
use workflow::limits::is_id;

/// The first `id` at the top level of a broken text.
pub(crate) fn find(bytes: &[u8], format: Format) -> Option<Box<str>> {
    let text = String::from_utf8_lossy(bytes);
    let id = match format {
        Format::Json => in_json(&text),
        Format::Yaml => in_yaml(&text).or_else(|| in_json(&text)),
    };
    id.filter(|id| is_id(id)).map(Into::into)
}

fn in_json(text: &str) -> Option<&str> {
    let mut depth = 0_usize;
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}', '[', ']', '"']) {
        let sign = rest.as_bytes()[at];
        rest = &rest[at + 1..];
        match sign {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {
                let (string, after) = string(rest)?;
                rest = after;
                let value = after.trim_start().strip_prefix(':');
                if let Some(value) = value.filter(|_| depth == 1 && string == "id") {
                    let (id, _) = self::string(value.trim_start().strip_prefix('"')?)?;
                    return Some(id);
                }
            }
        }
    }
    None
}

/// A string's inside, its opening quote behind us, and what follows it.
fn string(text: &str) -> Option<(&str, &str)> {
    let mut escaped = false;
    let end = text.bytes().position(|byte| {
        let is_end = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        is_end
    })?;
    Some((&text[..end], &text[end + 1..]))
}

fn in_yaml(text: &str) -> Option<&str> {
    let value = text.lines().find_map(|line| line.strip_prefix("id:"))?;
    let value = value.split(" #").next().unwrap_or(value);
    Some(value.trim().trim_matches(['"', '\'']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_in_broken_texts() {
        let json = |text: &str| find(text.as_bytes(), Format::Json);
        assert_eq!(
            json(r#"{"name": "a \" {", "id": "my-flow", "steps": ["#).as_deref(),
            Some("my-flow")
        );
        assert_eq!(
            json(r#"{"steps": [{"id": "inner"}], "id" : "outer""#).as_deref(),
            Some("outer")
        );
        assert_eq!(json(r#"{"steps": [{"id": "inner"}]"#), None);
        assert_eq!(json(r#"{"id": "cut-o"#), None);
        assert_eq!(json(r#"{"id": "../x","#), None);
        let yaml = |text: &str| find(text.as_bytes(), Format::Yaml);
        assert_eq!(yaml("name: x\nid: 'my-flow' # mine\nsteps: [").as_deref(), Some("my-flow"));
        assert_eq!(yaml("steps:\n  - id: inner\n  bad").as_deref(), None);
    }
}
