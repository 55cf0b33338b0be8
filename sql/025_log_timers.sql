-- 025_log_timers.sql: messages that wait outside the log for their time: the table, setting,
-- cancelling and showing them. Their way into the log is in 025_log_timers_fire.sql.
--
-- A timer is a message that is not in the log yet. It cannot wait inside of it: a pop reads offsets
-- without gaps, so a frame whose time is to come would stop every consumer of its partition or be
-- skipped for good; a row of a compressed segment cannot be deleted, so nothing could be cancelled;
-- and a frame that waits 90 days would keep 90 days of segments behind it. So it waits in a row of
-- its own, and the fire stores the frame and deletes the row in one transaction: exactly once,
-- without a dedup probe, a status or a tombstone (TM-4). The price: a cancel that comes after the
-- fire finds nothing, and says "absent", which never means "not delivered".
--
-- Keyed by names, without a queue or partition id:
--   - the queue may not exist yet. It is made by the fire as by a push. Setting a timer never
--     writes to queues: two statements of one transaction that write to it, each in its own order,
--     would wait for each other on its unique index (TM-5);
--   - no row names a partition, so log_partition_dead_v1 (006) does not look here. It is SQL, which
--     looks names up when it is made, and 006 is made first: naming this table there stops the boot
--     instead of making every cleanup slower with every timer (DM-5).
--
-- In somebody's hands is a row with claim_token IS NOT NULL AND claimed_until > now, and nothing
-- else. A row that waits for another try has claimed_until ahead and no token: not visible to the
-- claim, and still free to be cancelled. One column for both would make a poisoned timer
-- uncancellable for as long as it backs off (TM-8).
--
-- Lock order: rows here by (tenant, queue, timer_key) in byte order come before everything in 001
-- (LK-1). Those who wait for them are the applies, alone or at the head of a transaction, and the
-- delete of a queue. Claim, fire, fail and dead letter never wait here: SKIP LOCKED.
-- A plain FOR UPDATE in the fire ahead of its last DELETE was prescribed once and is cancelled, for
-- both ways in which it fails: it named a column "id", which this table does not have, so that the
-- boot died of it; and without SKIP LOCKED the fire becomes a waiter here, so that one slow cancel
-- inside of a long transaction stops the fire of a whole broker, which holds the lease of every
-- other timer of its batch meanwhile.
--
-- Measured (queen-bench vacuum; PostgreSQL 15 with autovacuum_naptime 10 s; 2 cores, others at work
-- on them; timers set over HTTP, due after 0.5 s to 3 s; the runs are in bench/results):
-- 2026-11-30  fillfactor 70, once taken over from log_partitions. Symptom: the table is larger and
--   nothing is won. 3,866 to 94,491 updates a run, one a timer, its claim: none was HOT, at 70 or at
--   100. Heap 4.4 MiB against 3.1 MiB after 80 s of 600 timers/s beside 10,000 that stay, 34.1
--   against 23.3 after 50 s beside 100,000; indexes the same; PostgreSQL's CPU 402 us a timer
--   against 409, and 152 against 143. 70 is kept as it was prescribed; 100 cost nothing that was
--   seen.
-- 2026-11-30  timers a second before autovacuum shows in a profile. Symptom looked for: the index
--   on visible_at, right for failures and wrong for load, becoming dear. At 50, 200 and 600 timers/s
--   beside 10,000 that stay vacuum and analyze took 0.3 % to 0.7 % of PostgreSQL's CPU, and 0.006 s
--   to 0.016 s a run; at 1,714 and 1,890/s beside 100,000 that stay 5.5 % and 5.1 %, and 0.33 s and
--   0.37 s a run: there it shows, and the index stays affordable.
-- 2026-11-30  autovacuum workers that the table has, of autovacuum_max_workers 3. Symptom looked
--   for: other tables waiting for one. More than one was never seen, of any table; one was on this
--   table 0.1 % to 0.3 % of the time at 50 to 600 timers/s, 7 % at the two highest rates. From 50
--   timers/s on each naptime brought one vacuum and one analyze, so naptime paces them, and not the
--   threshold of 500.
--
-- Isolation: READ COMMITTED. Time: queen._clock(); times on the wire are relative (TM-2).
-- Errors: 22023 for arguments that make no sense (QTIMER), raised before anything is written.

