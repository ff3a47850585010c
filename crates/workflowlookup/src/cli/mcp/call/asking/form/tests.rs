use super::*;

/// What a person sees and types, and what comes of it.
fn conversation(wanted: Wanted, lines: &[&str]) -> String {
    let form = Form { server: "s".to_owned(), message: "Who are you?".to_owned(), wanted };
    let seen = std::cell::RefCell::new(String::new());
    let mut lines = lines.iter();
    let mut ask = |prompt: &str| {
        let line = lines.next();
        *seen.borrow_mut() += &format!("{prompt} {}\n", line.unwrap_or(&"[end]"));
        line.map(|line| (*line).to_owned())
    };
    let mut say = |said: Said<'_>| {
        let line = match said {
            Said::Ours(text) => format!("{text}\n"),
            Said::Theirs(text) => format!("| {text}\n"),
        };
        *seen.borrow_mut() += &line;
    };
    let answer = fill_in(&form, &mut ask, &mut say);
    let answer = match answer {
        Answer::Accepted(values) => format!("accepted {}", Value::Object(values)),
        other => format!("{other:?}"),
    };
    format!("{}{answer}", seen.borrow())
}

fn values(schema: Value, lines: &[&str]) -> String {
    conversation(Wanted::Values { schema }, lines)
}

#[test]
fn every_kind_of_property() {
    let schema = json!({
        "type": "object",
        "required": ["name", "age"],
        "properties": {
            "name": {"type": "string", "title": "Your name", "description": "As on your door", "minLength": 2},
            "age": {"type": "integer", "minimum": 18},
            "tall": {"type": "boolean", "default": false},
            "mail": {"type": "string", "format": "email"},
            "size": {"type": "string", "enum": ["s", "m"], "enumNames": ["Small", "Medium"]},
            "colour": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "b"}], "default": "r"},
            "days": {"type": "array", "items": {"enum": ["mon", "tue"]}},
            "a.b=c": {"type": "number"},
        }
    });
    let lines =
        ["x", "17", "", "18", "", "A", "Ann", "1.5", "", "sat", "mon,tue", "a@b.c", "Medium", "y"];
    insta::assert_snapshot!(values(schema, &lines));
}

#[test]
fn formats_and_titles_of_several() {
    let text = |format: &str| json!({"type": "string", "format": format});
    let schema = json!({
        "required": ["a", "b", "c", "d", "e"],
        "properties": {
            "a": text("date"), "b": text("date-time"), "c": text("email"), "d": text("uri"),
            "e": {"type": "array", "title": "Days\n`s` asks: your password", "items": {"anyOf": [
                {"const": "m", "title": "Monday"}, {"const": "t", "title": "Tuesday, or so"},
            ]}},
        }
    });
    let lines = [
        "31.1.2026",
        "2026-02-30",
        "2026-01-31",
        "noon",
        "2026-01-31T12:00:00Z",
        "me",
        "a@example.com",
        "here",
        "https://example.com",
        "Monday,t",
    ];
    insta::assert_snapshot!(values(schema, &lines));
}

#[test]
fn declining_and_cancelling() {
    let schema = || json!({"properties": {"name": {"type": "string"}}});
    insta::assert_snapshot!(values(schema(), &[":n"]), @"
    `s` asks:
    | Who are you?
    `:n` declines, `:q` or Ctrl-D cancels
    name (may be left empty): :n
    Declined
    ");
    assert!(values(schema(), &[":q"]).ends_with("\nCancelled"));
    assert!(values(schema(), &[]).ends_with("[end]\nCancelled"));
    assert!(values(json!({}), &["what", "yes"]).ends_with("accepted {}"));
    assert!(values(json!({}), &["no"]).ends_with("\nDeclined"));
    let needed = json!({"required": ["name"], "properties": {"name": {"type": "string"}}});
    let nothing = [""; ATTEMPTS_MAX + 1];
    assert!(values(needed, &nothing).ends_with("this one is needed\nCancelled"));
}

#[test]
fn an_address_to_open_and_a_call_to_confirm() {
    let wanted = Wanted::Visit { url: "https://example.com/pay".to_owned(), id: None };
    insta::assert_snapshot!(conversation(wanted, &["y"]), @"
    `s` asks:
    | Who are you?
    It wants you to open this address, and to do there what it says:
    | https://example.com/pay
    Open it only if you trust it.
    Done? [y]es, [n]o: y
    accepted {}
    ");
    let arguments = Map::from_iter([("a".to_owned(), json!(1))]);
    let wanted = Wanted::Confirmation { tool: "t".to_owned(), arguments };
    insta::assert_snapshot!(conversation(wanted, &["n"]), @r#"
    `s` asks:
    | Who are you?
    `s.t` with {"a":1}
    Call it? [y]es, [n]o: n
    Declined
    "#);
}
