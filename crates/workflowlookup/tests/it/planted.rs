//! Sessions as they were when they were exported, written into a store event by event: nothing says that they came from a
//! file, and their times are always the same.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use store::{
    Address, Append, ExportedLog, Head, Key, NewEvent, NewSession, Status, Store, Version,
};

use super::*;

/// What every planted store is written with.
const MASTER: [u8; 32] = [7; 32];

pub(super) fn plant(place: &Place, exported: &str) {
    let log: ExportedLog = serde_json::from_str(exported).unwrap();
    let store = open(place);
    let new_event = |at: usize| {
        let event = &log.events[at];
        let body = compact(event.body.get());
        let (kind, revision) = (event.kind.clone(), event.revision);
        let submission = serde_json::from_str::<serde_json::Value>(&body).unwrap();
        let output = submission["submission"]["output"].as_str().map(str::to_owned);
        let search = output.filter(|_| kind != "returned");
        NewEvent { kind, body, revision, digest: None, search }
    };
    let last = log.events.len() - 1;
    // Only the last head counts.
    let head = |at: usize| match at == last {
        true => {
            let (status, step) = (log.head.status, log.head.step.clone());
            Head { status, step, revision: log.head.revision }
        }
        false => Head { status: Status::Running, step: None, revision: 0 },
    };
    let session = &log.session;
    let new = NewSession {
        id: session.id.clone(),
        key: session.key.clone(),
        owner: session.owner.clone(),
        shared_with: Vec::new(),
        workflow: session.workflow.clone(),
        goal: session.goal.clone(),
        definition: log.definition.clone(),
        event: new_event(0),
        head: head(0),
        time: session.created,
    };
    store.create_now(new).unwrap();
    for at in 1..=last {
        let append = Append {
            session: session.id.clone(),
            expected: at as Version,
            event: new_event(at),
            head: head(at),
            snapshot: None,
            time: log.events[at].time,
            is_reopened: false,
        };
        store.append_now(append).unwrap();
    }
}

fn open(place: &Place) -> Store {
    let state = place.home().join(".local/state/workflowlookup");
    fs::create_dir_all(&state).unwrap();
    let digits: String = MASTER.iter().map(|byte| format!("{byte:02x}")).collect();
    let key_file = state.join("key");
    fs::write(&key_file, format!("{digits}\n")).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&MASTER).unwrap();
    mac.update(b"chain of events");
    let key = Some(Key::new(mac.finalize().into_bytes().into()));
    match &place.store {
        Some(url) => Store::connect(&Address::parse(url).unwrap(), key, 2).unwrap(),
        None => Store::open(&state.join("sessions.db"), key).unwrap(),
    }
}

/// JSON without the white space between its signs, as events are written.
fn compact(json: &str) -> String {
    let (mut in_string, mut escaped) = (false, false);
    let keep = |sign: &char| {
        if in_string {
            in_string = escaped || *sign != '"';
            escaped = *sign == '\\' && !escaped;
            return true;
        }
        in_string = *sign == '"';
        !sign.is_ascii_whitespace()
    };
    json.chars().filter(keep).collect()
}
