//! Globs over the names of tools: `*` is anything, `?` one character, `[a-z]` one of these, `[!a-z]` one that is not,
//! `{a,b}` either; a backslash takes the meaning away from what follows. What opens and does not close stands for itself.
//!
//! Compiled once, and matched in time of pattern times name, whatever the pattern: all its places are followed at once, and
//! nothing is tried again.

/// The longest pattern. Longer ones are refused, and not looked at.
const PATTERN_BYTES_MAX: usize = 512;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Glob {
    text: String,
    program: Vec<Place>,
    is_closed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a pattern of {0} bytes is too long; at most {PATTERN_BYTES_MAX} are read")]
pub(crate) struct TooLong(usize);

/// A place in the pattern, and where it goes on to. Where nothing else is said, that is the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    One(char),
    Any,
    /// Any run of characters: stays here, or goes on.
    Run,
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
    /// Goes on at each of these.
    Fork(Vec<usize>),
    End,
}

impl Glob {
    pub(crate) fn new(text: &str) -> Result<Self, TooLong> {
        if text.len() > PATTERN_BYTES_MAX {
            return Err(TooLong(text.len()));
        }
        let signs: Vec<char> = text.chars().collect();
        let mut program = Vec::new();
        let is_closed = compile(&signs, &mut program);
        program.push(Place::End);
        Ok(Self { text: text.to_owned(), program, is_closed })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether every bracket that opens closes, too. Where one does not, it is likely that something else was meant.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether the whole name matches.
    pub(crate) fn matches(&self, name: &str) -> bool {
        let mut now = Places::new(self.program.len());
        let mut next = Places::new(self.program.len());
        now.add(&self.program, 0);
        for sign in name.chars() {
            next.clear();
            for &at in &now.list {
                match &self.program[at] {
                    Place::Run => next.add(&self.program, at),
                    place if place.takes(sign) => next.add(&self.program, at + 1),
                    _ => {}
                }
            }
            std::mem::swap(&mut now, &mut next);
        }
        now.has[self.program.len() - 1]
    }
}

impl Place {
    fn takes(&self, sign: char) -> bool {
        match self {
            Self::One(own) => *own == sign,
            Self::Any => true,
            Self::Class { negated, ranges } => {
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&sign)) != *negated
            }
            Self::Run | Self::Fork(_) | Self::End => false,
        }
    }
}

/// Says whether everything that opens closes.
fn compile(signs: &[char], program: &mut Vec<Place>) -> bool {
    let (mut at, mut is_closed) = (0, true);
    while let Some(&sign) = signs.get(at) {
        let rest = &signs[at + 1..];
        at += 1;
        match sign {
            '*' => {
                if program.last() != Some(&Place::Run) {
                    program.push(Place::Run);
                }
            }
            '?' => program.push(Place::Any),
            '\\' if !rest.is_empty() => {
                program.push(Place::One(rest[0]));
                at += 1;
            }
            '[' => match class(rest) {
                Some((place, length)) => {
                    program.push(place);
                    at += length;
                }
                None => {
                    is_closed = false;
                    program.push(Place::One('['));
                }
            },
            '{' => match alternatives(rest) {
                Some((parts, length)) => {
                    is_closed &= either(&parts, program);
                    at += length;
                }
                None => {
                    is_closed = false;
                    program.push(Place::One('{'));
                }
            },
            other => program.push(Place::One(other)),
        }
    }
    is_closed
}

/// What stands in brackets, and how many characters that is, the closing one included.
fn class(rest: &[char]) -> Option<(Place, usize)> {
    let negated = matches!(rest.first(), Some('!' | '^'));
    let mut at = usize::from(negated);
    let mut ranges = Vec::new();
    let one = |at: &mut usize| {
        let escaped = rest.get(*at) == Some(&'\\') && rest.get(*at + 1).is_some();
        *at += 1 + usize::from(escaped);
        rest.get(*at - 1).copied()
    };
    loop {
        // A bracket that comes first is one of the characters.
        if rest.get(at) == Some(&']') && !ranges.is_empty() {
            return Some((Place::Class { negated, ranges }, at + 1));
        }
        let first = one(&mut at)?;
        let mut last = first;
        if rest.get(at) == Some(&'-') && rest.get(at + 1).is_some_and(|next| *next != ']') {
            at += 1;
            last = one(&mut at)?;
        }
        ranges.push((first, last));
    }
}

