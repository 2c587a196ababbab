-- Every time is in epoch milliseconds, every duration in milliseconds; 0 means "none".

CREATE TABLE mqlite_queues (
    id                     INTEGER PRIMARY KEY AUTOINCREMENT,  -- never reused: it is also the generation
    name                   TEXT    NOT NULL,
    kind                   TEXT    NOT NULL CHECK (kind IN ('queue', 'subscription')),
    paused                 INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
    lock_duration_ms       INTEGER NOT NULL,
    max_delivery_count     INTEGER NOT NULL,
    default_ttl_ms         INTEGER NOT NULL,
    dead_letter_on_expire  INTEGER NOT NULL CHECK (dead_letter_on_expire IN (0, 1)),
    dedup_window_ms        INTEGER NOT NULL,
    ordering_mode          TEXT    NOT NULL
                           CHECK (ordering_mode IN ('standard', 'group_fifo', 'strict_fifo')),
    dlq_max_age_ms         INTEGER NOT NULL,
    dlq_max_count          INTEGER NOT NULL,
    dlq_max_bytes          INTEGER NOT NULL,
    retry_initial_delay_ms INTEGER NOT NULL,
    retry_max_delay_ms     INTEGER NOT NULL,
    retry_multiplier       REAL    NOT NULL,
    retry_jitter           REAL    NOT NULL,
    max_counts             TEXT    NOT NULL CHECK (max_counts IN ('deliveries', 'failures')),
    retain_completed_ms    INTEGER NOT NULL,
    keep_leases            INTEGER NOT NULL CHECK (keep_leases IN (0, 1)),
    claim_order            TEXT    NOT NULL CHECK (claim_order IN ('sequence', 'due_time')),
    created_at             INTEGER NOT NULL,
    updated_at             INTEGER NOT NULL,
    deleted_at             INTEGER                             -- set: gone; its rows are removed in chunks
) STRICT;

CREATE UNIQUE INDEX mqlite_queues_name ON mqlite_queues (name) WHERE deleted_at IS NULL;
CREATE INDEX mqlite_queues_deleted ON mqlite_queues (id) WHERE deleted_at IS NOT NULL;

CREATE TABLE mqlite_subscriptions (
    queue_id   INTEGER PRIMARY KEY REFERENCES mqlite_queues (id),
    topic      TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    expr       TEXT    NOT NULL,                               -- '' matches every message
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (topic, name)
) STRICT;

-- What no state change touches: large bodies, and bodies with several deliveries.
CREATE TABLE mqlite_payloads (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    body       BLOB NOT NULL,
    properties TEXT NOT NULL                                   -- a JSON object, or ''
) STRICT;

-- No foreign keys here: to delete a queue would scan for its messages, and every other change
-- would look up rows that are known to be there. `mqlite doctor` checks the references.
CREATE TABLE mqlite_messages (
    seq                     INTEGER PRIMARY KEY AUTOINCREMENT,
    queue_id                INTEGER NOT NULL,
    state                   TEXT    NOT NULL CHECK (
                                state IN ('active', 'locked', 'deferred', 'scheduled', 'dead_lettered')
                            ),
    head                    INTEGER NOT NULL CHECK (head IN (0, 1)),
    line                    TEXT,                              -- the line it stands in; NULL: none
    priority                INTEGER NOT NULL,
    sort_at                 INTEGER NOT NULL,
    visible_at              INTEGER NOT NULL,
    locked_until            INTEGER NOT NULL DEFAULT 0,
    lock_token              TEXT,
    delivery_count          INTEGER NOT NULL DEFAULT 0,
    failure_count           INTEGER NOT NULL DEFAULT 0,
    enqueued_at             INTEGER NOT NULL,
    ttl_ms                  INTEGER NOT NULL,
    expires_at              INTEGER NOT NULL,
    group_id                TEXT,
    message_id              TEXT    NOT NULL,
    correlation_id          TEXT    NOT NULL,
    reply_to                TEXT    NOT NULL,
    content_type            TEXT    NOT NULL,
    subject                 TEXT    NOT NULL,
    dead_letter_reason      TEXT,
    dead_letter_description TEXT,
    body_size               INTEGER NOT NULL,
    payload_id              INTEGER,
    properties              TEXT    NOT NULL,                  -- both '' where payload_id is set
    body                    BLOB    NOT NULL
) STRICT;

