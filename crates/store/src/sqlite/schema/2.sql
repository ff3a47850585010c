-- Handshakes over HTTP that their clients have ended before their time, for every process to know. `number` is the
-- order in which they were ended: the oldest go first when there are too many.
CREATE TABLE ended (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL UNIQUE,
    until INTEGER NOT NULL
) STRICT;

CREATE INDEX ended_by_time ON ended (until);
