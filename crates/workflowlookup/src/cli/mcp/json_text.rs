//! JSON for people: indented and in colour, with its properties in the order and its numbers in the digits in which they
//! were written.

use std::borrow::Cow;
use std::io;

use anstyle::Style;
use serde_json::value::RawValue;

use crate::cli::Terminal;
use crate::cli::terminal::{CYAN, DIM, GREEN, YELLOW, escape};

/// What is nested more deeply is left on one line: indenting it would take more room than it.
const DEPTH_MAX: usize = 64;
const INDENT: &str = "  ";
const PLAIN: Style = Style::new();

/// Whether a text is JSON that is worth indenting: an object or an array.
pub(super) fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<&RawValue>(text).is_ok()
}

/// Prints JSON, which must be some.
pub(super) fn print(json: &str, terminal: &mut Terminal) -> io::Result<()> {
    lines(json, &mut |line| {
        let pieces: Vec<(Style, &str)> =
            line.iter().map(|(style, text)| (*style, text.as_ref())).collect();
        terminal.pieces(&pieces)
    })?;
    terminal.flush()
}

type Line<'j> = Vec<(Style, Cow<'j, str>)>;

/// Line by line, for all of them at once may take much more room than the text.
fn lines<'j>(json: &'j str, out: &mut dyn FnMut(&Line<'j>) -> io::Result<()>) -> io::Result<()> {
    let mut writing = Writing { out, line: Vec::new(), depth: 0 };
    let mut rest = json.trim();
    while let Some(sign) = rest.chars().next() {
        let (token, behind) = rest.split_at(token_length(rest, sign));
        rest = behind.trim_start();
        match sign {
            '{' | '[' if rest.starts_with(['}', ']']) => {
                writing.put(PLAIN, token);
                writing.put(PLAIN, &rest[..1]);
                rest = rest[1..].trim_start();
            }
            '{' | '[' => {
                writing.put(PLAIN, token);
                writing.depth += 1;
                writing.break_line()?;
            }
            '}' | ']' => {
                writing.depth = writing.depth.saturating_sub(1);
                writing.break_line()?;
                writing.put(PLAIN, token);
            }
            ',' => {
                writing.put(PLAIN, token);
                writing.break_line()?;
            }
            ':' => writing.put(PLAIN, ": "),
            '"' if rest.starts_with(':') => writing.put(CYAN, escape(token).into_owned()),
            '"' => writing.put(GREEN, escape(token).into_owned()),
            'n' => writing.put(DIM, token),
            _ => writing.put(YELLOW, token),
        }
    }
    (writing.out)(&writing.line)
}

struct Writing<'o, 'j> {
    out: &'o mut dyn FnMut(&Line<'j>) -> io::Result<()>,
    line: Line<'j>,
    depth: usize,
}

impl<'j> Writing<'_, 'j> {
    fn put(&mut self, style: Style, text: impl Into<Cow<'j, str>>) {
        self.line.push((style, text.into()));
    }

    fn break_line(&mut self) -> io::Result<()> {
        if self.depth > DEPTH_MAX {
            return Ok(());
        }
        (self.out)(&self.line)?;
        self.line.clear();
        if self.depth > 0 {
            self.put(PLAIN, INDENT.repeat(self.depth));
        }
        Ok(())
    }
}

/// How many bytes the token has that begins here. The text is JSON, so it has an end.
fn token_length(text: &str, first: char) -> usize {
    match first {
        '{' | '[' | '}' | ']' | ',' | ':' => 1,
        '"' => {
            let mut is_escaped = false;
            let end = text.bytes().skip(1).position(|byte| {
                let is_end = byte == b'"' && !is_escaped;
                is_escaped = byte == b'\\' && !is_escaped;
                is_end
            });
            end.map_or(text.len(), |end| end + 2)
        }
        _ => {
            let is_end = |sign: char| sign.is_whitespace() || ",:{}[]\"".contains(sign);
            text.find(is_end).unwrap_or(text.len()).max(first.len_utf8())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(json: &str) -> String {
        let mut shown = Vec::new();
        lines(json, &mut |line| {
            shown.push(line.iter().map(|(_, text)| text.as_ref()).collect::<String>());
            Ok(())
        })
        .unwrap();
        shown.join("\n")
    }

    #[test]
    fn the_order_and_the_digits_stay() {
        let json =
            r#" {"z":1.50,"a" : [ ], "list":[1, {"q":"a \"b\": {c}, \\"},[true,null]],"e":{}}"#;
        insta::assert_snapshot!(shown(json), @r#"
        {
          "z": 1.50,
          "a": [],
          "list": [
            1,
            {
              "q": "a \"b\": {c}, \\"
            },
            [
              true,
              null
            ]
          ],
          "e": {}
        }
        "#);
    }

    #[test]
    fn deep_nesting_is_not_indented_for_ever() {
        let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
        let shown = shown(&deep);
        assert!(shown.len() < 30_000, "{}", shown.len());
        assert_eq!(shown.chars().filter(|sign| *sign == '[').count(), 5_000);
    }

    #[test]
    fn what_counts_as_json() {
        assert!(is_json(" {\"a\": 1}\n") && is_json("[]"));
        for text in ["", "5", "\"text\"", "{a: 1}", "[1] and more", "null"] {
            assert!(!is_json(text), "{text}");
        }
    }
}
