//! Files that are no definitions at all, or that mean harm. Whatever comes in, reading comes to an end,
//! does not panic, and says what is wrong.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "a test reads its cases from files")]

use serde_json::{Value, json};
use workflow::limits::{FILE_BYTES_MAX, LOOP_LEVELS_MAX, NESTING_MAX};
use workflow::{Finding, Format, Reading, Scrutiny, read};

const GOOD_JSON: &str = include_str!("../cases/good-everything.json");
const GOOD_YAML: &str = include_str!("../cases/good-everything.yaml");

fn json(text: impl AsRef<[u8]>) -> Reading {
    read(text.as_ref(), Format::Json, Scrutiny::Compile)
}

fn yaml(text: impl AsRef<[u8]>) -> Reading {
    read(text.as_ref(), Format::Yaml, Scrutiny::Compile)
}

fn codes(reading: &Reading) -> Vec<&'static str> {
    reading.findings.iter().map(|finding| finding.code.name()).collect()
}

/// The one finding of a file that cannot be used.
#[track_caller]
fn only(reading: Reading) -> Finding {
    assert!(reading.workflow.is_none());
    match <[Finding; 1]>::try_from(reading.findings) {
        Ok([finding]) => finding,
        Err(findings) => panic!("not one finding: {findings:#?}"),
    }
}

/// The code, line and column of the one finding, and its message.
#[track_caller]
fn told(reading: Reading) -> (&'static str, Option<(usize, usize)>, String) {
    let finding = only(reading);
    let place = finding.place.map(|place| (place.line, place.column));
    (finding.code.name(), place, finding.message.into())
}

/// A small good definition with one step, as a value to be spoilt.
fn definition() -> Value {
    json!({
        "id": "small-one", "name": "Small", "description": "One step", "version": "1.0.0",
        "steps": [{"id": "only-step", "title": "Only", "prompt": "Do it."}],
    })
}

/// A step with a rule whose `schema` is this text.
fn with_schema(schema: &str) -> String {
    let mut definition = definition();
    definition["steps"][0]["validationCriteria"] =
        json!({"type": "schema", "schema": "HERE", "message": "Answer in JSON"});
    definition.to_string().replace("\"HERE\"", schema)
}

/// A step whose condition is this text.
fn with_condition(condition: &str) -> String {
    let mut definition = definition();
    definition["steps"][0]["runCondition"] = json!("HERE");
    definition.to_string().replace("\"HERE\"", condition)
}

#[test]
fn what_the_others_are_spoilt_from_is_good() {
    assert_eq!(codes(&json(GOOD_JSON)), [""; 0]);
    assert_eq!(codes(&yaml(GOOD_YAML)), [""; 0]);
    assert_eq!(codes(&json(definition().to_string())), [""; 0]);
    assert_eq!(codes(&json(with_schema("{}"))), [""; 0]);
    assert_eq!(codes(&json(with_condition("{}"))), [""; 0]);
}

#[test]
fn nothing_in_the_file() {
    for text in ["", " ", "\n\n\t \r\n"] {
        for reading in [json(text), yaml(text.replace('\t', " "))] {
            let finding = only(reading);
            assert_eq!(finding.code.name(), "W001", "{text:?}");
            assert!(finding.hint.unwrap().contains("workflowlookup new"), "{text:?}");
        }
    }
    assert_eq!(told(yaml("# only a comment\n")).0, "W001");
}

#[test]
fn not_json() {
    let (code, place, message) = told(json("steps: none"));
    assert_eq!((code, place), ("W001", Some((1, 1))));
    assert_eq!(message, "expected value");
    for text in ["Dear agent, do it.", "nothing", "5 apples", "<workflow/>"] {
        let hint = only(json(text)).hint.unwrap_or_default();
        assert_eq!(&*hint, "a definition in JSON begins with `{`", "{text}");
    }
    for half in [r#""\ud800""#, r#""\ud800\n""#, r#""\udc00""#, r#""\ud800\u0041""#] {
        let hint = only(json(format!("{{\"id\": {half}}}"))).hint.unwrap_or_default();
        assert!(hint.contains("surrogate pair"), "{half}: {hint}");
    }
    // The last line that there is.
    assert_eq!(told(json("{\n  \"id\": [\n\n")).1, Some((2, 10)));
    assert_eq!(told(json("{\"id\": \"abc\"} and more")).1, Some((1, 15)));
    assert_eq!(told(json("{'id': 'abc'}")).1, Some((1, 2)));
    assert_eq!(told(json("<workflow/>")).0, "W001");
}

