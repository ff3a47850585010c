-- Whom sessions are shared with, besides their owners. `number` is the order in which that was done.
CREATE TABLE shares (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL REFERENCES sessions (number),
    principal TEXT NOT NULL,
    UNIQUE (session, principal)
) STRICT;

CREATE INDEX shares_by_principal ON shares (principal, session);

-- Small texts that processes share. `version` counts how often one was replaced.
CREATE TABLE documents (
    name TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    text TEXT NOT NULL
) STRICT;
