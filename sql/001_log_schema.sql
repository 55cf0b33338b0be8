-- 001_log_schema.sql: the tables of the log engine, their storage settings and the shared helpers.
--
-- Run at every boot, in file order, each statement (between the separator lines) in a transaction
-- of its own, under the installer's advisory lock 778120010. Each statement is idempotent and takes
-- no heavy lock when nothing changes (DM-2, DM-3). Needs PostgreSQL 15: unique nulls not distinct.
--
-- Names: arguments p_, locals v_, results of internals o_; internals start with an underscore.
-- Isolation: every procedure assumes READ COMMITTED. Each statement of a volatile function then
-- sees what committed before it, which the claim and the seeding rely on.
-- Time: only queen._clock(); column defaults may use now().
--
-- Lock order, for every file; a transaction takes them downwards only (LK-1):
--   0. log_timers       (tenant_id, queue, timer_key), byte order
--   1. advisory locks   queue creation  hashtextextended(tenant/name, 41), ascending key
--                       group of queue  hashtextextended(queue id/group, 43): exclusive by the
--                                       seeder, shared by whoever creates a single cursor
--                       cursor creation hashtextextended(partition id/group, 42)
--                       watermark row   hashtextextended(queue id/group, 44)
--                       discovery       hashtextextended(tenant/namespace/task/group, 45)
--   2. queues           (tenant_id, name)
--   3. log_partitions   (id)
--   4. log_consumers    (partition_id, consumer_group)
--   5. leaves           log_segments, log_txns, log_dlq, consumer_groups_metadata,
--                       consumer_watermarks, hotlist_repairs, retention_history, system_state
-- A move out of the dead letters takes its log_dlq row before 1 to 4, and the row of the letter's
-- queue, FOR KEY SHARE, before that: a delete of the queue reaches its letters last (LK-1, DQ-7). maintenance_leases are taken and given back in transactions of their own.
-- A pop takes any of them only if that needs no waiting (LK-3): waits of pops on each other form
-- chains, and chains, unlike cycles, are invisible to the deadlock detector. One wait is left, and
-- PostgreSQL's own: SKIP LOCKED meets a row whose update ends at that very moment while a third
-- transaction takes the new version. Seen 6 times in 2,000 pops of 100 clients over a few
-- partitions, 2 to 4 ms each (2026-11-29, PostgreSQL 15, 2 cores).
CREATE SCHEMA IF NOT EXISTS queen;

-- @
-- The only source of time. A test replaces it; the planner inlines it.
CREATE OR REPLACE FUNCTION queen._clock() RETURNS timestamptz
LANGUAGE sql VOLATILE PARALLEL SAFE AS $$ SELECT clock_timestamp() $$;

-- @
-- Identity and settings of a queue. The column defaults are those of a queue that a push or a pop
-- created: lease 60 s, where configure writes 300 s (PROV-5). retry_delay and ttl are null until
-- somebody sets them, so that whoever enforces them can tell a wish from a default.
CREATE TABLE IF NOT EXISTS queen.queues (
    id                              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id                       uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000001',
    name                            varchar(255) NOT NULL CHECK (name <> ''),
    namespace                       varchar(255),
    task                            varchar(255),
    priority                        integer NOT NULL DEFAULT 0,
    lease_time                      integer NOT NULL DEFAULT 60,       -- s
    retry_limit                     integer NOT NULL DEFAULT 3,        -- failed acks of a head
    retry_delay                     integer,                           -- ms; null reads as 1000
    ttl                             integer,                           -- s; null reads as 3600
    dead_letter_queue               boolean NOT NULL DEFAULT true,
    dlq_after_max_retries           boolean NOT NULL DEFAULT true,
    delayed_processing              integer NOT NULL DEFAULT 0,        -- s, "D"
    window_buffer                   integer NOT NULL DEFAULT 0,        -- s, "W"
    retention_seconds               integer NOT NULL DEFAULT 0,
    completed_retention_seconds     integer NOT NULL DEFAULT 0,
    retention_enabled               boolean NOT NULL DEFAULT false,
    encryption_enabled              boolean NOT NULL DEFAULT false,
    max_wait_time_seconds           integer NOT NULL DEFAULT 0,
    max_queue_size                  integer NOT NULL DEFAULT 0,
    min_pop_wait_time               integer NOT NULL DEFAULT 0,        -- ms
    dedup_window_seconds            integer NOT NULL DEFAULT 3600,     -- 0: no probe
    retention_sink_hold             text NOT NULL DEFAULT '',
    retention_sink_hold_max_seconds integer NOT NULL DEFAULT 604800,
    created_at                      timestamptz NOT NULL DEFAULT now(),
    partitions_deleted              bigint NOT NULL DEFAULT 0,         -- by cleanups
    UNIQUE (tenant_id, name)
);

