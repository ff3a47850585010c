-- How often the file was written, and the sum of the seals of all sessions, sealed. `store` tells this store from
-- others.
CREATE TABLE counter (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    store BLOB NOT NULL,
    writes INTEGER NOT NULL,
    sessions INTEGER NOT NULL,
    sum BLOB NOT NULL,
    seal BLOB NOT NULL
) STRICT;

-- Sessions may have events that older programs do not know. This finds those that were imported, for lists.
CREATE INDEX events_imported ON events (session) WHERE kind = 'imported';
