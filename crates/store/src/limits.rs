//! Every bound of the store, in one place, and the checks of what comes in. They run on the caller's thread,
//! before anything is queued.

use std::time::Duration;

use serde_json::value::RawValue;

use crate::error::Error;
use crate::model::{Append, Document, Head, NewEvent, NewSession};

/// How many events one session may have.
pub const EVENTS_MAX: u64 = 10_000;
/// The largest event. An output of 256 KiB is six times as much as JSON where it is control characters only, and
/// what is reported with it comes on top.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The largest definition; files of workflows have the same bound.
pub const DEFINITION_BYTES_MAX: usize = 1024 * 1024;
/// The largest file with an exported session that is read.
pub const IMPORT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How many steps all events of such a file together may take, each of them bounded like a call: about a minute.
pub const IMPORT_STEPS_MAX: u64 = 5_000_000_000;
/// How far ahead of our clock the times in such a file may be.
pub const IMPORT_AHEAD_MAX_MS: u64 = 24 * 60 * 60 * 1000;
/// The largest text that processes share.
pub const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;
pub const GOAL_BYTES_MAX: usize = 16 * 1024;
/// A session's id: letters, digits, `-`, `_`, `.` and `:`, and neither `-` nor `.` at the beginning.
pub const ID_BYTES_MAX: usize = 128;
/// The name of an owner, or of somebody whom a session is shared with. What an issuer calls people may be long.
pub const PRINCIPAL_BYTES_MAX: usize = 2048;
/// How many others a session may be shared with.
pub const SHARES_MAX: usize = 100;
/// How many sessions of one owner that are not complete may be shared with one other principal, who is not asked.
pub const OPEN_SHARES_MAX: usize = 20;
/// Keys, workflows, steps, kinds of events and hashes of definitions.
pub const NAME_BYTES_MAX: usize = 256;
/// What is indexed of one event; the rest of a longer text is not found by a search.
pub const SEARCH_BYTES_MAX: usize = 64 * 1024;
/// How many texts may wait to be indexed.
pub const UNINDEXED_MAX: i64 = 64;
/// A larger snapshot is not kept: it is only a cache.
pub const SNAPSHOT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How many rows a page of a list, of events or of search results may have.
pub const PAGE_MAX: usize = 1_000;
/// How many bytes the bodies in a page of events may have together. A page has at least one event, whatever its size.
pub const PAGE_BYTES_MAX: usize = 1024 * 1024;
/// How many words of a query are looked at.
pub const QUERY_WORDS_MAX: usize = 16;
/// How many matching events a search looks at before it stops looking for more sessions.
pub const MATCHES_MAX: usize = 10_000;
/// How many flaws of one log are told apart.
pub const FLAWS_MAX: usize = 100;
/// How many flaws of the file are told.
pub const FILE_FLAWS_MAX: usize = 20;
/// How many writes may wait for the disk. Who comes then waits for a place.
pub const QUEUE_MAX: usize = 256;
/// How many connections read beside the writer. Who comes then waits for one.
pub const READERS_MAX: usize = 4;
/// How much room is kept beside a SQLite file for the day when the disk is full: as much as its write-ahead log has
/// before it is carried over (1,000 pages of 4 KiB), and the frames around that.
pub const RESERVE_BYTES: u64 = 4 * 1024 * 1024 + 256 * 1024;
/// How much of it opening the file may take: the index of the log, and the beginning of the log.
pub const OPENING_BYTES: u64 = 128 * 1024;
/// How many sessions are removed in one transaction, so that appends get their turn between them.
pub const PRUNE_SESSIONS_MAX: usize = 8;
/// How many ended handshakes are remembered, and how many old ones are forgotten whenever one is added.
pub const ENDED_MAX: u64 = 200_000;
pub const ENDED_PRUNED_MAX: usize = 100;
/// The longest word that is indexed, of one that is longer its beginning.
pub const WORD_BYTES_MAX: usize = 256;
/// How many connections to a server there are, where nobody says otherwise.
pub const CONNECTIONS: usize = 16;
/// How long a call may take with all its attempts, each of them, a statement in one, and making a connection. What takes
/// longer is a server that is away.
pub const WAIT_MAX: Duration = Duration::from_secs(10);
/// Less where the server is known to be away.
pub const AWAY_MAX: Duration = Duration::from_secs(3);
pub const ATTEMPT_MAX: Duration = Duration::from_secs(4);
pub const STATEMENT_MAX: Duration = Duration::from_secs(3);
pub const CONNECT_MAX: Duration = Duration::from_secs(2);
/// How long another process may hold the file before we give up.
pub const BUSY_MS: u64 = 10_000;

