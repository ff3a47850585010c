//! Texts of agents and strangers inside Markdown of ours. None of them can end what it stands in, begin something, or
//! hide a link behind other words.

use std::iter;

/// What has a meaning in the middle of a line.
const ACTIVE: &[char] = &['\\', '`', '*', '_', '[', ']', '<', '>', '|', '~', '&', '$'];

/// A text as it is, in the middle of a line.
pub(super) fn inline(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut escaped = String::new();
    for letter in words.join(" ").chars() {
        if ACTIVE.contains(&letter) {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

/// The same where it begins a line, and must not begin a heading, a list or a rule.
pub(super) fn line(text: &str) -> String {
    let mut line = inline(text);
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    match line[digits..].chars().next() {
        Some('.' | ')') if digits > 0 => line.insert(digits, '\\'),
        Some('#' | '+' | '-' | '=') if digits == 0 => line.insert(0, '\\'),
        _ => {}
    }
    line
}

/// A name, in the type of code.
pub(super) fn code(name: &str) -> String {
    let words: Vec<&str> = name.split_whitespace().collect();
    let name = words.join(" ").replace('|', "\\|");
    let fence = "`".repeat(longest_run(&name) + 1);
    // The spaces keep a backtick at the edge apart, and are not shown.
    let space = if fence.len() > 1 || name.is_empty() { " " } else { "" };
    format!("{fence}{space}{name}{space}{fence}")
}

/// A whole text, as it is, between fences that are longer than any inside.
pub(super) fn fenced(text: &str, language: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    let text = text.replace("\r\n", "\n");
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}\n")
}

/// Lines that belong to the entry of a list above them.
pub(super) fn indented(lines: &str) -> String {
    let indent = |line: &str| if line.is_empty() { "\n".to_owned() } else { format!("  {line}\n") };
    lines.lines().map(indent).collect()
}

/// How many backticks stand side by side at most.
fn longest_run(text: &str) -> usize {
    let mut run = 0;
    let runs = text.bytes().chain(iter::once(0)).map(|byte| {
        run = if byte == b'`' { run + 1 } else { 0 };
        run
    });
    runs.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_breaks_out() {
        assert_eq!(fenced("a\n```\n# b", ""), "````\na\n```\n# b\n````\n");
        assert_eq!(fenced("``````", "json"), "```````json\n``````\n```````\n");
        assert_eq!(fenced("", ""), "```\n```\n");
        assert_eq!(fenced("a\r\nb\r\n", ""), "```\na\nb\n```\n");
        assert_eq!(indented(&fenced("a\n\n- b", "")), "  ```\n  a\n\n  - b\n  ```\n");
        assert_eq!(code("plan"), "`plan`");
        assert_eq!(code("a`|`` b\n# c"), "``` a`\\|`` b # c ```");
        assert_eq!(inline("plain, (words). 50% - of + it!"), "plain, (words). 50% - of + it!");
        assert_eq!(line("# a\n\n# b"), "\\# a # b");
        assert_eq!(line("12. x"), "12\\. x");
        assert_eq!(line(""), "");
        assert_eq!(line("1.2.0 is out"), "1\\.2.0 is out");
        assert_eq!(line("*a*"), "\\*a\\*");
        assert_eq!(line("- x"), "\\- x");
        assert_eq!(
            inline("![p](http://x) <b> |c| `d`"),
            "!\\[p\\](http://x) \\<b\\> \\|c\\| \\`d\\`"
        );
    }
}
