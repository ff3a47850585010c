//! Values, conditions, contexts and whole definitions, made up.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};
use workflow::Condition;
use workflow::template::{Piece, pieces, slot};

/// Few enough that comparisons meet, and of every kind.
pub(crate) fn pool() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(-0.0),
        json!(1),
        json!(1.0),
        json!(2),
        json!(-1),
        json!(0.5),
        json!(1e300),
        json!(-1e300),
        json!(9007199254740992_u64),
        json!(9007199254740993_u64),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(""),
        json!("x"),
        json!("xy"),
        json!("y"),
        json!("1"),
        json!([]),
        json!(["x"]),
        json!(["x", "y"]),
        json!([1.0, null]),
        json!([[]]),
        json!({}),
        json!({"b": 1}),
        json!({"b": {"length": 2}}),
    ]
}

pub(crate) fn value() -> impl Strategy<Value = Value> {
    select(pool())
}

fn number() -> impl Strategy<Value = Value> {
    select(pool().into_iter().filter(Value::is_number).collect::<Vec<_>>())
}

fn comparison() -> impl Strategy<Value = (&'static str, Value)> {
    prop_oneof![
        (select(vec!["equals", "not_equals", "contains"]), value()),
        (select(vec!["gt", "gte", "lt", "lte"]), number()),
        (Just("in"), vec(value(), 0..4).prop_map(Value::from)),
    ]
}

/// A condition over these variables; sometimes one of its comparisons has none.
pub(crate) fn condition(names: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let name = option::weighted(0.95, select(names));
    let leaf = (name, vec(comparison(), 0..3)).prop_map(|(name, comparisons)| {
        let mut object = Map::new();
        object.extend(name.map(|name| ("var".to_owned(), json!(name))));
        object.extend(comparisons.into_iter().map(|(name, operand)| (name.to_owned(), operand)));
        Value::Object(object)
    });
    let leaf = leaf.boxed();
    leaf.clone().prop_recursive(3, 16, 3, move |inner| {
        let list = vec(inner.clone(), 0..3).prop_map(Value::from);
        let entry =
            prop_oneof![(Just("and"), list.clone()), (Just("or"), list), (Just("not"), inner),];
        (prop_oneof![3 => Just(json!({})), 1 => leaf.clone()], vec(entry, 1..3)).prop_map(
            |(mut own, entries)| {
                for (name, members) in entries {
                    own[name] = members;
                }
                own
            },
        )
    })
}

pub(crate) const NAMES: &[&str] = &["a", "b", "a.b", "a.length", "b.0", "a.b.length", "", "é.x"];

pub(crate) fn context() -> impl Strategy<Value = Map<String, Value>> {
    let key = select(vec!["a", "b", "a.b", "b.0", "", "é", "length"]);
    vec((key, value()), 0..5).prop_map(|entries| {
        entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    })
}

/// A text that a definition may hold anywhere.
fn text() -> impl Strategy<Value = Value> {
    let texts = select(vec![
        "Do it.",
        "Plan: first this, then that",
        "- a list\n- of two",
        "line\n\n  indented\nend",
        "ends in a line break\n",
        " spaces around ",
        "“Quotes” \"and\" 'more' \\ back",
        "# no comment",
        "yes",
        "null",
        "5",
        "1e3",
        "{{name}} and {{currentItem.id}}",
        "翻訳 📖 e\u{301}",
        "tab\there",
        "*star &and @at %per !bang |bar >more [x] {y}",
        "\u{1}\u{7f}\u{85}\u{a0}\u{2028}\u{feff}",
    ]);
    prop_oneof![4 => texts.prop_map(Value::from), 1 => "[ -~]{1,40}".prop_map(Value::from)]
}

fn texts() -> impl Strategy<Value = Value> {
    vec(text(), 0..3).prop_map(|mut texts| {
        texts.dedup();
        Value::from(if texts.first() == texts.last() {
            texts[..texts.len().min(1)].to_vec()
        } else {
            texts
        })
    })
}

/// A condition that a step can have: it has its variables, and can go either way.
fn usable_condition() -> impl Strategy<Value = Value> {
    condition(&["a", "b", "a.b", "risk level"]).prop_map(|written| {
        let condition: Condition = serde_json::from_value(written.clone()).unwrap();
        let is_usable = has_variables(&written) && condition.can_hold() && condition.can_fail();
        if is_usable { written } else { json!({"var": "size", "gte": 1, "lt": 5}) }
    })
}

fn has_variables(condition: &Value) -> bool {
    let compositions = ["and", "or", "not"];
    let own = condition.as_object().into_iter().flatten();
    own.into_iter().all(|(name, operand)| match operand {
        Value::Array(members) if compositions.contains(&&**name) => {
            members.iter().all(has_variables)
        }
        member if compositions.contains(&&**name) => has_variables(member),
        _ => condition.get("var").is_some(),
    })
}

