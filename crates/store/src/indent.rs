//! JSON as people read it: one value a line. Only white space is put in, so that taking it out again gives the same
//! bytes, which hashes depend on.

const STEP: &str = "  ";

/// None where there is white space between the signs already: nobody could tell it from ours.
pub(crate) fn indented(json: &str) -> Option<String> {
    let mut text = String::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    let mut signs = json.chars().peekable();
    let line = |text: &mut String, depth| {
        text.push('\n');
        (0..depth).for_each(|_| text.push_str(STEP));
    };
    while let Some(sign) = signs.next() {
        if in_string {
            in_string = escaped || sign != '"';
            escaped = sign == '\\' && !escaped;
            text.push(sign);
            continue;
        }
        match sign {
            '{' | '[' => {
                text.push(sign);
                match signs.next_if(|next| matches!(next, '}' | ']')) {
                    Some(end) => text.push(end),
                    None => {
                        depth += 1;
                        line(&mut text, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut text, depth);
                text.push(sign);
            }
            ',' => {
                text.push(sign);
                line(&mut text, depth);
            }
            ':' => text.push_str(": "),
            _ if sign.is_ascii_whitespace() => return None,
            _ => {
                in_string = sign == '"';
                text.push(sign);
            }
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::indented;

    #[test]
    fn it_is_what_serde_would_write() {
        let json = r#"{"a":[1,-2.5,"x, {y}: \"z\" \\"],"b":{},"c":[],"d":{"e":[[],[{"f":null}]]},"g":true}"#;
        let value: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(indented(json).unwrap(), serde_json::to_string_pretty(&value).unwrap());
        assert_eq!(indented("{\"a\": 1}"), None);
    }
}
