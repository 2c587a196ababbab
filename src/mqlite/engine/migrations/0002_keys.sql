-- Access keys. A token is not kept, only its SHA-256 digest, which is what a request is looked
-- up by.
CREATE TABLE mqlite_keys (
    digest      BLOB    PRIMARY KEY,
    id          TEXT    NOT NULL UNIQUE,
    name        TEXT    NOT NULL,
    permissions TEXT    NOT NULL
                CHECK (permissions IN ('send', 'listen', 'send,listen', 'manage')),
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,                              -- 0: never
    revoked_at  INTEGER NOT NULL DEFAULT 0                     -- 0: it is not
) STRICT, WITHOUT ROWID;

CREATE INDEX mqlite_keys_created ON mqlite_keys (created_at, id);