fn rule() -> impl Strategy<Value = Value> {
    let patterns = select(vec![r"^\d+$", "(?=.*a)b", "[a-z]+|x", r"\bend\b", ""]);
    let schemas = select(vec![
        json!({}),
        json!({"type": "object", "required": ["a"]}),
        json!({"$defs": {"a": {"const": [1, 1.5, null]}}, "$ref": "#/$defs/a"}),
    ]);
    let kind = prop_oneof![
        text().prop_map(|value| json!({"type": "contains", "value": value})),
        (patterns.clone(), select(vec!["i", "ms", "gu"])).prop_map(|(pattern, flags)| {
            json!({"type": "regex", "pattern": pattern, "flags": flags})
        }),
        patterns.prop_map(|pattern| json!({"type": "regex", "pattern": pattern})),
        (0..50_u32, 50..5_000_u32)
            .prop_map(|(min, max)| json!({"type": "length", "min": min, "max": max})),
        (0..50_u32).prop_map(|max| json!({"type": "length", "max": max})),
        schemas.prop_map(|schema| json!({"type": "schema", "schema": schema})),
    ];
    (kind, text(), option::of(usable_condition())).prop_map(|(mut rule, message, condition)| {
        rule["message"] = message;
        put(&mut rule, "condition", condition);
        rule
    })
}

fn check() -> impl Strategy<Value = Value> {
    rule().prop_recursive(2, 6, 3, |inner| {
        let list = vec(inner.clone(), 0..3).prop_map(Value::from);
        prop_oneof![
            list.clone().prop_map(|list| json!({"and": list})),
            (list, inner.clone()).prop_map(|(list, not)| json!({"or": list, "not": not})),
            inner.prop_map(|not| json!({"not": not})),
        ]
    })
}

fn criteria() -> impl Strategy<Value = Value> {
    prop_oneof![check(), vec(check(), 0..3).prop_map(Value::from)]
}

fn confirmation() -> impl Strategy<Value = Value> {
    prop_oneof![any::<bool>().prop_map(Value::from), usable_condition()]
}

fn plain_step() -> impl Strategy<Value = Value> {
    (
        (text(), text(), option::of(text()), option::of(texts()), option::of(any::<bool>())),
        option::of(confirmation()),
        option::of(usable_condition()),
        option::of(criteria()),
        option::of(text()),
    )
        .prop_map(
            |((title, prompt, role, guidance, files), confirmation, run, criteria, hint)| {
                let mut step = json!({"title": title, "prompt": prompt});
                put(&mut step, "agentRole", role);
                put(&mut step, "guidance", guidance);
                put(&mut step, "askForFiles", files.map(Value::from));
                put(&mut step, "requireConfirmation", confirmation);
                put(&mut step, "runCondition", run);
                put(&mut step, "validationCriteria", criteria);
                put(&mut step, "modelHint", hint);
                step
            },
        )
}

fn looping() -> impl Strategy<Value = Value> {
    let name = || option::of(select(vec!["item", "_x", "roundNumber2"]).prop_map(Value::from));
    let kind = prop_oneof![
        usable_condition().prop_map(|condition| json!({"type": "while", "condition": condition})),
        usable_condition().prop_map(|condition| json!({"type": "until", "condition": condition})),
        (1..=10_u32).prop_map(|count| json!({"type": "for", "count": count})),
        Just(json!({"type": "for", "count": "how many"})),
        (name(), name()).prop_map(|(item, index)| {
            let mut each = json!({"type": "forEach", "items": "files.changed"});
            put(&mut each, "itemVar", item);
            put(&mut each, "indexVar", index);
            each
        }),
    ];
    (kind, 10..=1_000_u32, name()).prop_map(|(mut settings, bound, iteration)| {
        settings["maxIterations"] = json!(bound);
        put(&mut settings, "iterationVar", iteration);
        settings
    })
}

fn step() -> impl Strategy<Value = Value> {
    plain_step().prop_recursive(2, 5, 2, |inner| {
        let steps = vec(inner, 1..3).prop_map(Value::from);
        let body = prop_oneof![3 => steps, 1 => Just(json!("shared-step"))];
        let gates = (option::of(usable_condition()), option::of(confirmation()));
        (text(), looping(), body, gates).prop_map(|(title, settings, body, (run, confirmation))| {
            let mut step = json!({"type": "loop", "title": title, "loop": settings, "body": body});
            put(&mut step, "runCondition", run);
            put(&mut step, "requireConfirmation", confirmation);
            step
        })
    })
}