-- @
-- One row a partition: the allocator of offsets. Its row lock orders the pushes of the partition,
-- so offset order, commit order and created_at order are one (ORD-1).
-- Invariants: log_start is the base of the first segment, or last_offset + 1 when there is none;
-- segment_count and stored_bytes equal count and sum(octet_length(blob)) over log_segments, so
-- whoever deletes segments lowers them in the same statement; newest_at never goes back, also when
-- the wall clock does. None of them is indexed: a push stays a HOT update, except that
-- last_write_at, which is, moves at most once a second. oldest_live_at and oldest_txn_at are the
-- stamps of the rows at log_start and txns_start, null without one: what retention looks for. They
-- are indexed (006), so a push writes them only when the partition was empty. txns_start is never
-- above log_start: the hashes of a message live at least as long as the message (RT-7).
CREATE TABLE IF NOT EXISTS queen.log_partitions (
    id            uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    queue_id      uuid NOT NULL REFERENCES queen.queues (id) ON DELETE CASCADE,
    name          text NOT NULL DEFAULT 'Default' CHECK (name <> ''),
    last_offset   bigint NOT NULL DEFAULT -1,
    log_start     bigint NOT NULL DEFAULT 0,
    txns_start    bigint NOT NULL DEFAULT 0,
    segment_count bigint NOT NULL DEFAULT 0,
    stored_bytes  bigint NOT NULL DEFAULT 0,
    newest_at     timestamptz,                         -- created_at of the newest segment
    last_write_at timestamptz NOT NULL DEFAULT now(),
    created_at    timestamptz NOT NULL DEFAULT now(),
    oldest_live_at timestamptz,
    oldest_txn_at timestamptz,
    UNIQUE (queue_id, name)
);

-- @
-- The order of walks over what was written lately, and the range of the candidate scan. Asked for by
-- name first: IF NOT EXISTS locks the table before it looks, so a boot would wait for every open
-- push and make the next ones wait for it (F-25). An index of this name once lacked the id: walks
-- would sort.
DO $$
BEGIN
    IF (SELECT i.indnatts < 3 FROM pg_index i
        WHERE i.indexrelid = to_regclass('queen.log_partitions_written')) THEN
        DROP INDEX queen.log_partitions_written;
    END IF;
    IF to_regclass('queen.log_partitions_written') IS NULL THEN
        CREATE INDEX log_partitions_written ON queen.log_partitions (queue_id, last_write_at, id);
    END IF;
END $$;

-- @
-- The messages: one row is a range of offsets as one compressed blob. Reached by steps on the
-- primary key only; a second index would be paid by each push.
CREATE TABLE IF NOT EXISTS queen.log_segments (
    partition_id uuid NOT NULL REFERENCES queen.log_partitions (id) ON DELETE CASCADE,
    base_offset  bigint NOT NULL,
    end_offset   bigint NOT NULL,                      -- inclusive
    created_at   timestamptz NOT NULL,
    blob         bytea NOT NULL,
    PRIMARY KEY (partition_id, base_offset)
);

