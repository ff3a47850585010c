//! A process that appends is killed with SIGKILL, again and again: what it had acknowledged is there. This proves
//! that a crash of the process loses nothing. It says nothing of a power cut, for which we rely on the disk's word.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::child::Child;
use crate::{append, assert_sound, is_long, open};

const SESSIONS: usize = 4;

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let rounds = if is_long() { 1_000 } else { 30 };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let mut all = Vec::new();
    let mut total = 0;
    for round in 0..rounds {
        let ids: Vec<String> = (0..SESSIONS).map(|number| format!("r{round}-{number}")).collect();
        let names: Vec<&str> = ids.iter().map(String::as_str).collect();
        let mut child = Child::start("crash", &path, &names);
        // From the first answer on, a different moment each time.
        let mut said: Vec<String> = child.line().into_iter().collect();
        std::thread::sleep(Duration::from_micros(round * 7_919 % 40_000));
        said.extend(child.kill());

        let mut acknowledged: BTreeMap<&str, u64> = BTreeMap::new();
        for line in &said {
            let (id, version) = line.split_once(' ').unwrap();
            acknowledged.insert(id, version.parse().unwrap());
            total += 1;
        }
        let store = open(&path);
        for (id, acknowledged) in acknowledged {
            let log = store.load(id).unwrap().unwrap();
            let version = log.meta.version;
            // One more may have been on its way.
            assert!((acknowledged..=acknowledged + 1).contains(&version), "{id}");
            let mut expected = 0;
            while expected < version {
                for event in store.events(id, expected + 1, 1_000).unwrap() {
                    let body = match expected {
                        0 => "{}".to_owned(),
                        _ => format!("{{\"n\":{expected}}}"),
                    };
                    assert_eq!((event.version, event.body), (expected + 1, body), "{id}");
                    expected += 1;
                }
            }
            assert_sound(&store, id);
            // And it goes on from there.
            assert_eq!(store.append_now(append(id, version)), Ok(version + 1));
            all.push(id.to_owned());
        }
    }
    let store = open(&path);
    for id in &all {
        assert_sound(&store, id);
    }
    println!("{rounds} kills, {total} acknowledged writes, none lost");
}