pub(crate) fn new_session(session: &NewSession) -> Result<(), Error> {
    new_id(&session.id)?;
    size("owner", &session.owner, PRINCIPAL_BYTES_MAX)?;
    text("owner", &session.owner)?;
    session.shared_with.iter().try_for_each(|name| principal(name))?;
    if session.shared_with.len() > SHARES_MAX {
        return Err(Error::TooManyShares);
    }
    name("workflow", &session.workflow)?;
    name("hash of the definition", &session.definition.hash)?;
    if let Some(key) = &session.key {
        name("key", key)?;
    }
    size("goal", &session.goal, GOAL_BYTES_MAX)?;
    text("goal", &session.goal)?;
    size("definition", &session.definition.text, DEFINITION_BYTES_MAX)?;
    number("time", session.time)?;
    head(&session.head)?;
    event(&session.event)
}

pub(crate) fn append(append: &Append) -> Result<(), Error> {
    id(&append.session)?;
    number("time", append.time)?;
    head(&append.head)?;
    event(&append.event)
}

pub(crate) fn document(document: &Document) -> Result<(), Error> {
    size("document", &document.text, DOCUMENT_BYTES_MAX)?;
    text("document", &document.text)
}

pub(crate) fn head(head: &Head) -> Result<(), Error> {
    if let Some(step) = &head.step {
        name("step", step)?;
    }
    number("revision", head.revision)
}

pub(crate) fn event(event: &NewEvent) -> Result<(), Error> {
    name("kind", &event.kind)?;
    if let Some(revision) = event.revision {
        number("revision", revision)?;
    }
    size("event", &event.body, BODY_BYTES_MAX)?;
    // What is no JSON could not be exported.
    match serde_json::from_str::<&RawValue>(&event.body) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::Invalid { what: "event", why: "it is not JSON" }),
    }
}

/// The id of a session that is to be here. One like an option or a hidden file could not be named on the command
/// line; those that are here already can still be appended to.
fn new_id(id: &str) -> Result<(), Error> {
    if id.starts_with(['-', '.']) {
        let why = "it must not begin with `-` or `.`";
        return Err(Error::Invalid { what: "session's id", why });
    }
    self::id(id)
}

pub(crate) fn id(id: &str) -> Result<(), Error> {
    size("session's id", id, ID_BYTES_MAX)?;
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    if id.is_empty() || !id.bytes().all(is_good) {
        let why = "it must be letters, digits, `-`, `_`, `.` and `:`";
        return Err(Error::Invalid { what: "session's id", why });
    }
    Ok(())
}

fn name(what: &'static str, name: &str) -> Result<(), Error> {
    size(what, name, NAME_BYTES_MAX)?;
    text(what, name)
}

/// Not every database takes this sign for a part of a text, and a session is to go to any of them.
fn text(what: &'static str, text: &str) -> Result<(), Error> {
    match text.contains('\0') {
        true => Err(Error::Invalid { what, why: "it has a sign in it that is no text (U+0000)" }),
        false => Ok(()),
    }
}

pub(crate) fn principal(name: &str) -> Result<(), Error> {
    if name.is_empty() {
        return Err(Error::Invalid { what: "name", why: "it is empty" });
    }
    size("name", name, PRINCIPAL_BYTES_MAX)?;
    if name.trim() != name || name.contains(untrusted_text::is_invisible) {
        let why = "it has white space at an end, or a character that cannot be seen";
        return Err(Error::Invalid { what: "name", why });
    }
    Ok(())
}

fn size(what: &'static str, text: &str, max: usize) -> Result<(), Error> {
    if text.len() > max { Err(Error::TooLarge { what, max }) } else { Ok(()) }
}

/// Databases count to 2^63.
pub(crate) fn number(what: &'static str, number: u64) -> Result<(), Error> {
    match i64::try_from(number) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::Invalid { what, why: "it is beyond 2^63" }),
    }
}

/// The beginning of a text, at most `max` bytes of it.
pub(crate) fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}
