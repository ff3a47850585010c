//! `token …`: tokens are made, listed and revoked. What is random or a time is masked.

use serde_json::Value;

use super::*;

fn tokens_file(place: &Place) -> PathBuf {
    place.home().join(".local/state/workflowlookup/tokens.json")
}

/// Everything that a user sees, with secrets, ids and times taken out.
fn masked(place: &Place, done: &Done) -> String {
    let mut shown = done.shown();
    for token in kept(place) {
        shown = shown.replace(token["id"].as_str().unwrap(), "[ID]");
    }
    let is_end = |letter: char| letter.is_whitespace() || letter == '"' || letter == ',';
    let mut masked = String::new();
    for piece in shown.split_inclusive(is_end) {
        let word = piece.trim_end_matches(is_end);
        let is_time = word.starts_with("20") && word.ends_with('Z');
        match word.strip_prefix("wfl_[ID]_") {
            Some(secret) if secret.len() == 52 => masked.push_str("wfl_[ID]_[SECRET]"),
            _ => masked.push_str(if is_time { "[TIME]" } else { word }),
        }
        masked.push_str(&piece[word.len()..]);
    }
    masked
}

/// The tokens as they are in the file.
fn kept(place: &Place) -> Vec<Value> {
    let Ok(text) = fs::read(tokens_file(place)) else { return Vec::new() };
    let content: Value = serde_json::from_slice(&text).unwrap();
    content["tokens"].as_array().unwrap().clone()
}

