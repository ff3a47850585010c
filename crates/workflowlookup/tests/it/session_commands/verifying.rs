//! Somebody changes the file by hand, and `verify` finds it.

use rusqlite::Connection;

use super::*;

/// Changes bytes in the file of the store, where they first stand.
fn change(place: &Place, from: &[u8], to: &[u8]) {
    let path = database(place);
    // All of it into the one file.
    let connection = Connection::open(&path).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(connection);
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(from.len()).position(|window| window == from).unwrap();
    bytes[at..at + to.len()].copy_from_slice(to);
    fs::write(&path, bytes).unwrap();
}

#[test]
fn verify_finds_what_was_changed_by_hand() {
    let place = with_sessions();
    insta::assert_snapshot!(place.run(&["session", "verify"]).shown(), @"
    exit 0
    --- stdout
    3 sessions, 19 events: all sound
    ");
    change(&place, b"Two hours.", b"Two years.");
    insta::assert_snapshot!(place.run(&["session", "verify"]).shown(), @"
    exit 1
    --- stdout
    session `7k2mzt5s9a4c6e8g0hpr` (mend-a-fault) is not sound
      - event 3 was changed
    3 sessions, 19 events: 1 session is not sound
    ");
    insta::assert_snapshot!(place.run(&["session", "verify", "7k2mz", "--json"]).shown(), @r#"
    exit 1
    --- stdout
    {
      "sessions": 1,
      "events": 4,
      "flawed": [
        {
          "sessionId": "7k2mzt5s9a4c6e8g0hpr",
          "workflowId": "mend-a-fault",
          "flaws": [
            "event 3 was changed"
          ]
        }
      ],
      "imported": [],
      "storeFlaws": []
    }
    "#);
    insta::assert_snapshot!(place.run(&["session", "verify", FINISHED]).shown(), @"
    exit 0
    --- stdout
    1 session, 12 events: all sound
    ");
    insta::assert_snapshot!(place.run(&["session", "export", COPY]).shown(), @"
    exit 1
    --- stderr
    error: the log is broken: event 3 was changed
      try: `workflowlookup session verify` says which sessions are sound
    ");
    let last = |form: &[&str]| place.run(form).stdout.lines().last().unwrap().to_owned();
    insta::assert_snapshot!(last(&["session", "show", COPY]), @"  - event 3 was changed");
    insta::assert_snapshot!(last(&["session", "show", COPY, "--markdown"]), @"**Not verified:** the log of 4 events is not as it was written: event 3 was changed.");
}

/// In the table the owner stands behind the id, in the index the number of the row.
#[test]
fn verify_finds_an_id_that_was_changed() {
    let place = with_sessions();
    change(&place, b"c4r8t2w6y0a1e3g5h7kpbob", b"c4r8t2w6y0a1e3g5h7kqbob");
    insta::assert_snapshot!(place.run(&["session", "verify"]).shown(), @"
    exit 1
    --- stdout
    session `c4r8t2w6y0a1e3g5h7kq` is not sound
      - it cannot be found by its id: the id or its index was changed
    the file of the store is not sound
      - row 3 missing from index sqlite_autoindex_sessions_1
    3 sessions, 16 events: 1 session is not sound
    ");
    let json = place.run(&["session", "verify", "--json"]).json();
    assert_eq!(json["storeFlaws"].as_array().map(Vec::len), Some(1), "{json}");
    assert_eq!(json["flawed"][0]["workflowId"], json!(null));

    let place = with_sessions();
    change(&place, b"c4r8t2w6y0a1e3g5h7kp\x03", b"c4r8t2w6y0a1e3g5h7kq\x03");
    insta::assert_snapshot!(place.run(&["session", "verify"]).shown(), @"
    exit 1
    --- stdout
    session `c4r8t2w6y0a1e3g5h7kp` is not sound
      - it cannot be found by its id: the id or its index was changed
    the file of the store is not sound
      - row 3 missing from index sqlite_autoindex_sessions_1
    3 sessions, 16 events: 1 session is not sound
    ");

    let place = with_sessions();
    change(&place, b"c4r8t2w6y0a1e3g5h7kpbob", b"c4r8t2w6y0a1e3g5h7k\xffbob");
    insta::assert_snapshot!(place.run(&["session", "verify"]).shown(), @"
    exit 1
    --- stdout
    session `c4r8t2w6y0a1e3g5h7k�` is not sound
      - its id is not text any more
    the file of the store is not sound
      - row 3 missing from index sqlite_autoindex_sessions_1
    3 sessions, 16 events: 1 session is not sound
    ");
}

/// One that cannot be read any more does not hide the others.
#[test]
fn verify_goes_on_behind_what_is_no_text() {
    let place = with_sessions();
    change(&place, b"Mend the |", b"Mend th\xff |");
    change(&place, b"Two hours.", b"Two years.");
    insta::assert_snapshot!(place.run(&["session", "verify"]).shown(), @"
    exit 1
    --- stdout
    session `7k2mzt5s9a4c6e8g0hpr` (mend-a-fault) is not sound
      - event 3 was changed
    session `c4r8t2w6y0a1e3g5h7kp` is not sound
      - it cannot be read: invalid utf-8 sequence of 1 bytes from index 7 at index 4
    3 sessions, 16 events: 2 sessions are not sound
    ");
}
