//! The JSON Schema and the reader judge alike: what the schema can express, both refuse or both accept.

use std::sync::LazyLock;

use jsonschema::Validator;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};
use workflow::{Code, Format, Scrutiny, read};

use crate::config;
use crate::generate::definition;

static VALIDATOR: LazyLock<Validator> = LazyLock::new(|| {
    let schema: Value = serde_json::from_str(&workflow::schema_text()).unwrap();
    jsonschema::meta::validate(&schema).unwrap();
    jsonschema::validator_for(&schema).unwrap()
});

/// What a schema cannot say is left to the rules: uniqueness across steps, satisfiable conditions, good
/// patterns, and so on.
fn is_expressible(code: Code) -> bool {
    use Code::*;
    match code {
        Missing | WrongType | UnknownField | NotAllowed | BadId | TextLength | BadVersion
        | Repeated | Empty | OutOfRange | Unbounded | LoopLacks | UnknownOperator | NoVariable
        | UnknownRule | RuleLacks => true,
        Syntax | Encoding | ByteOrderMark | TooLarge | TooDeep | TooManyValues | DuplicateKey
        | NewerServer | DuplicateStep | UnknownBody | Endless | NeverRuns | NoEffectOnLoop
        | CutShort | LengthRange | BadPattern | InlineFlags | BadSchema | NothingChecked
        | NoEffectOnRule | ExpensiveRule | UnsetVariable | BadTemplate | UndeclaredVariable
        | UnreportedVariable | ImpossibleValue | GateMayVanish | UnreportedGate
        | BadDeclaration | UnknownOutput | OutputMayBeMissing | ReservedName | EmptyMessage
        | LongText | Unreadable | LinkOut | TooManyFiles => false,
    }
}

proptest! {
    #![proptest_config(config(1_500))]

    #[test]
    fn the_schema_and_the_reader_judge_alike(
        mut definition in prop_oneof![definition(), Just(everything())],
        mutations in prop::collection::vec((any::<Index>(), mutation()), 0..4),
    ) {
        for (index, mutation) in mutations {
            mutate(&mut definition, index, mutation);
        }
        let reading = read(definition.to_string().as_bytes(), Format::Json, Scrutiny::Syntax);
        // What stands in a field that has no effect is nobody's business.
        let idle: Vec<&str> = reading
            .findings
            .iter()
            .filter(|finding| matches!(finding.code, Code::NoEffectOnLoop | Code::NoEffectOnRule))
            .map(|finding| &*finding.pointer)
            .collect();
        let counts = |place: &str| !idle.iter().any(|idle| place.starts_with(idle));
        let refused: Vec<_> = reading
            .findings
            .iter()
            .filter(|finding| finding.is_error() && is_expressible(finding.code))
            .filter(|finding| counts(&finding.pointer))
            .collect();
        let violations: Vec<String> = VALIDATOR
            .iter_errors(&definition)
            .filter(|error| counts(&error.instance_path().to_string()))
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        prop_assert_eq!(
            refused.is_empty(), violations.is_empty(),
            "reader: {:#?}\nschema: {:#?}", refused, violations
        );
    }
}

fn everything() -> Value {
    serde_json::from_str(include_str!("../../cases/good-everything.json")).unwrap()
}

