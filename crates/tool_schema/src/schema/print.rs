//! A type in TypeScript's words: on one line for a signature, or over several with comments for a file of types.

use std::fmt::Write as _;

use super::Node;
use super::shape::{Object, Others, Property, Tuple, Type};

/// An object whose text is longer than this goes over several lines, in a file of types.
const INLINE_CHARS_MAX: usize = 80;
/// How much of a property's description is kept.
const COMMENT_CHARS_MAX: usize = 400;

pub(crate) struct Printer<'p> {
    pub(crate) out: String,
    style: Style,
    /// The names of definitions that have one.
    name: &'p dyn Fn(&str) -> String,
    /// Where the line ends that is tried; nothing is printed beyond.
    line_end: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// For people and agents to read: short, with `…` for what was left out.
    Signature,
    /// The same for messages, which also tell integers from other numbers.
    Message,
    /// For a compiler to read: whole, with comments.
    File,
}

impl Style {
    /// How many members of a union are printed.
    fn union_max(self) -> usize {
        match self {
            Self::Signature | Self::Message => 12,
            Self::File => usize::MAX,
        }
    }

    fn literal_chars_max(self) -> usize {
        match self {
            Self::Signature | Self::Message => 40,
            Self::File => 1_000,
        }
    }
}

/// One line of text for a type.
pub(crate) fn inline(of: &Type<'_>, style: Style) -> String {
    let mut printer = Printer::new(style, &|_| String::new());
    printer.print(of, 0);
    printer.out
}

impl<'p> Printer<'p> {
    pub(crate) fn new(style: Style, name: &'p dyn Fn(&str) -> String) -> Self {
        Self { out: String::new(), style, name, line_end: None }
    }

    pub(crate) fn print(&mut self, of: &Type<'_>, indent: usize) {
        if self.line_end.is_some_and(|end| self.out.len() > end) {
            return;
        }
        match of {
            Type::Unknown => self.out.push_str("unknown"),
            Type::Never => self.out.push_str("never"),
            Type::Null => self.out.push_str("null"),
            Type::Boolean => self.out.push_str("boolean"),
            Type::Integer if self.style == Style::Message => self.out.push_str("integer"),
            Type::Number | Type::Integer => self.out.push_str("number"),
            Type::String => self.out.push_str("string"),
            Type::Literal(node) => self.literal(node),
            Type::Array(item) => {
                self.member(item, indent);
                self.out.push_str("[]");
            }
            Type::Tuple(tuple) => self.tuple(tuple, indent),
            Type::Object(object) => self.object(object, indent),
            Type::Union(members) => self.joined(members, " | ", indent),
            Type::Intersection(members) => self.joined(members, " & ", indent),
            Type::Named(reference) => {
                let name = (self.name)(reference);
                self.out.push_str(&name);
            }
            Type::Cut => self.cut(),
        }
    }

    fn cut(&mut self) {
        self.out.push_str(match self.style {
            Style::Signature | Style::Message => "…",
            Style::File => "unknown",
        });
    }

    /// In brackets where something binds tighter around it.
    fn member(&mut self, of: &Type<'_>, indent: usize) {
        let is_joined = matches!(of, Type::Union(_) | Type::Intersection(_));
        if is_joined {
            self.out.push('(');
        }
        self.print(of, indent);
        if is_joined {
            self.out.push(')');
        }
    }

