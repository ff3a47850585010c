//! A finding for people: what, where, the line itself with a caret under the culprit, what to try.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::Finding;

/// At most this many columns of a source line are shown; longer lines are cut around the culprit.
const EXCERPT_WIDTH: usize = 100;

/// Renders a finding as plain lines. `source` is the text of the file, where it is at hand.
pub fn render(finding: &Finding, source: Option<&str>) -> String {
    let mut lines =
        vec![format!("{}[{}]: {}", finding.severity(), finding.code.name(), finding.message)];
    let file = finding.file.as_deref().unwrap_or("definition");
    let gutter = finding.place.map_or(1, |place| place.line.to_string().len());
    let pad = " ".repeat(gutter);
    let at = finding.place.map(|place| format!(":{}:{}", place.line, place.column));
    let pointer = match &*finding.pointer {
        "" => String::new(),
        pointer => format!(" ({pointer})"),
    };
    lines.push(format!("{pad}--> {file}{}{pointer}", at.unwrap_or_default()));
    let excerpt = finding.place.zip(source).and_then(|(place, source)| {
        // A byte order mark is not counted.
        let source = source.strip_prefix('\u{feff}').unwrap_or(source);
        let line = source.lines().nth(place.line - 1)?;
        Some(excerpt(line, place.column - 1, place.length))
    });
    if let (Some((text, indent, carets)), Some(place)) = (excerpt, finding.place) {
        lines.push(format!("{pad} |"));
        lines.push(format!("{} | {text}", place.line).trim_end().to_owned());
        lines.push(format!("{pad} | {}{}", " ".repeat(indent), "^".repeat(carets)));
    }
    if let Some(hint) = &finding.hint {
        lines.push(format!("{pad} = try: {hint}"));
    }
    lines.join("\n") + "\n"
}

/// The part of the line to show, the width before the culprit and the width of the culprit.
fn excerpt(line: &str, column: usize, length: usize) -> (String, usize, usize) {
    let clean: Vec<char> = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let column = column.min(clean.len());
    let mut start = 0;
    if width(&clean) > EXCERPT_WIDTH {
        // Keep some of what stands before the culprit, for context.
        start = column.saturating_sub(EXCERPT_WIDTH / 3);
    }
    let mut text = String::from(if start > 0 { "…" } else { "" });
    let mut used = text.width();
    let mut end = start;
    while end < clean.len() && used < EXCERPT_WIDTH {
        used += clean[end].width().unwrap_or(0);
        text.push(clean[end]);
        end += 1;
    }
    if end < clean.len() {
        text.push('…');
    }
    let culprit_end = (column + length).clamp(column, end.max(column));
    let indent = usize::from(start > 0) + width(&clean[start..column]);
    (text, indent, width(&clean[column..culprit_end]).max(1))
}

fn width(chars: &[char]) -> usize {
    chars.iter().map(|c| c.width().unwrap_or(0)).sum()
}

#[cfg(test)]
mod tests {
    use super::super::{Code, Place};
    use super::*;

    fn finding(line: usize, column: usize, length: usize) -> Finding {
        Finding {
            code: Code::UnknownField,
            file: Some("a.json".into()),
            place: Some(Place { line, column, length }),
            pointer: "/stpes".into(),
            message: "unknown field `stpes`".into(),
            hint: Some("did you mean `steps`?".into()),
        }
    }

    #[test]
    fn the_caret_stands_under_the_culprit() {
        let source = "{\n\t\"名\": 1, \"stpes\": []\n}";
        insta::assert_snapshot!(render(&finding(2, 10, 7), Some(source)), @r#"
        error[W012]: unknown field `stpes`
         --> a.json:2:10 (/stpes)
          |
        2 |  "名": 1, "stpes": []
          |           ^^^^^^^
          = try: did you mean `steps`?
        "#);
    }

    #[test]
    fn long_lines_are_cut_around_the_culprit() {
        let source = format!("{{{}\"stpes\": []{}}}", " ".repeat(300), " ".repeat(300));
        let text = render(&finding(1, 302, 7), Some(&source));
        let shown: Vec<&str> = text.lines().collect();
        let caret = shown[4].find('^').unwrap();
        let culprit = shown[3].replace('…', ".").find("\"stpes\"").unwrap();
        assert_eq!(caret, culprit, "{text}");
    }
}
