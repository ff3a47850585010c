//! YAML 1.2 with places, from the parser's events. Aliases are expanded under a bound, and nesting is
//! bounded, so a small file cannot become a large one.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput};
use serde_json::{Number, Value};

use super::{Field, Kind, Node, Unreadable};
use crate::finding::Code;
use crate::limits::{NESTING_MAX, YAML_VALUES_MAX};

pub(crate) fn parse(text: &str) -> Result<Node, Unreadable> {
    let mut builder = Builder {
        parser: Parser::new_from_str(text),
        offsets: Offsets::new(text),
        anchors: HashMap::new(),
        values: 0,
    };
    builder.document()
}

struct Builder<'a> {
    parser: Parser<'a, StrInput<'a>>,
    offsets: Offsets,
    /// Finished nodes that an alias may name, with how many values they come to.
    anchors: HashMap<usize, (Node, usize)>,
    /// How many values there are so far, aliases expanded.
    values: usize,
}

impl<'a> Builder<'a> {
    fn document(&mut self) -> Result<Node, Unreadable> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => break,
                Event::StreamStart | Event::DocumentEnd | Event::Nothing => {}
                Event::DocumentStart(_) if root.is_some() => {
                    return Err(self.problem(
                        Code::Syntax,
                        span,
                        "the file holds a second document",
                    ));
                }
                Event::DocumentStart(_) => {
                    let (event, span) = self.next()?;
                    root = Some(self.node(event, span, 1)?);
                }
                _ => {}
            }
        }
        root.ok_or_else(|| {
            let mut problem = self.problem(Code::Syntax, Span::default(), "the file is empty");
            problem.hint = Some(
                "write a workflow; `workflowlookup new ID` makes one to start from".to_owned(),
            );
            problem
        })
    }

    fn next(&mut self) -> Result<(Event<'a>, Span), Unreadable> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(self.scan_error(&error)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node, Unreadable> {
        if depth > NESTING_MAX {
            let message = format!("nested more than {NESTING_MAX} levels deep");
            return Err(self.problem(Code::TooDeep, span, &message));
        }
        let before = self.values;
        self.values += 1;
        if self.values > YAML_VALUES_MAX {
            let message = format!("more than {YAML_VALUES_MAX} values once aliases are expanded");
            return Err(self.problem(Code::TooManyValues, span, &message));
        }
        let start = self.offsets.byte(span.start.index());
        let mut end = self.offsets.byte(span.end.index());
        let (kind, anchor) = match event {
            Event::Alias(anchor) => {
                let Some((node, values)) = self.anchors.get(&anchor).cloned() else {
                    let message = "an alias inside the value that it stands for";
                    return Err(self.problem(Code::TooManyValues, span, message));
                };
                self.values += values - 1;
                if self.values > YAML_VALUES_MAX {
                    let message =
                        format!("more than {YAML_VALUES_MAX} values once aliases are expanded");
                    return Err(self.problem(Code::TooManyValues, span, &message));
                }
                (node.kind, 0)
            }
            Event::Scalar(text, style, anchor, tag) => {
                let is_text =
                    tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
                let value = match style {
                    ScalarStyle::Plain if !is_text => plain(&text),
                    _ => Value::String(text.into_owned()),
                };
                (Kind::Scalar(value), anchor)
            }
            Event::SequenceStart(anchor, _) => {
                let mut items = Vec::new();
                loop {
                    let (event, span) = self.next()?;
                    if matches!(event, Event::SequenceEnd) {
                        break;
                    }
                    items.push(self.node(event, span, depth + 1)?);
                }
                end = items.last().map_or(end, |last| last.range.end);
                (Kind::List(items), anchor)
            }
            Event::MappingStart(anchor, _) => {
                let mut fields = Vec::new();
                loop {
                    let (event, span) = self.next()?;
                    if matches!(event, Event::MappingEnd) {
                        break;
                    }
                    fields.push(self.field(event, span, depth)?);
                }
                end = fields.last().map_or(end, |last: &Field| last.value.range.end);
                (Kind::Object(fields), anchor)
            }
            _ => return Err(self.problem(Code::Syntax, span, "a value is missing here")),
        };
        let node = Node { range: start..end.max(start), kind };
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), self.values - before));
        }
        Ok(node)
    }

    fn field(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Field, Unreadable> {
        let Event::Scalar(key, ..) = event else {
            return Err(self.problem(Code::Syntax, span, "a key must be a text"));
        };
        let key_range = self.offsets.byte(span.start.index())..self.offsets.byte(span.end.index());
        let (event, span) = self.next()?;
        let value = self.node(event, span, depth + 1)?;
        Ok(Field { key: key.into_owned(), key_range, value })
    }

    fn problem(&self, code: Code, span: Span, message: &str) -> Unreadable {
        let start = self.offsets.byte(span.start.index());
        let end = self.offsets.byte(span.end.index());
        Unreadable {
            code,
            range: start..end.max(start + 1),
            message: message.to_owned(),
            hint: None,
        }
    }

    fn scan_error(&self, error: &ScanError) -> Unreadable {
        let at = self.offsets.byte(error.marker().index());
        let info = error.info();
        if info.contains("recursion limit") {
            let message = format!("nested more than {NESTING_MAX} levels deep");
            return Unreadable { code: Code::TooDeep, range: at..at + 1, message, hint: None };
        }
        let hint = match info {
            info if info.contains("tab") => {
                Some("indent with spaces: YAML does not allow tabs there")
            }
            info if info.contains("mapping values") => {
                Some("quote the text if it holds a colon followed by a space")
            }
            _ => None,
        };
        Unreadable {
            code: Code::Syntax,
            range: at..at + 1,
            message: info.to_lowercase(),
            hint: hint.map(str::to_owned),
        }
    }
}