    fn joined(&mut self, members: &[Type<'_>], sign: &str, indent: usize) {
        for (at, member) in members.iter().take(self.style.union_max()).enumerate() {
            if at > 0 {
                self.out.push_str(sign);
            }
            self.member(member, indent);
        }
        if members.len() > self.style.union_max() {
            self.out.push_str(sign);
            self.out.push('…');
        }
    }

    fn literal(&mut self, node: &Node) {
        let text = node.value().to_string();
        if text.chars().count() <= self.style.literal_chars_max() {
            self.out.push_str(&text);
            return;
        }
        match (self.style, node) {
            (Style::File, Node::Text(_)) => self.out.push_str("string"),
            _ => self.cut(),
        }
    }

    fn tuple(&mut self, tuple: &Tuple<'_>, indent: usize) {
        self.out.push('[');
        for (at, item) in tuple.items.iter().enumerate() {
            if at > 0 {
                self.out.push_str(", ");
            }
            self.member(item, indent);
            if at >= tuple.required {
                self.out.push('?');
            }
        }
        if let Some(rest) = &tuple.rest {
            self.out.push_str(", ...");
            self.member(rest, indent);
            self.out.push_str("[]");
        }
        self.out.push(']');
    }

    fn object(&mut self, object: &Object<'_>, indent: usize) {
        if self.style != Style::File || self.line_end.is_some() || object.properties.is_empty() {
            return self.line(object, indent);
        }
        // One line is tried first, and no further than a line goes: what is nested is not tried again for every object
        // around it.
        let start = self.out.len();
        self.line_end = Some(start + INLINE_CHARS_MAX);
        self.line(object, indent);
        self.line_end = None;
        if self.out.len() - start > INLINE_CHARS_MAX {
            self.out.truncate(start);
            self.lines(object, indent);
        }
    }

    fn line(&mut self, object: &Object<'_>, indent: usize) {
        let has_comments = || object.properties.iter().any(|property| comment(property).is_some());
        if let Some(end) = self.line_end
            && has_comments()
        {
            // Comments need lines of their own, so that this becomes as good as too long.
            let left = (end + 1).saturating_sub(self.out.len());
            return self.out.extend(std::iter::repeat_n(' ', left));
        }
        let (begin, between, end) = match self.style {
            Style::Signature | Style::Message => ("{", ", ", "}"),
            Style::File => ("{ ", "; ", " }"),
        };
        if object.properties.is_empty() && object.others == Others::No {
            return self.out.push_str("{}");
        }
        self.out.push_str(begin);
        for (at, property) in object.properties.iter().enumerate() {
            if at > 0 {
                self.out.push_str(between);
            }
            self.property(property, indent);
        }
        if let Some(others) = others(object) {
            if !object.properties.is_empty() {
                self.out.push_str(between);
            }
            self.others(others, indent);
        }
        self.out.push_str(end);
    }

    fn lines(&mut self, object: &Object<'_>, indent: usize) {
        self.out.push_str("{\n");
        let inner = indent + 1;
        for property in &object.properties {
            if let Some(comment) = comment(property) {
                self.indent(inner);
                let _ = writeln!(self.out, "/** {comment} */");
            }
            self.indent(inner);
            self.property(property, inner);
            self.out.push_str(";\n");
        }
        if let Some(others) = others(object) {
            self.indent(inner);
            self.others(others, inner);
            self.out.push_str(";\n");
        }
        self.indent(indent);
        self.out.push('}');
    }

    pub(crate) fn property(&mut self, property: &Property<'_>, indent: usize) {
        self.out.push_str(&key(property.name));
        self.out.push_str(if property.is_required { ": " } else { "?: " });
        self.print(&property.of, indent);
    }

    fn others(&mut self, of: &Type<'_>, indent: usize) {
        self.out.push_str("[key: string]: ");
        self.print(of, indent);
    }

    fn indent(&mut self, indent: usize) {
        self.out.extend(std::iter::repeat_n("  ", indent));
    }
}

/// What other properties there are, as far as a type says it. Beside named ones they can only be anything, since TypeScript
/// wants those to fit too; and where nothing was said, nothing is.
fn others<'o, 'a>(object: &'o Object<'a>) -> Option<&'o Type<'a>> {
    match (&object.others, object.properties.is_empty()) {
        (Others::No, _) | (Others::Unsaid, false) => None,
        (Others::Of(of), true) => Some(of),
        (Others::Of(_), false) | (Others::Unsaid, true) => Some(&Type::Unknown),
    }
}

/// A property's name, in quotes where it needs them.
pub(crate) fn key(name: &str) -> String {
    if is_identifier(name) {
        name.to_owned()
    } else {
        Node::Text(name.to_owned()).value().to_string()
    }
}

pub(crate) fn is_identifier(name: &str) -> bool {
    let is_part = |sign: char| sign.is_ascii_alphanumeric() || sign == '_' || sign == '$';
    name.starts_with(|sign: char| is_part(sign) && !sign.is_ascii_digit())
        && name.chars().all(is_part)
}

/// What is said of a property beside its type.
fn comment(property: &Property<'_>) -> Option<String> {
    let node = property.node;
    let mut parts: Vec<String> = Vec::new();
    if let Some(description) = node.text("description") {
        let text = plain(description, COMMENT_CHARS_MAX);
        parts.push(text.trim_end_matches('.').to_owned());
    }
    if node.get("deprecated") == Some(&Node::Bool(true)) {
        parts.push("@deprecated".to_owned());
    }
    let mut facts: Vec<String> = Vec::new();
    if property.of == Type::Integer {
        facts.push("integer".to_owned());
    }
    if let Some(format) = node.text("format") {
        facts.push(format!("format {}", plain(format, 40)));
    }
    for (keyword, before, after) in [
        ("minimum", "at least", ""),
        ("exclusiveMinimum", "more than", ""),
        ("maximum", "at most", ""),
        ("exclusiveMaximum", "less than", ""),
        ("minLength", "at least", " characters"),
        ("maxLength", "at most", " characters"),
        ("minItems", "at least", " items"),
        ("maxItems", "at most", " items"),
    ] {
        if let Some(number) = node.number(keyword) {
            facts.push(format!("{before} {number}{after}"));
        }
    }
    if let Some(pattern) = node.text("pattern") {
        facts.push(format!("like /{}/", plain(pattern, 100)));
    }
    if let Some(default) = node.get("default") {
        let text = plain(&default.value().to_string(), 60);
        facts.push(format!("default {text}"));
    }
    if !facts.is_empty() {
        parts.push(facts.join(", "));
    }
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// What turns the direction of writing around, so that a comment looks like something else.
fn turns(sign: char) -> bool {
    matches!(sign, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text on one line that can stand in a comment, cut where it is too long.
pub(crate) fn plain(text: &str, chars_max: usize) -> String {
    let mut plain = String::new();
    for word in text.split(|sign: char| sign.is_whitespace() || sign.is_control()) {
        if word.is_empty() {
            continue;
        }
        if !plain.is_empty() {
            plain.push(' ');
        }
        plain.push_str(word);
        // Enough, and no reading on through a text without end.
        if plain.len() > 4 * chars_max {
            break;
        }
    }
    if let Some((end, _)) = plain.char_indices().nth(chars_max) {
        plain.truncate(end);
        plain.push('…');
    }
    plain.replace("*/", "*\\/").replace(turns, "\u{fffd}")
}