#[derive(Debug, Clone)]
enum Mutation {
    Delete,
    Replace(Value),
    Rename(&'static str),
    Add(&'static str, Value),
    Repeat,
    Shout,
    Lengthen(usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        2 => Just(Mutation::Delete),
        4 => replacement().prop_map(Mutation::Replace),
        1 => field().prop_map(Mutation::Rename),
        1 => (field(), replacement()).prop_map(|(name, value)| Mutation::Add(name, value)),
        1 => Just(Mutation::Repeat),
        1 => Just(Mutation::Shout),
        1 => select(vec![60, 128, 512, 8192]).prop_map(Mutation::Lengthen),
    ]
}

fn field() -> impl Strategy<Value = &'static str> {
    select(vec![
        "x",
        "promt",
        "type",
        "loop",
        "body",
        "prompt",
        "id",
        "guidance",
        "equal",
        "equals",
        "var",
        "and",
        "or",
        "not",
        "in",
        "gt",
        "count",
        "items",
        "condition",
        "value",
        "pattern",
        "flags",
        "min",
        "max",
        "schema",
        "message",
        "maxIterations",
        "itemVar",
        "$schema",
        "category",
        "variables",
        "reports",
        "values",
        "~/",
    ])
}

fn replacement() -> impl Strategy<Value = Value> {
    select(vec![
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(-1),
        json!(1.5),
        json!(7.0),
        json!(1000),
        json!(1001),
        json!(4294967295_u64),
        json!(4294967296_u64),
        json!(1e20),
        json!(-1e300),
        json!(""),
        json!("x"),
        json!("abc"),
        json!("Not An Id"),
        json!("a.b.c"),
        json!("1.0"),
        json!("1.0.0-"),
        json!("01.0.0"),
        json!("loop"),
        json!("while"),
        json!("for"),
        json!("forEach"),
        json!("regex"),
        json!("length"),
        json!("contains"),
        json!("schema"),
        json!("rhyme"),
        json!("yes"),
        json!([]),
        json!([""]),
        json!(["a", "a"]),
        json!(["a", 1]),
        json!([null]),
        json!([[]]),
        json!([{}]),
        json!({}),
        json!({"var": "a"}),
        json!({"var": ""}),
        json!({"equals": 1}),
        json!({"var": "a", "gt": "1"}),
        json!({"type": "loop"}),
        json!({"type": "contains", "value": "a", "message": "b"}),
        json!({"and": []}),
        json!({"type": "contains", "and": []}),
        json!({"or": {}, "x": 1}),
        json!({"type": "while", "maxIterations": 1}),
        json!({"type": "length", "message": "b"}),
        json!({"type": "boolean"}),
        json!({"type": "list", "items": "string"}),
        json!({"size": {"type": "string", "values": []}}),
        json!({"a b": {"schema": {}}}),
        json!(["size", "size?"]),
    ])
}

fn mutate(definition: &mut Value, index: Index, mutation: Mutation) {
    let mut places = vec![String::new()];
    collect(definition, "", &mut places);
    let place = &places[index.index(places.len())];
    let (parent, last) = place.rsplit_once('/').unwrap_or_default();
    let last = last.replace("~1", "/").replace("~0", "~");
    match mutation {
        Mutation::Replace(value) => *definition.pointer_mut(place).unwrap() = value,
        Mutation::Delete => match definition.pointer_mut(parent) {
            Some(Value::Object(fields)) => drop(fields.remove(&last)),
            Some(Value::Array(items)) if !place.is_empty() => {
                items.remove(last.parse().unwrap());
            }
            _ => {}
        },
        Mutation::Rename(name) => {
            if let Some(Value::Object(fields)) = definition.pointer_mut(parent)
                && let Some(value) = fields.remove(&last)
            {
                fields.insert(name.to_owned(), value);
            }
        }
        Mutation::Add(name, value) => {
            if let Some(Value::Object(fields)) = definition.pointer_mut(place) {
                fields.insert(name.to_owned(), value);
            }
        }
        Mutation::Repeat => {
            if let Some(Value::Array(items)) = definition.pointer_mut(place) {
                items.extend(items.last().cloned());
            }
        }
        Mutation::Shout => {
            if let Some(Value::String(text)) = definition.pointer_mut(place) {
                *text = text.to_uppercase();
            }
        }
        Mutation::Lengthen(length) => {
            if let Some(Value::String(text)) = definition.pointer_mut(place) {
                text.push_str(&"é".repeat(length));
            }
        }
    }
}

fn collect(value: &Value, pointer: &str, places: &mut Vec<String>) {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(fields) => {
            let escape = |name: &str| name.replace('~', "~0").replace('/', "~1");
            fields.iter().map(|(name, value)| (escape(name), value)).collect()
        }
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect()
        }
        _ => Vec::new(),
    };
    for (name, value) in inner {
        let place = format!("{pointer}/{name}");
        collect(value, &place, places);
        places.push(place);
    }
}
