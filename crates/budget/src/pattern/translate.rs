//! From JavaScript's pattern syntax to that of the `regex` and `fancy-regex` crates, in one pass.
//! Where the two spell the same thing differently, the meaning of JavaScript is kept; where
//! JavaScript itself would reject a pattern, so do we, and say where.

use super::{Error, Flags, Translated};

const DIGIT: &str = "0-9";
const WORD: &str = "A-Za-z0-9_";
const SPACE: &str =
    r"\t-\r \x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}";
const ANY: &str = r"(?s:.)";
const NOTHING: &str = r"[^\x{0}-\x{10FFFF}]";
const NOT_LINE_END: &str = r"[^\n\r\x{2028}\x{2029}]";

pub(super) fn translate(pattern: &str, flags: Flags) -> Result<Translated, Error> {
    let source: Vec<char> = pattern.chars().collect();
    let looks_back = looks_back(&source);
    let mut translator = Translator {
        backtracks: looks_back || looks_ahead(&source),
        groups: count_groups(&source),
        source,
        at: 0,
        out: String::with_capacity(pattern.len() + 16),
        flags,
        inline_flags: false,
        open: Vec::new(),
        can_repeat: false,
    };
    translator.run()?;
    let Translator { mut out, flags, backtracks, inline_flags, .. } = translator;
    if flags.sticky {
        out = format!(r"\A(?:{out})");
    }
    Ok(Translated { text: out, flags, backtracks, looks_back, inline_flags })
}

struct Translator {
    source: Vec<char>,
    at: usize,
    out: String,
    flags: Flags,
    backtracks: bool,
    inline_flags: bool,
    /// How many groups the pattern captures.
    groups: usize,
    /// Where the groups that are open now began.
    open: Vec<usize>,
    /// Whether a repetition may follow here.
    can_repeat: bool,
}

impl Translator {
    fn run(&mut self) -> Result<(), Error> {
        while let Some(&next) = self.source.get(self.at) {
            let start = self.at;
            self.at += 1;
            match next {
                '\\' => self.escape(start)?,
                '[' => self.class(start)?,
                '(' => self.group(start)?,
                ')' => {
                    if self.open.pop().is_none() {
                        return Err(syntax("there is no group to close", start));
                    }
                    self.atom(")");
                }
                '.' if self.flags.dot_all => self.atom("."),
                '.' => self.atom(NOT_LINE_END),
                '|' => self.assertion("|"),
                '^' | '$' => self.assertion(next.encode_utf8(&mut [0; 4])),
                '*' | '+' | '?' => self.repetition(start, &next.to_string())?,
                '{' => match self.counted_repetition(start)? {
                    Some(text) => self.repetition(start, &text)?,
                    None => self.atom(r"\{"),
                },
                literal => {
                    push_literal(&mut self.out, literal);
                    self.can_repeat = true;
                }
            }
        }
        match self.open.last() {
            Some(&start) => Err(syntax("a group is not closed", start)),
            None => Ok(()),
        }
    }

    fn atom(&mut self, text: &str) {
        self.out.push_str(text);
        self.can_repeat = true;
    }

    fn assertion(&mut self, text: &str) {
        self.out.push_str(text);
        self.can_repeat = false;
    }

    fn repetition(&mut self, start: usize, text: &str) -> Result<(), Error> {
        if !self.can_repeat {
            return Err(syntax("there is nothing to repeat", start));
        }
        self.out.push_str(text);
        if self.source.get(self.at) == Some(&'?') {
            self.at += 1;
            self.out.push('?');
        }
        self.can_repeat = false;
        Ok(())
    }

    /// `{2}`, `{2,}` or `{2,3}`. Any other brace is a literal one.
    fn counted_repetition(&mut self, start: usize) -> Result<Option<String>, Error> {
        let Some(length) = self.source[self.at..].iter().position(|&c| c == '}') else {
            return Ok(None);
        };
        let inner: String = self.source[self.at..self.at + length].iter().collect();
        let (low, high) = inner.split_once(',').unwrap_or((&inner, &inner));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !is_number(low) || !(high.is_empty() || is_number(high)) {
            return Ok(None);
        }
        let most = if high.is_empty() { Ok(u32::MAX) } else { high.parse() };
        match (low.parse::<u32>(), most) {
            (Ok(least), Ok(most)) if least <= most => {}
            (Ok(_), Ok(_)) => return Err(syntax("the repetition runs backwards", start)),
            _ => return Err(syntax("the repetition counts too far", start)),
        }
        self.at += length + 1;
        Ok(Some(format!("{{{inner}}}")))
    }

