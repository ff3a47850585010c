//! What holds for every text: it is a script or a problem. And for every script: its lines are those of the source, and
//! its places lead back.

use std::sync::LazyLock;

use proptest::prelude::*;
use typescript::{Language, Problem, Role, Script, strip};

use crate::programs::{self, Sample};

/// What programs are made of, so that a heap of it is one now and then.
const WORDS: &[&str] = &[
    "a",
    "b",
    "main",
    "x",
    "T",
    "1",
    "\"s\"",
    "`t`",
    "`${",
    "}`",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    ",",
    ";",
    ":",
    "?",
    "!",
    "=",
    "=>",
    ".",
    "?.",
    "...",
    "+",
    "-",
    "/",
    "*",
    "**",
    "|",
    "&",
    "&&",
    "??",
    "@",
    "#a",
    "\n",
    "\n",
    "\n",
    " ",
    " as ",
    " satisfies ",
    "async ",
    "await ",
    "function ",
    "class ",
    "extends ",
    "implements ",
    "new ",
    "typeof ",
    "keyof ",
    "if (a) ",
    "else ",
    "for (",
    " of ",
    " in ",
    "return ",
    "throw ",
    "let ",
    "const ",
    "var ",
    "type ",
    "interface ",
    "enum ",
    "declare ",
    "abstract ",
    "namespace ",
    "import ",
    "export ",
    "default ",
    "from ",
    "public ",
    "private ",
    "readonly ",
    "static ",
    "get ",
    "set ",
    "constructor",
    "this",
    "super()",
    "number",
    "string",
    "// c\n",
    "/* c */",
    "ü",
    "😀",
    "\u{2028}",
    "\r\n",
    "main()",
    "export { ",
    "import { ",
    "x: T",
    "(x: T): T => ",
    "<T>",
    " as const",
    "<T>(",
];

static SAMPLES: LazyLock<Vec<Sample>> = LazyLock::new(programs::all);

#[test]
fn programs_keep_their_lines() {
    for sample in programs::all() {
        for role in [Role::Entry, Role::Module] {
            let script = strip(&sample.source, Language::TypeScript, role).unwrap();
            keeps(&sample.source, &script);
            assert!(strip(&script.code, Language::JavaScript, Role::Module).is_ok());
        }
    }
}

#[test]
fn every_beginning_of_a_program_is_a_script_or_a_problem() {
    for sample in programs::all() {
        let ends = sample.source.char_indices().map(|(offset, _)| offset);
        for end in ends {
            holds(&sample.source[..end]);
        }
    }
}

proptest! {
    #[test]
    fn every_text_is_a_script_or_a_problem(text in any::<String>()) {
        holds(&text);
    }

    #[test]
    fn every_heap_of_words_is_a_script_or_a_problem(
        words in prop::collection::vec(prop::sample::select(WORDS), 0..40)
    ) {
        holds(&words.concat());
    }

    /// A few words in the wrong place.
    #[test]
    fn every_damaged_program_is_a_script_or_a_problem(
        sample in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        length in 0..8_usize,
        words in prop::collection::vec(prop::sample::select(WORDS), 0..3)
    ) {
        let source = &sample.get(&SAMPLES).source;
        let chars: Vec<char> = source.chars().collect();
        let start = at.index(chars.len());
        let end = (start + length).min(chars.len());
        let text: String = chars[..start].iter().copied()
            .chain(words.concat().chars())
            .chain(chars[end..].iter().copied())
            .collect();
        holds(&text);
    }
}

fn holds(source: &str) {
    for language in [Language::TypeScript, Language::JavaScript] {
        for role in [Role::Entry, Role::Module] {
            match strip(source, language, role) {
                Ok(script) => keeps(source, &script),
                Err(problem) => is_placed(source, &problem),
            }
        }
    }
}

fn keeps(source: &str, script: &Script) {
    let mut lines: Vec<&str> = script.code.split('\n').collect();
    let originals: Vec<&str> = source.split('\n').collect();
    if lines.len() > originals.len() {
        assert_eq!(lines.pop(), Some("export { main };"), "{source}\n{}", script.code);
    }
    assert_eq!(lines.len(), originals.len(), "{source}\n{}", script.code);
    for ((number, line), original) in (1..).zip(lines).zip(originals) {
        let length = |text: &str| u32::try_from(text.chars().count()).unwrap();
        // Where nothing was put in, the end of a line is where it was.
        let (_, end) = script.places.original(number, u32::try_from(line.len()).unwrap() + 1);
        assert_eq!(end, length(original) + 1, "line {number} of\n{source}\n{}", script.code);
    }
}

fn is_placed(source: &str, problem: &Problem) {
    let line = source.split('\n').nth(problem.line as usize - 1);
    let length = line.map(|line| line.chars().count());
    assert!(
        length.is_some_and(|length| problem.column as usize <= length + 1),
        "{problem}\n{source}"
    );
    assert!(!problem.message.is_empty());
}
