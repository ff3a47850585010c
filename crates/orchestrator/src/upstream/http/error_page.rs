//! What a page says that is no answer: one line of it, for whoever wonders why. Such pages come from anybody on the way.

/// How much of it is told.
const CHARS_MAX: usize = 300;

/// The line; nothing where it says nothing. Of a web page it is the title.
pub(super) fn describe(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    let said = if text.starts_with('<') { title(text)? } else { text };
    let line = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().filter(|sign| !sign.is_control()).collect();
    match line.char_indices().nth(CHARS_MAX) {
        _ if line.is_empty() => None,
        Some((end, _)) => Some(format!("{}…", &line[..end])),
        None => Some(line),
    }
}

fn title(page: &str) -> Option<&str> {
    // As many bytes as the page, so that places are the same.
    let lower = page.to_ascii_lowercase();
    let begin = lower.find("<title")?;
    let begin = begin + lower[begin..].find('>')? + 1;
    let end = begin + lower[begin..].find("</title")?;
    Some(&page[begin..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_of_whatever_it_is() {
        let of = |text: &str| describe(text.as_bytes());
        assert_eq!(of(""), None);
        assert_eq!(of(" \n"), None);
        assert_eq!(of("no\r\n entry\u{7}"), Some("no entry".to_owned()));
        let page = "<!DOCTYPE html><html><head><TITLE lang=en>404\nNot Found</TITLE></head><body>much</body>";
        assert_eq!(of(page), Some("404 Not Found".to_owned()));
        assert_eq!(of("<html><title>open"), None);
        assert_eq!(of("<p>nothing</p>"), None);
        assert_eq!(of(&"ä".repeat(1_000)), Some(format!("{}…", "ä".repeat(CHARS_MAX))));
    }
}