    fn group(&mut self, start: usize) -> Result<(), Error> {
        self.can_repeat = false;
        if self.source.get(self.at) != Some(&'?') {
            self.open.push(start);
            self.out.push('(');
            return Ok(());
        }
        let rest: String = self.source[self.at..].iter().take(4).collect();
        for opening in ["?:", "?=", "?!", "?<=", "?<!", "?<"] {
            if rest.starts_with(opening) {
                self.at += opening.len();
                self.open.push(start);
                self.out.push('(');
                self.out.push_str(opening);
                if opening == "?<" {
                    self.group_name(start)?;
                }
                return Ok(());
            }
        }
        self.flags_group(start)
    }

    fn group_name(&mut self, start: usize) -> Result<(), Error> {
        let rest = &self.source[self.at..];
        let Some(length) = rest.iter().position(|&c| c == '>').filter(|&length| length > 0) else {
            return Err(syntax("the group's name is not closed", start));
        };
        self.out.extend(&rest[..=length]);
        self.at += length + 1;
        Ok(())
    }

    /// `(?i:…)`, which newer JavaScript has, and `(?i)`, which it has not.
    fn flags_group(&mut self, start: usize) -> Result<(), Error> {
        self.at += 1;
        let rest = &self.source[self.at..];
        let length = rest.iter().take_while(|c| matches!(c, 'i' | 'm' | 's' | '-')).count();
        let letters: String = rest[..length].iter().collect();
        let end = rest.get(length).copied();
        if length == 0 || !matches!(end, Some(':' | ')')) {
            return Err(syntax("this kind of group is not known", start));
        }
        self.at += length + 1;
        if end == Some(':') {
            self.open.push(start);
            self.out.push_str(&format!("(?{letters}:"));
            return Ok(());
        }
        self.inline_flags = true;
        if start == 0 && !letters.contains('-') {
            self.flags.ignore_case |= letters.contains('i');
            self.flags.multi_line |= letters.contains('m');
            self.flags.dot_all |= letters.contains('s');
        } else {
            self.out.push_str(&format!("(?{letters})"));
        }
        Ok(())
    }

    fn escape(&mut self, start: usize) -> Result<(), Error> {
        let Some(&next) = self.source.get(self.at) else {
            return Err(syntax("nothing follows the backslash", start));
        };
        if let Some((set, negated)) = perl_class(next) {
            self.at += 1;
            self.atom(&format!("[{}{set}]", if negated { "^" } else { "" }));
            return Ok(());
        }
        match next {
            'b' | 'B' => {
                self.at += 1;
                let text = self.word_boundary(next);
                self.assertion(&text);
            }
            'p' | 'P' if self.source.get(self.at + 1) == Some(&'{') => {
                let property = self.property(start)?;
                self.atom(&property);
            }
            'k' if self.source.get(self.at + 1) == Some(&'<') => {
                self.at += 2;
                self.out.push_str(r"\k<");
                self.group_name(start)?;
                self.can_repeat = true;
            }
            '1'..='9' => {
                let rest = &self.source[self.at..];
                let length = rest.iter().take_while(|c| c.is_ascii_digit()).count();
                let number: String = rest[..length].iter().collect();
                if number.parse().is_ok_and(|number: usize| number > self.groups) {
                    return Err(syntax(&format!("there is no group {number} to refer to"), start));
                }
                self.at += length;
                // In JavaScript a group that took no part matches the empty text.
                self.atom(&format!(r"(?({number})\{number})"));
            }
            _ => {
                let literal = self.escaped_literal(start)?;
                push_literal(&mut self.out, literal);
                self.can_repeat = true;
            }
        }
        Ok(())
    }