#[test]
fn json_cut_off_at_every_byte() {
    let whole = GOOD_JSON.trim_end();
    for end in 0..whole.len() {
        let reading = json(&whole.as_bytes()[..end]);
        assert_eq!(codes(&reading), ["W001"], "cut at byte {end}");
        assert!(reading.workflow.is_none());
    }
}

#[test]
fn yaml_cut_off_at_every_byte() {
    let mut good = 0;
    for end in 0..GOOD_YAML.len() {
        let reading = yaml(&GOOD_YAML.as_bytes()[..end]);
        // YAML has no closing brackets to miss: a shorter file may be a good one.
        let is_good = !reading.findings.iter().any(Finding::blocks);
        assert_eq!(reading.workflow.is_some(), is_good, "cut at byte {end}");
        good += usize::from(is_good);
    }
    let share = good * 100 / GOOD_YAML.len();
    assert!((1..50).contains(&share), "{share} % of the cuts leave a good file");
}

#[test]
fn not_utf_8() {
    let mut in_text = definition().to_string().into_bytes();
    let at = in_text.windows(5).position(|window| window == b"Small").unwrap();
    in_text[at] = 0xff;
    let (code, place, message) = told(json(&in_text));
    assert_eq!((code, place), ("W002", Some((1, at + 1))));
    assert_eq!(message, format!("the file is not UTF-8: byte {} is wrong", at + 1));

    assert_eq!(told(json(b"{\n  \xe9")).1, Some((2, 3)));
    assert_eq!(told(yaml(b"id: caf\xe9\n")).0, "W002");
    // An overlong slash, half a surrogate pair, and a character cut off.
    for bytes in [&b"\"\xc0\xaf\""[..], b"\"\xed\xa0\x80\"", b"\"\xe2\x82"] {
        assert_eq!(told(json(bytes)).0, "W002", "{bytes:?}");
    }
}

#[test]
fn utf_16() {
    let text = definition().to_string();
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for bytes in [[b"\xff\xfe", &little[..]].concat(), [b"\xfe\xff", &big[..]].concat()] {
        for reading in [json(&bytes), yaml(&bytes)] {
            let (code, place, message) = told(reading);
            assert_eq!((code, place), ("W002", None));
            assert_eq!(message, "the file is UTF-16, not UTF-8");
        }
    }
    // Without a mark it is valid UTF-8 with many NULs.
    assert_eq!(told(json(&little)).0, "W002");
    assert_eq!(told(yaml(&big)).0, "W002");
}

#[test]
fn a_byte_order_mark_is_skipped() {
    for reading in [json(format!("\u{feff}{GOOD_JSON}")), yaml(format!("\u{feff}{GOOD_YAML}"))] {
        assert_eq!(codes(&reading), ["W003"]);
        assert!(reading.workflow.is_some());
    }
    // Places count from behind it.
    let reading = json("\u{feff}{\"id\": 5}");
    let place = reading.findings.iter().find(|finding| &*finding.pointer == "/id");
    assert_eq!(place.unwrap().place.unwrap().column, 8);
    assert_eq!(codes(&json("\u{feff}")), ["W003", "W001"]);
}

#[test]
fn nul_bytes() {
    assert_eq!(told(json("{\0}")).0, "W001");
    assert_eq!(told(json("{\"id\": \"a\0b\"}")).0, "W001");
    assert_eq!(told(json(format!("{GOOD_JSON}\0"))).0, "W001");
    assert_eq!(told(json("\0\0\0\0")).0, "W001");
    // Escaped it is a character like others, though not in an id.
    let mut spoilt = definition();
    spoilt["id"] = json!("nul\0byte");
    assert_eq!(codes(&json(spoilt.to_string())), ["W014"]);
    assert_eq!(told(yaml(format!("{}\0", small_yaml()))).0, "W001");
    for text in ["a\0b", "\"a\0b\"", "abc\0", "abc # \0"] {
        let finding = only(yaml(small_yaml().replace("small-one", text)));
        assert_eq!((finding.code.name(), finding.hint), ("W001", None), "{text:?}");
    }
}

