//! Output checks as an author writes them: rules, and compositions of rules. Reading is strict: a
//! rule that lacks what its type needs, or carries what belongs to another, is not read here, and
//! `shape` explains it. Running the checks is the engine's business.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::condition::Condition;
use crate::serial::{Distinct, Fields, Whole, present};
use crate::shape::{choose, needs};

/// `validationCriteria`: one check, or a list of which all must pass.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Criteria {
    One(Check),
    All(Vec<Check>),
}

/// A rule, or a composition of checks.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "Fields<CheckFields>")]
pub enum Check {
    Rule(Box<Rule>),
    /// Everything in it must hold; usually it is one `and`, `or` or `not`.
    Composition(Vec<Composition>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Composition {
    And(Vec<Check>),
    Or(Vec<Check>),
    Not(Check),
}

/// One test of an output.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// What the author wants to read when it fails.
    pub message: Box<str>,
    /// The rule applies only where this holds.
    pub condition: Option<Condition>,
    pub kind: RuleKind,
}

#[derive(Debug, Clone, PartialEq)]
pub enum RuleKind {
    Contains { value: Box<str> },
    Regex { pattern: Box<str>, flags: Box<str> },
    Length { min: Option<u32>, max: Option<u32> },
    Schema { schema: Embedded },
}

/// A JSON Schema inside a rule, kept as its text: most are never used in a process's life, and a
/// parsed one takes ten times the room. The text is without the file's line ends and indentation, so that
/// it can be part of a message of one line.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Embedded(Box<RawValue>);

impl<'de> Deserialize<'de> for Embedded {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let compact = RawValue::from_string(without_spaces(raw.get()));
        compact.map(Self).map_err(serde::de::Error::custom)
    }
}

const NOT_AN_OBJECT: &str = "a `schema` is an object in which no key stands twice";

/// JSON without the white space between its tokens.
fn without_spaces(json: &str) -> String {
    let (mut is_text, mut is_escaped) = (false, false);
    let kept = json.chars().filter(|letter| {
        let is_kept = is_text || !letter.is_ascii_whitespace();
        is_text ^= *letter == '"' && !is_escaped;
        is_escaped = is_text && *letter == '\\' && !is_escaped;
        is_kept
    });
    kept.collect()
}

impl Embedded {
    /// Reads a field that may be absent: an object in which no key stands twice.
    pub(crate) fn present_object<'de, D>(deserializer: D) -> Result<Option<Self>, D::Error>
    where
        D: Deserializer<'de>,
    {
        let schema = Self::deserialize(deserializer)?;
        if !schema.is_object() {
            return Err(de::Error::custom(NOT_AN_OBJECT));
        }
        Ok(Some(schema))
    }

    fn is_object(&self) -> bool {
        matches!(serde_json::from_str(self.text()), Ok(Distinct(Value::Object(_))))
    }

    pub fn text(&self) -> &str {
        self.0.get()
    }

    pub fn value(&self) -> Value {
        // It was read as JSON once. Only nesting beyond serde's limit could fail, and the reader
        // refuses that before.
        serde_json::from_str(self.text()).unwrap_or_default()
    }
}

impl PartialEq for Embedded {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text() || self.value() == other.value()
    }
}

impl Criteria {
    pub fn checks(&self) -> &[Check] {
        match self {
            Self::One(check) => std::slice::from_ref(check),
            Self::All(checks) => checks,
        }
    }

    /// Gives every rule with an empty message a generated one.
    pub(crate) fn fill_messages(&mut self) {
        let checks = match self {
            Self::One(check) => std::slice::from_mut(check),
            Self::All(checks) => checks,
        };
        checks.iter_mut().for_each(|check| check.fill_messages(true));
    }

    /// Every rule, wherever it stands, in file order.
    pub fn each_rule<'a>(&'a self, visit: &mut impl FnMut(&'a Rule)) {
        for check in self.checks() {
            check.each_rule(visit);
        }
    }
}

impl Check {
    /// `wanted` says whether the rules inside shall pass: a `not` turns that around.
    fn fill_messages(&mut self, wanted: bool) {
        match self {
            Self::Rule(rule) if rule.message.is_empty() => {
                rule.message = rule.generated_message(wanted).into();
            }
            Self::Rule(_) => {}
            Self::Composition(parts) => {
                for part in parts {
                    match part {
                        Composition::And(members) | Composition::Or(members) => {
                            members.iter_mut().for_each(|member| member.fill_messages(wanted));
                        }
                        Composition::Not(member) => member.fill_messages(!wanted),
                    }
                }
            }
        }
    }

