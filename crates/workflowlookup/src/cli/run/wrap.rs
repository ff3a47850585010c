//! A prompt for people: lines broken to the width of a terminal, without breaking what has a meaning by its lines.
//! Only as much of Markdown is looked at as that takes.

use unicode_width::UnicodeWidthStr;

/// Longer lines are hard to read, however wide a terminal is.
const WIDTH_MAX: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Heading,
    Code,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) kind: Kind,
    pub(crate) text: String,
}

/// The lines to show. Without a width they stay as they are.
pub(crate) fn lines(text: &str, width: Option<usize>) -> Vec<Line> {
    let width = width.map(|width| width.min(WIDTH_MAX));
    let mut lines = Vec::new();
    let mut fence: Option<&str> = None;
    let mut is_in_list = false;
    for line in text.lines() {
        let kind = match fence {
            Some(open) => {
                let marks = fence_of(line).filter(|marks| marks.starts_with(open));
                // A fence with words behind it opens one, and stands inside this one.
                if marks.is_some_and(|marks| marks == line.trim()) {
                    fence = None;
                }
                Kind::Code
            }
            None => {
                fence = fence_of(line);
                let is_deep = line.starts_with("    ") || line.starts_with('\t');
                if !is_deep && !line.trim().is_empty() {
                    is_in_list = hang(line) > indent(line) || (is_in_list && indent(line) > 0);
                }
                match line.trim_start() {
                    _ if fence.is_some() || (is_deep && !is_in_list) => Kind::Code,
                    text if text.starts_with('#') => Kind::Heading,
                    _ => Kind::Text,
                }
            }
        };
        match width {
            // The rows of a table belong together.
            Some(width) if kind != Kind::Code && !line.trim_start().starts_with('|') => {
                lines.extend(broken(line, width).into_iter().map(|text| Line { kind, text }));
            }
            _ => lines.push(Line { kind, text: line.to_owned() }),
        }
    }
    lines
}

/// What a line is made of: what stands in backticks, and what does not. The backticks stay.
pub(super) fn spans(line: &str) -> Vec<(bool, &str)> {
    let mut spans = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.find('`') {
        let Some(end) = rest[start + 1..].find('`') else { break };
        let end = start + 1 + end + 1;
        spans.push((false, &rest[..start]));
        spans.push((true, &rest[start..end]));
        rest = &rest[end..];
    }
    spans.push((false, rest));
    spans.retain(|(_, text)| !text.is_empty());
    spans
}

fn broken(line: &str, width: usize) -> Vec<String> {
    if line.width() <= width {
        return vec![line.to_owned()];
    }
    // On a very narrow terminal the text needs the room.
    let hang = Some(hang(line)).filter(|hang| *hang <= width / 2).unwrap_or(0);
    let mut lines = Vec::new();
    let mut current = line[..indent(line)].to_owned();
    let mut is_empty = true;
    for word in words(line) {
        if !is_empty && current.width() + 1 + word.width() > width {
            lines.push(std::mem::replace(&mut current, " ".repeat(hang)));
            is_empty = true;
        }
        if !is_empty {
            current.push(' ');
        }
        current.push_str(word);
        is_empty = false;
    }
    lines.push(current);
    lines
}

/// The words of a line. What stands in backticks is not torn apart.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut start, mut at) = (0, 0);
    for (is_code, span) in spans(line) {
        for (offset, _) in span.match_indices(' ').filter(|_| !is_code) {
            words.push(&line[start..at + offset]);
            start = at + offset + 1;
        }
        at += span.len();
    }
    words.push(&line[start..]);
    words.retain(|word| !word.is_empty());
    words
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Where the text of a line begins, behind the mark of a list if there is one.
fn hang(line: &str) -> usize {
    let indent = indent(line);
    let text = &line[indent..];
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let is_item = text.starts_with(['-', '*', '+']) && text[1..].starts_with(' ');
    let is_numbered = (1..=3).contains(&digits)
        && (text[digits..].starts_with(". ") || text[digits..].starts_with(") "));
    match (is_item, is_numbered) {
        (true, _) => indent + 2,
        (_, true) => indent + digits + 2,
        _ => indent,
    }
}

/// The marks that begin or end a block of code.
fn fence_of(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let marks = &line[..line.len() - line.trim_start_matches(mark).len()];
    (marks.len() >= 3).then_some(marks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, width: usize) -> String {
        let lines = lines(text, Some(width));
        let lines = lines.iter().map(|Line { kind, text }| {
            let mark = match kind {
                Kind::Text => ' ',
                Kind::Heading => '#',
                Kind::Code => '|',
            };
            format!("{mark}{text}\n")
        });
        lines.collect()
    }

    #[test]
    fn text_is_broken_between_words_and_lists_hang() {
        let text = "One two three four five six.\n\n- an item that is long, and\n  goes on\n  - one within it, too\n12. a numbered one\n";
        insta::assert_snapshot!(shown(text, 16), @"
         One two three
         four five six.
         
         - an item that
           is long, and
           goes on
           - one within
             it, too
         12. a numbered
             one
        ");
    }

    #[test]
    fn code_and_tables_stay_as_they_are() {
        let text = "# A heading that is long\n```sh\nls -l --all --human-readable\n```\n\n    indented code that is long\n\n| a | table | that | is | long |\nRun `git log --oneline` now.\n- a\n\n    more of this item\n";
        insta::assert_snapshot!(shown(text, 16), @"
        ## A heading that
        #is long
        |```sh
        |ls -l --all --human-readable
        |```
         
        |    indented code that is long
         
         | a | table | that | is | long |
         Run
         `git log --oneline`
         now.
         - a
         
             more of this
             item
        ");
    }

    #[test]
    fn a_fence_ends_where_it_ends() {
        let text = "````\n```\nas it is, and long enough\n````\nnow it is text again, broken\n~~~\n```\n~~~\n";
        insta::assert_snapshot!(shown(text, 16), @"
        |````
        |```
        |as it is, and long enough
        |````
         now it is text
         again, broken
        |~~~
        |```
        |~~~
        ");
    }

    #[test]
    fn a_word_that_is_too_long_is_left_whole() {
        insta::assert_snapshot!(shown("see https://example.org/a/long/address for it, 名名名名名名 名名", 16), @"
        see
        https://example.org/a/long/address
        for it,
        名名名名名名
        名名
        ");
        assert_eq!(lines("a long line\n", None)[0].text, "a long line");
        assert_eq!(shown("", 16), "");
    }

    #[test]
    fn backticks_make_spans_where_they_are_closed() {
        assert_eq!(spans("a `b c` d"), [(false, "a "), (true, "`b c`"), (false, " d")]);
        assert_eq!(spans("it's ` open"), [(false, "it's ` open")]);
        assert_eq!(spans(""), []);
    }
}