-- shard spreads contention over 64 ranges of the index, for good; nobody owns one. Only the column
-- is read: the hash is another in other versions of PostgreSQL.
-- visible_at is the one key of the scan: the claim is a range per shard from which nothing is
-- filtered. The price is that a claim writes an indexed column and is never a HOT update. The other
-- way, an index on deliver_at, leaves each poisoned timer at the head of the range for as long as
-- it backs off, to be read again by every pass of every broker: its cost grows with the number of
-- broken timers.
-- No index on deliver_at (nobody reads in that order), on (tenant_id, queue) (the primary key
-- begins with it) or on claim_token (rows are reached by their key).
CREATE TABLE IF NOT EXISTS queen.log_timers (
    tenant_id     uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000001',
    queue         text COLLATE "C" NOT NULL,
    timer_key     text COLLATE "C" NOT NULL,
    "partition"   text NOT NULL DEFAULT 'Default',
    deliver_at    timestamptz NOT NULL,                -- no earlier than this
    txn           text NOT NULL,                       -- transaction id of the future message
    message_id    uuid NOT NULL,                       -- minted when it was set, stays (TM-6)
    payload       bytea NOT NULL,                      -- as it will be in the frame
    payload_zstd  boolean NOT NULL DEFAULT false,
    encrypted     boolean NOT NULL DEFAULT false,      -- the flag travels with the frame
    producer_sub  text,
    attempts      integer NOT NULL DEFAULT 0,          -- permanent failures only (F-41)
    last_error    text,
    claimed_until timestamptz,
    claim_token   uuid,
    shard         smallint NOT NULL
                  GENERATED ALWAYS AS ((hashtextextended(timer_key, 0) & 63)::smallint) STORED,
    visible_at    timestamptz NOT NULL GENERATED ALWAYS AS (
                      CASE WHEN claimed_until IS NULL OR claimed_until < deliver_at
                           THEN deliver_at ELSE claimed_until END) STORED,
    created_at    timestamptz NOT NULL DEFAULT now(),
    updated_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, queue, timer_key)
);

-- @
-- Asked for by name first: IF NOT EXISTS locks the table before it looks (F-25).
DO $$
BEGIN
    IF to_regclass('queen.idx_log_timers_visible') IS NULL THEN
        CREATE INDEX idx_log_timers_visible ON queen.log_timers (shard, visible_at);
    END IF;
END $$;

-- @
-- What these were measured at stands at the head of this file.
SELECT queen._storage('queen.log_timers', ARRAY[
    'fillfactor=70', 'autovacuum_vacuum_scale_factor=0', 'autovacuum_vacuum_threshold=500',
    'autovacuum_vacuum_cost_delay=0', 'vacuum_truncate=false']);

-- @
-- Sets and cancels timers: all of it or nothing, each (queue, key) at most once (TM-3, TM-9).
-- p_kinds: schedule, reschedule (the same) and cancel, for which only queue, key and transaction id
-- count. p_delays in microseconds from now; what is past fires with the next cycle.
-- Result, by place in the call: scheduled, rescheduled, cancelled; absent, with the caller's own
-- transaction id, when nothing waits under that key; too_late when the fire has it in its hands.
-- left_us: until deliver_at, as this returns.
-- Names that belong to the server (attempts, claim token and so on) have no argument here; the
-- route refuses them.
CREATE OR REPLACE FUNCTION queen.log_timers_apply_v1(
    p_tenant uuid, p_kinds text[], p_queues text[], p_keys text[], p_txns text[],
    p_partitions text[], p_delays bigint[], p_ids uuid[], p_payloads bytea[], p_zstd boolean[],
    p_encrypted boolean[], p_producer text)
