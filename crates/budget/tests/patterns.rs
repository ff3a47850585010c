//! Patterns within a budget: what they cost grows with the text and no faster, and what they find is what another
//! engine finds.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use budget::pattern::{compile, parse};
use budget::{Budget, Exhausted};
use proptest::prelude::*;
use proptest::sample::select;

/// What a pattern costs on a text, within the budget of one call.
fn cost(pattern: &str, flags: &str, text: &str) -> Result<u64, Exhausted> {
    let matcher = compile(pattern, flags).unwrap();
    let budget = Budget::for_call();
    matcher.is_match(text, &budget)?;
    Ok(budget.steps())
}

/// Patterns as authors write them, on an output that does not match, so that everything is tried.
#[test]
fn usual_look_around_is_linear_in_the_output() {
    let line = "The cause is not known yet, and neither is a fix for it. ";
    for (pattern, flags) in [
        ("(?=.*Cause)(?=.*Fix).+", ""),
        ("(?=.*Cause)(?=.*Fix).+", "s"),
        (r"^(?=[\s\S]*Cause)(?=[\s\S]*Fix)", ""),
        (r"(?=[\s\S]*Cause)(?=[\s\S]*known[\s\S]*yet)x", ""),
        ("(?=.*yet)(?=.*Nowhere).+", "s"),
        ("^(?!.*known)(?!.*TODO).*$", "m"),
        (r"^(?!\s*$).+#", ""),
        (r"(?<!un)known\b#", ""),
        (r"(?<=is not .*)known.*#", "s"),
    ] {
        let small = cost(pattern, flags, &line.repeat(20)).unwrap();
        let large = cost(pattern, flags, &line.repeat(200)).unwrap();
        assert!(large <= 12 * small, "/{pattern}/{flags}: {small} steps, then {large}");
    }
    // 80 kB took seconds; now it is as much as ten steps for each byte.
    let text = line.repeat(1_400);
    let steps = cost("(?=.*Cause)(?=.*Fix).+", "", &text).unwrap();
    assert!(steps <= 20 * text.len() as u64, "{steps} steps for {} bytes", text.len());
}

#[test]
fn linear_patterns_pay_for_the_states_that_they_build() {
    let mut state = 1_u32;
    let random: String = (0..64 * 1024)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            if state.is_multiple_of(2) { 'a' } else { 'b' }
        })
        .collect();
    // A state of its own for each byte, and thousands of places in the pattern to look at for each.
    let matcher = compile("a[ab]{5000}c", "").unwrap();
    assert!(matcher.is_match(&random, &Budget::with_steps(1_000_000)).is_err());
    // The same text, and patterns that anybody might write.
    assert!(cost("(error|warning|failed?)+:", "i", &random).unwrap() < 100_000);
    assert!(cost(r"\p{L}{3,}\s+\d+", "u", &random).unwrap() < 2_000_000);
}

#[test]
fn back_references_give_up_within_the_budget() {
    let text = "a".repeat(5_000);
    let exhausted = Err(Exhausted::Steps { limit: 100_000 });
    for pattern in [r"^(a|a)*\1b", r"(a*)*\1b", r"(.*)(.*)(.*)\1\2\3#"] {
        let budget = Budget::with_steps(100_000);
        let found = compile(pattern, "").unwrap().is_match(&text, &budget);
        assert_eq!(found, exhausted, "{pattern}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    /// What `fancy-regex` finds, we find.
    #[test]
    fn matches_are_those_of_another_engine(pattern in patterns(), flags in flags(), text in "[abA1 \\n]{0,10}") {
        let Ok(translated) = parse(&pattern, flags) else { return Ok(()) };
        let mut builder = fancy_regex::RegexBuilder::new(&translated.text);
        builder
            .case_insensitive(translated.flags.ignore_case)
            .multi_line(translated.flags.multi_line)
            .dot_matches_new_line(translated.flags.dot_all);
        // It cannot look behind for everything.
        let Ok(other) = builder.build() else { return Ok(()) };
        let Ok(expected) = other.is_match(&text) else { return Ok(()) };
        let found = compile(&pattern, flags).unwrap().is_match(&text, &Budget::for_call());
        prop_assert_eq!(found, Ok(expected), "/{}/{} on {:?}", pattern, flags, text);
    }
}

fn flags() -> impl Strategy<Value = &'static str> {
    select(vec!["", "i", "m", "s", "y", "im"])
}

/// A reference to a group from inside itself is empty in JavaScript, and nothing in the other engine.
fn patterns() -> impl Strategy<Value = String> {
    let repeated = (parts(), parts()).prop_map(|(first, then)| format!("({first}){then}\\1"));
    prop_oneof![4 => parts(), 1 => repeated]
}

fn parts() -> impl Strategy<Value = String> {
    let atom = select(vec![
        "a", "b", "1", ".", "\\d", "\\w", "\\W", "\\s", "[ab]", "[^a]", "[^]", "\\n", "A", "",
    ]);
    let atom = atom.prop_map(str::to_owned);
    atom.prop_recursive(4, 24, 4, |inner| {
        let repetition = select(vec!["*", "+", "?", "{2}", "{0,3}", "{1,}", "*?", "+?", "??"]);
        let opening = select(vec!["(", "(?:"]);
        let look = select(vec!["(?=", "(?!", "(?<=", "(?<!"]);
        let anchor = select(vec!["^", "$", "\\b", "\\B"]);
        prop_oneof![
            4 => prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            1 => prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| parts.join("|")),
            2 => (opening, inner.clone(), repetition)
                .prop_map(|(opening, inner, repetition)| format!("{opening}{inner}){repetition}")),
            3 => (look, inner.clone()).prop_map(|(look, inner)| format!("{look}{inner})")),
            1 => (anchor, inner).prop_map(|(anchor, inner)| format!("{anchor}{inner}")),
        ]
    })
}