-- @
-- The hash sidecar: 16 bytes a message, in frame order, over the same ranges; answers the dedup
-- probe and resolves acks. No foreign key: it outlives segments, and whoever deletes a partition
-- deletes these rows itself.
CREATE TABLE IF NOT EXISTS queen.log_txns (
    partition_id uuid NOT NULL,
    base_offset  bigint NOT NULL,
    end_offset   bigint NOT NULL,
    created_at   timestamptz NOT NULL,
    hashes       bytea NOT NULL,
    PRIMARY KEY (partition_id, base_offset)
);

-- @
-- Cursor and lease of a group in a partition. One row holds at most one lease, over
-- (committed, batch_end]. attempt_* count deliveries that start at one offset and are telemetry;
-- prior_* hold them as they were before the live lease, for a batch that could not be handed over.
-- batch_retry_count is the budget that failed acks spend; retry_offset is the highest head it was
-- charged for, and passing that head clears it. worker_id '' with a lease but no batch is nobody's
-- lease: it keeps the partition from the group until a retry delay is over. lease_conflated: the
-- lease covers its whole span though only the newest message was delivered (CF-2).
CREATE TABLE IF NOT EXISTS queen.log_consumers (
    partition_id         uuid NOT NULL REFERENCES queen.log_partitions (id) ON DELETE CASCADE,
    consumer_group       text NOT NULL DEFAULT '__QUEUE_MODE__',
    committed            bigint NOT NULL DEFAULT -1,
    batch_end            bigint,
    worker_id            text,
    lease_expires_at     timestamptz,
    lease_acquired_at    timestamptz,
    batch_retry_count    integer NOT NULL DEFAULT 0,
    retry_offset         bigint,
    attempt_offset       bigint,
    attempt_count        integer NOT NULL DEFAULT 0,
    prior_attempt_offset bigint,
    prior_attempt_count  integer NOT NULL DEFAULT 0,
    total_consumed       bigint NOT NULL DEFAULT 0,
    created_at           timestamptz NOT NULL DEFAULT now(),
    lease_conflated      boolean NOT NULL DEFAULT false,
    PRIMARY KEY (partition_id, consumer_group)
);

-- @
-- Subscriptions. The row of (queue, group) is the marker "this group was seeded"; the insert of it
-- elects the one who seeds all partitions. A discovery registers its labels with queue_id null.
-- conflation: the group takes only the newest message of a partition (CF-1).
CREATE TABLE IF NOT EXISTS queen.consumer_groups_metadata (
    id                     uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id              uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000001',
    consumer_group         text NOT NULL,
    queue_id               uuid REFERENCES queen.queues (id) ON DELETE CASCADE,
    partition_name         text NOT NULL DEFAULT '',
    namespace              text NOT NULL DEFAULT '',
    task                   text NOT NULL DEFAULT '',
    subscription_mode      text NOT NULL,              -- all, new, timestamp
    subscription_timestamp timestamptz NOT NULL,       -- epoch for all
    created_at             timestamptz NOT NULL DEFAULT now(),
    conflation             boolean NOT NULL DEFAULT false,
    UNIQUE NULLS NOT DISTINCT (tenant_id, consumer_group, queue_id, partition_name, namespace, task)
);

-- @
DO $$
BEGIN
    IF to_regclass('queen.consumer_groups_metadata_queue') IS NULL THEN
        CREATE INDEX consumer_groups_metadata_queue
            ON queen.consumer_groups_metadata (queue_id, consumer_group);
    END IF;
END $$;

-- @
-- Since when a group has known the queue to be empty: the lower bound of its candidate scan.
-- updated_at is the last check, which is made at most each 30 s.
CREATE TABLE IF NOT EXISTS queen.consumer_watermarks (
    queue_id           uuid NOT NULL REFERENCES queen.queues (id) ON DELETE CASCADE,
    consumer_group     varchar(255) NOT NULL DEFAULT '__QUEUE_MODE__',
    last_empty_scan_at timestamptz NOT NULL DEFAULT 'epoch',
    updated_at         timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (queue_id, consumer_group)
);