    /// JavaScript's words are ASCII. The backtracking engine has no ASCII boundary, but look-around.
    fn word_boundary(&self, kind: char) -> String {
        let (inside, outside) = (format!("(?<=[{WORD}])"), format!("(?<![{WORD}])"));
        let (before, not_before) = (format!("(?=[{WORD}])"), format!("(?![{WORD}])"));
        match (self.backtracks, kind) {
            (false, kind) => format!(r"(?-u:\{kind})"),
            (true, 'b') => format!("(?:{inside}{not_before}|{outside}{before})"),
            (true, _) => format!("(?:{inside}{before}|{outside}{not_before})"),
        }
    }

    fn property(&mut self, start: usize) -> Result<String, Error> {
        let rest = &self.source[self.at..];
        let Some(length) = rest.iter().position(|&c| c == '}') else {
            return Err(syntax("the property's name is not closed", start));
        };
        let name: String = rest[..=length].iter().collect();
        let property = format!(r"\{name}");
        // The engines look names up only when they compile.
        if regex_syntax::parse(&property).is_err() {
            let name = name[1..].trim_matches(['{', '}']);
            return Err(syntax(&format!("there is no property `{name}`"), start));
        }
        self.at += length + 1;
        Ok(property)
    }

    /// An escape that stands for one character. The backslash is behind us.
    fn escaped_literal(&mut self, start: usize) -> Result<char, Error> {
        let Some(&next) = self.source.get(self.at) else {
            return Err(syntax("nothing follows the backslash", start));
        };
        self.at += 1;
        Ok(match next {
            't' => '\t',
            'n' => '\n',
            'r' => '\r',
            'v' => '\u{b}',
            'f' => '\u{c}',
            '0' => '\0',
            'c' => match self.source.get(self.at) {
                Some(letter) if letter.is_ascii_alphabetic() => {
                    self.at += 1;
                    char::from(*letter as u8 % 32)
                }
                _ => return Err(syntax("no letter follows the control escape", start)),
            },
            'x' => match self.hex(2) {
                Some(code) => char::from_u32(code).unwrap_or('x'),
                None => 'x',
            },
            'u' => self.code_point(start)?,
            other => other,
        })
    }

    /// `\u0041`, `\u{1F600}`, or a surrogate pair `\uD83D\uDE00`.
    fn code_point(&mut self, start: usize) -> Result<char, Error> {
        if self.source.get(self.at) == Some(&'{') {
            let rest = &self.source[self.at + 1..];
            let length = rest.iter().take_while(|c| c.is_ascii_hexdigit()).count();
            let digits: String = rest[..length].iter().collect();
            let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
            return match (rest.get(length), code) {
                (Some('}'), Some(code)) => {
                    self.at += length + 2;
                    Ok(code)
                }
                _ => Err(syntax("this is no code point", start)),
            };
        }
        let Some(first) = self.hex(4) else {
            return Ok('u');
        };
        if let Some(code) = char::from_u32(first) {
            return Ok(code);
        }
        let pair =
            self.source.get(self.at) == Some(&'\\') && self.source.get(self.at + 1) == Some(&'u');
        if pair && (0xD800..0xDC00).contains(&first) {
            self.at += 2;
            let second = self.hex(4).filter(|second| (0xDC00..0xE000).contains(second));
            let code = second.map(|second| 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00));
            if let Some(code) = code.and_then(char::from_u32) {
                return Ok(code);
            }
        }
        Err(syntax("half a surrogate pair matches nothing", start))
    }

    fn hex(&mut self, digits: usize) -> Option<u32> {
        let text: String = self.source.get(self.at..self.at + digits)?.iter().collect();
        let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let code = u32::from_str_radix(&text, 16).ok().filter(|_| is_hex)?;
        self.at += digits;
        Some(code)
    }

    fn class(&mut self, start: usize) -> Result<(), Error> {
        let negated = self.source.get(self.at) == Some(&'^');
        self.at += usize::from(negated);
        let mut set = String::new();
        loop {
            let item_start = self.at;
            let low = match self.class_item(start)? {
                ClassItem::End => break,
                ClassItem::Set(text) => {
                    set.push_str(&text);
                    continue;
                }
                ClassItem::Char(low) => low,
            };
            let is_range = self.source.get(self.at) == Some(&'-')
                && !matches!(self.source.get(self.at + 1), None | Some(']'));
            push_literal(&mut set, low);
            if !is_range {
                continue;
            }
            self.at += 1;
            match self.class_item(start)? {
                ClassItem::Char(high) if high < low => {
                    return Err(syntax("the range runs backwards", item_start));
                }
                ClassItem::Char(high) => {
                    set.push('-');
                    push_literal(&mut set, high);
                }
                // Beside a class escape the hyphen is a plain one.
                ClassItem::Set(text) => {
                    set.push_str(r"\-");
                    set.push_str(&text);
                }
                ClassItem::End => break,
            }
        }
        match (set.is_empty(), negated) {
            (true, true) => self.atom(ANY),
            (true, false) => self.atom(NOTHING),
            (false, true) => self.atom(&format!("[^{set}]")),
            (false, false) => self.atom(&format!("[{set}]")),
        }
        Ok(())
    }

    fn class_item(&mut self, start: usize) -> Result<ClassItem, Error> {
        let at = self.at;
        let Some(&next) = self.source.get(at) else {
            return Err(syntax("a character class is not closed", start));
        };
        self.at += 1;
        match next {
            ']' => return Ok(ClassItem::End),
            '\\' => {}
            literal => return Ok(ClassItem::Char(literal)),
        }
        match self.source.get(self.at).copied() {
            Some('b') => {
                self.at += 1;
                Ok(ClassItem::Char('\u{8}'))
            }
            Some('1'..='9') => Err(syntax("a character class cannot refer to a group", at)),
            Some('p' | 'P') if self.source.get(self.at + 1) == Some(&'{') => {
                Ok(ClassItem::Set(self.property(at)?))
            }
            Some(next) if perl_class(next).is_some() => {
                self.at += 1;
                Ok(ClassItem::Set(match perl_class(next) {
                    Some((set, true)) => format!("[^{set}]"),
                    Some((set, false)) => set.to_owned(),
                    None => String::new(),
                }))
            }
            _ => Ok(ClassItem::Char(self.escaped_literal(at)?)),
        }
    }
}

