-- What the caller pinned, once per hash.
CREATE TABLE definitions (
    hash TEXT PRIMARY KEY,
    text TEXT NOT NULL
) STRICT;

-- One row per session: what never changes, and the head. `number` is the order of creation; it is never used
-- again, so that pages of a list hold while sessions are pruned.
CREATE TABLE sessions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    key TEXT,
    owner TEXT NOT NULL,
    workflow TEXT NOT NULL,
    goal TEXT NOT NULL,
    definition TEXT NOT NULL REFERENCES definitions (hash),
    created INTEGER NOT NULL,
    root BLOB NOT NULL,
    status INTEGER NOT NULL,
    step TEXT,
    revision INTEGER NOT NULL,
    touched INTEGER NOT NULL,
    version INTEGER NOT NULL,
    seal BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX sessions_by_key ON sessions (owner, key) WHERE key IS NOT NULL;
CREATE INDEX sessions_by_definition ON sessions (definition);
-- A list without a status looks at each status in turn, which saves half of these.
CREATE INDEX sessions_by_status ON sessions (status, number);
CREATE INDEX sessions_by_owner ON sessions (owner, status, number);
CREATE INDEX sessions_by_workflow ON sessions (workflow, status, number);
CREATE INDEX sessions_by_owner_and_workflow ON sessions (owner, workflow, status, number);
-- For pruning; running ones are not in it, so that appending to them does not touch it.
CREATE INDEX sessions_finished ON sessions (touched) WHERE status = 2;

-- Every event goes to the end of the table, whoever's it is: that touches fewer pages than a place among its
-- neighbours. The hash stands before the body, so that it is read without the body.
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions (number),
    version INTEGER NOT NULL,
    time INTEGER NOT NULL,
    kind TEXT NOT NULL,
    revision INTEGER,
    digest BLOB,
    hash BLOB NOT NULL,
    body TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX events_by_version ON events (session, version);
CREATE INDEX events_by_revision ON events (session, revision) WHERE revision IS NOT NULL;

-- A cache: at most one per session.
CREATE TABLE snapshots (
    session INTEGER PRIMARY KEY REFERENCES sessions (number),
    version INTEGER NOT NULL,
    text TEXT NOT NULL,
    seal BLOB NOT NULL
) STRICT;

-- Words by event, under the event's id; `owner` is one made-up word, so that a search looks at one owner's texts
-- only.
CREATE VIRTUAL TABLE words USING fts5 (
    owner, text, content = '', contentless_delete = 1,
    tokenize = 'unicode61 remove_diacritics 2'
);

-- Texts that wait to be indexed: many at once cost little more than one.
CREATE TABLE unindexed (
    number INTEGER PRIMARY KEY,
    event INTEGER NOT NULL,
    owner TEXT NOT NULL,
    text TEXT NOT NULL
) STRICT;

CREATE TABLE settings (name TEXT PRIMARY KEY, value ANY) STRICT;
