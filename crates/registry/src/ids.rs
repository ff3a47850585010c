//! Ids of servers: small letters, digits and single `-` between them. Clients call their servers as they like, so ids are
//! made of those names.

use std::collections::BTreeSet;

use super::limits::ID_MAX;

pub fn is_id(text: &str) -> bool {
    let is_word = |word: &str| {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        !word.is_empty() && word.bytes().all(is_plain)
    };
    text.len() <= ID_MAX && text.split('-').all(is_word)
}

/// The nearest id: `Brave Search` is `brave-search`, `uiTesting` is `ui-testing`, `GitHub` is `github`.
pub(super) fn of_name(name: &str) -> String {
    // A name that begins with a capital has them for looks; one that does not, for words.
    let splits = name.starts_with(|first: char| first.is_lowercase());
    let mut id = String::new();
    let mut was_small = false;
    for letter in name.chars() {
        if letter.is_ascii_alphanumeric() {
            if splits && was_small && letter.is_ascii_uppercase() {
                id.push('-');
            }
            id.push(letter.to_ascii_lowercase());
        } else if !id.ends_with('-') {
            id.push('-');
        }
        was_small = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        if id.len() >= ID_MAX {
            break;
        }
    }
    let id = id.trim_matches('-').to_owned();
    if id.is_empty() { "server".to_owned() } else { id }
}

/// An id that nobody has yet.
pub(super) fn unique(id: String, taken: &BTreeSet<String>) -> String {
    if !taken.contains(&id) {
        return id;
    }
    // There are fewer that are taken than numbers.
    let numbered = (2..=taken.len() + 2).map(|number| {
        let suffix = format!("-{number}");
        let kept = id.len().min(ID_MAX - suffix.len());
        format!("{}{suffix}", id[..kept].trim_end_matches('-'))
    });
    numbered.into_iter().find(|id| !taken.contains(id)).unwrap_or(id.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_made_of_names() {
        let cases = [
            ("github", "github"),
            ("GitHub", "github"),
            ("Brave Search", "brave-search"),
            ("brave_search", "brave-search"),
            ("uiTesting", "ui-testing"),
            ("context7MCP", "context7-mcp"),
            ("@scope/server.name", "scope-server-name"),
            ("--a--b--", "a-b"),
            ("名前", "server"),
            ("", "server"),
        ];
        for (name, id) in cases {
            assert_eq!(of_name(name), id, "{name}");
            assert!(is_id(id));
        }
        assert!(is_id(&of_name(&"a b".repeat(100))));
        for text in ["", "-a", "a-", "a--b", "A", "a_b", "ä", &"a".repeat(65)] {
            assert!(!is_id(text), "{text}");
        }
    }

    #[test]
    fn a_taken_id_gets_a_number() {
        let long = "a".repeat(ID_MAX);
        let taken = BTreeSet::from(["a".to_owned(), "a-2".to_owned(), long.clone()]);
        assert_eq!(unique("a".to_owned(), &taken), "a-3");
        assert_eq!(unique("b".to_owned(), &taken), "b");
        assert!(is_id(&unique(long, &taken)));
    }
}
