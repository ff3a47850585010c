//! A log that a hostile client has filled with large rejected outputs costs others little memory: what a call reads is
//! counted in bytes.

use store::limits::PAGE_BYTES_MAX;
use store::sessions::{Error, NewIds, Sessions};

use engine::{OUTPUT_BYTES_MAX, Refusal};

use super::{World, start, submission, workflow};

const REJECTED: u64 = 40;

/// A session with many rejected outputs, each of which takes six bytes per character in its log.
fn flooded(world: &World) -> Sessions {
    let sessions = world.sessions();
    sessions.start(&workflow(), start("s1")).unwrap();
    let output = "\u{1}".repeat(OUTPUT_BYTES_MAX);
    for revision in 0..REJECTED {
        sessions.advance("s1", revision, &submission("write", &output), 2).unwrap();
    }
    sessions
}

/// How many bytes of events a call has brought into memory.
fn bytes_read<T>(sessions: &Sessions, call: impl FnOnce(&Sessions) -> T) -> (T, usize) {
    let before = sessions.store().figures().event_bytes;
    let result = call(sessions);
    let after = sessions.store().figures().event_bytes;
    (result, usize::try_from(after - before).unwrap())
}

#[test]
fn flooded_log_costs_little_memory() {
    let world = World::new();
    drop(flooded(&world));
    // As a process that was just started: nothing is in memory.
    let sessions = world.sessions();
    let (session, opened) = bytes_read(&sessions, |sessions| sessions.open("s1").unwrap());
    assert_eq!(session.state.revision, REJECTED);
    let event_bytes = 7 * OUTPUT_BYTES_MAX;
    assert!(opened <= PAGE_BYTES_MAX + event_bytes, "opening read {opened} bytes");

    for wrong in [0, REJECTED - 1, REJECTED + 1] {
        let (result, bytes) = bytes_read(&sessions, |sessions| {
            sessions.rewind("s1", wrong, "write", "again", 3).map(|_| ())
        });
        let is_refused = matches!(
            result,
            Err(Error::Refused { refusal: Refusal::WrongRevision { .. }, session: Some(_) })
        );
        assert!(is_refused, "{result:?}");
        assert_eq!(bytes, 0, "a stale rewind reads nothing of the log");
        let (result, bytes) = bytes_read(&sessions, |sessions| {
            sessions.fork("s1", wrong, "write", "again", NewIds::default()).map(|_| ())
        });
        assert!(result.is_err());
        assert_eq!(bytes, 0, "a stale fork reads nothing of the log");
    }

    // One that is too old, and that nobody has sent before.
    let (result, bytes) = bytes_read(&sessions, |sessions| {
        sessions.advance("s1", 7, &submission("write", "Dear Ada"), 3).map(|_| ())
    });
    assert!(matches!(result, Err(Error::Refused { .. })), "{result:?}");
    assert_eq!(bytes, 0, "a stale advance is compared with one event and no page");

    let (_, bytes) = bytes_read(&sessions, |sessions| {
        let session = sessions.open("s1").unwrap();
        sessions.summary(&session, 8).unwrap()
    });
    assert!(bytes <= PAGE_BYTES_MAX, "a summary read {bytes} bytes");

    let (rewound, bytes) = bytes_read(&sessions, |sessions| {
        sessions.rewind("s1", REJECTED, "write", "again", 3).unwrap()
    });
    assert_eq!(rewound.state.revision, REJECTED + 1);
    assert!(bytes <= PAGE_BYTES_MAX, "a rewind read {bytes} bytes");
}
