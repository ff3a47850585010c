//! Patterns of `regex` rules and of schemas. They are written in JavaScript's flavor and translated first. Most run on
//! an automaton in linear time; look-around and back-references need a matcher that backtracks. Both spend from the
//! budget of the call. Loading checks the syntax alone; compiling is done on first use.

use crate::{Budget, Exhausted};

mod backtrack;
mod linear;
mod translate;

use backtrack::Backtracking;
use linear::Linear;

/// The largest compiled program that a pattern may come to.
pub const COMPILED_BYTES_MAX: usize = 1024 * 1024;

/// A pattern in the engines' own syntax.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translated {
    pub text: String,
    pub flags: Flags,
    /// Look-around or a back-reference needs the backtracking engine.
    pub backtracks: bool,
    /// One of them is look-behind or a back-reference.
    pub looks_back: bool,
    /// Flags were written inside the pattern, as `(?i)`, which JavaScript rejects.
    pub inline_flags: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags {
    pub ignore_case: bool,
    pub multi_line: bool,
    pub dot_all: bool,
    pub sticky: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("{what} at character {at}")]
    Syntax { what: String, at: usize },
    #[error("`{0}` is no flag")]
    Flag(char),
    #[error("the flag `{0}` is there twice")]
    FlagTwice(char),
    #[error("{0}")]
    Other(String),
    #[error("the compiled pattern exceeds {COMPILED_BYTES_MAX} bytes")]
    TooLarge,
    #[error("the schema has more than {} patterns", crate::schema::PATTERNS_MAX)]
    TooMany,
    #[error(
        "the patterns of the schema exceed {} bytes together",
        crate::schema::PATTERNS_BYTES_MAX
    )]
    TooLargeTogether,
}

/// Checks a pattern's syntax and compiles nothing. Some look-behind and back-references are beyond the
/// engine, and only compiling tells.
pub fn parse(pattern: &str, flags: &str) -> Result<Translated, Error> {
    let translated = translate::translate(pattern, parse_flags(flags)?)?;
    if translated.backtracks || translated.looks_back {
        fancy_regex::Expr::parse_tree(&backtrack::with_flags(&translated)).map_err(explain)?;
    } else {
        regex_syntax::ast::parse::Parser::new()
            .parse(&translated.text)
            .map_err(|error| Error::Other(error.kind().to_string()))?;
    }
    Ok(translated)
}

fn parse_flags(text: &str) -> Result<Flags, Error> {
    let mut flags = Flags::default();
    for (at, flag) in text.char_indices() {
        if text[..at].contains(flag) {
            return Err(Error::FlagTwice(flag));
        }
        match flag {
            'i' => flags.ignore_case = true,
            'm' => flags.multi_line = true,
            's' => flags.dot_all = true,
            'y' => flags.sticky = true,
            // Unicode is what we always do; `g` and `d` change nothing for "matches somewhere".
            'u' | 'v' | 'g' | 'd' => {}
            other => return Err(Error::Flag(other)),
        }
    }
    Ok(flags)
}

/// A compiled pattern.
#[derive(Debug)]
pub struct Matcher {
    engine: Engine,
}

#[derive(Debug)]
enum Engine {
    Linear(Box<Linear>),
    Backtracking(Backtracking),
}

impl Matcher {
    /// Whether the pattern matches somewhere in the text.
    pub fn is_match(&self, text: &str, budget: &Budget) -> Result<bool, Exhausted> {
        match &self.engine {
            Engine::Linear(linear) => linear.is_match(text, budget),
            Engine::Backtracking(backtracking) => backtracking.is_match(text, budget),
        }
    }

    /// The memory that this keeps, search caches of one thread included.
    pub fn bytes(&self) -> usize {
        match &self.engine {
            Engine::Linear(linear) => linear.bytes(),
            Engine::Backtracking(backtracking) => backtracking.bytes(),
        }
    }

    /// The size of its compiled program, which says how long it took to compile.
    pub fn program_bytes(&self) -> usize {
        match &self.engine {
            Engine::Linear(linear) => linear.program_bytes(),
            Engine::Backtracking(backtracking) => backtracking.bytes(),
        }
    }

    /// Whether matching has to try one way after another.
    pub fn backtracks(&self) -> bool {
        matches!(self.engine, Engine::Backtracking(_))
    }
}

/// Compiles a pattern, within [`COMPILED_BYTES_MAX`].
pub fn compile(pattern: &str, flags: &str) -> Result<Matcher, Error> {
    let translated = parse(pattern, flags)?;
    let engine = if translated.backtracks {
        Engine::Backtracking(Backtracking::compile(&translated)?)
    } else {
        Engine::Linear(Box::new(Linear::compile(&translated)?))
    };
    Ok(Matcher { engine })
}

