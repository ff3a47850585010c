//! YAML 1.2 with places, from the parser's events. Aliases are expanded under a bound, and nesting is
//! bounded, so a small file cannot become a large one.

use std::collections::HashMap;
use std::ops::Range;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput};
use serde_json::{Number, Value};

use super::{Field, Kind, Node, Unreadable};
use crate::finding::Code;
use crate::limits::{NESTING_MAX, YAML_VALUES_MAX};

pub(crate) fn parse(text: &str) -> Result<Node, Unreadable> {
    let mut builder = Builder {
        text,
        parser: Parser::new_from_str(text),
        offsets: Offsets::new(text),
        anchors: HashMap::new(),
        values: 0,
    };
    builder.document()
}

struct Builder<'a> {
    text: &'a str,
    parser: Parser<'a, StrInput<'a>>,
    offsets: Offsets,
    /// Finished nodes that an alias may name.
    anchors: HashMap<usize, Anchored>,
    /// How many values there are so far, aliases expanded.
    values: usize,
}

#[derive(Clone)]
struct Anchored {
    node: Node,
    /// How many values it comes to.
    values: usize,
    /// How many levels of lists and objects.
    height: usize,
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
        let opens = matches!(event, Event::SequenceStart(..) | Event::MappingStart(..));
        if opens && depth > NESTING_MAX {
            return Err(Unreadable::too_deep(self.range(span)));
        }
        let before = self.values;
        self.count(1, span)?;
        let start = self.offsets.byte(span.start.index());
        let mut end = self.offsets.byte(span.end.index());
        let (kind, anchor) = match event {
            Event::Alias(anchor) => {
                let Some(anchored) = self.anchors.get(&anchor).cloned() else {
                    let message = "an alias inside the value that it stands for";
                    let mut problem = self.problem(Code::TooManyValues, span, message);
                    problem.hint = Some("write out what is meant here".to_owned());
                    return Err(problem);
                };
                self.count(anchored.values - 1, span)?;
                if depth - 1 + anchored.height > NESTING_MAX {
                    return Err(Unreadable::too_deep(self.range(span)));
                }
                (anchored.node.kind, 0)
            }
            Event::Scalar(text, style, anchor, tag) => {
                let is_text =
                    tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
                let value = match style {
                    ScalarStyle::Plain if !is_text => plain(&text),
                    _ => Some(Value::String(text.into_owned())),
                };
                let value = value.ok_or_else(|| self.out_of_range(span))?;
                (Kind::Scalar(value), anchor)
            }
            Event::SequenceStart(anchor, _) => {
                let mut items: Vec<Node> = Vec::new();
                loop {
                    let (event, span) = self.next()?;
                    if matches!(event, Event::SequenceEnd) {
                        end = self.end(span, items.last().map(|last| &last.range), end);
                        break;
                    }
                    items.push(self.node(event, span, depth + 1)?);
                }
                (Kind::List(items), anchor)
            }
            Event::MappingStart(anchor, _) => {
                let mut fields: Vec<Field> = Vec::new();
                loop {
                    let (event, span) = self.next()?;
                    if matches!(event, Event::MappingEnd) {
                        end = self.end(span, fields.last().map(|last| &last.value.range), end);
                        break;
                    }
                    fields.push(self.field(event, span, depth)?);
                }
                (Kind::Object(fields), anchor)
            }
            _ => return Err(self.problem(Code::Syntax, span, "a value is missing here")),
        };
        let node = Node { range: start..end.max(start), kind };
        if anchor > 0 {
            let (values, height) = (self.values - before, node.height());
            self.anchors.insert(anchor, Anchored { node: node.clone(), values, height });
        }
        Ok(node)
    }

    fn count(&mut self, values: usize, span: Span) -> Result<(), Unreadable> {
        self.values += values;
        if self.values <= YAML_VALUES_MAX {
            return Ok(());
        }
        let message = format!("more than {YAML_VALUES_MAX} values once aliases are expanded");
        let mut problem = self.problem(Code::TooManyValues, span, &message);
        problem.hint = Some("use fewer aliases inside each other".to_owned());
        Err(problem)
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
        Unreadable { code, range: self.range(span), message: message.to_owned(), hint: None }
    }

    /// Where a list or object ends: at its closing bracket, or else with the last thing in it.
    fn end(&self, closing: Span, last: Option<&Range<usize>>, opening: usize) -> usize {
        let closing = self.range(closing);
        match self.text.as_bytes().get(closing.start) {
            Some(b']' | b'}') if closing.start >= opening => closing.end,
            _ => last.map_or(opening, |last| last.end),
        }
    }

    fn range(&self, span: Span) -> Range<usize> {
        let start = self.offsets.byte(span.start.index());
        let end = self.offsets.byte(span.end.index());
        start..end.max(start + 1)
    }

    fn out_of_range(&self, span: Span) -> Unreadable {
        let mut problem = self.problem(Code::Syntax, span, "number out of range");
        problem.hint = Some("put it in quotes if it is a text".to_owned());
        problem
    }

    /// The tab that an error is about: the parser names a place shortly before or behind it.
    fn tab_near(&self, at: usize) -> Option<usize> {
        let (before, behind) = (self.text.get(..at)?, self.text.get(at..)?);
        let blank = before.len() - before.trim_end_matches([' ', '\t']).len();
        let start = at - blank;
        if let Some(tab) = before[start..].find('\t') {
            return Some(start + tab);
        }
        let skipped = behind.len() - behind.trim_start_matches([' ', '\r', '\n']).len();
        behind[skipped..].starts_with('\t').then_some(at + skipped)
    }

    fn scan_error(&self, error: &ScanError) -> Unreadable {
        let at = self.offsets.byte(error.marker().index());
        // Behind the last thing that is there: an empty line would show nothing.
        let mut at = at.min(self.text.trim_end().len());
        let info = error.info();
        if info.contains("recursion limit") {
            return Unreadable::too_deep(at..at + 1);
        }
        let hint = match info {
            info if info.split(' ').any(|word| word == "tab" || word == "tabs") => {
                at = self.tab_near(at).unwrap_or(at);
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

/// A plain scalar by YAML's core schema; `None` for a number that is out of range, as in JSON.
fn plain(text: &str) -> Option<Value> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(Value::Null),
        "true" | "True" | "TRUE" => return Some(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Some(Value::Bool(false)),
        _ => {}
    }
    if let Some(number) = whole(text) {
        return Some(Value::Number(number));
    }
    match float(text) {
        Some(float) => Number::from_f64(float).map(Value::Number),
        None => Some(Value::String(text.to_owned())),
    }
}

fn whole(text: &str) -> Option<Number> {
    if let Some(digits) = text.strip_prefix("0x") {
        return unsigned(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return unsigned(digits, 8);
    }
    let whole = text.parse::<i64>().map(Number::from);
    whole.ok().or_else(|| text.parse::<u64>().ok().map(Number::from))
}

/// Also a whole number with more digits than fit: serde reads those as floats, too.
fn float(text: &str) -> Option<f64> {
    let unsigned_text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_float = unsigned_text.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && unsigned_text.contains(|c: char| c.is_ascii_digit())
        && unsigned_text.chars().all(|c| c.is_ascii_digit() || ".eE+-".contains(c));
    text.parse().ok().filter(|_| is_float)
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
            value("[18446744073709551616, ++1, +-1]"),
            json!([1.8446744073709552e19, "++1", "+-1"])
        );
        assert_eq!(parse("a: 1e999").unwrap_err().message, "number out of range");
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
    fn aliases_do_not_nest_beyond_the_bound() {
        let mut tower = String::from("l0: &l0 [[[[[[[[[[x]]]]]]]]]]\n");
        for level in 1..12 {
            let inner = level - 1;
            tower.push_str(&format!("l{level}: &l{level} [[[[[[[[[[*l{inner}]]]]]]]]]]\n"));
        }
        assert_eq!(parse(&tower).unwrap_err().code, Code::TooDeep);
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