-- @
-- Dead letters: what a group gave up on, a copy of the message as it was stored. payload are the
-- bytes of the frame: JSON text, or the envelope when encrypted is set; jsonb would change numbers
-- and refuse the escape of NUL (K20, K23). Retention never deletes a row; one keeps its partition
-- from being cleaned up. Timers that were given up on have group __timer__, offset -1, timer_key and
-- partition_name, and as their partition the id of their queue: their message was in none, so they
-- keep none, and whoever names a letter by partition and transaction reaches no other queue's.
CREATE TABLE IF NOT EXISTS queen.log_dlq (
    id             uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    queue_id       uuid NOT NULL REFERENCES queen.queues (id) ON DELETE CASCADE,
    partition_id   uuid NOT NULL,
    consumer_group text NOT NULL,
    "offset"       bigint NOT NULL,
    message_id     uuid,
    transaction_id text,
    trace_id       uuid,
    producer_sub   text,
    payload        bytea,
    encrypted      boolean NOT NULL DEFAULT false,
    error          text,
    retry_count    integer NOT NULL DEFAULT 0,
    created_at     timestamptz,                        -- of the message's segment
    failed_at      timestamptz NOT NULL DEFAULT now()
);

-- @
-- The order of the list, newest first within a queue; and what there is of a partition.
DO $$
BEGIN
    IF to_regclass('queen.log_dlq_queue') IS NULL THEN
        CREATE INDEX log_dlq_queue ON queen.log_dlq (queue_id, failed_at DESC, id DESC);
    END IF;
    IF to_regclass('queen.log_dlq_partition') IS NULL THEN
        CREATE INDEX log_dlq_partition ON queen.log_dlq (partition_id, failed_at DESC);
    END IF;
END $$;

-- @
-- Cursors of a group went back by hand: the sources of other brokers have to look again. A
-- partition_name of null means the whole queue; two repairs of different partitions become that.
-- Readers compare each row with what they saw: repair_at is set before the commit, so a highest
-- value seen would miss one that commits late.
CREATE TABLE IF NOT EXISTS queen.hotlist_repairs (
    tenant_id      uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000001',
    queue_name     text NOT NULL,
    consumer_group text NOT NULL,
    partition_name text,
    repair_at      timestamptz NOT NULL DEFAULT now(),
    reason         text NOT NULL,
    PRIMARY KEY (tenant_id, queue_name, consumer_group)
);

-- @
-- Switches of all brokers: maintenance_mode and pop_maintenance_mode are off when absent,
-- timers_schedule_enabled and timers_fire_enabled on. A value is {"enabled": boolean}.
CREATE TABLE IF NOT EXISTS queen.system_state (
    key        text PRIMARY KEY,
    value      jsonb NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- @
-- One row a task that one broker at a time does for all. fence rises with each claim, so whoever
-- lost its lease can tell (MA-1).
CREATE TABLE IF NOT EXISTS queen.maintenance_leases (
    task             text PRIMARY KEY,
    period_ms        bigint NOT NULL,
    next_due_at      timestamptz NOT NULL DEFAULT now(),
    lease_until      timestamptz,
    holder           text,
    fence            bigint NOT NULL DEFAULT 0,
    last_start_at    timestamptz,
    last_end_at      timestamptz,
    last_duration_ms bigint,
    runs             bigint NOT NULL DEFAULT 0,
    enabled          boolean NOT NULL DEFAULT true
);

-- @
-- What retention removed. Types: retention, completed_retention, max_wait_time_eviction, and
-- __partition_deleted__, which counts no messages.
CREATE TABLE IF NOT EXISTS queen.retention_history (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    partition_id     uuid NOT NULL,
    messages_deleted bigint NOT NULL,
    retention_type   varchar(50) NOT NULL,
    executed_at      timestamptz NOT NULL DEFAULT now()
);

-- @
DO $$
BEGIN
    IF to_regclass('queen.retention_history_executed') IS NULL THEN
        CREATE INDEX retention_history_executed ON queen.retention_history (executed_at DESC);
    END IF;
END $$;

-- @
-- Adds a column that an older release did not have. ADD COLUMN IF NOT EXISTS locks the table before
-- it looks, so a boot would wait for every open push and make the next ones wait for it (F-25).
CREATE OR REPLACE FUNCTION queen._add_column(p_table regclass, p_column name, p_type text)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_attribute a
                   WHERE a.attrelid = p_table AND a.attname = p_column AND NOT a.attisdropped) THEN
        EXECUTE format('ALTER TABLE %s ADD COLUMN %I %s', p_table, p_column, p_type);
    END IF;
