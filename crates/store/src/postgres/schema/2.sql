-- Whom sessions are shared with, besides their owners.
CREATE TABLE shares (
    session bigint NOT NULL,
    principal text COLLATE "C" NOT NULL,
    PRIMARY KEY (session, principal)
);

CREATE INDEX shares_by_principal ON shares (principal, session);

-- Small texts that processes share, such as the list of tokens. `version` counts how often one was replaced.
CREATE TABLE documents (
    name text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    text text NOT NULL
);