RETURNS TABLE (status text, txn text, message_id uuid, deliver_at timestamptz, left_us bigint)
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    c_longest CONSTANT bigint := 36525::bigint * 86400 * 1000000; -- a century: far from overflow
    v_n        integer := coalesce(cardinality(p_kinds), 0);
    v_statuses text[] := array_fill(NULL::text, ARRAY[v_n]);
    v_txns     text[] := array_fill(NULL::text, ARRAY[v_n]);
    v_times    timestamptz[] := array_fill(NULL::timestamptz, ARRAY[v_n]);
    v_wrong    record;
    v_op       record;
    v_row      record;
    v_now      timestamptz;
BEGIN
    IF p_tenant IS NULL THEN
        RAISE EXCEPTION 'QTIMER: no tenant' USING ERRCODE = '22023';
    ELSIF v_n <> ANY (ARRAY[
            coalesce(cardinality(p_queues), 0), coalesce(cardinality(p_keys), 0),
            coalesce(cardinality(p_txns), 0), coalesce(cardinality(p_partitions), 0),
            coalesce(cardinality(p_delays), 0), coalesce(cardinality(p_ids), 0),
            coalesce(cardinality(p_payloads), 0), coalesce(cardinality(p_zstd), 0),
            coalesce(cardinality(p_encrypted), 0)]) THEN
        RAISE EXCEPTION 'QTIMER: arrays of different length' USING ERRCODE = '22023';
    END IF;
    -- All of it before the first write: to take one op back by itself would need a subtransaction
    -- each, and more than 64 of them slow down every session of the server.
    SELECT w.* INTO v_wrong
    FROM (SELECT o.n, CASE
              WHEN o.kind IS NULL OR o.kind NOT IN ('schedule', 'reschedule', 'cancel')
                  THEN format('op "%s" is none of schedule, reschedule, cancel', o.kind)
              WHEN coalesce(o.queue, '') = '' THEN 'empty queue name'
              WHEN length(o.queue) > 255 THEN 'queue name of more than 255 characters'
              WHEN coalesce(o.key, '') = '' THEN 'empty timer key'
              WHEN count(*) OVER (PARTITION BY o.queue COLLATE "C", o.key COLLATE "C") > 1
                  THEN format('timer "%s" of queue "%s" more than once in a call', o.key, o.queue)
              WHEN o.kind = 'cancel' THEN NULL
              WHEN coalesce(o.part, '') = '' THEN 'empty partition name'
              WHEN coalesce(o.txn, '') = '' THEN 'empty transaction id'
              WHEN o.delay IS NULL THEN 'no delay'
              WHEN o.delay > c_longest THEN 'delay of more than a century'
              WHEN o.id IS NULL THEN 'no message id'
              WHEN o.payload IS NULL THEN 'no payload'
              WHEN o.zstd IS NULL OR o.encrypted IS NULL THEN 'no form of the payload'
              END AS why
          FROM unnest(p_kinds, p_queues, p_keys, p_txns, p_partitions, p_delays, p_ids, p_payloads,
                      p_zstd, p_encrypted) WITH ORDINALITY
               AS o (kind, queue, key, txn, part, delay, id, payload, zstd, encrypted, n)) w
    WHERE w.why IS NOT NULL
    ORDER BY w.n LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'QTIMER: operation %: %', v_wrong.n - 1, v_wrong.why
            USING ERRCODE = '22023';
    END IF;

    FOR v_op IN
        SELECT o.n::integer AS n, o.kind, o.queue, o.key,
               greatest(o.delay, -c_longest) AS delay
        FROM unnest(p_kinds, p_queues, p_keys, p_delays) WITH ORDINALITY
             AS o (kind, queue, key, delay, n)
        ORDER BY o.queue COLLATE "C", o.key COLLATE "C" -- the order of locks
    LOOP
        LOOP
            SELECT t.txn, t.claim_token, t.claimed_until INTO v_row FROM queen.log_timers t
            WHERE t.tenant_id = p_tenant AND t.queue = v_op.queue AND t.timer_key = v_op.key
            FOR UPDATE;
            IF NOT FOUND THEN
                IF v_op.kind = 'cancel' THEN
                    v_statuses[v_op.n] := 'absent';
                    v_txns[v_op.n] := p_txns[v_op.n];
                    EXIT;
                END IF;
                v_now := queen._clock();
                v_times[v_op.n] := v_now + v_op.delay * interval '1 microsecond';
                INSERT INTO queen.log_timers
                    (tenant_id, queue, timer_key, "partition", deliver_at, txn, message_id, payload,
                     payload_zstd, encrypted, producer_sub, created_at, updated_at)
                VALUES (p_tenant, v_op.queue, v_op.key, p_partitions[v_op.n], v_times[v_op.n],
                        p_txns[v_op.n], p_ids[v_op.n], p_payloads[v_op.n], p_zstd[v_op.n],
                        p_encrypted[v_op.n], nullif(p_producer, ''), v_now, v_now)
                ON CONFLICT (tenant_id, queue, timer_key) DO NOTHING;
                CONTINUE WHEN NOT FOUND; -- somebody was faster: there is a row to look at now
                v_statuses[v_op.n] := 'scheduled';
                v_txns[v_op.n] := p_txns[v_op.n];
                EXIT;
            END IF;
            v_now := queen._clock(); -- now that the row is ours
            IF v_row.claim_token IS NOT NULL AND v_row.claimed_until > v_now THEN
                v_statuses[v_op.n] := 'too_late';
                v_txns[v_op.n] := v_row.txn;
            ELSIF v_op.kind = 'cancel' THEN
                DELETE FROM queen.log_timers t
                WHERE t.tenant_id = p_tenant AND t.queue = v_op.queue AND t.timer_key = v_op.key;
                v_statuses[v_op.n] := 'cancelled';
                v_txns[v_op.n] := v_row.txn;
            ELSE
                v_times[v_op.n] := v_now + v_op.delay * interval '1 microsecond';
                UPDATE queen.log_timers t SET
                    "partition" = p_partitions[v_op.n], deliver_at = v_times[v_op.n],
                    txn = p_txns[v_op.n], message_id = p_ids[v_op.n],
                    payload = p_payloads[v_op.n], payload_zstd = p_zstd[v_op.n],
                    encrypted = p_encrypted[v_op.n], producer_sub = nullif(p_producer, ''),
                    attempts = 0, last_error = NULL, claimed_until = NULL, claim_token = NULL,
                    updated_at = v_now
                WHERE t.tenant_id = p_tenant AND t.queue = v_op.queue AND t.timer_key = v_op.key;
                v_statuses[v_op.n] := 'rescheduled';
                v_txns[v_op.n] := p_txns[v_op.n];
            END IF;
            EXIT;
        END LOOP;
    END LOOP;

    IF array_position(v_statuses, NULL) IS NOT NULL THEN
        RAISE EXCEPTION 'QTIMER: an operation without a result' USING ERRCODE = 'XX000';
    END IF;
    v_now := queen._clock();
    RETURN QUERY
    SELECT r.status, r.txn, CASE WHEN r.at IS NOT NULL THEN p_ids[r.n] END, r.at,
           (extract(epoch FROM r.at - v_now) * 1000000)::bigint
    FROM unnest(v_statuses, v_txns, v_times) WITH ORDINALITY AS r (status, txn, at, n)
    ORDER BY r.n;