/// A plain scalar by YAML's core schema.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number)
}

fn number(text: &str) -> Option<Number> {
    if let Some(digits) = text.strip_prefix("0x") {
        return unsigned(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return unsigned(digits, 8);
    }
    let unsigned_text = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !unsigned_text.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    if unsigned_text.bytes().all(|byte| byte.is_ascii_digit()) {
        let text = text.strip_prefix('+').unwrap_or(text);
        let whole = text.parse::<i64>().map(Number::from);
        return whole.ok().or_else(|| text.parse::<u64>().ok().map(Number::from));
    }
    let is_float = unsigned_text.contains(|c: char| c.is_ascii_digit())
        && unsigned_text.chars().all(|c| c.is_ascii_digit() || ".eE+-".contains(c));
    let float: f64 = text.parse().ok().filter(|_| is_float)?;
    Number::from_f64(float)
}

fn unsigned(digits: &str, radix: u32) -> Option<Number> {
    let is_plain = !digits.starts_with('+');
    u64::from_str_radix(digits, radix).ok().filter(|_| is_plain).map(Number::from)
}

/// The parser counts characters; we count bytes. For ASCII they are the same.
struct Offsets {
    length: usize,
    /// The byte at which each character starts, where some character has more than one.
    starts: Option<Vec<usize>>,
}

impl Offsets {
    fn new(text: &str) -> Self {
        let starts = (!text.is_ascii()).then(|| text.char_indices().map(|(at, _)| at).collect());
        Self { length: text.len(), starts }
    }

    fn byte(&self, character: usize) -> usize {
        let byte = match &self.starts {
            Some(starts) => starts.get(character).copied(),
            None => Some(character),
        };
        byte.unwrap_or(self.length).min(self.length)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(text: &str) -> Value {
        parse(text).unwrap().value()
    }

    #[test]
    fn scalars_follow_the_core_schema() {
        assert_eq!(
            value(
                "[1, -2, +3, 0x1F, 0o17, 1.5, 1e3, .5, ~, null, true, False, yes, '5', \"6\", 1.2.3, -x, '']"
            ),
            json!([
                1, -2, 3, 31, 15, 1.5, 1000.0, 0.5, null, null, true, false, "yes", "5", "6",
                "1.2.3", "-x", ""
            ]),
        );
        assert_eq!(
            value("a: !!str 5\nb: |\n  x\n  y\nc: >\n  x\n  y\n"),
            json!({"a": "5", "b": "x\ny\n", "c": "x y\n"})
        );
        assert_eq!(value("1: a\ntrue: b"), json!({"1": "a", "true": "b"}));
    }

    #[test]
    fn aliases_are_expanded_within_a_bound() {
        assert_eq!(value("a: &x [1, 2]\nb: *x"), json!({"a": [1, 2], "b": [1, 2]}));
        assert_eq!(parse("a: &a [*a]").unwrap_err().code, Code::TooManyValues);
        let mut bomb = String::from("l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..12 {
            let inner = vec![format!("*l{}", level - 1); 10].join(", ");
            bomb.push_str(&format!("l{level}: &l{level} [{inner}]\n"));
        }
        assert_eq!(parse(&bomb).unwrap_err().code, Code::TooManyValues);
    }

    #[test]
    fn nesting_is_bounded() {
        let flow = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        assert_eq!(parse(&flow).unwrap_err().code, Code::TooDeep);
        let mut block = String::new();
        for level in 0..200 {
            block.push_str(&format!("{}a:\n", " ".repeat(level)));
        }
        assert_eq!(parse(&block).unwrap_err().code, Code::TooDeep);
    }
}