#[test]
fn a_large_file_is_not_looked_at() {
    let padding = " ".repeat(FILE_BYTES_MAX - definition().to_string().len());
    assert_eq!(codes(&json(format!("{}{padding}", definition()))), [""; 0]);
    let (code, place, message) = told(json(format!("{}{padding} ", definition())));
    assert_eq!((code, place), ("W004", None));
    assert_eq!(message, "the file is larger than 1048576 bytes");
    assert_eq!(told(yaml("#".repeat(2 * FILE_BYTES_MAX))).0, "W004");
}

#[test]
fn deep_json() {
    let tower = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let nots = |depth: usize| format!("{}{{}}{}", "{\"not\":".repeat(depth), "}".repeat(depth));
    for text in [
        tower(10_000),
        "[".repeat(500_000),
        "{\"a\":".repeat(10_000),
        with_schema(&format!("{{\"const\":{}}}", tower(10_000))),
        with_condition(&nots(10_000)),
        with_condition(&format!("{{\"var\":\"a\",\"equals\":{}}}", tower(10_000))),
    ] {
        assert_eq!(told(json(text)).0, "W005");
    }
    // The bound is the same wherever the nesting is, and whether or not something else is wrong.
    let around_condition = 3;
    let deepest = nots(NESTING_MAX - around_condition - 1);
    assert_eq!(codes(&json(with_condition(&deepest))), [""; 0]);
    assert_eq!(told(json(with_condition(&format!("{{\"not\":{deepest}}}")))).0, "W005");
    // Brackets in texts are not nesting, whatever stands before the quotes.
    let brackets = json!({"a\\": "[".repeat(100), "\"": "\\\"{".repeat(100)});
    assert_eq!(codes(&json(with_schema(&brackets.to_string()))), [""; 0]);
}

#[test]
fn deep_yaml() {
    let flow = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    assert_eq!(told(yaml(&flow)).0, "W005");
    assert_eq!(told(yaml("[".repeat(10_000))).0, "W005");
    assert_eq!(told(yaml("{a: ".repeat(10_000))).0, "W005");
    assert_eq!(told(yaml("- ".repeat(10_000))).0, "W005");
    let block: String = (0..1_000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    assert_eq!(told(yaml(block)).0, "W005");
    // Aliases nest as well.
    let mut stairs = String::from("s0: &s0 [[[[[[[[[[]]]]]]]]]]\n");
    for step in 1..1_000 {
        stairs.push_str(&format!("s{step}: &s{step} [[[[[[[[[[*s{}]]]]]]]]]]\n", step - 1));
    }
    assert_eq!(told(yaml(stairs)).0, "W005");
    // Exactly as deep as allowed, and one level deeper.
    let nots = |depth: usize| format!("{}{{}}{}", "{not: ".repeat(depth), "}".repeat(depth));
    let deepest = NESTING_MAX - 4;
    let text = |depth| format!("{}    runCondition: {}\n", small_yaml(), nots(depth));
    assert_eq!(codes(&yaml(text(deepest))), [""; 0]);
    assert_eq!(told(yaml(text(deepest + 1))).0, "W005");
}

fn small_yaml() -> &'static str {
    "id: small-one\nname: Small\ndescription: One step\nversion: 1.0.0\nsteps:\n  - id: only-step\n    \
     title: Only\n    prompt: Do it.\n"
}

#[test]
fn aliases() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..20 {
        let inner = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{inner}]\n"));
    }
    assert_eq!(told(yaml(bomb)).0, "W006");
    assert_eq!(told(yaml("a: &a\n  b: [*a]\n")).0, "W006");
    assert_eq!(told(yaml("&a [*a]")).0, "W006");
    assert_eq!(told(yaml("a: *nobody")).0, "W001");
    // An honest alias is what it names.
    let text = format!("{}    guidance: &g [Be calm]\nmetaGuidance: *g\n", small_yaml());
    let workflow = yaml(text).workflow.unwrap();
    assert_eq!(&*workflow.meta_guidance, ["Be calm".into()]);
}

