//! Whatever the bytes are: reading ends without a panic, and what is found has a place in the text.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use workflow::finding::render;
use workflow::{Code, Format, Scrutiny, read};

use crate::config;

const JSON: &str = include_str!("../../cases/good-everything.json");
const YAML: &str = include_str!("../../cases/good-everything.yaml");

proptest! {
    #![proptest_config(config(2_000))]

    #[test]
    fn arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        both(&bytes)?;
    }

    #[test]
    fn arbitrary_text(text in "\\PC{0,80}") {
        both(text.as_bytes())?;
    }

    #[test]
    fn text_of_signs_that_mean_something(
        pieces in prop::collection::vec(select(PIECES), 0..30),
    ) {
        both(pieces.concat().as_bytes())?;
    }
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn good_text_with_changes(
        changes in prop::collection::vec((any::<Index>(), 0..12_usize, select(PIECES)), 1..4),
        format in select(vec![Format::Json, Format::Yaml]),
    ) {
        let text = if format == Format::Json { JSON } else { YAML };
        let mut bytes = text.as_bytes().to_vec();
        for (index, length, piece) in changes {
            let start = index.index(bytes.len() + 1);
            let end = (start + length).min(bytes.len());
            bytes.splice(start..end, piece.bytes());
        }
        judged(&bytes, format)?;
    }
}

const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    "'",
    ":",
    ": ",
    ",",
    "-",
    "- ",
    "\n",
    "\n  ",
    "\t",
    " ",
    "#",
    "&a ",
    "*a",
    "!",
    "!!str ",
    "|",
    ">-",
    "?",
    "? ",
    "%",
    "@",
    "---\n",
    "...",
    "\\",
    "\\u00",
    "\u{feff}",
    "é",
    "📖",
    "\0",
    "5",
    "1e9",
    "-",
    "true",
    "null",
    "\"id\":",
    "id: ",
    "steps:",
    "\"steps\": [",
    "<<",
    "~",
    "\r",
    "\r\n",
    "\u{2028}",
];

fn both(bytes: &[u8]) -> Result<(), TestCaseError> {
    judged(bytes, Format::Json)?;
    judged(bytes, Format::Yaml)
}

fn judged(bytes: &[u8], format: Format) -> Result<(), TestCaseError> {
    let reading = read(bytes, format, Scrutiny::Syntax);
    let blocks = reading.findings.iter().any(|finding| finding.blocks());
    prop_assert_eq!(reading.workflow.is_none(), blocks, "{:?}", reading.findings);
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.strip_prefix('\u{feff}').unwrap_or(&text).split('\n').collect();
    for finding in &reading.findings {
        render(finding, Some(&text));
        let Some(place) = finding.place else {
            prop_assert!(matches!(finding.code, Code::Encoding | Code::ByteOrderMark));
            continue;
        };
        prop_assert!((1..=lines.len()).contains(&place.line), "{:?}", finding);
        let width = lines[place.line - 1].chars().count();
        prop_assert!((1..=width + 1).contains(&place.column), "{:?}", finding);
        let end = place.column + place.length;
        prop_assert!(place.length >= 1 && end <= width + 2, "{:?} in {}", finding, width);
    }
    Ok(())
}