    pub fn each_rule<'a>(&'a self, visit: &mut impl FnMut(&'a Rule)) {
        match self {
            Self::Rule(rule) => visit(rule),
            Self::Composition(parts) => {
                for part in parts {
                    for check in part.members() {
                        check.each_rule(visit);
                    }
                }
            }
        }
    }
}

impl Composition {
    pub fn name(&self) -> &'static str {
        match self {
            Self::And(_) => "and",
            Self::Or(_) => "or",
            Self::Not(_) => "not",
        }
    }

    pub fn members(&self) -> &[Check] {
        match self {
            Self::And(members) | Self::Or(members) => members,
            Self::Not(member) => std::slice::from_ref(member),
        }
    }
}

// A rule as it is written; the comments are what an editor shows.
/// One test of the step's output.
#[derive(JsonSchema)]
#[schemars(
    deny_unknown_fields,
    rename = "Rule",
    extend("allOf" = [
        needs(&["contains"], "value"),
        needs(&["regex"], "pattern"),
        {"if": {"required": ["max"]}, "else": needs(&["length"], "min")},
        needs(&["schema"], "schema"),
    ])
)]
#[expect(dead_code, reason = "written down for its schema; reading goes through CheckFields")]
struct RuleFields {
    /// What is tested: `contains` a text, a `regex` that matches, a `length` in characters, or JSON
    /// that is valid under a `schema`.
    r#type: RuleType,
    /// `contains`: the text that the output must contain, case-sensitively.
    value: Option<String>,
    /// `regex`: a pattern in JavaScript's flavour that must match somewhere in the output.
    pattern: Option<String>,
    /// `regex`: any of `i`, `m`, `s`, `u`, `g`, `y`.
    flags: Option<String>,
    /// `length`: the least number of characters.
    #[schemars(with = "Option<Whole>")]
    min: Option<u32>,
    /// `length`: the largest number of characters.
    #[schemars(with = "Option<Whole>")]
    max: Option<u32>,
    /// `schema`: the JSON Schema (2020-12 where it does not say) for an output that is JSON.
    #[schemars(with = "Option<SchemaObject>")]
    schema: Option<Value>,
    /// What the agent reads: what is wanted, said before the work and again when the rule fails. An empty
    /// one is generated from the rule.
    message: String,
    /// The rule applies only where this holds.
    condition: Option<Condition>,
}

/// Checks joined by logic.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Composition", extend("minProperties" = 1))]
#[expect(dead_code, reason = "written down for its schema; reading goes through CheckFields")]
struct CompositionFields {
    /// All of these must pass.
    and: Option<Vec<Check>>,
    /// At least one of these must pass.
    or: Option<Vec<Check>>,
    /// This must not pass.
    not: Option<Box<Check>>,
}

/// A rule or a composition: everything that either may have, told apart after reading.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckFields {
    #[serde(default, deserialize_with = "present")]
    r#type: Option<RuleType>,
    #[serde(default, deserialize_with = "present")]
    message: Option<Box<str>>,
    #[serde(default, deserialize_with = "present")]
    condition: Option<Condition>,
    #[serde(default, deserialize_with = "present")]
    value: Option<Box<str>>,
    #[serde(default, deserialize_with = "present")]
    pattern: Option<Box<str>>,
    #[serde(default, deserialize_with = "present")]
    flags: Option<Box<str>>,
    #[serde(default, deserialize_with = "present")]
    min: Option<Whole>,
    #[serde(default, deserialize_with = "present")]
    max: Option<Whole>,
    #[serde(default, deserialize_with = "present")]
    schema: Option<Embedded>,
    #[serde(default, deserialize_with = "present")]
    and: Option<Vec<Check>>,
    #[serde(default, deserialize_with = "present")]
    or: Option<Vec<Check>>,
    #[serde(default, deserialize_with = "present")]
    not: Option<Box<Check>>,
}

#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum RuleType {
    Contains,
    Regex,
    Length,
    Schema,
}

impl TryFrom<Fields<CheckFields>> for Check {
    type Error = &'static str;

    fn try_from(Fields(mut fields): Fields<CheckFields>) -> Result<Self, Self::Error> {
        let fields = &mut fields;
        let check = match fields.r#type.take() {
            Some(kind) => Self::Rule(Box::new(Rule {
                kind: fields.take_kind(kind)?,
                message: fields.message.take().ok_or("a rule needs a `message`")?,
                condition: fields.condition.take(),
            })),
            None => {
                let parts = [
                    fields.and.take().map(Composition::And),
                    fields.or.take().map(Composition::Or),
                    fields.not.take().map(|member| Composition::Not(*member)),
                ];
                let parts: Vec<Composition> = parts.into_iter().flatten().collect();
                if parts.is_empty() {
                    return Err("a check needs a `type`, or `and`, `or` or `not`");
                }
                Self::Composition(parts)
            }
        };
        if fields.is_used_up() {
            Ok(check)
        } else {
            Err("a field that belongs to another kind of check")
        }
    }
}

