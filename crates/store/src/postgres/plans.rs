//! A test: every statement finds its rows by an index, also in a store of a million sessions. `docs/hosting/plans.md` is
//! what PostgreSQL says about each of them, written by the long form of the test.

use std::fmt::Write as _;

use private_postgres::Database;

use super::{
    append, changes, checkpoint, create, documents, ended, import, list, prune, read, search,
    shares, tips, verify, watch,
};
use crate::{Address, Store};

/// As many as a team has in years.
const MANY: usize = 1_000_000;
/// Enough for PostgreSQL to prefer an index.
const SOME: usize = 30_000;
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/hosting/plans.md");

const STATEMENTS: &[(&str, &str)] = &[
    ("Begin a session", create::CREATE),
    ("The session that a key began", create::BY_KEY),
    ("Whether an id is taken", create::BY_ID),
    ("Whether a definition is another", create::OTHER_DEFINITION),
    ("Add an event", append::APPEND),
    ("Add an event with a snapshot", append::APPEND_WITH_SNAPSHOT),
    ("The end of a log", tips::TIP),
    ("Whether an event is ours", append::TWO_HASHES),
    ("Where a session stands", read::META),
    ("A session and its snapshot", read::START),
    ("The events after a snapshot", read::SEALED_EVENTS),
    ("What is newer than what is known", read::NEWER),
    ("A page of events", read::EVENTS),
    ("A page of events, backwards", read::EVENTS_BACK),
    ("The number of a session", read::NUMBER),
    ("The answer to a repeated call", read::EVENT_AT_REVISION),
    ("A definition", read::DEFINITION),
    ("A list", list::ALL),
    ("A list of an owner's", list::BY_OWNER),
    ("A list of a workflow's", list::BY_WORKFLOW),
    ("A list of an owner's and a workflow's", list::BY_OWNER_AND_WORKFLOW),
    ("By the beginning of an id", list::BY_BEGINNING),
    ("All ids, a page", list::IDS),
    ("Whether there is a session", list::HAS_NUMBER),
    ("How many are not complete", list::OPEN),
    ("How many there are, about", list::RECKONED),
    ("The last events", changes::LAST),
    ("What was written since", changes::SINCE),
    ("What came late", changes::LATE),
    ("The last checkpoint", checkpoint::READ),
    ("Make the first checkpoint", checkpoint::MAKE),
    ("Make a checkpoint", checkpoint::REPLACE),
    ("Prune: old sessions", prune::OLD),
    ("Prune: their events", prune::DELETE_EVENTS),
    ("Prune: their snapshots", prune::DELETE_SNAPSHOTS),
    ("Prune: their shares", prune::DELETE_SHARES),
    ("Prune: themselves", prune::DELETE_SESSIONS),
    ("How many are old", prune::COUNT),
    ("Remove definitions", prune::FORGET_DEFINITIONS),
    ("Import: pin a definition", import::PIN),
    ("Import: compare it", import::SAME_DEFINITION),
    ("Import: a session", import::BEGIN),
    ("Import: an event", import::EVENT),
    ("Verify: the start", verify::START),
    ("Verify: events", verify::LINKS),
    ("Verify: the snapshot", verify::SNAPSHOT),
    ("Share a session", shares::ADD),
    ("Share it no more", shares::REMOVE),
    ("Whether it is shared with somebody", shares::HAS),
    ("With whom it is shared", shares::OF_SESSION),
    ("Whose a session is", shares::OWNER),
    ("How many open ones an owner shares with somebody", shares::OPEN_OF_OWNER),
    ("What is shared with somebody", shares::WITH_PRINCIPAL),
    ("A document", documents::READ),
    ("The first of its name", documents::FIRST),
    ("The next", documents::REPLACE),
    ("End a handshake", ended::END),
    ("Whether one has ended", ended::HAS),
    ("Which have ended since", watch::ENDED),
];

