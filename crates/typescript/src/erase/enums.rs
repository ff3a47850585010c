//! Enums: an object from names to values, and from numbers back to names, which a function fills in place.

use std::collections::HashSet;

use oxc_ast::ast::*;
use oxc_ast_visit::VisitJs;
use oxc_span::{GetSpan, Span};

use super::Eraser;

/// The enum whose members can be named without it, in the value of one of them.
pub(super) struct Around<'a> {
    enumeration: &'a str,
    scope: u32,
    /// Names that the value itself binds to something else.
    bound: HashSet<&'a str>,
}

/// The value of a member. One without a value of its own is one more than the last.
enum Value {
    Number(i64),
    Text,
    /// Known when it runs, by the name of the member.
    Computed(String),
}

impl<'a> Eraser<'a, '_> {
    /// `export enum E { … }`. Only the first part of an enum is exported, and the others with it.
    pub(super) fn exported_enumeration(&mut self, start: u32, it: &TSEnumDeclaration<'a>) {
        if self.enums.contains_key(&(self.scope(), it.id.name.as_str())) {
            self.erase_statement(Span::new(start, it.span.start));
        }
        self.enumeration(it);
    }

    /// `enum E { … }` becomes `var  E; (function (E) { … })(E || (E = {}));`, and a further part of `E` only the
    /// function.
    pub(super) fn enumeration(&mut self, it: &TSEnumDeclaration<'a>) {
        let name = it.id.name.as_str();
        let scope = self.scope();
        let is_first = !self.enums.contains_key(&(scope, name));
        let head = Span::new(it.span.start, it.id.span.start);
        self.is_type(head.start);
        if is_first {
            let keyword = self.tokens.find(head, "enum").map_or(head, |token| token.span);
            let declares = if self.scopes.len() == 1 { "var" } else { "let" };
            self.edits.blank(Span::new(head.start, keyword.start));
            self.edits.blank_after(declares, keyword);
            self.edits.insert(it.id.span.end, format!("; (function ({name})"));
        } else {
            self.edits.blank_after(";", head);
            self.edits.insert(it.id.span.start, "(function (");
            self.edits.insert(it.id.span.end, ")");
        }
        let members = self.enums.entry((scope, name)).or_default();
        members.extend(it.body.members.iter().map(name_of));
        let mut last = Value::Number(-1);
        for member in &it.body.members {
            last = self.member(name, member, last);
        }
        self.edits.insert(it.body.span.end, format!(")({name} || ({name} = {{}}));"));
    }

    /// `A = 1,` becomes `E[E["A"] = 1] = "A";`, and `A = "a",` becomes `E["A"] = "a";`.
    fn member(&mut self, name: &'a str, it: &TSEnumMember<'a>, last: Value) -> Value {
        let key = quoted(name_of(it));
        let value = match (&it.initializer, &last) {
            (Some(value), _) => constant(value).unwrap_or(Value::Computed(key.clone())),
            (None, Value::Number(last)) => Value::Number(last + 1),
            (None, Value::Computed(_)) => Value::Computed(key.clone()),
            (None, Value::Text) => {
                let message = "a member of an enum after one that is a text needs a value";
                self.refuse(it.span.start, message, "give it one with `=`");
                Value::Text
            }
        };
        let setting = match (&it.initializer, &value, &last) {
            (None, Value::Number(number), _) => format!(" = {number}"),
            (None, _, Value::Computed(last)) => format!(" = {name}[{last}] + 1"),
            _ => String::new(),
        };
        let (open, close) = match (&it.initializer, &value) {
            (_, Value::Text) => (name.to_owned(), String::new()),
            // It may be a text, which has no way back to its name.
            (Some(_), Value::Computed(_)) => (
                format!("typeof ({name}"),
                format!(") === \"string\" || ({name}[{name}[{key}]] = {key})"),
            ),
            _ => (format!("{name}[{name}"), format!("] = {key}")),
        };
        self.member_name(it, open);
        self.edits.insert(self.name_end(it), setting);
        if let Some(initializer) = &it.initializer {
            self.member_value(name, initializer);
        }
        self.edits.insert(it.span.end, close);
        match self.tokens.at(it.span.end).filter(|token| token.text == ",") {
            Some(comma) => self.edits.blank_after(";", comma.span),
            None => self.edits.insert(it.span.end, ";"),
        }
        value
    }

    /// `A`, `"A"` and `["A"]` become `["A"]`.
    fn member_name(&mut self, it: &TSEnumMember<'a>, mut before: String) {
        let after = match &it.id {
            TSEnumMemberName::Identifier(_) => {
                before.push_str("[\"");
                "\"]"
            }
            TSEnumMemberName::String(_) => {
                before.push('[');
                "]"
            }
            TSEnumMemberName::ComputedString(_) | TSEnumMemberName::ComputedTemplateString(_) => "",
        };
        self.edits.insert(it.span.start, before);
        self.edits.insert(self.name_end(it), after);
    }

    fn name_end(&self, it: &TSEnumMember<'a>) -> u32 {
        let end = it.id.span().end;
        match &it.id {
            TSEnumMemberName::Identifier(_) | TSEnumMemberName::String(_) => end,
            TSEnumMemberName::ComputedString(_) | TSEnumMemberName::ComputedTemplateString(_) => {
                self.tokens.at(end).map_or(end, |bracket| bracket.span.end)
            }
        }
    }

    fn member_value(&mut self, enumeration: &'a str, value: &Expression<'a>) {
        let mut bound = Bound(HashSet::new());
        bound.visit_expression(value);
        let around = Around { enumeration, scope: self.scope(), bound: bound.0 };
        let outer = self.around.replace(around);
        self.visit_expression(value);
        self.around = outer;
    }

    /// A name in the value of a member may be that of another member.
    pub(super) fn reference(&mut self, it: &IdentifierReference<'a>) {
        if let Some(enumeration) = self.enumeration_of(it.name.as_str()) {
            self.edits.insert(it.span.start, format!("{enumeration}."));
        }
    }

    /// `{ A }`
    pub(super) fn shorthand(&mut self, it: &ObjectProperty<'a>) {
        if let PropertyKey::StaticIdentifier(key) = &it.key
            && self.enumeration_of(key.name.as_str()).is_some()
        {
            self.edits.insert(it.span.start, format!("{}: ", key.name));
        }
        self.visit_expression(&it.value);
    }

    fn enumeration_of(&self, name: &str) -> Option<&'a str> {
        let around = self.around.as_ref()?;
        let members = self.enums.get(&(around.scope, around.enumeration))?;
        let is_member = members.contains(name) && !around.bound.contains(name);
        is_member.then_some(around.enumeration)
    }

    fn scope(&self) -> u32 {
        self.scopes.last().copied().unwrap_or_default()
    }
}