impl CheckFields {
    fn take_kind(&mut self, kind: RuleType) -> Result<RuleKind, &'static str> {
        Ok(match kind {
            RuleType::Contains => {
                RuleKind::Contains { value: self.value.take().ok_or("`contains` needs a `value`")? }
            }
            RuleType::Regex => RuleKind::Regex {
                pattern: self.pattern.take().ok_or("`regex` needs a `pattern`")?,
                flags: self.flags.take().unwrap_or_default(),
            },
            RuleType::Length => {
                let (min, max) = (self.min.take(), self.max.take());
                if min.is_none() && max.is_none() {
                    return Err("`length` needs `min` or `max`");
                }
                RuleKind::Length { min: min.map(|Whole(min)| min), max: max.map(|Whole(max)| max) }
            }
            RuleType::Schema => {
                let schema = self.schema.take().ok_or("`schema` needs a `schema`")?;
                if !schema.is_object() {
                    return Err(NOT_AN_OBJECT);
                }
                RuleKind::Schema { schema }
            }
        })
    }

    fn is_used_up(&self) -> bool {
        self.message.is_none()
            && self.condition.is_none()
            && self.value.is_none()
            && self.pattern.is_none()
            && self.flags.is_none()
            && self.min.is_none()
            && self.max.is_none()
            && self.schema.is_none()
            && self.and.is_none()
            && self.or.is_none()
            && self.not.is_none()
    }
}

/// A generated message quotes a text up to this many characters.
const QUOTED_MAX: usize = 80;

impl Rule {
    /// The limit of a length rule in words: "at most 40 characters". `None` for the other rules.
    pub fn limit(&self) -> Option<String> {
        self.kind.limit()
    }