#[test]
fn two_documents() {
    let (code, place, message) = told(yaml(format!("{0}---\n{0}", small_yaml())));
    assert_eq!((code, place), ("W001", Some((9, 1))));
    assert_eq!(message, "the file holds a second document");
    assert_eq!(codes(&yaml(format!("---\n{}...\n", small_yaml()))), [""; 0]);
    assert_eq!(told(json(format!("{0}{0}", definition()))).0, "W001");
}

#[test]
fn duplicate_keys() {
    let text = definition().to_string();
    let twice = text.replacen("\"name\":", "\"name\":\"Other\",\"name\":", 1);
    let finding = only(json(&twice));
    assert_eq!((finding.code.name(), &*finding.pointer), ("W007", "/name"));
    // Every one is reported, deep inside too, and beside other problems.
    let three = twice.replacen("\"title\":", "\"title\":1,\"title\":\"A\",\"title\":", 1);
    assert_eq!(codes(&json(three)), ["W007", "W007", "W007"]);
    // Escapes do not hide it.
    let escaped = text.replacen("\"name\":", "\"n\\u0061me\":\"Other\",\"name\":", 1);
    assert_eq!(codes(&json(escaped)), ["W007"]);
    assert_eq!(codes(&yaml(format!("{}name: Other\n", small_yaml()))), ["W007"]);
    // Inside a rule's schema typed reading does not look, but an author should know.
    let in_schema = json(with_schema("{\"type\":\"string\",\"type\":\"object\"}"));
    assert_eq!(codes(&in_schema), ["W007"]);
}

#[test]
fn half_a_surrogate_pair() {
    for escape in [r"\ud83d", r"\ude00", r"\ud83d\ud83d", r"\ud83dx"] {
        let text = definition().to_string().replace("Do it.", escape);
        assert_eq!(told(json(&text)).0, "W001", "{escape}");
        assert_eq!(told(json(with_schema(&format!("{{\"const\":\"{escape}\"}}")))).0, "W001");
    }
    let whole = definition().to_string().replace("Do it.", r"\ud83d\ude00");
    assert_eq!(codes(&json(whole)), [""; 0]);
}

#[test]
fn huge_numbers() {
    let digits = format!("1{}", "0".repeat(400));
    for number in ["1e999", "-1e999", digits.as_str()] {
        let (code, _, message) =
            told(json(with_condition(&format!("{{\"var\":\"a\",\"gt\":{number}}}"))));
        assert_eq!((code, message.as_str()), ("W001", "number out of range"), "{number}");
        assert_eq!(told(json(with_schema(&format!("{{\"const\":{number}}}")))).0, "W001");
        let in_yaml = format!("{}    runCondition: {{var: a, gt: {number}}}\n", small_yaml());
        let (code, place, message) = told(yaml(in_yaml));
        assert_eq!((code, message.as_str()), ("W001", "number out of range"), "{number}");
        assert_eq!(place, Some((9, 32)));
    }
    // Large, but numbers still.
    for number in ["1e308", "18446744073709551615", "100000000000000000000000"] {
        let condition = format!("{{\"var\":\"a\",\"gt\":{number}}}");
        assert_eq!(codes(&json(with_condition(&condition))), [""; 0], "{number}");
    }
    for number in ["4294967296", "1e20", "-1", "1001"] {
        assert_eq!(codes(&json(with_loop(&format!("\"maxIterations\":{number}")))), ["W019"]);
    }
}

/// A `for` loop with these settings.
fn with_loop(settings: &str) -> String {
    let mut definition = definition();
    definition["steps"][0] = json!({
        "id": "only-step", "type": "loop", "title": "Only", "loop": "HERE",
        "body": [{"id": "inner-step", "title": "Inner", "prompt": "Do it."}],
    });
    let settings = format!("{{\"type\":\"for\",\"count\":1,{settings}}}");
    definition.to_string().replace("\"HERE\"", &settings)
}

#[test]
fn whole_numbers_may_be_written_with_a_fraction_of_nothing() {
    for number in ["5", "5.0", "0.5e1", "50e-1"] {
        let reading = json(with_loop(&format!("\"maxIterations\":{number}")));
        assert_eq!(codes(&reading), [""; 0], "{number}");
        assert!(reading.workflow.is_some());
    }
    for number in ["5.5", "\"5\"", "[5]", "true"] {
        assert_eq!(codes(&json(with_loop(&format!("\"maxIterations\":{number}")))), ["W011"]);
    }
    let twice = json(with_loop("\"maxIterations\":5").replace("\"count\":1", "\"count\":2.0"));
    assert_eq!(codes(&twice), [""; 0]);
}