/// A definition without errors, which declares its variables or does not.
pub(crate) fn definition() -> impl Strategy<Value = Value> {
    prop_oneof![
        2 => undeclared_definition(),
        1 => (undeclared_definition(), vec((variable_name(), declaration()), 0..3), any::<bool>())
            .prop_map(|(definition, extra, optional)| declared(definition, extra, optional)),
    ]
}

fn variable_name() -> impl Strategy<Value = &'static str> {
    select(vec!["extra", "_under", "camelCase2", "A"])
}

fn declaration() -> impl Strategy<Value = Value> {
    let kind = prop_oneof![
        select(vec!["boolean", "string", "number", "integer", "list", "object"])
            .prop_map(|name| json!({"type": name})),
        vec(text(), 1..3).prop_map(|values| json!({"type": "string", "values": values})),
        vec(number(), 1..3).prop_map(|values| json!({"type": "number", "values": values})),
        select(vec!["boolean", "string", "integer"])
            .prop_map(|items| json!({"type": "list", "items": items})),
        Just(json!({"schema": {"type": ["number", "null"]}})),
        Just(json!({"schema": {}})),
    ];
    (kind, option::of(text())).prop_map(|(mut declaration, description)| {
        put(&mut declaration, "description", description);
        declaration
    })
}

/// The definition with a declaration of every variable that it uses, reported by a first step.
fn declared(mut definition: Value, extra: Vec<(&str, Value)>, is_optional: bool) -> Value {
    let mut names = BTreeSet::new();
    rename_variables(&mut definition, &mut names);
    let mut variables = Map::new();
    for path in &names {
        let mut parts = path.split('.');
        let name = parts.next().unwrap_or_default();
        let declaration = variables.entry(name).or_insert_with(|| json!({"schema": {}}));
        let mut schema = &mut declaration["schema"];
        // A gate wants all of a path to be there.
        for part in parts {
            schema["type"] = "object".into();
            match &mut schema["required"] {
                Value::Array(required) if required.iter().any(|name| name == part) => {}
                Value::Array(required) => required.push(part.into()),
                none => *none = json!([part]),
            }
            schema = &mut schema["properties"][part];
            if schema.is_null() {
                *schema = json!({});
            }
        }
    }
    let mut reports: Vec<String> = variables.keys().cloned().collect();
    for (name, declaration) in extra {
        if variables.insert(name.to_owned(), declaration).is_none() {
            reports.push(format!("{name}{}", if is_optional { "?" } else { "" }));
        }
    }
    if let Some(steps) = definition["steps"].as_array_mut() {
        let first = json!({"id": "first-step", "title": "T", "prompt": "P", "reports": reports});
        steps.insert(0, first);
    }
    definition["variables"] = variables.into();
    definition
}

/// Collects every variable that a definition uses, as a dotted path, and gives those another name that cannot be declared.
fn rename_variables(value: &mut Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                match value {
                    Value::String(name) if ["var", "count", "items"].contains(&&**field) => {
                        *name = name.replace(' ', "_");
                        names.insert(name.clone());
                    }
                    other => rename_variables(other, names),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename_variables(item, names)),
        Value::String(text) => {
            for piece in pieces(text) {
                if let Piece::Slot { inner, .. } = piece
                    && let Some(slot) = slot(inner)
                {
                    names.insert(slot.name.to_owned());
                }
            }
        }
        _ => {}
    }
}

fn undeclared_definition() -> impl Strategy<Value = Value> {
    let versions = select(vec!["0.0.1", "1.2.3-rc.1+b.5", "10.20.30"]);
    (
        (text(), text(), versions, option::of(text())),
        (option::of(texts()), option::of(texts()), option::of(texts())),
        option::of(Just(json!("0.0.9"))),
        vec(step(), 0..3),
    )
        .prop_map(|((name, description, version, category), lists, server, steps)| {
            let mut definition = json!({
                "id": "made.up", "name": name, "description": description, "version": version,
            });
            put(&mut definition, "category", category);
            put(&mut definition, "minServerVersion", server);
            put(&mut definition, "preconditions", lists.0);
            put(&mut definition, "clarificationPrompts", lists.1);
            put(&mut definition, "metaGuidance", lists.2);
            let mut steps = Value::from(steps);
            number_steps(&mut steps, &mut 0);
            let shared = json!({"id": "shared-step", "title": "Shared", "prompt": "Do it."});
            steps.as_array_mut().unwrap().push(shared);
            definition["steps"] = steps;
            definition
        })
}

fn number_steps(steps: &mut Value, next: &mut usize) {
    for step in steps.as_array_mut().into_iter().flatten() {
        step["id"] = json!(format!("step-{next}"));
        *next += 1;
        if let Some(body) = step.get_mut("body") {
            number_steps(body, next);
        }
    }
}

fn put(object: &mut Value, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        object[name] = value;
    }
}
