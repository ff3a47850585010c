//! A test: every statement finds its rows by an index. Nothing that runs often looks through a table.

use rusqlite::Connection;

use super::{
    append, changes, counter, create, documents, ended, index, list, prune, read, schema, search,
    shares, verify,
};
use crate::chain::Chain;

#[test]
fn no_statement_scans_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let connection = schema::prepare(&path, &Chain::plain()).unwrap();
    let statements = [
        append::HEAD,
        append::INSERT_EVENT,
        append::UPDATE_HEAD,
        append::UPDATE_STATUS,
        append::INSERT_SNAPSHOT,
        changes::SINCE,
        counter::READ,
        counter::WRITE,
        create::BY_KEY,
        create::EXISTS,
        create::SAME_DEFINITION,
        create::INSERT_DEFINITION,
        create::INSERT_SESSION,
        create::UPDATE_SEAL,
        documents::READ,
        documents::FIRST,
        documents::REPLACE,
        ended::HAS,
        ended::ADD,
        ended::FORGET_OLD,
        ended::FORGET_FIRST,
        index::WAIT,
        index::LAST_WAITING,
        list::ALL,
        list::BY_OWNER,
        list::BY_WORKFLOW,
        list::BY_OWNER_AND_WORKFLOW,
        list::BY_BEGINNING,
        list::IDS,
        list::HAS_NUMBER,
        list::COUNT,
        list::OPEN_OF_OWNER,
        list::BYTES_OF_OWNER,
        prune::FINISHED,
        prune::COUNT_FINISHED,
        prune::DELETE_WORDS,
        prune::DELETE_EVENTS,
        prune::DELETE_SNAPSHOT,
        prune::DELETE_SHARES,
        prune::DELETE_SESSION,
        prune::DELETE_DEFINITION,
        read::META,
        read::EVENTS,
        read::EVENTS_BACK,
        read::SEALED_EVENTS,
        read::SEALS,
        read::EVENT_AT_REVISION,
        read::SNAPSHOT,
        read::DEFINITION,
        search::MATCHES,
        search::META_BY_NUMBER,
        shares::ADD,
        shares::REMOVE,
        shares::HAS,
        shares::OF_SESSION,
        shares::OPEN_OF_OWNER,
        shares::WITH_PRINCIPAL,
        verify::ROOT,
        verify::LINKS,
        verify::SNAPSHOT_SEAL,
    ];
    for sql in statements {
        for line in plan(&connection, sql) {
            // The index of words is asked by `MATCH` or by row, which the plan calls a scan all the same.
            let is_words = line.contains("words VIRTUAL TABLE INDEX");
            assert!(!line.starts_with("SCAN") || is_words, "{sql}\n{line}");
            // Sorting would read everything before the first row.
            assert!(!line.contains("TEMP B-TREE"), "{sql}\n{line}");
        }
    }
}

fn plan(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let count = statement.parameter_count();
    for index in 1..=count {
        statement.raw_bind_parameter(index, 1).unwrap();
    }
    let mut rows = statement.raw_query();
    let mut lines = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        lines.push(row.get(3).unwrap());
    }
    lines
}