END $$;

-- @
SELECT queen._add_column('queen.log_partitions', 'oldest_live_at', 'timestamptz'),
       queen._add_column('queen.log_partitions', 'oldest_txn_at', 'timestamptz');

-- @
SELECT queen._add_column('queen.queues', 'partitions_deleted', 'bigint NOT NULL DEFAULT 0');

-- @
SELECT queen._add_column('queen.log_dlq', 'partition_name', 'text'), -- of a timer's letter
       queen._add_column('queen.log_dlq', 'timer_key', 'text');

-- @
-- Letters of timers had one partition for all queues, the id of zeros.
UPDATE queen.log_dlq d SET partition_id = d.queue_id
WHERE d.partition_id = '00000000-0000-0000-0000-000000000000' AND d.consumer_group = '__timer__';

-- @
SELECT queen._add_column('queen.log_consumers', 'lease_conflated', 'boolean NOT NULL DEFAULT false');

-- @
SELECT queen._add_column('queen.consumer_groups_metadata', 'conflation',
                         'boolean NOT NULL DEFAULT false');

-- @
-- Brings storage options to the wanted values. The ALTER, which waits for a running vacuum, is
-- skipped when they are there already, so that a boot under load takes no lock.
CREATE OR REPLACE FUNCTION queen._storage(p_table regclass, p_options text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_toast oid := (SELECT c.reltoastrelid FROM pg_class c WHERE c.oid = p_table);
    v_has   text[] := (SELECT coalesce(c.reloptions, '{}') FROM pg_class c WHERE c.oid = p_table)
        || coalesce((SELECT array_agg('toast.' || o)
                     FROM pg_class c, unnest(c.reloptions) o WHERE c.oid = v_toast), '{}');
BEGIN
    IF NOT p_options <@ v_has THEN
        EXECUTE format('ALTER TABLE %s SET (%s)', p_table, array_to_string(p_options, ', '));
    END IF;
END $$;

-- @
-- The broker has compressed blobs already and hashes do not compress: trying again costs each push
-- CPU, and a compressed value cannot be sliced. The ALTER takes an exclusive lock, so only once.
DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_attribute a
               WHERE a.attrelid = 'queen.log_segments'::regclass AND a.attname = 'blob'
                 AND a.attstorage <> 'e') THEN
        ALTER TABLE queen.log_segments ALTER COLUMN blob SET STORAGE EXTERNAL;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_attribute a
               WHERE a.attrelid = 'queen.log_txns'::regclass AND a.attname = 'hashes'
                 AND a.attstorage <> 'e') THEN
        ALTER TABLE queen.log_txns ALTER COLUMN hashes SET STORAGE EXTERNAL;
    END IF;
END $$;

-- @
-- Each push updates this row once. fillfactor leaves room on the page for its next version: of
-- 7,000 updates by pushes to 50 of 1,000 partitions, 80 % were HOT at 70 and 71 % at 100, the rest
-- moved last_write_at (2026-11-29, PostgreSQL 15, 300 pushes/s, 2 busy cores). Vacuum after 500
-- dead rows, at full speed, keeps the version chains short (F-20; the number is a guess).
-- Truncation takes an exclusive lock that stops pushes and pops for seconds (F-18).
SELECT queen._storage('queen.log_partitions', ARRAY[
    'fillfactor=70', 'autovacuum_vacuum_scale_factor=0', 'autovacuum_vacuum_threshold=500',
    'autovacuum_vacuum_cost_delay=0', 'vacuum_truncate=false']);

-- @
-- Two updates a batch, lease and ack, hence half the page free: in the same run all of 6,000
-- updates were HOT at 50, and 99.3 % at 100.
SELECT queen._storage('queen.log_consumers', ARRAY[
    'fillfactor=50', 'autovacuum_vacuum_scale_factor=0', 'autovacuum_vacuum_threshold=500',
    'autovacuum_vacuum_cost_delay=0', 'vacuum_truncate=false']);

