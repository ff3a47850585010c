//! What a person sees who decides: about a call that they confirm, and about what an upstream asks. Nothing in it is
//! unseen, what is left out is said first, and no upstream can speak with another voice than its own.

use orchestrator::{Form, Wanted};
use serde_json::{Map, Value};

use untrusted_text::{is_invisible, spell_out};

/// How much of a call's arguments is shown to who confirms it, and of what an upstream asks.
const SHOWN_BYTES_MAX: usize = 8 * 1024;
/// Where not all is shown, so many arguments still are, each with its name…
const ARGUMENTS_MAX: usize = 64;
/// …of at most so many bytes.
const NAME_BYTES_MAX: usize = 256;

/// Why nobody is asked.
const UNSEEN_NAMES: &str = "its form has names or values with letters that nobody can see";
const UNSEEN_ADDRESS: &str =
    "the address that it wants to be opened has letters that nobody can see";

/// What is confirmed, with all its arguments; how many there are where they are too many to be shown, even in part.
pub(super) fn confirmation(message: &str, arguments: &Map<String, Value>) -> Result<String, usize> {
    let message = spell_out(message);
    let whole = serde_json::to_string_pretty(arguments).unwrap_or_default();
    let whole = spell_out(&whole);
    if whole.len() <= SHOWN_BYTES_MAX {
        return Ok(format!("{message}\n\nWith these arguments:\n{whole}"));
    }
    let is_long = |name: &String| name.len() > NAME_BYTES_MAX;
    if arguments.len() > ARGUMENTS_MAX || arguments.keys().any(is_long) {
        return Err(arguments.len());
    }
    let texts: Vec<(String, String)> = arguments
        .iter()
        .map(|(name, value)| {
            let name = Value::String(name.clone()).to_string();
            (spell_out(&name).into_owned(), spell_out(&value.to_string()).into_owned())
        })
        .collect();
    let room = share(texts.iter().map(|(_, text)| text.len()).collect());
    let (mut lines, mut left_out, mut bytes) = (String::new(), 0, 0);
    for (name, text) in &texts {
        let (shown, without) = ends(text, room);
        lines += &format!("\n{name}: {shown}");
        (left_out, bytes) = (left_out + without, bytes + text.len());
    }
    Ok(format!(
        "{message}\n\nNOT ALL of the arguments is shown: {left_out} of {bytes} bytes are left out below.\n\nWith these \
         arguments:{lines}"
    ))
}

/// How long each of these may be, so that the short ones leave their room to the long ones.
fn share(mut lengths: Vec<usize>) -> usize {
    lengths.sort_unstable();
    let (mut room, mut left) = (SHOWN_BYTES_MAX, lengths.len());
    for length in lengths {
        if length > room / left {
            return room / left;
        }
        (room, left) = (room - length, left - 1);
    }
    SHOWN_BYTES_MAX
}

/// The beginning and the end of a text, and how many bytes there are between them.
fn ends(text: &str, room: usize) -> (String, usize) {
    if text.len() <= room {
        return (text.to_owned(), 0);
    }
    let head = text.floor_char_boundary(room * 3 / 4);
    let tail = text.ceil_char_boundary(text.len() - room / 4);
    let without = tail - head;
    (format!("{} […{without} bytes left out…] {}", &text[..head], &text[tail..]), without)
}

/// What an upstream asks, as a person may see it; or why it is not shown to anybody.
pub(super) fn asked(mut form: Form) -> Result<Form, &'static str> {
    form.message = said_by(&form.server, &form.message);
    match &mut form.wanted {
        Wanted::Values { schema } => clean(schema)?,
        Wanted::Visit { url, .. } if url.contains(is_invisible) => return Err(UNSEEN_ADDRESS),
        Wanted::Visit { .. } | Wanted::Confirmation { .. } => {}
    }
    Ok(form)
}

/// Whoever is asked must know who asks: each line of an upstream is marked as its own.
fn said_by(server: &str, message: &str) -> String {
    let message = message.replace("\r\n", "\n");
    let message = spell_out(message.trim_end());
    let shown = &message[..message.floor_char_boundary(SHOWN_BYTES_MAX)];
    let cut = match message.len() - shown.len() {
        0 => String::new(),
        left_out => format!(" ({left_out} bytes at the end are left out)"),
    };
    match shown.contains('\n') {
        true => format!("`{server}` asks{cut}:\n> {}", shown.replace('\n', "\n> ")),
        false => format!("`{server}` asks{cut}: {shown}"),
    }
}

/// What a form says about its fields is on one line each. Its names and values come back in the answer, so they are as they
/// are or not at all.
fn clean(schema: &mut Value) -> Result<(), &'static str> {
    let is_odd = |text: &str| text.contains(is_invisible);
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), &mut *value) {
                    ("title" | "description", Value::String(text)) => *text = on_one_line(text),
                    ("enumNames", Value::Array(names)) => {
                        for name in names {
                            if let Value::String(text) = name {
                                *text = on_one_line(text);
                            }
                        }
                    }
                    (name, _) if is_odd(name) => return Err(UNSEEN_NAMES),
                    (_, value) => clean(value)?,
                }
            }
            Ok(())
        }
        Value::Array(values) => values.iter_mut().try_for_each(clean),
        Value::String(text) if is_odd(text) => Err(UNSEEN_NAMES),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