/// The engine's own words, without those that say who speaks.
fn explain(error: fancy_regex::Error) -> Error {
    use fancy_regex::{CompileError, Error as Fancy};
    match error {
        Fancy::ParseError(_, error) => Error::Other(error.to_string()),
        Fancy::CompileError(error) => match *error {
            CompileError::InnerError(error) if error.size_limit().is_some() => Error::TooLarge,
            error => Error::Other(error.to_string()),
        },
        error => Error::Other(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn matches(pattern: &str, flags: &str, text: &str) -> bool {
        compile(pattern, flags).unwrap().is_match(text, &Budget::for_call()).unwrap()
    }

    #[test]
    fn javascript_meanings_are_kept() {
        for (pattern, flags, text, expected) in [
            (r"^\d+$", "", "42", true),
            (r"^\d+$", "", "٤٢", false),
            (r"^\w+$", "", "été", false),
            (r"^\W$", "", "é", true),
            (r"\bfin\b", "", "la fin.", true),
            (r"\bt\b", "", "été", true),
            (r"^[\d\s]+$", "", "1 2\u{a0}3", true),
            (r"^[^\d]+$", "", "ab٤", true),
            (r"^[\W\d]+$", "", "-1", true),
            (r"^.$", "", "\u{2028}", false),
            (r"^.$", "s", "\n", true),
            (r"^b$", "", "a\nb", false),
            (r"^b$", "m", "a\r\nb\r\n", true),
            (r"^b", "y", "ab", false),
            (r"b", "y", "ab", false),
            (r"a|b", "y", "cb", false),
            (r"TITLE", "i", "a title", true),
            (r"[[]x]", "", "[x]", true),
            (r"^[a&&b]+$", "", "a&&b", true),
            (r"^[--/]+$", "", "-./", true),
            (r"^[\w-]+$", "", "a-b", true),
            (r"a{,2}", "", "a{,2}", true),
            (r"a{2}", "", "aa", true),
            (r"{x}", "", "{x}", true),
            (r"\/api\/v1", "", "/api/v1", true),
            (r"[^]", "", "\n", true),
            (r"a[]", "", "a", false),
            (r"\x41\u0042\u{43}\cJ\0", "", "ABC\n\0", true),
            (r"\uD83D\uDE00", "", "😀", true),
            (r"[\b]", "", "\u{8}", true),
            (r"(?<year>\d{4})", "", "in 2026", true),
            (r"\p{Lu}x", "u", "Éx", true),
        ] {
            assert_eq!(matches(pattern, flags, text), expected, "/{pattern}/{flags} on {text:?}");
        }
    }

    #[test]
    fn look_around_and_back_references_backtrack() {
        for (pattern, text, expected) in [
            (r"^(?=.*\d)(?=.*[a-z]).{3,}$", "ab1", true),
            (r"^(?=.*\d)(?=.*[a-z]).{3,}$", "abc", false),
            (r"(?<!un)safe\b", "unsafe", false),
            (r"(\w+) \1", "the the", true),
            (r"^(a)?b\1$", "b", true),
            (r"^(a)(?:\1)0$", "aa0", true),
            (r"(?<q>['\x22]).*?\k<q>", "say 'x'", true),
            (r"(?!x)\bt\b", "été", true),
        ] {
            assert!(parse(pattern, "").unwrap().backtracks, "{pattern}");
            assert_eq!(matches(pattern, "", text), expected, "{pattern} on {text:?}");
        }
    }

    #[test]
    fn inline_flags_are_taken_as_flags() {
        let translated = parse("(?i)title", "").unwrap();
        assert!(translated.inline_flags && translated.flags.ignore_case);
        assert!(matches("(?i)##?\\s*Title:?", "", "## TITLE"));
        assert!(matches("a(?i)B", "", "ab"));
        assert!(matches("(?i:A)b", "", "ab"));
        assert!(!parse("(?i:A)b", "").unwrap().inline_flags);
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        let message = |pattern, flags| parse(pattern, flags).unwrap_err().to_string();
        assert_eq!(message("a(b", ""), "a group is not closed at character 2");
        assert_eq!(message("ab)", ""), "there is no group to close at character 3");
        assert_eq!(message("[a-", ""), "a character class is not closed at character 1");
        assert_eq!(message("[z-a]", ""), "the range runs backwards at character 2");
        assert_eq!(message("*a", ""), "there is nothing to repeat at character 1");
        assert_eq!(message("a{3,1}", ""), "the repetition runs backwards at character 2");
        assert_eq!(message("a\\", ""), "nothing follows the backslash at character 2");
        assert_eq!(message("(a)\\2", ""), "there is no group 2 to refer to at character 4");
        assert_eq!(
            message("[\\1]", ""),
            "a character class cannot refer to a group at character 2"
        );
        assert_eq!(message("a{9999999999}", ""), "the repetition counts too far at character 2");
        assert_eq!(message("\\p{Elvish}", ""), "there is no property `Elvish` at character 1");
        assert_eq!(message("\\uD800", ""), "half a surrogate pair matches nothing at character 1");
        assert_eq!(message("a", "iq"), "`q` is no flag");
        assert_eq!(message("a", "ii"), "the flag `i` is there twice");
    }

    #[test]
    fn a_catastrophic_pattern_is_harmless() {
        let text = format!("{}!", "a".repeat(50_000));
        assert!(!matches("^(a+)+$", "", &text));
        let gave_up = compile(r"^(?=(a+)+$)\1b", "").unwrap().is_match(&text, &Budget::for_call());
        assert!(matches!(gave_up, Ok(false) | Err(Exhausted::Steps { .. })));
    }

    #[test]
    fn a_pattern_that_explodes_when_compiled_is_refused() {
        let error = compile(r"(?:\p{L}{1000}){1000}", "u").unwrap_err();
        assert_eq!(error, Error::TooLarge);
    }
}
