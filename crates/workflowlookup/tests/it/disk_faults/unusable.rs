//! Stores that cannot be used: somebody else's folder, a key that is none, a file that is no store. Each is said
//! clearly, what needs no store works, and once it is put right the same server goes on.

use std::fs;

use insta::assert_snapshot;
use serde_json::json;

use super::{database, state};
use crate::Place;
use crate::agent::{Agent, LETTER, refused, structured};

fn place() -> Place {
    let place = Place::new();
    place.write("workflows/letter.json", LETTER);
    place
}

/// A place where a session has begun.
fn used() -> Place {
    let place = place();
    let mut agent = Agent::start(&place);
    agent.start_session("letter");
    agent.end();
    place
}

/// What a start says where the store cannot be used. Then that is put right.
fn said(place: &Place, repair: impl FnOnce()) -> String {
    said_to(Agent::start(place), place, repair)
}

fn said_to(mut agent: Agent, place: &Place, repair: impl FnOnce()) -> String {
    let start = json!({"workflowId": "letter"});
    let result = agent.call("workflow_start", &start);
    let (text, code) = refused(&result);
    assert_eq!(code, -32006, "{text}");
    assert_eq!(agent.call("workflow_start", &start), result, "it says so again");

    let next = agent.call("workflow_next", &json!({"workflowId": "letter", "completedSteps": []}));
    assert_eq!(structured(&next)["step"]["id"], "write-it");
    assert!(structured(&agent.call("workflow_list", &json!({})))["workflows"].is_array());
    assert!(agent.request("resources/list", json!({}))["resources"].is_array());

    repair();
    structured(&agent.call("workflow_start", &start));
    agent.end();
    text.replace(place.root.path().to_str().unwrap(), "[ROOT]")
}

#[test]
fn a_key_that_is_none() {
    let place = used();
    let key = state(&place).join("key");
    let good = fs::read(&key).unwrap();
    fs::write(&key, "abc\n").unwrap();
    let said = said(&place, || fs::write(&key, &good).unwrap());
    assert_snapshot!(said, @"The key `[ROOT]/home/.local/state/workflowlookup/key` cannot be used: it is not 64 hexadecimal digits. Put the right one back, or move it away together with its store to begin anew.");
}

#[test]
fn a_store_of_another_key() {
    let place = used();
    let key = state(&place).join("key");
    let good = fs::read(&key).unwrap();
    fs::write(&key, "0f".repeat(32)).unwrap();
    let said = said(&place, || fs::write(&key, &good).unwrap());
    assert_snapshot!(said, @"`[ROOT]/home/.local/state/workflowlookup/sessions.db`: the store was written with another key. Put the key that belongs to it back at `[ROOT]/home/.local/state/workflowlookup/key` (it was made together with the store), or begin a new store with `--store sqlite:PATH`.");
}

#[test]
fn a_folder_where_the_store_should_be() {
    let place = place();
    fs::create_dir_all(database(&place)).unwrap();
    let said = said(&place, || fs::remove_dir(database(&place)).unwrap());
    assert_snapshot!(said, @"`[ROOT]/home/.local/state/workflowlookup/sessions.db`: the store cannot be used now: unable to open database file: [ROOT]/home/.local/state/workflowlookup/sessions.db. See that it is a file that is yours to read and write, or name another one with `--store sqlite:PATH`.");
}

#[test]
fn a_text_where_the_store_should_be() {
    let place = place();
    fs::create_dir_all(state(&place)).unwrap();
    let text = "Dear Ada, this is a letter and no store. ".repeat(100);
    fs::write(database(&place), &text).unwrap();
    let said = said(&place, || {
        assert_eq!(fs::read_to_string(database(&place)).unwrap(), text, "it is left alone");
        fs::remove_file(database(&place)).unwrap();
    });
    assert_snapshot!(said, @"`[ROOT]/home/.local/state/workflowlookup/sessions.db`: the file is no store of sessions. Move it away, or name another one with `--store sqlite:PATH`.");
}

/// As somebody whom permissions hold back.
#[cfg(target_os = "linux")]
mod powerless {
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;
    use std::process::Stdio;

    use super::*;
    use crate::agent::Era;
    use crate::transcripts::Process;

    fn agent(place: &Place) -> Agent {
        let mut command = place.powerless(&["serve"]);
        command.stderr(Stdio::null());
        Agent::connect(Process::spawn(command), Era::Legacy, json!({}))
    }

    fn allow(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_home_that_cannot_be_written() {
        let place = place();
        allow(&place.home(), 0o555);
        let said = said_to(agent(&place), &place, || allow(&place.home(), 0o777));
        assert_snapshot!(said, @"The key `[ROOT]/home/.local/state/workflowlookup/key` cannot be used: Permission denied (os error 13). See that its folder is yours to read and write.");
    }

    #[test]
    fn a_store_that_can_only_be_read() {
        let place = used();
        let folder = state(&place);
        let files = || fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        for parent in [".local", ".local/state"] {
            allow(&place.home().join(parent), 0o755);
        }
        files().for_each(|file| allow(&file, 0o444));
        allow(&folder, 0o555);
        let said = said_to(agent(&place), &place, || {
            allow(&folder, 0o777);
            files().for_each(|file| allow(&file, 0o666));
        });
        assert_snapshot!(said, @"`[ROOT]/home/.local/state/workflowlookup/sessions.db`: the store cannot be used now: it can only be read. See that it is a file that is yours to read and write, or name another one with `--store sqlite:PATH`.");
    }
}