#[test]
fn a_definition_is_an_object() {
    for (text, is) in [
        ("[]", "a list"),
        ("\"id\"", "the text \"id\""),
        ("5", "the number 5"),
        ("true", "true"),
        ("null", "null"),
    ] {
        for reading in [json(text), yaml(text)] {
            let (code, place, message) = told(reading);
            assert_eq!((code, place), ("W011", Some((1, 1))), "{text}");
            assert_eq!(message, format!("the definition must be an object, but is {is}"));
        }
    }
    assert_eq!(codes(&json("{}")), ["W010"; 5]);
}

/// An optional field is absent, or has a value: null is somebody's mistake.
#[test]
fn null_for_every_optional_field() {
    let good: Value = serde_json::from_str(GOOD_JSON).unwrap();
    let mut places = Vec::new();
    each_field(&good, "", &mut places);
    let is_value = |place: &str| {
        ["/equals", "/not_equals", "/contains"].iter().any(|operator| place.ends_with(operator))
            || place.contains("/schema/")
    };
    let mut tried = std::collections::BTreeSet::new();
    for place in places.iter().filter(|place| !is_value(place)) {
        let mut spoilt = good.clone();
        *spoilt.pointer_mut(place).unwrap() = Value::Null;
        let reading = json(spoilt.to_string());
        let found = reading.findings.iter().find(|finding| *finding.pointer == **place);
        let found = found.unwrap_or_else(|| panic!("nothing at {place}: {reading:#?}"));
        assert_eq!(found.code.name(), "W011", "{place}");
        assert!(found.message.ends_with("but is null"), "{place}: {}", found.message);
        tried.insert(place.rsplit_once('/').unwrap().1);
    }
    for field in optional_fields() {
        assert!(tried.contains(&*field) || is_value(&format!("/{field}")), "{field} was not tried");
    }
}

fn each_field(value: &Value, pointer: &str, places: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                places.push(format!("{pointer}/{name}"));
                each_field(inner, &format!("{pointer}/{name}"), places);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                each_field(item, &format!("{pointer}/{index}"), places);
            }
        }
        _ => {}
    }
}

/// Every field that some object of the schema has, but need not have.
fn optional_fields() -> Vec<String> {
    let schema: Value = serde_json::from_str(&workflow::schema_text()).unwrap();
    let objects = schema["$defs"].as_object().unwrap().values().chain([&schema]);
    let fields = objects.flat_map(|object| {
        let required = object["required"].as_array().cloned().unwrap_or_default();
        let names = object["properties"].as_object().into_iter().flat_map(|all| all.keys());
        names.filter(move |name| !required.contains(&json!(name))).cloned().collect::<Vec<_>>()
    });
    fields.collect()
}

/// Only criteria that a step may have leave the workflow usable; elsewhere the name means nothing.
#[test]
fn criteria_at_the_wrong_place() {
    let rule = json!({"type": "contains", "value": "a", "message": "A"});
    let mut spoilt = definition();
    spoilt["validationCriteria"] = rule.clone();
    assert_eq!(told(json(spoilt.to_string())).0, "W012");

    let on_loop = with_loop("\"maxIterations\":5").replacen(
        "\"title\"",
        "\"validationCriteria\":[],\"title\"",
        2,
    );
    let finding = only(json(on_loop));
    assert_eq!((finding.code.name(), &*finding.pointer), ("W012", "/steps/0/validationCriteria"));

    let mut broken = definition();
    broken["steps"][0]["validationCriteria"] = json!([rule, {"type": "rhyme"}]);
    let reading = json(broken.to_string());
    assert_eq!(codes(&reading), ["W041", "W040"]);
    assert!(reading.workflow.is_some());
}

