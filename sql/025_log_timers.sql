-- 025_log_timers.sql: messages that wait outside the log for their time, and their way into it.
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
-- Isolation: READ COMMITTED. Time: queen._clock(); times on the wire are relative (TM-2).
-- Errors: 22023 for arguments that make no sense (QTIMER), raised before anything is written;
-- those of a push (003) from the fire, 55P03 among them when a partition stays locked.

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
-- fillfactor 70: by analogy with log_partitions, not measured; and a weak analogy, since a claim is
-- never HOT here and the room buys that versions of a row stay on one page, no more.
-- Not measured either: how many timers a second it takes until autovacuum of this table shows in a
-- profile, which would decide whether the index on visible_at, right for failures and wrong for
-- load, stays affordable; and how many autovacuum workers, of 3 by default, the table occupies.
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
    ELSIF v_n <> ALL (ARRAY[
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
-- The shards of a set: bit n is shard n.
CREATE OR REPLACE FUNCTION queen._timer_shards(p_shards bigint) RETURNS SETOF smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 64 AS $$
    SELECT s::smallint FROM generate_series(0, 63) s WHERE (p_shards >> s) & 1 = 1
$$;

-- @
-- When there is something to do: next_us until the first timer of these shards becomes visible,
-- negative since when, null without any timer; how many are visible, up to p_cap; the lateness of
-- the first. By shard: an ANY over the leading column would lose the order of the index.
CREATE OR REPLACE FUNCTION queen.log_timers_due_v1(p_shards bigint, p_cap integer)
RETURNS TABLE (next_us bigint, due bigint, capped boolean, late_us bigint)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET max_parallel_workers_per_gather = 0 AS $$
DECLARE
    v_now   timestamptz := queen._clock();
    v_cap   bigint := greatest(p_cap, 1);
    v_first timestamptz;
    v_due   bigint;
BEGIN
    SELECT min(h.visible_at) INTO v_first
    FROM queen._timer_shards(p_shards) AS s (shard)
    CROSS JOIN LATERAL (SELECT t.visible_at FROM queen.log_timers t WHERE t.shard = s.shard
                        ORDER BY t.visible_at LIMIT 1) h;
    SELECT count(*) INTO v_due
    FROM (SELECT 1
          FROM queen._timer_shards(p_shards) AS s (shard)
          CROSS JOIN LATERAL (SELECT 1 FROM queen.log_timers t
                              WHERE t.shard = s.shard AND t.visible_at <= v_now
                              ORDER BY t.visible_at LIMIT v_cap + 1) h
          LIMIT v_cap + 1) w;
    RETURN QUERY
    SELECT (extract(epoch FROM v_first - v_now) * 1000000)::bigint, least(v_due, v_cap),
           v_due > v_cap,
           greatest((extract(epoch FROM v_now - v_first) * 1000000)::bigint, 0);
END $$;

-- @
-- Takes visible timers in hand: at most p_rows, at most p_per_tenant of a tenant, each with a token
-- of its own, for p_lease_ms. Oldest first in the answer. A row that somebody else has locked is
-- left alone.
--
-- What is looked at is a window in each shard, from both ends of what is visible, so that a tenant
-- whose timers just became due is seen beside another's long backlog. In it tenants take turns,
-- shards have an equal share of the rows, 8 at least, and what one does not use others may. It is
-- read in two steps because whatever is locked must not be more than what is taken.
CREATE OR REPLACE FUNCTION queen.log_timers_claim_v1(
    p_shards bigint, p_lease_ms bigint, p_rows integer, p_per_tenant integer)
RETURNS TABLE (tenant_id uuid, queue text, timer_key text, "partition" text, claim_token uuid,
               txn text, message_id uuid, payload bytea, payload_zstd boolean, encrypted boolean,
               producer_sub text, attempts integer, late_us bigint)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET max_parallel_workers_per_gather = 0 AS $$
#variable_conflict use_column
DECLARE
    v_now    timestamptz := queen._clock();
    v_rows   bigint := greatest(p_rows, 1);
    v_share  bigint := greatest(
        ceil(v_rows / greatest((SELECT count(*) FROM queen._timer_shards(p_shards)), 1)::numeric), 8);
    v_window bigint := greatest(2 * v_share, 32);
    v_keys   record;
BEGIN
    SELECT array_agg(c.tenant_id) AS tenants, array_agg(c.queue) AS queues,
           array_agg(c.timer_key) AS keys
    INTO v_keys
    FROM (
        SELECT p.*
        FROM (
            SELECT f.*,
                   row_number() OVER (PARTITION BY f.shard ORDER BY f.turn, f.visible_at) AS place,
                   row_number() OVER (PARTITION BY f.tenant_id ORDER BY f.turn, f.visible_at)
                       AS of_tenant
            FROM (
                SELECT s.shard, w.*,
                       row_number() OVER (PARTITION BY s.shard, w.tenant_id
                                          ORDER BY w.visible_at, w.queue, w.timer_key) AS turn
                FROM queen._timer_shards(p_shards) AS s (shard)
                CROSS JOIN LATERAL (
                    (SELECT t.tenant_id, t.queue, t.timer_key, t.visible_at
                     FROM queen.log_timers t
                     WHERE t.shard = s.shard AND t.visible_at <= v_now
                     ORDER BY t.visible_at LIMIT v_window)
                    UNION
                    (SELECT t.tenant_id, t.queue, t.timer_key, t.visible_at
                     FROM queen.log_timers t
                     WHERE t.shard = s.shard AND t.visible_at <= v_now
                     ORDER BY t.visible_at DESC LIMIT v_window)) w) f) p
        WHERE p.of_tenant <= greatest(p_per_tenant, 1)
        ORDER BY p.place > v_share, p.turn, p.visible_at
        LIMIT 2 * v_rows) c;
    IF v_keys.keys IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY
    WITH taken AS (
        UPDATE queen.log_timers t SET
            claimed_until = v_now + greatest(p_lease_ms, 1) * interval '1 millisecond',
            claim_token = gen_random_uuid()
        FROM (SELECT l.tenant_id, l.queue, l.timer_key, l.visible_at
              FROM unnest(v_keys.tenants, v_keys.queues, v_keys.keys) WITH ORDINALITY
                   AS k (tenant, queue, key, n)
              JOIN queen.log_timers l
                ON l.tenant_id = k.tenant AND l.queue = k.queue AND l.timer_key = k.key
              WHERE l.visible_at <= v_now
              ORDER BY k.n
              LIMIT v_rows
              FOR UPDATE OF l SKIP LOCKED) w
        WHERE t.tenant_id = w.tenant_id AND t.queue = w.queue AND t.timer_key = w.timer_key
        RETURNING t.*, w.visible_at AS was_visible)
    SELECT t.tenant_id, t.queue, t.timer_key, t."partition", t.claim_token, t.txn, t.message_id,
           t.payload, t.payload_zstd, t.encrypted, t.producer_sub, t.attempts,
           (extract(epoch FROM v_now - t.deliver_at) * 1000000)::bigint
    FROM taken t
    ORDER BY t.was_visible, t.tenant_id, t.queue, t.timer_key;
END $$;

-- @
-- Which of the named rows are still in the hands of the caller, by place. They are locked; what
-- somebody else has locked counts as lost: nobody waits here.
CREATE OR REPLACE FUNCTION queen._timers_held(
    p_tenants uuid[], p_queues text[], p_keys text[], p_tokens uuid[])
RETURNS integer[]
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off AS $$
BEGIN
    RETURN ARRAY(
        SELECT k.n::integer
        FROM unnest(p_tenants, p_queues, p_keys, p_tokens) WITH ORDINALITY
             AS k (tenant, queue, key, token, n)
        JOIN queen.log_timers t
          ON t.tenant_id = k.tenant AND t.queue = k.queue AND t.timer_key = k.key
        WHERE t.claim_token = k.token
        ORDER BY t.tenant_id, t.queue, t.timer_key
        FOR UPDATE OF t SKIP LOCKED);
END $$;

-- @
-- Stores segments and deletes the timers that they are made of: one transaction, so a timer is
-- either still here or in the log (TM-4). Segments by place, at most one a (tenant, queue,
-- partition); rows by p_row_segments, from 1, as many as the segment has messages.
-- Every row has to be in the caller's hands still. If one is not (cancelled, claimed by another
-- after the lease, or locked at this moment), its segment is stale: nothing of it is stored, and
-- what is left of its rows is given back at once.
-- Queues and partitions are made as by a push, and like there all partitions are locked by id
-- before the first is written to; the rows go last. Messages keep the form in which they were
-- staged, whatever the queue wants by now: the flag travels with the frame (ENC-6). They are not
-- compared with the dedup window: each segment vouches for all of its partition. If one were a
-- duplicate all the same, it is in the log, and its rows go.
-- Result, by segment: fired, stale or duplicate; pid and first_offset of what was fired.
CREATE OR REPLACE FUNCTION queen.log_timers_fire_v1(
    p_tenants uuid[], p_queues text[], p_partitions text[], p_counts integer[], p_hashes bytea[],
    p_blobs bytea[], p_row_segments integer[], p_row_keys text[], p_row_tokens uuid[])
RETURNS TABLE (status text, pid uuid, first_offset bigint)
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    v_n           integer := coalesce(cardinality(p_tenants), 0);
    v_rows        integer := coalesce(cardinality(p_row_segments), 0);
    v_row_tenants uuid[];
    v_row_queues  text[];
    v_ok          integer[];
    v_live        integer[]; -- segments whose rows are all there
    v_statuses    text[] := array_fill('stale'::text, ARRAY[v_n]);
    v_pids        uuid[] := array_fill(NULL::uuid, ARRAY[v_n]);
    v_firsts      bigint[] := array_fill(NULL::bigint, ARRAY[v_n]);
    v_held        uuid[];
    v_at          integer := 1;
    v_done        integer := 0;
    v_seg         record;
    v_pushed      jsonb;
BEGIN
    IF v_n <> ALL (ARRAY[
            coalesce(cardinality(p_queues), 0), coalesce(cardinality(p_partitions), 0),
            coalesce(cardinality(p_counts), 0), coalesce(cardinality(p_hashes), 0),
            coalesce(cardinality(p_blobs), 0)])
       OR v_rows <> ALL (ARRAY[coalesce(cardinality(p_row_keys), 0),
                               coalesce(cardinality(p_row_tokens), 0)]) THEN
        RAISE EXCEPTION 'QTIMER: arrays of different length' USING ERRCODE = '22023';
    END IF;
    PERFORM 1
    FROM unnest(p_tenants, p_queues, p_partitions, p_counts) WITH ORDINALITY
         AS s (tenant, queue, part, count, n)
    WHERE s.tenant IS NULL OR coalesce(s.queue, '') = '' OR coalesce(s.part, '') = ''
       OR s.count IS DISTINCT FROM (SELECT count(*) FROM unnest(p_row_segments) r
                                    WHERE r = s.n)
       OR s.count < 1;
    IF FOUND THEN
        RAISE EXCEPTION 'QTIMER: a segment without a name, or with other rows than messages'
            USING ERRCODE = '22023';
    END IF;
    PERFORM 1 FROM unnest(p_tenants, p_queues, p_partitions) AS s (tenant, queue, part)
    GROUP BY s.tenant, s.queue COLLATE "C", s.part COLLATE "C"
    HAVING count(*) > 1;
    IF FOUND THEN
        RAISE EXCEPTION 'QTIMER: two segments of one partition' USING ERRCODE = '22023';
    END IF;
    PERFORM 1
    FROM unnest(p_row_segments, p_row_keys) AS r (seg, key)
    WHERE NOT coalesce(r.seg BETWEEN 1 AND v_n, false)
    UNION ALL
    SELECT 1
    FROM unnest(p_row_segments, p_row_keys) AS r (seg, key)
    GROUP BY p_tenants[r.seg], p_queues[r.seg] COLLATE "C", r.key COLLATE "C"
    HAVING count(*) > 1;
    IF FOUND THEN
        RAISE EXCEPTION 'QTIMER: a row without a segment, or in two' USING ERRCODE = '22023';
    END IF;
    IF v_n = 0 THEN
        RETURN;
    END IF;

    SELECT array_agg(p_tenants[r.seg] ORDER BY r.n), array_agg(p_queues[r.seg] ORDER BY r.n)
    INTO v_row_tenants, v_row_queues
    FROM unnest(p_row_segments) WITH ORDINALITY AS r (seg, n);
    v_ok := queen._timers_held(v_row_tenants, v_row_queues, p_row_keys, p_row_tokens);
    v_live := ARRAY(
        SELECT s.n::integer FROM unnest(p_counts) WITH ORDINALITY AS s (count, n)
        WHERE s.count = (SELECT count(*) FROM unnest(v_ok) k WHERE p_row_segments[k] = s.n)
        ORDER BY s.n);
    UPDATE queen.log_timers t SET claim_token = NULL, claimed_until = NULL
    FROM (SELECT v_row_tenants[k] AS tenant, v_row_queues[k] AS queue, p_row_keys[k] AS key
          FROM unnest(v_ok) k
          WHERE NOT p_row_segments[k] = ANY (v_live)) w
    WHERE t.tenant_id = w.tenant AND t.queue = w.queue AND t.timer_key = w.key;

    IF cardinality(v_live) > 0 THEN
        PERFORM set_config('lock_timeout', queen._push_lock_timeout(), true);
        PERFORM queen._provision(ARRAY(SELECT p_tenants[s] FROM unnest(v_live) s),
                                 ARRAY(SELECT p_queues[s] FROM unnest(v_live) s),
                                 ARRAY(SELECT p_partitions[s] FROM unnest(v_live) s));
        v_held := ARRAY(
            SELECT l.id FROM queen.log_partitions l
            WHERE l.id IN (SELECT p.id
                           FROM unnest(v_live) s
                           JOIN queen.queues q
                             ON q.tenant_id = p_tenants[s] AND q.name = p_queues[s]
                           JOIN queen.log_partitions p
                             ON p.queue_id = q.id AND p.name = p_partitions[s])
            ORDER BY l.id
            FOR NO KEY UPDATE);
        FOR v_seg IN
            SELECT s AS n, p.id AS pid, p.last_offset, q.dedup_window_seconds AS win
            FROM unnest(v_live) s
            JOIN queen.queues q ON q.tenant_id = p_tenants[s] AND q.name = p_queues[s]
            JOIN queen.log_partitions p ON p.queue_id = q.id AND p.name = p_partitions[s]
            ORDER BY p.id
        LOOP
            -- As in log_push_multi_v1: a partition made anew meanwhile was not locked in order.
            WHILE v_held[v_at] < v_seg.pid LOOP
                v_at := v_at + 1;
            END LOOP;
            EXIT WHEN v_held[v_at] IS DISTINCT FROM v_seg.pid;
            v_pushed := queen._append(v_seg.pid, v_seg.win, p_counts[v_seg.n], p_hashes[v_seg.n],
                                      v_seg.last_offset, p_blobs[v_seg.n]);
            IF v_pushed ->> 'status' = 'queued' THEN
                v_statuses[v_seg.n] := 'fired';
                v_pids[v_seg.n] := v_seg.pid;
                v_firsts[v_seg.n] := (v_pushed ->> 'baseOffset')::bigint;
            ELSE
                v_statuses[v_seg.n] := 'duplicate';
            END IF;
            v_done := v_done + 1;
        END LOOP;
        IF v_done <> cardinality(v_live) THEN
            RAISE EXCEPTION 'QVANISHED: % of % partitions were deleted',
                cardinality(v_live) - v_done, cardinality(v_live) USING ERRCODE = '40001';
        END IF;

        DELETE FROM queen.log_timers t
        USING (SELECT v_row_tenants[k] AS tenant, v_row_queues[k] AS queue, p_row_keys[k] AS key
               FROM unnest(v_ok) k
               WHERE p_row_segments[k] = ANY (v_live)) w
        WHERE t.tenant_id = w.tenant AND t.queue = w.queue AND t.timer_key = w.key;
    END IF;
    RETURN QUERY
    SELECT r.status, r.pid, r.first
    FROM unnest(v_statuses, v_pids, v_firsts) WITH ORDINALITY AS r (status, pid, first, n)
    ORDER BY r.n;
END $$;

-- @
-- Gives rows back that are in the caller's hands: not visible to the claim for p_backoff_ms, free
-- to be cancelled at once. p_counted: this was an attempt, and p_error is kept; an outage is none
-- (F-41). Exhausted are those that have had p_most attempts with this one.
CREATE OR REPLACE FUNCTION queen.log_timers_fail_v1(
    p_tenants uuid[], p_queues text[], p_keys text[], p_tokens uuid[], p_backoff_ms bigint,
    p_error text, p_counted boolean, p_most integer)
RETURNS TABLE (failed bigint, tenants uuid[], queues text[], keys text[])
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off AS $$
DECLARE
    v_now timestamptz := queen._clock();
    v_ok  integer[];
BEGIN
    v_ok := queen._timers_held(p_tenants, p_queues, p_keys, p_tokens);
    RETURN QUERY
    WITH given AS (
        UPDATE queen.log_timers t SET
            claim_token = NULL,
            claimed_until = v_now + greatest(p_backoff_ms, 0) * interval '1 millisecond',
            attempts = t.attempts + p_counted::integer,
            last_error = CASE WHEN p_counted THEN p_error ELSE t.last_error END,
            updated_at = v_now
        FROM unnest(v_ok) k
        WHERE t.tenant_id = p_tenants[k] AND t.queue = p_queues[k] AND t.timer_key = p_keys[k]
        RETURNING t.tenant_id, t.queue, t.timer_key, t.attempts)
    SELECT (SELECT count(*) FROM given),
           coalesce(array_agg(g.tenant_id), '{}'), coalesce(array_agg(g.queue), '{}'),
           coalesce(array_agg(g.timer_key), '{}')
    FROM (SELECT * FROM given WHERE p_counted AND given.attempts >= p_most
          ORDER BY given.tenant_id, given.queue, given.timer_key) g;
END $$;

-- @
-- A payload as a dead letter keeps it: JSON text as it is. Anything else, compressed bytes too,
-- which cannot be unpacked here, becomes an object with the bytes in base64.
CREATE OR REPLACE FUNCTION queen._timer_letter(
    p_payload bytea, p_zstd boolean, p_encrypted boolean, OUT payload bytea, OUT encrypted boolean)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF NOT p_zstd THEN
        PERFORM convert_from(p_payload, 'UTF8')::json; -- not jsonb, which refuses the NUL escape
        payload := p_payload;
        encrypted := p_encrypted;
        RETURN;
    END IF;
    RAISE data_exception;
EXCEPTION WHEN data_exception OR syntax_error_or_access_rule_violation THEN
    payload := convert_to(
        (jsonb_build_object('_raw_b64', translate(encode(p_payload, 'base64'), E'\n', ''))
         || CASE WHEN p_zstd THEN '{"_zstd": true}' ELSE '{}' END::jsonb
         || CASE WHEN p_encrypted THEN '{"_encrypted": true}' ELSE '{}' END::jsonb)::text, 'UTF8');
    encrypted := false;
END $$;

-- @
-- Makes dead letters of timers that nobody has in hand and that have had p_most attempts: group
-- __timer__, offset -1, and the partition that has no messages of its own, the id of zeros, so that
-- a letter keeps no partition from being cleaned up and none has to be made. Their queue is made if
-- need be. @return how many
CREATE OR REPLACE FUNCTION queen.log_timers_dlq_v1(
    p_tenants uuid[], p_queues text[], p_keys text[], p_most integer)
RETURNS bigint
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off AS $$
DECLARE
    v_now timestamptz := queen._clock();
    v_ok  integer[];
    v_n   bigint;
BEGIN
    v_ok := ARRAY(
        SELECT k.n::integer
        FROM unnest(p_tenants, p_queues, p_keys) WITH ORDINALITY AS k (tenant, queue, key, n)
        JOIN queen.log_timers t
          ON t.tenant_id = k.tenant AND t.queue = k.queue AND t.timer_key = k.key
        WHERE t.claim_token IS NULL AND t.attempts >= p_most
        ORDER BY t.tenant_id, t.queue, t.timer_key
        FOR UPDATE OF t SKIP LOCKED);
    IF cardinality(v_ok) = 0 THEN
        RETURN 0;
    END IF;
    PERFORM queen._provision_queues(ARRAY(SELECT p_tenants[k] FROM unnest(v_ok) k),
                                    ARRAY(SELECT p_queues[k] FROM unnest(v_ok) k));
    WITH gone AS (
        DELETE FROM queen.log_timers t USING unnest(v_ok) k
        WHERE t.tenant_id = p_tenants[k] AND t.queue = p_queues[k] AND t.timer_key = p_keys[k]
        RETURNING t.*)
    INSERT INTO queen.log_dlq
        (queue_id, partition_id, consumer_group, "offset", message_id, transaction_id,
         producer_sub, payload, encrypted, error, retry_count, created_at, failed_at)
    SELECT q.id, '00000000-0000-0000-0000-000000000000', '__timer__', -1, g.message_id, g.txn,
           g.producer_sub, l.payload, l.encrypted, g.last_error, g.attempts, g.created_at, v_now
    FROM gone g
    JOIN queen.queues q ON q.tenant_id = g.tenant_id AND q.name = g.queue
    CROSS JOIN LATERAL queen._timer_letter(g.payload, g.payload_zstd, g.encrypted) l;
    GET DIAGNOSTICS v_n = ROW_COUNT;
    IF v_n <> cardinality(v_ok) THEN
        RAISE EXCEPTION 'QVANISHED: a queue was deleted' USING ERRCODE = '40001';
    END IF;
    RETURN v_n;
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
SELECT queen._keep_only(ARRAY[
    'log_timers_apply_v1(uuid, text[], text[], text[], text[], text[], bigint[], uuid[], bytea[], '
        || 'boolean[], boolean[], text)',
    '_timer_shards(bigint)',
    'log_timers_due_v1(bigint, integer)',
    'log_timers_claim_v1(bigint, bigint, integer, integer)',
    '_timers_held(uuid[], text[], text[], uuid[])',
    'log_timers_fire_v1(uuid[], text[], text[], integer[], bytea[], bytea[], integer[], text[], '
        || 'uuid[])',
    'log_timers_fail_v1(uuid[], text[], text[], uuid[], bigint, text, boolean, integer)',
    '_timer_letter(bytea, boolean, boolean)',
    'log_timers_dlq_v1(uuid[], text[], text[], integer)',
    'log_timers_peek_v1(uuid, text, text)',
    'log_timers_list_v1(uuid, text, text, integer)',
    'log_timers_count_v1(uuid, text, text)']);