#[test]
fn without_a_file_there_are_no_tokens_and_none_is_made() {
    let place = Place::new();
    insta::assert_snapshot!(place.run(&["token", "list"]).shown(), @"
    exit 0
    --- stderr
    warning: there are no tokens
      try: `workflowlookup token new NAME` makes one
    ");
    insta::assert_snapshot!(place.run(&["token", "list", "--json"]).shown(), @r#"
    exit 0
    --- stdout
    {
      "tokens": []
    }
    "#);
    insta::assert_snapshot!(place.run(&["token", "revoke", "ci"]).shown(), @"
    exit 1
    --- stderr
    error: there is no token `ci`
      try: `workflowlookup token list` shows what there is
    ");
    assert_eq!(fs::read_dir(place.home()).unwrap().count(), 0);
}

#[test]
fn a_token_is_made_listed_and_revoked() {
    let place = Place::new();
    let made = place.run(&["token", "new", "ci"]);
    insta::assert_snapshot!(masked(&place, &made), @"
    exit 0
    --- stdout
    wfl_[ID]_[SECRET]
    --- stderr
    note: the token `ci` is good until [TIME], and is not shown again
      try: keep it like a password, and send it with each request: `Authorization: Bearer TOKEN`
    ");
    let token = made.stdout.trim_end();
    let text = fs::read_to_string(tokens_file(&place)).unwrap();
    assert!(!text.contains(token.rsplit('_').next().unwrap()), "only a hash is kept");
    let ever = place.run(&["token", "new", "ever", "--expires", "never"]);
    insta::assert_snapshot!(masked(&place, &ever), @"
    exit 0
    --- stdout
    wfl_[ID]_[SECRET]
    --- stderr
    note: the token `ever` never expires, and is not shown again
      try: keep it like a password, and send it with each request: `Authorization: Bearer TOKEN`
    ");
    let short = place.run(&["token", "new", "short", "--expires", "1ms"]);
    assert_eq!(short.status, 0, "{}", short.shown());
    std::thread::sleep(std::time::Duration::from_millis(5));
    insta::assert_snapshot!(masked(&place, &place.run(&["token", "list"])), @"
    exit 0
    --- stdout
    ci	[ID]	good	[TIME]	[TIME]	use
    ever	[ID]	good	[TIME]	never	use
    short	[ID]	expired	[TIME]	[TIME]	use
    ");
    insta::assert_snapshot!(masked(&place, &place.run(&["token", "list", "--json"])), @r#"
    exit 0
    --- stdout
    {
      "tokens": [
        {
          "name": "ci",
          "id": "[ID]",
          "status": "good",
          "made": "[TIME]",
          "expires": "[TIME]",
          "right": "use"
        },
        {
          "name": "ever",
          "id": "[ID]",
          "status": "good",
          "made": "[TIME]",
          "expires": null,
          "right": "use"
        },
        {
          "name": "short",
          "id": "[ID]",
          "status": "expired",
          "made": "[TIME]",
          "expires": "[TIME]",
          "right": "use"
        }
      ]
    }
    "#);
    let json = place.run(&["token", "list", "--json"]).json();
    let time =
        |field: &str| humantime::parse_rfc3339(json["tokens"][0][field].as_str().unwrap()).unwrap();
    let days = time("expires").duration_since(time("made")).unwrap().as_secs() / (24 * 60 * 60);
    assert_eq!(days, 90);
    insta::assert_snapshot!(place.run(&["token", "new", "ci"]).shown(), @"
    exit 1
    --- stderr
    error: there is a token `ci` already
      try: choose another name, or end it with `workflowlookup token revoke ci`
    ");
    let again = place.run(&["token", "new", "short"]);
    assert_eq!(again.status, 0, "one that has expired makes room: {}", again.shown());
    insta::assert_snapshot!(place.run(&["token", "revoke", "ci"]).shown(), @"
    exit 0
    --- stdout
    the token `ci` is revoked
    ");
    insta::assert_snapshot!(place.run(&["token", "revoke", "ci"]).shown(), @"
    exit 1
    --- stderr
    error: there is no token `ci`
      try: `workflowlookup token list` shows what there is
    ");
    insta::assert_snapshot!(masked(&place, &place.run(&["token", "list"])), @"
    exit 0
    --- stdout
    ever	[ID]	good	[TIME]	never	use
    short	[ID]	good	[TIME]	[TIME]	use
    ");
}

#[test]
fn names_and_times_that_make_no_sense_are_refused() {
    let place = Place::new();
    insta::assert_snapshot!(place.run(&["token", "new", "two words"]).shown(), @"
    exit 1
    --- stderr
    error: `two words` cannot be the name of a token
      try: up to 64 letters, digits, `.`, `_`, `-` and `@`, with a letter or digit in front
    ");
    insta::assert_snapshot!(place.run(&["token", "new", "ci", "--expires", "soon"]).shown(), @"
    exit 1
    --- stderr
    error: invalid value 'soon' for '--expires <DURATION>': neither `never` nor a duration: expected number at 0

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(place.run(&["token", "new", "ci", "--expires", "0s"]).shown(), @"
    exit 1
    --- stderr
    error: invalid value '0s' for '--expires <DURATION>': such a token would be of no use

    For more information, try '--help'.
    ");
    for name in ["", "-x", "a#b", "ä", &"a".repeat(65)] {
        assert_eq!(place.run(&["token", "new", "--", name]).status, 1, "{name}");
    }
    assert!(!tokens_file(&place).exists());
    let far = place.run(&["token", "new", "far", "--expires", "500000000000years"]);
    insta::assert_snapshot!(masked(&place, &far), @"
    exit 0
    --- stdout
    wfl_[ID]_[SECRET]
    --- stderr
    note: the token `far` is good until after the year 9999, and is not shown again
      try: keep it like a password, and send it with each request: `Authorization: Bearer TOKEN`
    ");
}

#[test]
fn tokens_are_kept_where_one_says() {
    let place = Place::new();
    let made = place.run(&[
        "token",
        "new",
        "ci",
        "--tokens",
        "shared/tokens.json",
        "--audit-log",
        "shared/audit.jsonl",
    ]);
    assert_eq!(made.status, 0, "{}", made.shown());
    assert!(place.run(&["token", "list"]).stdout.is_empty());
    let listed = place.run(&["token", "--tokens", "shared/tokens.json", "list"]);
    assert!(listed.stdout.starts_with("ci\t"), "{}", listed.shown());
    assert_eq!(fs::read_dir(place.home()).unwrap().count(), 0);
}

#[test]
fn a_broken_file_is_said_so_and_left_alone() {
    let place = Place::new();
    place.run(&["token", "new", "ci"]);
    let path = tokens_file(&place);
    fs::write(&path, "{\"version\": 1, \"tokens\": [").unwrap();
    let list = place.run(&["token", "list"]);
    insta::assert_snapshot!(list.shown(), @"
    exit 1
    --- stderr
    error: the tokens in `[ROOT]/home/.local/state/workflowlookup/tokens.json` cannot be used: EOF while parsing a list at line 1 column 26
      try: put a good copy back, or move it away and make new tokens; until then none is let in
    ");
    for arguments in [&["token", "new", "more"], &["token", "revoke", "ci"]] {
        assert_eq!(place.run(arguments).stderr, list.stderr, "{arguments:?}");
    }
    insta::assert_snapshot!(place.run(&["token", "list", "--json"]).shown(), @r#"
    exit 1
    --- stdout
    {
      "error": {
        "code": -32006,
        "message": "Storage error",
        "data": {
          "details": "the tokens in `[ROOT]/home/.local/state/workflowlookup/tokens.json` cannot be used: EOF while parsing a list at line 1 column 26"
        }
      }
    }
    "#);
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"version\": 1, \"tokens\": [");
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_is_not_ours_to_write_is_said_so() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    place.write("closed/tokens.json", "{\"version\": 1, \"tokens\": []}");
    let closed = place.project().join("closed");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
    let arguments = ["token", "new", "ci", "--tokens", "closed/tokens.json"];
    insta::assert_snapshot!(place.finish(place.powerless(&arguments), "").shown(), @"
    exit 1
    --- stderr
    error: `closed/tokens.json` cannot be written: Permission denied (os error 13)
      try: see that its folder is yours to write, or name another file with `--tokens FILE`
    ");
    let arguments = ["token", "list", "--tokens", "closed/tokens.json"];
    insta::assert_snapshot!(place.finish(place.powerless(&arguments), "").shown(), @"
    exit 0
    --- stderr
    warning: there are no tokens
      try: `workflowlookup token new NAME` makes one
    ");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn several_processes_lose_no_token_of_each_others() {
    let place = Place::new();
    let spawn = |number: usize| {
        let mut command = place.command(&["token", "new", &format!("agent-{number}")]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let children: Vec<_> = (0..12).map(spawn).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let json = place.run(&["token", "list", "--json"]).json();
    let mut names: Vec<&str> = json["tokens"]
        .as_array()
        .unwrap()
        .iter()
        .map(|token| token["name"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 12, "{json}");
    // Of several with the same name one wins.
    let spawn = |_| {
        let mut command = place.command(&["token", "new", "same"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let children: Vec<_> = (0..6).map(spawn).collect();
    let won = children.into_iter().map(|mut child| child.wait().unwrap().success());
    assert_eq!(won.filter(|won| *won).count(), 1);
    let folder = tokens_file(&place).parent().unwrap().to_owned();
    let mut left: Vec<_> =
        fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name()).collect();
    left.sort_unstable();
    assert_eq!(left, ["audit.jsonl", "tokens.json", "tokens.json.lock"], "no draft is left");
}