/// Reading into types would take a list of values for an object.
#[test]
fn a_list_is_no_object() {
    let values = |object: &Value| Value::from_iter(object.as_object().unwrap().values().cloned());
    let good = definition();
    assert_eq!(codes(&json(values(&good).to_string())), ["W011"]);
    let mut spoilt = good.clone();
    spoilt["steps"][0] = values(&good["steps"][0]);
    assert_eq!(codes(&json(spoilt.to_string())), ["W011"]);
    assert_eq!(codes(&json(with_condition("[]"))), ["W011"]);
    assert_eq!(codes(&json(with_condition("{\"and\": [[]]}"))), ["W011"]);
}

/// As many mistakes as fit into a file: the answer stays small, and comes soon.
#[test]
fn thousands_of_mistakes() {
    let plain = r##"{"id":"s-#","title":"A","prompt":"B"}"##;
    let slots = r##"{"id":"s-#","title":"A","prompt":"{{a#}}{{b#}}{{c}}"}"##;
    let rules = r##"{"validationCriteria":{"type":"x"}}"##;
    let bodies = r##"{"id":"s-#","title":"A","type":"loop","body":"t-#","loop":{"type":"for","count":1,"maxIterations":1}}"##;
    let fields: String = (0..60_000).map(|at| format!("\"f{at}\":1,")).collect();
    let keys = "\"k\":1,".repeat(100_000);
    let long = "x".repeat(500_000);
    for (code, text) in [
        ("W010", many_steps("{}")),
        ("W011", many_steps("5")),
        ("W011", many_steps("{\"id\":1}")),
        ("W021", many_steps(&plain.replace('#', "1"))),
        ("W022", many_steps(bodies)),
        ("W040", many_steps(rules)),
        ("W050", many_steps(slots)),
        ("W012", format!("{{{fields}\"id\":1}}")),
        ("W007", format!("{{{keys}\"id\":1}}")),
        ("W012", format!("{{\"{long}\":1,\"id\":\"{long}\"}}")),
    ] {
        assert!(text.len() > FILE_BYTES_MAX / 2 && text.len() <= FILE_BYTES_MAX);
        let reading = json(&text);
        assert!(codes(&reading).contains(&code), "{code}: {:?}", codes(&reading).first());
        assert!(reading.findings.len() <= 3_000, "{code}: {}", reading.findings.len());
        // A warning, however often, leaves it usable.
        assert_eq!(reading.workflow.is_some(), code == "W050", "{code}");
    }
}

/// A large definition with this step again and again, numbered at every `#`.
fn many_steps(step: &str) -> String {
    let head = definition().to_string().replace("\"steps\":[", "\"steps\":[HERE,");
    let mut steps = Vec::new();
    let mut left = FILE_BYTES_MAX - head.len();
    for number in 0.. {
        let step = step.replace('#', &number.to_string());
        match left.checked_sub(step.len() + 1) {
            Some(rest) => left = rest,
            None => break,
        }
        steps.push(step);
    }
    head.replace("HERE", &steps.join(","))
}

/// An error that is not shown because there are so many findings counts nevertheless.
#[test]
fn an_error_behind_a_thousand_findings_counts() {
    let mut definition = definition();
    let rule = json!({"type": "contains", "value": "a", "flags": "i", "message": "A"});
    definition["steps"][0]["validationCriteria"] = vec![rule; 2_000].into();
    let warned = json(definition.to_string());
    assert_eq!(codes(&warned), ["W048"; 1_000]);
    let hints: Vec<&str> =
        warned.findings.iter().filter_map(|finding| finding.hint.as_deref()).collect();
    let more = "there may be more warnings, which are not shown";
    assert!(hints[999].ends_with(more), "{}", hints[999]);
    assert_eq!(hints.iter().filter(|hint| hint.contains(more)).count(), 1);
    assert!(warned.workflow.is_some());

    definition["steps"][0]["runCondition"] = json!({"or": []});
    let reading = json(definition.to_string());
    assert!(codes(&reading).contains(&"W025"));
    assert!(reading.workflow.is_none());

    let bad = json!({"type": "regex", "pattern": "(", "message": "A"});
    definition["steps"][0]["validationCriteria"] = vec![bad; 1_001].into();
    definition["steps"][0]["runCondition"] = json!({});
    assert!(json(definition.to_string()).workflow.is_none());
}