-- An index with the state as its last column answers a count without looking at the rows.
CREATE INDEX mqlite_messages_ready ON mqlite_messages (queue_id, priority DESC, sort_at, seq)
    WHERE state = 'active' AND head = 1;
CREATE INDEX mqlite_messages_active ON mqlite_messages (queue_id, seq, state)
    WHERE state = 'active';
CREATE INDEX mqlite_messages_locked ON mqlite_messages (locked_until, queue_id, state)
    WHERE state = 'locked';
CREATE INDEX mqlite_messages_due ON mqlite_messages (visible_at)
    WHERE state = 'scheduled';
CREATE INDEX mqlite_messages_scheduled ON mqlite_messages (queue_id, seq, state)
    WHERE state = 'scheduled';
CREATE INDEX mqlite_messages_deferred ON mqlite_messages (queue_id, seq, state)
    WHERE state = 'deferred';
CREATE INDEX mqlite_messages_dead ON mqlite_messages (queue_id, seq, state)
    WHERE state = 'dead_lettered';
CREATE INDEX mqlite_messages_expiry ON mqlite_messages (expires_at)
    WHERE expires_at > 0 AND state <> 'dead_lettered';
CREATE INDEX mqlite_messages_active_expiry ON mqlite_messages (queue_id, expires_at)
    WHERE expires_at > 0 AND state = 'active';
CREATE INDEX mqlite_messages_line ON mqlite_messages (queue_id, line, seq)
    WHERE line IS NOT NULL;
CREATE UNIQUE INDEX mqlite_messages_head ON mqlite_messages (queue_id, line)
    WHERE head = 1 AND line IS NOT NULL;
CREATE INDEX mqlite_messages_payload ON mqlite_messages (payload_id)
    WHERE payload_id IS NOT NULL;

-- Finished deliveries of queues that retain them; nothing of the live queue looks here.
CREATE TABLE mqlite_finished (
    seq            INTEGER PRIMARY KEY,
    queue_id       INTEGER NOT NULL,
    outcome        TEXT    NOT NULL CHECK (outcome IN ('completed', 'canceled')),
    finished_at    INTEGER NOT NULL,
    lock_token     TEXT,
    delivery_count INTEGER NOT NULL,
    failure_count  INTEGER NOT NULL,
    enqueued_at    INTEGER NOT NULL,
    priority       INTEGER NOT NULL,
    group_id       TEXT,
    message_id     TEXT    NOT NULL,
    correlation_id TEXT    NOT NULL,
    reply_to       TEXT    NOT NULL,
    content_type   TEXT    NOT NULL,
    subject        TEXT    NOT NULL,
    body_size      INTEGER NOT NULL,
    payload_id     INTEGER,
    properties     TEXT    NOT NULL,
    body           BLOB    NOT NULL
) STRICT;

CREATE INDEX mqlite_finished_queue ON mqlite_finished (queue_id, finished_at);
CREATE INDEX mqlite_finished_payload ON mqlite_finished (payload_id)
    WHERE payload_id IS NOT NULL;

CREATE TABLE mqlite_dedup (
    queue_id    INTEGER NOT NULL,
    key         TEXT    NOT NULL,
    body_digest BLOB    NOT NULL,
    seq         INTEGER NOT NULL,
    seen_at     INTEGER NOT NULL,
    PRIMARY KEY (queue_id, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX mqlite_dedup_seen ON mqlite_dedup (seen_at);

-- Keyed by sequence number first, so that settlements in order touch neighbouring pages.
CREATE TABLE mqlite_receipts (
    seq        INTEGER NOT NULL,
    digest     BLOB    NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (seq, digest)
) STRICT, WITHOUT ROWID;

CREATE INDEX mqlite_receipts_expiry ON mqlite_receipts (expires_at);

CREATE TABLE mqlite_attempts (
    queue_id   INTEGER NOT NULL,
    attempt_id TEXT    NOT NULL,
    mode       TEXT    NOT NULL CHECK (mode IN ('peek_lock', 'receive_and_delete')),
    answer     BLOB    NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (queue_id, attempt_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX mqlite_attempts_expiry ON mqlite_attempts (expires_at);

-- What a transaction that another connection committed has to tell the owner of the writer.
CREATE TABLE mqlite_effects (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    effects TEXT NOT NULL
) STRICT;
