//! Parses `WWW-Authenticate` challenges (RFC 6750, RFC 9728).

/// The parameters of a challenge. Several challenges in one header are merged.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Challenge {
    params: Vec<(String, String)>,
}

impl Challenge {
    /// Skips everything that is not a parameter.
    pub(super) fn read(header: &str) -> Self {
        let mut params = Vec::new();
        let mut rest = header;
        while let Some(at) = rest.find('=') {
            let name = rest[..at].trim_end().rsplit([' ', '\t', ',', '"']).next();
            let name = name.unwrap_or_default().to_ascii_lowercase();
            let (value, after) = value(rest[at + 1..].trim_start());
            if !name.is_empty() {
                params.push((name, value));
            }
            rest = after;
        }
        Self { params }
    }

    fn all<'c>(&'c self, name: &'c str) -> impl Iterator<Item = &'c str> {
        let named = self.params.iter().filter(move |(own, _)| own == name);
        named.map(|(_, value)| value.as_str())
    }

    /// URLs of the resource metadata.
    pub(super) fn resource_metadata(&self) -> impl Iterator<Item = &str> {
        self.all("resource_metadata")
    }

    /// The required scopes.
    pub(super) fn scopes(&self) -> Vec<String> {
        let scope = self.all("scope").next().unwrap_or_default();
        scope.split_whitespace().map(str::to_owned).collect()
    }
}

/// A quoted or plain value, and the rest of the header.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut letters = quoted.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(letters.next().map(|(_, letter)| letter)),
            _ => value.push(letter),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_parsed_from_any_challenge() {
        for (header, pointer, scopes) in [
            ("Bearer", None, ""),
            ("", None, ""),
            (
                r#"Bearer resource_metadata="https://a.example/x", scope="a b""#,
                Some("https://a.example/x"),
                "a b",
            ),
            (
                r#"Basic realm="x, scope=y", Bearer SCOPE = read , resource_metadata=/m"#,
                Some("/m"),
                "read",
            ),
            (r#"Bearer error="say \"no\"",scope="a""#, None, "a"),
            (r#"Bearer scope="open"#, None, "open"),
            ("Bearer scope=", None, ""),
            ("Negotiate abc==, Bearer scope=a", None, "a"),
        ] {
            let challenge = Challenge::read(header);
            assert_eq!(challenge.resource_metadata().next(), pointer, "{header}");
            assert_eq!(challenge.scopes().join(" "), scopes, "{header}");
        }
    }
}
