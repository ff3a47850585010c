//! What comes back that is no text: saved, and never over another file.

use super::*;

fn painter() -> Place {
    let result = json!({"content": [
        {"type": "text", "text": "Here it is."},
        {"type": "image", "mimeType": "image/png", "data": "aGVsbG8="},
        {"type": "audio", "mimeType": "audio/wav", "data": "d29ybGQ="},
        {"type": "resource_link", "uri": "file:///a.txt", "name": "a.txt", "mimeType": "text/plain"},
        {"type": "resource", "resource": {"uri": "file:///b.txt", "mimeType": "text/plain", "text": "inside"}},
        {"type": "resource", "resource": {"uri": "file:///c.pdf", "mimeType": "application/pdf", "blob": "aGVsbG8="}},
        {"type": "image", "mimeType": "image/png", "data": "?"},
    ]});
    fake(Fake::new().call("plain", json!({}), result))
}

#[test]
fn images_become_files() {
    let place = painter();
    let files = |folder: &str| {
        let mut names: Vec<String> = fs::read_dir(place.project().join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with("plain"))
            .collect();
        names.sort();
        names
    };
    insta::assert_snapshot!(place.run(&["mcp", "call", "fake.plain"]).shown(), @"
    exit 0
    --- stdout
    Here it is.

    [image: image/png, 5 bytes, saved as plain-1.png]

    [audio: audio/wav, 5 bytes, saved as plain-2.wav]

    [resource link: a.txt, file:///a.txt, text/plain]

    [resource: file:///b.txt, text/plain, 6 bytes]

    inside

    [resource: file:///c.pdf, application/pdf, 5 bytes, saved as plain-3.pdf]

    [image: image/png, 0 bytes]
    --- stderr
    warning: it is not base64, and was not saved
    ");
    assert_eq!(files(""), ["plain-1.png", "plain-2.wav", "plain-3.pdf"]);
    assert_eq!(fs::read(place.project().join("plain-1.png")).unwrap(), b"hello");
    place.write("plain-1.png", "mine");
    assert_eq!(place.run(&["mcp", "call", "fake.plain"]).status, 0);
    assert_eq!(fs::read(place.project().join("plain-1.png")).unwrap(), b"mine");
    assert_eq!(
        files(""),
        ["plain-1.png", "plain-2.png", "plain-2.wav", "plain-3.pdf", "plain-3.wav", "plain-4.pdf"]
    );
    let done = place.run(&["mcp", "call", "fake.plain", "--save", "out/files"]);
    assert!(done.stdout.contains("saved as out/files/plain-1.png"), "{}", done.shown());
    assert_eq!(files("out/files"), ["plain-1.png", "plain-2.wav", "plain-3.pdf"]);
    // A machine gets all of it, and no files.
    let place = painter();
    let done = place.run(&["mcp", "call", "fake.plain", "--json"]);
    assert_eq!(done.json()["content"][1]["data"], "aGVsbG8=");
    assert!(!place.project().join("plain-1.png").exists());
}

/// A tool may not be one that can be called again, so what is in the way is said before.
#[test]
fn a_folder_that_cannot_be_is_told_before_the_call() {
    let place = painter();
    let words = ["mcp", "call", "fake.plain", "--save", "mcp.registry.json/x", "--log-wire", "w"];
    let done = place.run(&words);
    insta::assert_snapshot!(done.shown(), @"
    exit 2
    --- stderr
    fault: cannot create the folder `mcp.registry.json/x`: Not a directory (os error 20)
    ");
    assert_eq!(fs::read_to_string(place.project().join("w")).unwrap(), "");
}

#[test]
fn what_cannot_be_saved_does_not_hide_the_rest() {
    let place = painter();
    // Nobody has a longer name than this for a file; even root is refused.
    let deep = "d".repeat(250);
    let mut folder = std::path::PathBuf::new();
    while folder.as_os_str().len() + deep.len() + 20 < 4_096 {
        folder.push(&deep);
    }
    folder.push("e".repeat(4_096 - 12 - folder.as_os_str().len()));
    let done = place.run(&["mcp", "call", "fake.plain", "--save", folder.to_str().unwrap()]);
    assert_eq!(done.status, 2, "{}", done.shown());
    assert!(done.stdout.contains("[image: image/png, 5 bytes, not saved]"), "{}", done.shown());
    assert!(done.stdout.contains("\ninside\n"), "{}", done.shown());
    assert!(done.stderr.contains("cannot write"), "{}", done.shown());
}

#[test]
fn an_image_is_not_said_in_letters_once_more() {
    let image = json!({"type": "image", "mimeType": "image/png", "data": "aGVsbG8="});
    let result = json!({"content": [image], "structuredContent": {"content": [image]}});
    let place = fake(Fake::new().call("plain", json!({}), result));
    insta::assert_snapshot!(place.run(&["mcp", "call", "fake.plain"]).shown(), @"
    exit 0
    --- stdout
    [image: image/png, 5 bytes, saved as plain-1.png]
    ");
}

/// The order of properties and the digits of numbers are the server's.
#[test]
fn json_is_what_the_server_sent() {
    let place = fake(Fake::new());
    let result =
        r#"{"structuredContent":{"z":1e2,"a":12345678901234567890123},"content":[],"m":1.50}"#;
    let mut lines = fs::read_to_string(place.project().join("fake.jsonl")).unwrap();
    let params = r#"{"name":"plain","arguments":{}}"#;
    lines += &format!(
        r#"{{"server":"fake","connection":1,"way":"out","message":{{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{params}}}}}"#
    );
    lines += "\n";
    lines += &format!(
        r#"{{"server":"fake","connection":1,"way":"in","message":{{"jsonrpc":"2.0","id":9,"result":{result}}}}}"#
    );
    place.write("fake.jsonl", lines + "\n");
    insta::assert_snapshot!(place.run(&["mcp", "call", "fake.plain", "--json"]).shown());
}

#[test]
fn texts_go_to_a_pipe_as_they_are() {
    let strange = "\u{1b}[31mred\u{1b}[0m\r\n\u{7}bell";
    let place = fake(Fake::new().call("plain", json!({}), text(strange)));
    assert_eq!(place.run(&["mcp", "call", "fake.plain"]).stdout, format!("{strange}\n"));
    let failed = json!({"content": [{"type": "text", "text": strange}], "isError": true});
    let place = fake(Fake::new().call("plain", json!({}), failed));
    let done = place.run(&["mcp", "call", "fake.plain"]);
    assert!(!done.stderr.contains('\u{1b}'), "{}", done.shown());
    let whole = place.run(&["mcp", "call", "fake.plain", "--json"]);
    assert!(!whole.stdout.contains('\u{1b}'));
    assert_eq!(whole.json()["content"][0]["text"], strange);
}