enum ClassItem {
    Char(char),
    Set(String),
    End,
}

fn perl_class(letter: char) -> Option<(&'static str, bool)> {
    match letter {
        'd' => Some((DIGIT, false)),
        'D' => Some((DIGIT, true)),
        'w' => Some((WORD, false)),
        'W' => Some((WORD, true)),
        's' => Some((SPACE, false)),
        'S' => Some((SPACE, true)),
        _ => None,
    }
}

/// Escapes for inside and outside classes alike: `&`, `-` and `~` are special in classes when doubled.
fn push_literal(out: &mut String, literal: char) {
    if regex_syntax::is_meta_character(literal) {
        out.push('\\');
    }
    out.push(literal);
}

fn syntax(what: &str, at: usize) -> Error {
    Error::Syntax { what: what.to_owned(), at: at + 1 }
}

fn looks_ahead(source: &[char]) -> bool {
    let mut found = false;
    scan(source, |rest| found |= matches!(rest, ['(', '?', '=' | '!', ..]));
    found
}

/// Look-behind, or a back-reference.
fn looks_back(source: &[char]) -> bool {
    let mut found = false;
    scan(source, |rest| {
        found |= matches!(
            rest,
            ['(', '?', '<', '=' | '!', ..] | ['\\', '1'..='9', ..] | ['\\', 'k', '<', ..]
        );
    });
    found
}

fn count_groups(source: &[char]) -> usize {
    let mut groups = 0;
    scan(source, |rest| match rest {
        ['(', '?', '<', '=' | '!', ..] => {}
        ['(', '?', '<', ..] => groups += 1,
        ['(', '?', ..] => {}
        ['(', ..] => groups += 1,
        _ => {}
    });
    groups
}

/// Calls `look` with the rest of the pattern at every token outside character classes.
fn scan(source: &[char], mut look: impl FnMut(&[char])) {
    let mut in_class = false;
    let mut at = 0;
    while at < source.len() {
        if !in_class {
            look(&source[at..]);
        }
        match source[at] {
            '\\' => at += 1,
            '[' => in_class = true,
            ']' => in_class = false,
            _ => {}
        }
        at += 1;
    }
}
