-- The last checkpoint, sealed: how many there were, and the last event before it. Nothing that appends touches it.
-- `store` tells this store from others.
CREATE TABLE checkpoint (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    store bytea NOT NULL,
    number bigint NOT NULL,
    position bigint NOT NULL,
    seal bytea NOT NULL
);

-- Sessions may have events that older programs do not know. This finds those that were imported, for lists.
CREATE INDEX events_imported ON events (session) WHERE kind = 'imported';