/// Sessions of a thousand owners, of which the last thousand run.
const FILL: &str = "SET search_path = workflowlookup; SET synchronous_commit = off;
    INSERT INTO definitions SELECT 'd' || n, '{}' FROM generate_series(0, 4999) n;
    INSERT INTO sessions (id, key, owner, workflow, goal, definition, created, root, status, revision, touched, version,
        seal, finished)
    SELECT 's' || n, 'k' || n, 'owner' || n % 1000, 'workflow' || n % 50, 'goal ' || n, 'd' || n % 5000, n, '\\x00',
        CASE WHEN n > COUNT - 1000 THEN 0 ELSE 2 END, 1, n, 2, '\\x00',
        CASE WHEN n > COUNT - 1000 THEN NULL ELSE n END
    FROM generate_series(1, COUNT) n;
    INSERT INTO events (session, version, time, kind, revision, hash, body, words)
    SELECT n, v, n, 'accepted', v, '\\x00', '{}',
        CASE v WHEN 1 THEN array_to_tsvector(ARRAY['tword' || n % 10000, 'tcommon', 'o' || left(encode(sha256(convert_to('owner' || n % 1000, 'UTF8')), 'hex'), 32)]) END
    FROM generate_series(1, COUNT) n, generate_series(1, 2) v;
    INSERT INTO snapshots SELECT n, 2, '{}', '\\x00' FROM generate_series(1, COUNT / 5) n;
    INSERT INTO ended (id, until) SELECT decode(md5(n::text), 'hex'), n FROM generate_series(1, COUNT / 5) n;
    INSERT INTO documents SELECT 'document' || n, 1, '{}' FROM generate_series(1, 5000) n;
    INSERT INTO shares SELECT n, 'owner' || n % 100 FROM generate_series(1, COUNT / 5) n;
    ANALYZE documents; ANALYZE shares; ANALYZE definitions; ANALYZE sessions; ANALYZE events; ANALYZE snapshots; ANALYZE ended";

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn no_statement_scans_a_table() {
    let is_long = std::env::var_os("WORKFLOWLOOKUP_LONG").is_some();
    let count = if is_long { MANY } else { SOME };
    let database = Database::create().unwrap();
    let store = Store::connect(&Address::parse(&database.url()).unwrap(), None, 1).unwrap();
    store.mark().unwrap();
    database.query(&FILL.replace("COUNT", &count.to_string())).unwrap();
    let mut document = String::new();
    for (about, sql) in STATEMENTS {
        let plan = plan(&database, sql);
        check(sql, &plan);
        let _ =
            write!(document, "## {about}\n\n```sql\n{}\n```\n\n```\n{plan}\n```\n\n", tidy(sql));
    }
    for (about, query) in
        [("a rare word of an owner's", "word77"), ("a word of everybody's", "comm")]
    {
        let words = search::expression(query, Some("owner77")).unwrap();
        let sql = search::SEARCH
            .replace("$1::text::tsquery", &format!("'{}'::tsquery", words.replace('\'', "''")))
            .replace("$2", "10000")
            .replace("$3", "20");
        let plan = explained(&database, &format!("EXPLAIN (COSTS OFF) {sql}"));
        check(&sql, &plan);
        let _ = write!(
            document,
            "## Search: {about}\n\n```sql\n{}\n```\n\n```\n{plan}\n```\n\n",
            tidy(&sql)
        );
    }
    if is_long && std::env::var_os("WORKFLOWLOOKUP_UPDATE").is_some() {
        let text = format!("{HEAD}\n{}\n", document.trim_end());
        std::fs::write(DOCUMENT, text).unwrap();
    }
    // Whatever the size, the document speaks of the statements that there are.
    let kept = std::fs::read_to_string(DOCUMENT).unwrap();
    for (about, sql) in STATEMENTS {
        assert!(
            kept.contains(&tidy(sql)),
            "{about}: `WORKFLOWLOOKUP_UPDATE=1 cargo xtask test --long` writes it anew"
        );
    }
}

const HEAD: &str = "# How PostgreSQL finds what the product asks for

Written by a test (`cargo xtask test --long`), in a store of a million sessions of a thousand owners, with two million
events. Every statement of the product is here, and none of them reads a whole table: what an append costs does not depend on
how much there is. A search sorts what it matches, at most 10,000 events.
";

/// However often it is run with whatever values.
fn plan(database: &Database, sql: &str) -> String {
    let count = (1..).take_while(|number| sql.contains(&format!("${number}"))).count();
    let values =
        if count == 0 { String::new() } else { format!("({})", vec!["NULL"; count].join(", ")) };
    explained(
        database,
        &format!(
            "SET plan_cache_mode = force_generic_plan; PREPARE statement AS {sql};
            EXPLAIN (COSTS OFF) EXECUTE statement{values}"
        ),
    )
}

fn explained(database: &Database, sql: &str) -> String {
    let said = database.query(&format!("SET search_path = workflowlookup; {sql}")).unwrap();
    let lines = said.lines().filter(|line| !["SET", "PREPARE"].contains(line));
    lines.collect::<Vec<_>>().join("\n")
}

fn check(sql: &str, plan: &str) {
    assert!(!plan.contains("Seq Scan"), "{sql}\n{plan}");
    assert!(plan.contains("Scan") || sql.starts_with("INSERT"), "{sql}\n{plan}");
}

/// Without the spaces that only the source needs.
fn tidy(sql: &str) -> String {
    sql.lines().map(str::trim).collect::<Vec<_>>().join("\n")
}