END $$;

-- @
-- One timer as it waits; no row when there is none.
CREATE OR REPLACE FUNCTION queen.log_timers_peek_v1(p_tenant uuid, p_queue text, p_key text)
RETURNS TABLE (timer_key text, "partition" text, deliver_at timestamptz, txn text, message_id uuid,
               payload bytea, payload_zstd boolean, encrypted boolean, producer_sub text,
               attempts integer, last_error text, claimed boolean, created_at timestamptz,
               updated_at timestamptz)
LANGUAGE sql VOLATILE AS $$
    SELECT t.timer_key, t."partition", t.deliver_at, t.txn, t.message_id, t.payload,
           t.payload_zstd, t.encrypted, t.producer_sub, t.attempts, t.last_error,
           t.claim_token IS NOT NULL AND t.claimed_until > queen._clock(),
           t.created_at, t.updated_at
    FROM queen.log_timers t
    WHERE t.tenant_id = p_tenant AND t.queue = p_queue AND t.timer_key = p_key
$$;

-- @
-- A page of a queue's timers from behind a key, in byte order, without payloads: p_limit rows, 1 to
-- 1000, and one more when there are more.
CREATE OR REPLACE FUNCTION queen.log_timers_list_v1(
    p_tenant uuid, p_queue text, p_after text, p_limit integer)