-- @
-- Insert and delete by prefix only. Scale factors of 0.02 to 0.05 start a vacuum every few seconds
-- at a million messages a second (F-19); 0.1 and 0.3 are the published values for that load, the
-- cost limit is a guess. No truncation, as above.
SELECT queen._storage('queen.log_segments', ARRAY[
    'autovacuum_vacuum_scale_factor=0.1', 'autovacuum_vacuum_insert_scale_factor=0.3',
    'autovacuum_vacuum_cost_limit=4000', 'autovacuum_vacuum_cost_delay=0', 'vacuum_truncate=false',
    'toast.autovacuum_vacuum_scale_factor=0.1', 'toast.autovacuum_vacuum_insert_scale_factor=0.3',
    'toast.autovacuum_vacuum_cost_limit=4000', 'toast.autovacuum_vacuum_cost_delay=0',
    'toast.vacuum_truncate=false']);

-- @
SELECT queen._storage('queen.log_txns', ARRAY[
    'autovacuum_vacuum_scale_factor=0.1', 'autovacuum_vacuum_insert_scale_factor=0.3',
    'autovacuum_vacuum_cost_delay=0', 'vacuum_truncate=false',
    'toast.autovacuum_vacuum_scale_factor=0.1', 'toast.autovacuum_vacuum_insert_scale_factor=0.3',
    'toast.autovacuum_vacuum_cost_delay=0', 'toast.vacuum_truncate=false']);

-- @
-- The named functions stay, other functions of the same names go: an old signature left beside a
-- new one makes calls ambiguous (DM-4, F-63). Each file ends with its list; a wrong entry stops
-- the boot. A change of result type needs a DROP in the statement that creates the function.
CREATE OR REPLACE FUNCTION queen._keep_only(p_signatures text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_keep oid[] := ARRAY(SELECT ('queen.' || s)::regprocedure::oid FROM unnest(p_signatures) s);
    v_old  regprocedure;
BEGIN
    FOR v_old IN
        SELECT p.oid::regprocedure
        FROM pg_proc p
        WHERE p.pronamespace = 'queen'::regnamespace
          AND p.proname IN (SELECT k.proname FROM pg_proc k WHERE k.oid = ANY (v_keep))
          AND NOT p.oid = ANY (v_keep)
    LOOP
        EXECUTE format('DROP FUNCTION %s', v_old);
    END LOOP;
END $$;

-- @
-- Times on the wire of procedures: UTC with microseconds (FMT-14).
CREATE OR REPLACE FUNCTION queen._iso(p_at timestamptz) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT to_char(p_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;

-- @
-- Times in administrative JSON: UTC with milliseconds (FMT-14).
CREATE OR REPLACE FUNCTION queen._iso_ms(p_at timestamptz) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT to_char(p_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;

-- @
-- The hashes of a sidecar row: idx from zero, h of 16 bytes.
CREATE OR REPLACE FUNCTION queen.log_unnest_hashes(p_hashes bytea)
RETURNS TABLE (idx integer, h bytea)
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 100 AS $$
    SELECT i, substring(p_hashes FROM i * 16 + 1 FOR 16)
    FROM generate_series(0, octet_length(p_hashes) / 16 - 1) AS i
$$;

-- @
-- Labels of a queue nobody configured, from its dotted name (PROV-2).
CREATE OR REPLACE FUNCTION queen._labels(p_name text, OUT namespace text, OUT task text)
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT split_part(p_name, '.', 1), split_part(p_name, '.', 2)
$$;

-- @
-- Key of the lock that whoever creates a queue holds: pushes and configure wait for it, a pop that
-- does not get it leaves. So no pop ever waits for another's insert of the same queue.
CREATE OR REPLACE FUNCTION queen._queue_lock(p_tenant uuid, p_name text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT hashtextextended(p_tenant::text || '/' || p_name, 41)
$$;
