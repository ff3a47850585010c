-- Small texts that processes share. `version` counts how often one was replaced.
CREATE TABLE documents (
    name TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    text TEXT NOT NULL
) STRICT;
