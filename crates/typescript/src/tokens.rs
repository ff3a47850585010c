//! Words and signs around the parts of a tree, for what it does not say the place of: `?`, `public`, `as`, a comma. Only
//! asked for where neither strings nor patterns stand, so that words and signs are all there is besides comments.

use oxc_ast::ast::Comment;
use oxc_span::Span;

#[derive(Clone, Copy)]
pub(crate) struct Tokens<'s> {
    source: &'s str,
    /// In order.
    comments: &'s [Comment],
}

/// A word, or a sign: one character, or `++` or `--`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'s> {
    pub(crate) text: &'s str,
    pub(crate) span: Span,
}

impl<'s> Tokens<'s> {
    pub(crate) fn new(source: &'s str, comments: &'s [Comment]) -> Tokens<'s> {
        Tokens { source, comments }
    }

    /// The first that begins at an offset or later.
    pub(crate) fn at(self, offset: u32) -> Option<Token<'s>> {
        let mut start = offset;
        loop {
            let rest = self.source.get(start as usize..)?;
            start += length(rest) - length(rest.trim_start_matches(is_space));
            let index = self.comments.partition_point(|comment| comment.span.start < start);
            match self.comments.get(index).filter(|comment| comment.span.start == start) {
                Some(comment) => start = comment.span.end,
                None => break,
            }
        }
        let rest = self.source.get(start as usize..)?;
        let word = rest.find(|char| !is_word(char)).unwrap_or(rest.len());
        let end = match word {
            0 if rest.starts_with("++") || rest.starts_with("--") => 2,
            0 => rest.chars().next()?.len_utf8(),
            _ => word,
        };
        let text = rest.get(..end)?;
        Some(Token { text, span: Span::sized(start, length(text)) })
    }

    /// The last that ends at an offset or before.
    pub(crate) fn before(self, offset: u32) -> Option<Token<'s>> {
        let mut end = offset;
        loop {
            end = length(self.source.get(..end as usize)?.trim_end_matches(is_space));
            let index = self.comments.partition_point(|comment| comment.span.end < end);
            match self.comments.get(index).filter(|comment| comment.span.end == end) {
                Some(comment) => end = comment.span.start,
                None => break,
            }
        }
        let before = self.source.get(..end as usize)?;
        let start = match before.trim_end_matches(is_word) {
            same if same.len() == before.len() => before.char_indices().next_back()?.0,
            shorter => shorter.len(),
        };
        let text = before.get(start..)?;
        Some(Token { text, span: Span::new(end - length(text), end) })
    }

    /// Those that begin within a span.
    pub(crate) fn within(self, span: Span) -> impl Iterator<Item = Token<'s>> + use<'s> {
        let first = self.at(span.start);
        std::iter::successors(first, move |token| self.at(token.span.end))
            .take_while(move |token| token.span.start < span.end)
    }

    /// The first within a span that is this one.
    pub(crate) fn find(self, span: Span, text: &str) -> Option<Token<'s>> {
        self.within(span).find(|token| token.text == text)
    }

    /// Whether a line ends within a span.
    pub(crate) fn has_line_break(self, span: Span) -> bool {
        let text = self.source.get(span.start as usize..span.end as usize).unwrap_or_default();
        text.contains(['\n', '\r', '\u{2028}', '\u{2029}'])
    }
}

fn is_space(char: char) -> bool {
    char.is_whitespace() || char == '\u{feff}'
}

/// Every letter of any script is part of a word, and every sign that means something is not.
fn is_word(char: char) -> bool {
    char.is_ascii_alphanumeric()
        || matches!(char, '_' | '$')
        || (!char.is_ascii() && !is_space(char))
}

/// Sources are far smaller than 4 GiB.
fn length(text: &str) -> u32 {
    u32::try_from(text.len()).unwrap_or(u32::MAX)
}
