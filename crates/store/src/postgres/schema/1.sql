-- What the caller pinned, once per hash.
CREATE TABLE definitions (
    hash text COLLATE "C" PRIMARY KEY,
    text text NOT NULL
);

-- One row per session: what never changes, and the head. `number` is the order of creation. Nothing that every append
-- changes is in an index, and pages have room to spare, so that an append rewrites a row in its place: `finished` is
-- `touched` for complete sessions, and nothing for others.
CREATE TABLE sessions (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    key text COLLATE "C",
    owner text COLLATE "C" NOT NULL,
    workflow text COLLATE "C" NOT NULL,
    goal text NOT NULL,
    definition text COLLATE "C" NOT NULL REFERENCES definitions (hash),
    created bigint NOT NULL,
    root bytea NOT NULL,
    status smallint NOT NULL,
    step text,
    revision bigint NOT NULL,
    touched bigint NOT NULL,
    version bigint NOT NULL,
    seal bytea NOT NULL,
    finished bigint
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX sessions_by_key ON sessions (owner, key) WHERE key IS NOT NULL;
CREATE INDEX sessions_by_definition ON sessions (definition);
-- A list without a status looks at each status in turn.
CREATE INDEX sessions_by_status ON sessions (status, number);
CREATE INDEX sessions_by_owner ON sessions (owner, status, number);
CREATE INDEX sessions_by_workflow ON sessions (workflow, status, number);
CREATE INDEX sessions_by_owner_and_workflow ON sessions (owner, workflow, status, number);
CREATE INDEX sessions_finished ON sessions (finished) WHERE finished IS NOT NULL;

-- `id` is the order in which events were begun, which is not quite that of their commits. There is no reference to
-- `sessions`: the statement that adds an event has the session's row in its hands already, and would pay for it again.
-- `words` is what a search finds the event by: one for the owner, and the words of its text.
CREATE TABLE events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session bigint NOT NULL,
    version bigint NOT NULL,
    time bigint NOT NULL,
    kind text NOT NULL,
    revision bigint,
    digest bytea,
    hash bytea NOT NULL,
    body text NOT NULL,
    words tsvector
);

CREATE UNIQUE INDEX events_by_version ON events (session, version);
CREATE INDEX events_by_revision ON events (session, revision) WHERE revision IS NOT NULL;
CREATE INDEX events_by_words ON events USING gin (words) WHERE words IS NOT NULL;

-- A cache: at most one per session.
CREATE TABLE snapshots (
    session bigint PRIMARY KEY,
    version bigint NOT NULL,
    text text NOT NULL,
    seal bytea NOT NULL
);

-- Handshakes over HTTP that their clients have ended before their time, for every process to know. `number` is the
-- order in which they were ended: the oldest go first when there are too many.
CREATE TABLE ended (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id bytea NOT NULL UNIQUE,
    until bigint NOT NULL
);

CREATE INDEX ended_by_time ON ended (until);