/// A value that is written out.
fn constant(value: &Expression<'_>) -> Option<Value> {
    match value {
        Expression::StringLiteral(_) | Expression::TemplateLiteral(_) => Some(Value::Text),
        Expression::NumericLiteral(it) => whole(it.value),
        Expression::UnaryExpression(it) if it.operator == UnaryOperator::UnaryNegation => {
            match &it.argument {
                Expression::NumericLiteral(it) => whole(-it.value),
                _ => None,
            }
        }
        _ => None,
    }
}

/// A number that one can be added to without loss.
fn whole(number: f64) -> Option<Value> {
    const LARGEST: f64 = 9e15;
    #[allow(clippy::cast_possible_truncation, reason = "it is whole and small enough")]
    let value = || Value::Number(number as i64);
    (number.fract() == 0.0 && number.abs() < LARGEST).then(value)
}

fn name_of<'a>(it: &TSEnumMember<'a>) -> &'a str {
    match &it.id {
        TSEnumMemberName::Identifier(it) => it.name.as_str(),
        TSEnumMemberName::String(it) | TSEnumMemberName::ComputedString(it) => it.value.as_str(),
        TSEnumMemberName::ComputedTemplateString(it) => {
            it.single_quasi().map(|text| text.as_str()).unwrap_or_default()
        }
    }
}

/// As a string literal on one line.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            '\u{2028}' | '\u{2029}' => quoted.extend(char.escape_unicode()),
            _ if char.is_control() => quoted.extend(char.escape_unicode()),
            _ => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}

/// The names that functions in an expression bind.
struct Bound<'a>(HashSet<&'a str>);

impl<'a> VisitJs<'a> for Bound<'a> {
    fn visit_binding_identifier(&mut self, it: &BindingIdentifier<'a>) {
        self.0.insert(it.name.as_str());
    }
}