RETURNS TABLE (timer_key text, "partition" text, deliver_at timestamptz, txn text, message_id uuid,
               payload bytea, payload_zstd boolean, encrypted boolean, producer_sub text,
               attempts integer, last_error text, claimed boolean, created_at timestamptz,
               updated_at timestamptz)
LANGUAGE sql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
    SELECT t.timer_key, t."partition", t.deliver_at, t.txn, t.message_id, ''::bytea,
           t.payload_zstd, t.encrypted, t.producer_sub, t.attempts, t.last_error,
           t.claim_token IS NOT NULL AND t.claimed_until > queen._clock(),
           t.created_at, t.updated_at
    FROM queen.log_timers t
    WHERE t.tenant_id = p_tenant AND t.queue = p_queue AND t.timer_key > coalesce(p_after, '')
    ORDER BY t.timer_key
    LIMIT least(greatest(p_limit, 1), 1000) + 1
$$;

-- @
-- How many keys begin with a prefix, literally. No key of the length that routes allow goes beyond
-- the prefix and 64 times the highest character.
CREATE OR REPLACE FUNCTION queen.log_timers_count_v1(p_tenant uuid, p_queue text, p_prefix text)
RETURNS bigint
LANGUAGE sql STABLE
SET enable_seqscan = off AS $$
    SELECT count(*) FROM queen.log_timers t
    WHERE t.tenant_id = p_tenant AND t.queue = p_queue AND t.timer_key >= p_prefix
      AND t.timer_key <= p_prefix || repeat(chr(1114111), 64)
$$;

-- @
-- Counts the timers of all tenants for their lists of queues, unless that was done in the last five
-- minutes or is being done: it reads the whole table, payloads that are stored apart excepted. A
-- million timers of 300 bytes take 0.2 to 0.4 s (2026-11-30, 2 shared cores, in memory).
-- @return whether it did
CREATE OR REPLACE FUNCTION queen.refresh_timer_stats_v1() RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz := queen._clock();
BEGIN
    IF EXISTS (SELECT FROM queen.timer_stats s
               WHERE s.counted_at > v_now - interval '5 minutes' AND s.counted_at <= v_now)
       OR NOT pg_try_advisory_xact_lock(778120025, 64) THEN -- those below it are of the shards
        RETURN false;
    END IF;
    WITH counted AS (
        SELECT t.tenant_id, count(*) AS timers, sum(octet_length(t.payload)) AS bytes
        FROM queen.log_timers t
        GROUP BY t.tenant_id),
    gone AS (
        DELETE FROM queen.timer_stats s
        WHERE NOT EXISTS (SELECT FROM counted c WHERE c.tenant_id = s.tenant_id))
    INSERT INTO queen.timer_stats AS s (tenant_id, timers, bytes, counted_at)
    SELECT c.tenant_id, c.timers, c.bytes, v_now FROM counted c
    ON CONFLICT (tenant_id) DO UPDATE SET
        timers = excluded.timers, bytes = excluded.bytes, counted_at = excluded.counted_at;
    RETURN true;
END $$;

-- @
SELECT queen._keep_only(ARRAY[
    'log_timers_apply_v1(uuid, text[], text[], text[], text[], text[], bigint[], uuid[], bytea[], '
        || 'boolean[], boolean[], text)',
    'log_timers_peek_v1(uuid, text, text)',
    'log_timers_list_v1(uuid, text, text, integer)',
    'log_timers_count_v1(uuid, text, text)', 'refresh_timer_stats_v1()']);