fn on_one_line(text: &str) -> String {
    spell_out(&text.replace(['\n', '\r', '\t'], " ")).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn all_arguments_are_shown_and_what_is_left_out_is_said_first() {
        let hidden = format!("{}; rm -rf /", "A".repeat(100_000));
        let shown = confirmation(
            "`a.b` needs a yes\u{202e}",
            &arguments(
                json!({"command": hidden, "more": "B".repeat(50_000), "zz": "tail\u{200b}"}),
            ),
        )
        .unwrap();
        assert!(shown.len() < SHOWN_BYTES_MAX + 1_000);
        let short = shown.replace(&"A".repeat(3_000), "A~").replace(&"B".repeat(3_000), "B~");
        let short = short.replace(&"A".repeat(10), "").replace(&"B".repeat(10), "");
        insta::assert_snapshot!(short, @r#"
        `a.b` needs a yes\u202e

        NOT ALL of the arguments is shown: 141836 of 150026 bytes are left out below.

        With these arguments:
        "command": "A~AAAAAA […95923 bytes left out…] A; rm -rf /"
        "more": "B~BBBBBB […45913 bytes left out…] B"
        "zz": "tail\u200b"
        "#);
        let few = confirmation("m", &arguments(json!({"path": "/a\nb", "n": [1]}))).unwrap();
        assert_eq!(
            few,
            "m\n\nWith these arguments:\n{\n  \"n\": [\n    1\n  ],\n  \"path\": \"/a\\nb\"\n}"
        );
    }

    #[test]
    fn what_cannot_be_shown_is_not_asked_about() {
        let many = |count: usize| -> Map<String, Value> {
            (0..count).map(|at| (format!("n{at}"), json!("x".repeat(200)))).collect()
        };
        assert!(confirmation("m", &many(ARGUMENTS_MAX)).is_ok());
        assert_eq!(confirmation("m", &many(ARGUMENTS_MAX + 1)), Err(ARGUMENTS_MAX + 1));
        let long = arguments(json!({"n".repeat(NAME_BYTES_MAX + 1): "x".repeat(SHOWN_BYTES_MAX)}));
        assert_eq!(confirmation("m", &long), Err(1));
    }

    fn form(message: &str, wanted: Wanted) -> Form {
        Form { server: "notes".to_owned(), message: message.to_owned(), wanted }
    }

    #[test]
    fn an_upstream_cannot_pretend_to_be_another() {
        let said = |message: &str| {
            let wanted = Wanted::Values { schema: json!({}) };
            asked(form(message, wanted)).unwrap().message
        };
        assert_eq!(said("Your name?"), "`notes` asks: Your name?");
        insta::assert_snapshot!(
            said("x\r\n\n`files` asks: enter your password \u{1b}[2J\u{202e}\u{2028}`files` asks"),
            @r"
        `notes` asks:
        > x
        > 
        > `files` asks: enter your password \u001b[2J\u202e\u2028`files` asks
        "
        );
        let long = said(&"ä".repeat(10_000));
        assert!(
            long.starts_with("`notes` asks (11808 bytes at the end are left out): ää"),
            "{}",
            &long[..80]
        );
    }

    #[test]
    fn nothing_in_a_form_is_unseen() {
        let schema = json!({"properties": {"name": {
            "type": "string", "title": "Na\u{202e}me", "description": "a\n`files` asks: b",
            "enum": ["a"], "enumNames": ["A\u{200b}"], "default": "a",
        }}});
        let Wanted::Values { schema } = asked(form("?", Wanted::Values { schema })).unwrap().wanted
        else {
            panic!("it is another one")
        };
        assert_eq!(
            schema["properties"]["name"],
            json!({
                "type": "string", "title": "Na\\u202eme", "description": "a `files` asks: b",
                "enum": ["a"], "enumNames": ["A\\u200b"], "default": "a",
            })
        );
        for odd in [
            json!({"properties": {"na\u{200b}me": {"type": "string"}}}),
            json!({"properties": {"name": {"enum": ["a", "a\u{200b}"]}}}),
            json!({"properties": {"name": {"default": "\u{202e}"}}}),
        ] {
            assert_eq!(asked(form("?", Wanted::Values { schema: odd })), Err(UNSEEN_NAMES));
        }
        let visit = |url: &str| asked(form("?", Wanted::Visit { url: url.to_owned(), id: None }));
        assert!(visit("https://example.com/a?b=c").is_ok());
        assert_eq!(visit("https://example.com/\u{202e}a"), Err(UNSEEN_ADDRESS));
    }
}
