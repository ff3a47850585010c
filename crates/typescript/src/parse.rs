//! From text to a tree, or to what is wrong with the text.

use oxc_allocator::Allocator;
use oxc_ast::ast::{JSXElement, JSXFragment, Program};
use oxc_ast_visit::VisitJs;
use oxc_diagnostics::OxcDiagnostic;
use oxc_parser::{ParseOptions, Parser, ParserReturn};
use oxc_span::{SourceType, Span};

use crate::tokens::Tokens;
use crate::{Language, Problem};

/// The longest part of a program that is shown in a message.
const FOUND_BYTES_MAX: usize = 40;

/// Does something with the tree of a program and its tokens.
pub(crate) fn with_program<T>(
    source: &str,
    language: Language,
    then: impl FnOnce(&Program<'_>, Tokens<'_>) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let allocator = Allocator::default();
    let kind = match language {
        Language::TypeScript => SourceType::ts(),
        Language::JavaScript => SourceType::mjs(),
    };
    let parsed = parse(&allocator, source, kind);
    match first_error(&parsed) {
        None => then(&parsed.program, Tokens::new(source, &parsed.program.comments)),
        Some(error) => Err(explain(source, language, error)),
    }
}

/// The problem of a JavaScript program that is TypeScript.
pub(crate) fn not_javascript(source: &str, offset: u32) -> Problem {
    let message = "this is TypeScript, and the program is said to be JavaScript";
    Problem::at(source, offset as usize, message, Some("use language `typescript`"))
}

fn parse<'a>(allocator: &'a Allocator, source: &'a str, kind: SourceType) -> ParserReturn<'a> {
    // A `return` that is in no function gets a better help later on.
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    // Where nothing is imported or exported, `await (x)` would be a call otherwise.
    Parser::new(allocator, source, kind.with_module(true)).with_options(options).parse()
}

fn first_error<'p>(parsed: &'p ParserReturn<'_>) -> Option<&'p OxcDiagnostic> {
    parsed.diagnostics.errors().next()
}

/// What does not parse may be a language that is not offered here, which is worth more to know than the first word
/// that is in the way.
fn explain(source: &str, language: Language, error: &OxcDiagnostic) -> Problem {
    let allocator = Allocator::default();
    if language == Language::JavaScript {
        let parsed = parse(&allocator, source, SourceType::ts());
        // TypeScript gets farther, even if not to the end.
        if first_error(&parsed).is_none_or(|later| span(later).start > span(error).start) {
            return not_javascript(source, span(error).start);
        }
    }
    let parsed = parse(&allocator, source, SourceType::tsx());
    let mut jsx = FirstJsx(None);
    if first_error(&parsed).is_none() {
        jsx.visit_program(&parsed.program);
    }
    if let Some(offset) = jsx.0 {
        let help = "build text or objects instead";
        return Problem::at(source, offset as usize, "JSX is not supported", Some(help));
    }
    let help = error.help.as_deref().map(lower_case);
    Problem::at(source, span(error).start as usize, message(source, error), help.as_deref())
}

/// Where it is, or the beginning.
fn span(error: &OxcDiagnostic) -> Span {
    let label = error.labels.first();
    label.map_or(Span::new(0, 0), |it| Span::sized(it.offset(), it.len()))
}

/// In the parser's words, but for its names of what is not written.
fn message(source: &str, error: &OxcDiagnostic) -> String {
    let message = lower_case(&error.message)
        .replace("`EOF`", "the end of the program")
        .replace("`Identifier`", "a name");
    let span = span(error);
    let found = source.get(span.start as usize..span.end as usize).unwrap_or_default();
    let is_short = found.len() <= FOUND_BYTES_MAX && !found.contains(char::is_control);
    match found {
        _ if message.contains('`') => message,
        "" if source.get(span.start as usize..).is_none_or(|rest| rest.trim().is_empty()) => {
            format!("{message} at the end of the program")
        }
        "" => message,
        _ if is_short => format!("{message}: `{found}`"),
        _ => message,
    }
}

fn lower_case(text: &str) -> String {
    let mut letters = text.trim_end_matches('.').chars();
    match letters.next() {
        Some(first) if !letters.as_str().starts_with(|next: char| next.is_uppercase()) => {
            first.to_lowercase().chain(letters).collect()
        }
        first => first.into_iter().chain(letters).collect(),
    }
}

struct FirstJsx(Option<u32>);

impl<'a> VisitJs<'a> for FirstJsx {
    fn visit_jsx_element(&mut self, it: &JSXElement<'a>) {
        self.0.get_or_insert(it.span.start);
    }

    fn visit_jsx_fragment(&mut self, it: &JSXFragment<'a>) {
        self.0.get_or_insert(it.span.start);
    }
}