    /// What to do, for a rule whose author does not say it. It is read before the work, and again as an issue.
    pub(crate) fn generated_message(&self, wanted: bool) -> String {
        match (&self.kind, wanted) {
            (RuleKind::Contains { value }, true) => format!("Include `{}`", shortened(value)),
            (RuleKind::Contains { value }, false) => {
                format!("Do not include `{}`", shortened(value))
            }
            (RuleKind::Regex { pattern, flags }, true) => {
                format!("Match the pattern /{}/{flags}", shortened(pattern))
            }
            (RuleKind::Regex { pattern, flags }, false) => {
                format!("Do not match the pattern /{}/{flags}", shortened(pattern))
            }
            (RuleKind::Length { .. }, true) => match self.limit() {
                Some(limit) => format!("Write {limit}"),
                None => "Any length will do".to_owned(),
            },
            (&RuleKind::Length { min, max }, false) => match (min, max) {
                (Some(min), None) => format!("Write fewer than {}", characters(min)),
                (None, Some(max)) => format!("Write more than {}", characters(max)),
                (Some(min), Some(max)) => {
                    format!("Write fewer than {min} or more than {max} characters")
                }
                (None, None) => "No length will do".to_owned(),
            },
            (RuleKind::Schema { .. }, true) => {
                "Write JSON that is valid under the rule's schema".to_owned()
            }
            (RuleKind::Schema { .. }, false) => {
                "Do not write JSON that is valid under the rule's schema".to_owned()
            }
        }
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(QUOTED_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn characters(count: u32) -> String {
    format!("{count} character{}", if count == 1 { "" } else { "s" })
}

impl RuleKind {
    fn limit(&self) -> Option<String> {
        match *self {
            Self::Length { min: None, max: Some(max) } => {
                Some(format!("at most {}", characters(max)))
            }
            Self::Length { min: Some(min), max: None } => {
                Some(format!("at least {}", characters(min)))
            }
            Self::Length { min: Some(min), max: Some(max) } if min == max => {
                Some(format!("exactly {}", characters(max)))
            }
            Self::Length { min: Some(min), max: Some(max) } => {
                Some(format!("between {min} and {max} characters"))
            }
            _ => None,
        }
    }

    pub fn name(&self) -> &'static str {
        match self {
            Self::Contains { .. } => "contains",
            Self::Regex { .. } => "regex",
            Self::Length { .. } => "length",
            Self::Schema { .. } => "schema",
        }
    }
}

impl Serialize for Check {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Composition(parts) => {
                for part in parts {
                    match part {
                        Composition::And(members) | Composition::Or(members) => {
                            map.serialize_entry(part.name(), members)?;
                        }
                        Composition::Not(member) => map.serialize_entry("not", member)?,
                    }
                }
            }
            Self::Rule(rule) => {
                map.serialize_entry("type", rule.kind.name())?;
                match &rule.kind {
                    RuleKind::Contains { value } => map.serialize_entry("value", value)?,
                    RuleKind::Regex { pattern, flags } => {
                        map.serialize_entry("pattern", pattern)?;
                        if !flags.is_empty() {
                            map.serialize_entry("flags", flags)?;
                        }
                    }
                    RuleKind::Length { min, max } => {
                        for (name, bound) in [("min", min), ("max", max)] {
                            if let Some(bound) = bound {
                                map.serialize_entry(name, bound)?;
                            }
                        }
                    }
                    RuleKind::Schema { schema } => map.serialize_entry("schema", schema)?,
                }
                map.serialize_entry("message", &rule.message)?;
                if let Some(condition) = &rule.condition {
                    map.serialize_entry("condition", condition)?;
                }
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Criteria {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Criteria;

            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("a check or a list of checks")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Criteria, A::Error> {
                Deserialize::deserialize(de::value::SeqAccessDeserializer::new(items))
                    .map(Criteria::All)
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Criteria, A::Error> {
                Deserialize::deserialize(de::value::MapAccessDeserializer::new(fields))
                    .map(Criteria::One)
            }
        }

        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for Criteria {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Criteria".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let list = generator.subschema_for::<Vec<Check>>();
        let one = generator.subschema_for::<Check>();
        choose(json!({"type": "array"}), list, one)
    }
}

impl JsonSchema for Check {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Check".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let composition = generator.subschema_for::<CompositionFields>();
        let rule = generator.subschema_for::<RuleFields>();
        choose(
            json!({"anyOf": [{"required": ["and"]}, {"required": ["or"]}, {"required": ["not"]}]}),
            composition,
            rule,
        )
    }
}

/// The schema of a `schema`: an object, whatever is in it.
pub(crate) struct SchemaObject;

impl JsonSchema for SchemaObject {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SchemaObject".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": "object"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(written: Value) -> Rule {
        match serde_json::from_value(written).unwrap() {
            Check::Rule(rule) => *rule,
            Check::Composition(_) => panic!("not a rule"),
        }
    }

    #[test]
    fn length_rule_says_its_limit() {
        for (min, max, expected) in [
            (json!(200), json!(null), "at least 200 characters"),
            (json!(null), json!(40), "at most 40 characters"),
            (json!(null), json!(1), "at most 1 character"),
            (json!(3), json!(40), "between 3 and 40 characters"),
            (json!(8), json!(8), "exactly 8 characters"),
        ] {
            let mut written = json!({"type": "length", "message": "M"});
            for (name, bound) in [("min", min), ("max", max)] {
                if !bound.is_null() {
                    written[name] = bound;
                }
            }
            assert_eq!(rule(written).limit().as_deref(), Some(expected));
        }
        let written = json!({"type": "contains", "value": "x", "message": "M"});
        assert_eq!(rule(written).limit(), None);
    }

    #[test]
    fn message_is_generated_from_the_rule() {
        for (written, expected, unwanted) in [
            (json!({"type": "contains", "value": "x"}), "Include `x`", "Do not include `x`"),
            (
                json!({"type": "regex", "pattern": "^a", "flags": "i"}),
                "Match the pattern /^a/i",
                "Do not match the pattern /^a/i",
            ),
            (
                json!({"type": "length", "min": 2}),
                "Write at least 2 characters",
                "Write fewer than 2 characters",
            ),
            (
                json!({"type": "length", "max": 1}),
                "Write at most 1 character",
                "Write more than 1 character",
            ),
            (
                json!({"type": "length", "min": 2, "max": 8}),
                "Write between 2 and 8 characters",
                "Write fewer than 2 or more than 8 characters",
            ),
            (
                json!({"type": "schema", "schema": {}}),
                "Write JSON that is valid under the rule's schema",
                "Do not write JSON that is valid under the rule's schema",
            ),
        ] {
            let mut written = written;
            written["message"] = json!("");
            let rule = rule(written);
            assert_eq!(rule.generated_message(true), expected);
            assert_eq!(rule.generated_message(false), unwanted);
        }
        let long = json!({"type": "contains", "value": "é".repeat(90), "message": ""});
        assert_eq!(rule(long).generated_message(true), format!("Include `{}…`", "é".repeat(80)));
    }

    #[test]
    fn an_embedded_schema_is_one_line_and_the_same() {
        let text = "{\n  \"const\": \"a  b \\\" \\\\\" ,\r\n\t\"enum\": [ 1, \" ] \" ] }";
        let embedded: Embedded = serde_json::from_str(text).unwrap();
        assert_eq!(embedded.text(), r#"{"const":"a  b \" \\","enum":[1," ] "]}"#);
        assert_eq!(embedded.value(), serde_json::from_str::<Value>(text).unwrap());
    }
}
