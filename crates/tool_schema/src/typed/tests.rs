use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn schema() -> Json {
    Json::from(&json!({
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "limit": {"type": "integer"},
            "ratio": {"type": "number"},
            "draft": {"type": "boolean"},
            "nothing": {"type": "null"},
            "state": {"enum": ["open", "closed", 3, true]},
            "labels": {"type": "array", "items": {"type": "string"}},
            "numbers": {"type": "array", "items": {"type": "number"}},
            "states": {"type": "array", "items": {"enum": ["a", "b"]}},
            "range": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": false, "minItems": 1},
            "points": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "number"}}}},
            "author": {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "additionalProperties": false},
            "deep": {"$ref": "#/$defs/deep"},
            "id": {"type": ["string", "number"]},
            "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "list_or_text": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
            "list_or_number": {"anyOf": [{"type": "number"}, {"type": "array", "items": {"type": "number"}}]},
            "one": {"oneOf": [
                {"type": "object", "properties": {"kind": {"const": "a"}, "n": {"type": "integer"}}, "additionalProperties": false},
                {"type": "object", "properties": {"kind": {"const": "b"}, "s": {"type": "string"}}, "additionalProperties": false},
            ]},
            "free": {},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
            "a.b": {"type": "integer"},
            "a=b": {"type": "string"},
        },
        "$defs": {"deep": {"type": "object", "properties": {"deep": {"$ref": "#/$defs/deep"}, "value": {"type": "integer"}}}},
    }))
}

fn said(words: &[&str]) -> String {
    match arguments(&schema(), words) {
        Ok(arguments) => Value::Object(arguments).to_string(),
        Err(errors) => {
            let told = |wrong: &Wrong| match &wrong.pointer {
                Some(pointer) => format!("{pointer}: {wrong}"),
                None => wrong.to_string(),
            };
            errors.iter().map(told).collect::<Vec<_>>().join("\n  ")
        }
    }
}

#[test]
fn words_are_read_by_the_schema() {
    let mut table = String::new();
    for words in [
        &[][..],
        &[
            "title=A title, with = and : in it",
            "limit=5",
            "ratio=0.5",
            "draft=true",
            "nothing=null",
        ],
        &["title="],
        &["title=5"],
        &["title:=5"],
        &["title:=\"5\""],
        &["title:=five"],
        &["limit=five"],
        &["limit=1.5"],
        &["limit=1.0"],
        &["limit=1e2"],
        &["limit= 5"],
        &["limit=0x10"],
        &["limit=99999999999999999999"],
        &["ratio=-1e-3"],
        &["ratio=NaN"],
        &["draft=yes"],
        &["nothing="],
        &["state=open", "states=a,b"],
        &["state=3"],
        &["state=true"],
        &["state=opened"],
        &["labels=bug"],
        &["labels=bug,urgent"],
        &["labels=bug", "labels=urgent,x"],
        &["labels="],
        &["labels=a\\,b,c"],
        &["labels=[\"a,b\"]", "labels=c"],
        &["labels:=[1]"],
        &["labels=[not json"],
        &["numbers=1,2.5"],
        &["numbers=1,two"],
        &["states=a,c"],
        &["range=a,5"],
        &["range=a"],
        &["range=a,b"],
        &["range=a,1,2"],
        &["range="],
        &["points={\"x\": 1}", "points={\"x\": 2}"],
        &["points=[{\"x\": 1}]"],
        &["points=1"],
        &["author.name=Ann", "author.age=5"],
        &["author={\"name\": \"Ann\"}"],
        &["author=Ann"],
        &["author.nme=Ann"],
        &["author.zzz=Ann"],
        &["author.name=Ann", "author:={}"],
        &["author:={}", "author.name=Ann"],
        &["author:=5", "author.name=Ann"],
        &["title.x=5"],
        &["deep.deep.value=5"],
        &["deep.deep.value=x"],
        &["id=5", "maybe=null"],
        &["id=007", "maybe=nul"],
        &["id=abc"],
        &["list_or_text=a,b"],
        &["list_or_text=[\"a\"]"],
        &["list_or_number=1"],
        &["list_or_number=1,2"],
        &["one.kind=b", "one.s=4"],
        &["one.kind=a", "one.n=4"],
        &["one.kind=c", "one.n=x", "one.z=1"],
        &["limit=12345678901234567890123", "ratio=0.12345678901234567890", "numbers=1,1e-400"],
        &["free=12345678901234567890123", "id=12345678901234567890123"],
        &["free:=[12345678901234567890123]"],
        &["free=text"],
        &["free=5"],
        &["free={\"a\": 1}"],
        &["free={a"],
        &["free=\"quoted\""],
        &["free.inner.more=1"],
        &["map.a=1", "map.b=2"],
        &["map.a=x"],
        &["a.b=5"],
        &["a\\=b=5"],
        &["titel=x"],
        &["colour=red"],
        &["colour.of.it=5"],
        &["title=a", "title=b"],
        &["title"],
        &["=5"],
        &[":=5"],
        &["titel=x", "limit=y", "z"],
    ] {
        let _ = writeln!(table, "{}\n  {}", words.join(" | "), said(words));
    }
    insta::assert_snapshot!(table);
}

#[test]
fn a_closed_schema_knows_all_its_properties() {
    let schema = Json::from(
        &json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false}),
    );
    let error = |word: &str| arguments(&schema, &[word]).unwrap_err().remove(0).to_string();
    insta::assert_snapshot!(error("other=1"), @"`other` is not known; there are `a`");
    insta::assert_snapshot!(error("other:=1"), @"`other` is not known; there are `a`");
    let none = Json::from(&json!({"type": "object", "additionalProperties": false}));
    let error = arguments(&none, &["x=1"]).unwrap_err().remove(0).to_string();
    insta::assert_snapshot!(error, @"`x` is not known; there are no properties");
}

#[test]
fn keys_lead_only_so_deep() {
    let error = |steps: usize| {
        let word = format!("free{}=1", ".a".repeat(steps));
        arguments(&schema(), &[word]).unwrap_err().remove(0).error
    };
    assert!(matches!(error(100), Error::TooDeep { .. }));
    assert!(matches!(error(100_000), Error::LongKey(200_004)));
}

proptest! {
    #[test]
    fn no_words_panic(words in prop::collection::vec("(title|labels|author|deep|a|free|range|)[.=:\\\\,\\[{\"a1é]{0,12}", 0..6)) {
        let _ = arguments(&schema(), &words);
    }

    /// Every text can be given to a property that is a text.
    #[test]
    fn texts_come_through(text in "\\PC{0,40}") {
        let found = arguments(&schema(), &[word("title", &Value::from(text.clone()))]).unwrap();
        prop_assert_eq!(&found["title"], &Value::from(text.clone()));
        let labels = json!([text, "b"]);
        let found = arguments(&schema(), &[word("labels", &labels)]).unwrap();
        prop_assert_eq!(&found["labels"], &labels);
    }

    /// Every name can be said, where it is known.
    #[test]
    fn names_come_through(name in "[a-c.=:\\\\ ]{1,8}", number in any::<i64>()) {
        let schema = Json::from(&json!({"type": "object", "properties": {&name: {"type": "integer"}}, "additionalProperties": false}));
        let word = word(&name, &Value::from(number));
        let found = arguments(&schema, std::slice::from_ref(&word));
        prop_assert_eq!(found.map(|found| found[&name].clone()), Ok(Value::from(number)), "{}", word);
    }
}