/// The parts between braces, and how many characters that is, the closing one included.
fn alternatives(rest: &[char]) -> Option<(Vec<&[char]>, usize)> {
    let (mut parts, mut start, mut depth, mut at) = (Vec::new(), 0, 0_usize, 0);
    while let Some(&sign) = rest.get(at) {
        match sign {
            '\\' => at += 1,
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                parts.push(&rest[start..at]);
                start = at + 1;
                if sign == '}' {
                    return Some((parts, at + 1));
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

fn either(parts: &[&[char]], program: &mut Vec<Place>) -> bool {
    let fork = program.len();
    program.push(Place::Fork(Vec::new()));
    let (mut begins, mut ends, mut is_closed) = (Vec::new(), Vec::new(), true);
    for part in parts {
        begins.push(program.len());
        is_closed &= compile(part, program);
        ends.push(program.len());
        program.push(Place::Fork(Vec::new()));
    }
    let after = program.len();
    for end in ends {
        program[end] = Place::Fork(vec![after]);
    }
    program[fork] = Place::Fork(begins);
    is_closed
}

/// A set of places, each once.
struct Places {
    list: Vec<usize>,
    has: Vec<bool>,
}

impl Places {
    fn new(length: usize) -> Self {
        Self { list: Vec::with_capacity(length), has: vec![false; length] }
    }

    fn clear(&mut self) {
        self.list.clear();
        self.has.fill(false);
    }

    /// Adds a place and all that are reached from it without a character. Forks only lead onwards, so this ends; they nest
    /// no deeper than the pattern has braces.
    fn add(&mut self, program: &[Place], at: usize) {
        let mut waiting = vec![at];
        while let Some(at) = waiting.pop() {
            if std::mem::replace(&mut self.has[at], true) {
                continue;
            }
            match &program[at] {
                Place::Fork(targets) => waiting.extend(targets),
                Place::Run => {
                    self.list.push(at);
                    waiting.push(at + 1);
                }
                _ => self.list.push(at),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        Glob::new(pattern).unwrap().matches(name)
    }

    #[test]
    fn what_matches() {
        for (pattern, yes, no) in [
            ("", &[""][..], &["a"][..]),
            ("search", &["search"], &["Search", "searches", "research", ""]),
            ("*", &["", "a", "get_issue", "größe"], &[]),
            ("get_*", &["get_", "get_issue"], &["get", "forget_me"]),
            ("*_issue", &["get_issue", "_issue"], &["get_issues", "issue"]),
            ("*delete*", &["delete", "bulk_delete_all"], &["remove"]),
            ("a*b*c", &["abc", "aXbYc", "abbcc"], &["acb", "ab"]),
            ("**", &["", "x"], &[]),
            ("?et", &["get", "set", "öet"], &["et", "gget"]),
            ("[gs]et", &["get", "set"], &["let", "et"]),
            ("v[0-9]", &["v0", "v7"], &["va", "v10"]),
            ("[!a-c]x", &["dx", "-x"], &["ax", "cx", "x"]),
            ("[^a]x", &["bx"], &["ax"]),
            ("[]a]", &["]", "a"], &["b"]),
            ("[a-]", &["a", "-"], &["b"]),
            ("[\\]]", &["]"], &["\\"]),
            ("{get,list}_*", &["get_a", "list_b"], &["set_a", "get"]),
            ("{a,{b,c}d}e", &["ae", "bde", "cde"], &["be", "de"]),
            ("x{,y}", &["x", "xy"], &["y"]),
            ("{a*,b}c", &["ac", "axxc", "bc"], &["abx"]),
            ("{a}", &["a"], &["{a}"]),
            ("{\\,,b}", &[",", "b"], &["\\"]),
            ("\\*", &["*"], &["a", "\\*"]),
            ("a\\", &["a\\"], &["a"]),
            // What does not close stands for itself.
            ("[ab", &["[ab"], &["a"]),
            ("{a,b", &["{a,b"], &["a"]),
            ("a}", &["a}"], &["a"]),
            ("[", &["["], &[]),
            ("[!", &["[!"], &[]),
        ] {
            for name in yes {
                assert!(matches(pattern, name), "`{pattern}` must match `{name}`");
            }
            for name in no {
                assert!(!matches(pattern, name), "`{pattern}` must not match `{name}`");
            }
        }
    }

    #[test]
    fn what_does_not_close_is_known() {
        for pattern in ["", "read_*", "[ab]?", "{a,b}*", "a\\[", "]", "[{]"] {
            assert!(Glob::new(pattern).unwrap().is_closed(), "`{pattern}`");
        }
        for pattern in ["[ab", "{a,{b}", "{a,[b}", "[]", "x{"] {
            assert!(!Glob::new(pattern).unwrap().is_closed(), "`{pattern}`");
        }
    }

    #[test]
    fn the_worst_patterns_take_no_longer() {
        let name = "a".repeat(10_000);
        assert!(!matches(&"*a".repeat(PATTERN_BYTES_MAX / 2 - 1), &format!("{name}b")));
        let nested = format!("{}{}", "{a,".repeat(128), "}".repeat(128));
        assert!(!matches(&nested, &name));
        assert!(Glob::new(&"{".repeat(PATTERN_BYTES_MAX)).is_ok());
        assert_eq!(Glob::new(&"a".repeat(513)), Err(TooLong(513)));
    }

    /// By trying everything: slow, and plainly right.
    fn tried(pattern: &[char], name: &[char]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some(('*', rest)) => (0..=name.len()).any(|at| tried(rest, &name[at..])),
            Some(('?', rest)) => !name.is_empty() && tried(rest, &name[1..]),
            Some((sign, rest)) => name.first() == Some(sign) && tried(rest, &name[1..]),
        }
    }

    proptest! {
        #[test]
        fn it_matches_as_trying_everything_does(pattern in "[ab*?]{0,8}", name in "[ab]{0,8}") {
            let (signs, letters): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
            prop_assert_eq!(matches(&pattern, &name), tried(&signs, &letters));
        }

        #[test]
        fn nothing_panics(pattern in r"[\[\]{},!^\-\\*?aé]{0,40}", name in ".{0,20}") {
            matches(&pattern, &name);
        }

        #[test]
        fn every_name_matches_itself_escaped(name in ".{0,40}") {
            let escaped: String = name.chars().flat_map(|sign| ['\\', sign]).collect();
            prop_assert!(matches(&escaped, &name));
        }
    }
}