/// Small texts that would take long to think through.
#[test]
fn expensive_conditions() {
    let members =
        |condition: &dyn Fn(usize) -> Value, count| (0..count).map(condition).collect::<Vec<_>>();
    let differ = members(&|at| json!({"var": "a", "not_equals": at}), 20_000);
    let choices =
        members(&|at| json!({"or": [{"var": "a", "equals": at}, {"var": "b", "gt": at}]}), 5_000);
    let many: Vec<usize> = (0..60_000).collect();
    let more: Vec<usize> = (60_000..90_000).collect();
    for condition in [
        json!({"and": differ}),
        json!({"or": differ}),
        json!({"and": choices}),
        json!({"not": {"or": choices}}),
        json!({"and": [{"var": "a", "in": many}, {"var": "a", "in": more}]}),
        json!({"not": {"not": {"var": "a", "in": many}}}),
    ] {
        let reading = json(with_condition(&condition.to_string()));
        assert_eq!(codes(&reading), [""; 0], "{}", condition.to_string().len());
    }
}

#[test]
fn loops_in_a_row_by_name() {
    let row = |count: usize| {
        let mut definition = definition();
        let steps = (0..count).map(|at| {
            json!({
                "id": format!("loop-{at}"), "type": "loop", "title": "Loop",
                "loop": {"type": "for", "count": 1, "maxIterations": 1},
                "body": format!("loop-{}", at + 1),
            })
        });
        let last = json!({"id": format!("loop-{count}"), "title": "Last", "prompt": "Do it."});
        definition["steps"] = steps.chain([last]).collect();
        json(definition.to_string())
    };
    assert_eq!(codes(&row(LOOP_LEVELS_MAX)), [""; 0]);
    let finding = only(row(LOOP_LEVELS_MAX + 1));
    assert_eq!((finding.code.name(), &*finding.pointer), ("W005", "/steps/32/body"));
    assert_eq!(told(row(6_000)).0, "W005");
}

/// Patterns that are small to write and large to compile, as many as fit into a file.
#[test]
fn thousands_of_large_patterns() {
    let read = |pattern: &str| {
        let rule =
            |at| json!({"type": "regex", "pattern": format!("{pattern}{at}"), "message": "A"});
        let mut large = definition();
        large["steps"][0]["validationCriteria"] = (0..10_000).map(rule).collect();
        json(large.to_string())
    };
    let reading = read(r"\p{L}{900}");
    assert_eq!(codes(&reading), ["W043"; 50]);
    let hint = reading.findings[49].hint.as_deref().unwrap();
    assert!(hint.ends_with("there may be more errors, which are not shown"), "{hint}");
    // What looks around is another program, in which a class is one instruction.
    assert_eq!(codes(&read(r"(?<=x)\p{L}{900}")), [""; 0]);
}

/// Loops with gates that share one body: each is compared with all before it, within one budget.
#[test]
fn gates_of_many_loops_are_checked_within_a_budget() {
    let shared = |count: usize| {
        let plain = |id: String| json!({"id": id, "title": "T", "prompt": "P"});
        let count_once = json!({"type": "for", "count": 1, "maxIterations": 1});
        let mut body: Vec<Value> =
            (0..count).map(|number| plain(format!("step-{number}"))).collect();
        body.push(json!({
            "id": "gate", "title": "T", "prompt": "P", "reports": ["ok"], "requireConfirmation": true,
        }));
        let until = json!({"type": "until", "condition": {"var": "ok"}, "maxIterations": 2});
        let mut steps: Vec<Value> = (0..count)
            .map(|number| {
                let id = format!("loop-{number}");
                json!({"id": id, "type": "loop", "title": "T", "loop": until, "body": "shared"})
            })
            .collect();
        steps.push(json!({
            "id": "shared", "type": "loop", "title": "T", "loop": count_once, "body": body,
        }));
        let definition = json!({
            "id": "many.loops", "name": "N", "description": "D", "version": "1.0.0",
            "variables": {"ok": {"type": "boolean"}}, "steps": steps,
        });
        let reading = read(definition.to_string().as_bytes(), Format::Json, Scrutiny::Compile);
        let unchecked = |finding: &Finding| finding.message.contains("cannot be checked");
        reading.findings.iter().any(unchecked)
    };
    assert!(!shared(100));
    assert!(shared(600));
}
