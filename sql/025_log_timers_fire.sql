-- 025_log_timers_fire.sql: what a timer driver asks for: what is due, rows in hand, the fire, rows
-- handed back, dead letters. The table and the reasons for all of it are in 025_log_timers.sql.
--
-- Nobody waits for a timer's row here: what somebody else has locked is skipped, and counts as lost
-- where it was in hand (see the cancelled FOR UPDATE in 025_log_timers.sql).
-- Lock order: log_timers, then what a push takes (003); a dead letter: log_timers, queues, leaves.
-- Isolation: READ COMMITTED. Time: queen._clock().
-- Errors: 22023 for arguments that do not fit together (QTIMER), before anything is written; those
-- of a push (003) from the fire and 40001 from the dead letters: nothing was done. What counts as
-- an attempt is the caller's matter: 40001, 40P01, 23503 and 55P03 are lost races.

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
-- Takes visible timers in hand: at most p_rows, at most p_per_tenant of a tenant, and no more once
-- their payloads come to p_bytes, each with a token of its own, for p_lease_ms. Oldest first in the
-- answer. A row that somebody else has locked is
-- left alone, and so is a shard in which another claim is under way: two that saw the same rows would
-- each lock rows that the other has taken, and whoever fires those would find them locked, call them
-- lost and have to give them back. The locks are asked for in statements of their
-- own, so the next one sees what the claims before it took.
--
-- What is looked at is a window in each shard, from both ends of what is visible, so that a tenant
-- whose timers just became due is seen beside another's long backlog. In it tenants take turns, over
-- all shards, since bytes may end the claim after the first few of them; shards have an equal share of the rows, 8 at least, and what one does not use others may. It is
-- read in two steps because whatever is locked must not be more than what is taken.
CREATE OR REPLACE FUNCTION queen.log_timers_claim_v1(
    p_shards bigint, p_lease_ms bigint, p_rows integer, p_per_tenant integer,
    p_bytes bigint DEFAULT 33554432)
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
    v_window bigint := 2 * v_share;
    v_free   bigint := 0;
    v_shard  integer;
    v_keys   record;
BEGIN
    FOR v_shard IN SELECT s.shard FROM queen._timer_shards(p_shards) AS s (shard) ORDER BY 1 LOOP
        IF pg_try_advisory_xact_lock(778120025, v_shard) THEN
            v_free := v_free | (1::bigint << v_shard);
        END IF;
    END LOOP;
    WITH seen AS (
        SELECT s.shard, w.*
        FROM queen._timer_shards(v_free) AS s (shard)
        CROSS JOIN LATERAL (
            (SELECT t.tenant_id, t.queue, t.timer_key, t.visible_at, octet_length(t.payload) AS bytes
             FROM queen.log_timers t
             WHERE t.shard = s.shard AND t.visible_at <= v_now
             ORDER BY t.visible_at LIMIT v_window)
            UNION
            (SELECT t.tenant_id, t.queue, t.timer_key, t.visible_at, octet_length(t.payload)
             FROM queen.log_timers t
             WHERE t.shard = s.shard AND t.visible_at <= v_now
             ORDER BY t.visible_at DESC LIMIT v_window)) w),
    turns AS (
        SELECT s.*, row_number() OVER (PARTITION BY s.shard, s.tenant_id
                                       ORDER BY s.visible_at, s.queue, s.timer_key) AS turn
        FROM seen s),
    places AS (
        SELECT t.*, row_number() OVER (PARTITION BY t.shard ORDER BY t.turn, t.visible_at) AS place,
               row_number() OVER (PARTITION BY t.tenant_id ORDER BY t.turn, t.visible_at) AS of_tenant
        FROM turns t),
    ranked AS (
        SELECT p.*, row_number() OVER (ORDER BY p.place > v_share, p.of_tenant, p.visible_at) AS n
        FROM places p
        WHERE p.of_tenant <= greatest(p_per_tenant, 1)),
    summed AS (
        SELECT r.*, sum(r.bytes) OVER (ORDER BY r.n) - r.bytes AS bytes_before
        FROM ranked r
        WHERE r.n <= 2 * v_rows)
    SELECT array_agg(s.tenant_id ORDER BY s.n) AS tenants, array_agg(s.queue ORDER BY s.n) AS queues,
           array_agg(s.timer_key ORDER BY s.n) AS keys
    INTO v_keys
    FROM summed s
    WHERE s.bytes_before < greatest(p_bytes, 1);
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
-- How long a fire waits for a partition that a push, an ack or an administrator has locked: shorter
-- than a push, which waits for itself alone, while here the timers of other tenants stand behind it. A
-- guess. A function, so that a test can lower it.
CREATE OR REPLACE FUNCTION queen._fire_lock_timeout() RETURNS text
LANGUAGE sql IMMUTABLE AS $$ SELECT '1s' $$;

-- @
-- Stores segments and deletes the timers that they are made of: one transaction, so a timer is
-- either still here or in the log (TM-4). Segments by place, at most one a (tenant, queue,
-- partition); rows by p_row_segments, from 1, as many as the segment has messages.
-- Every row has to be in the caller's hands still. If one is not (cancelled, claimed by another
-- after the lease, or locked at this moment), its segment is stale: nothing of it is stored, and
-- what is left of its rows is given back at once.
-- Queues and partitions are made as by a push, and like there all partitions are locked by id
-- before the first is written to; the rows go last. Messages keep the form in which they were
-- staged, whatever the queue wants by now: the flag travels with the frame. They are not
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
    IF v_n <> ANY (ARRAY[
            coalesce(cardinality(p_queues), 0), coalesce(cardinality(p_partitions), 0),
            coalesce(cardinality(p_counts), 0), coalesce(cardinality(p_hashes), 0),
            coalesce(cardinality(p_blobs), 0)])
       OR v_rows <> ANY (ARRAY[coalesce(cardinality(p_row_keys), 0),
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
        PERFORM set_config('lock_timeout', queen._fire_lock_timeout(), true);
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
-- Gives rows back that are in the caller's hands: not visible to the claim for p_backoff_ms, or, with
-- none, in the place that they had; free to be cancelled at once. p_counted: this was an attempt, and
-- p_error is kept; an outage is none (F-41). Exhausted are those that have had p_most attempts with this
-- one. Locked: how many are in the caller's hands still, because somebody else has them locked.
DO $$
BEGIN -- before it told what is locked: a result with more columns cannot replace one with fewer
    IF NOT EXISTS (SELECT FROM pg_proc p
                   WHERE p.oid = to_regprocedure('queen.log_timers_fail_v1(uuid[], text[], text[], '
                                                 'uuid[], bigint, text, boolean, integer)')
                     AND 'locked' <> ALL (p.proargnames)) THEN
        RETURN;
    END IF;
    DROP FUNCTION queen.log_timers_fail_v1(
        uuid[], text[], text[], uuid[], bigint, text, boolean, integer);
END $$;
CREATE OR REPLACE FUNCTION queen.log_timers_fail_v1(
    p_tenants uuid[], p_queues text[], p_keys text[], p_tokens uuid[], p_backoff_ms bigint,
    p_error text, p_counted boolean, p_most integer)
RETURNS TABLE (failed bigint, tenants uuid[], queues text[], keys text[], locked bigint)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off AS $$
DECLARE
    v_now    timestamptz := queen._clock();
    v_ok     integer[];
    v_locked bigint := 0;
BEGIN
    v_ok := queen._timers_held(p_tenants, p_queues, p_keys, p_tokens);
    IF cardinality(v_ok) < cardinality(p_keys) THEN
        SELECT count(*) INTO v_locked
        FROM unnest(p_tenants, p_queues, p_keys, p_tokens) WITH ORDINALITY
             AS k (tenant, queue, key, token, n)
        JOIN queen.log_timers t
          ON t.tenant_id = k.tenant AND t.queue = k.queue AND t.timer_key = k.key
        WHERE t.claim_token = k.token AND NOT k.n = ANY (v_ok);
    END IF;
    RETURN QUERY
    WITH given AS (
        UPDATE queen.log_timers t SET
            claim_token = NULL,
            claimed_until = CASE WHEN p_backoff_ms > 0
                                 THEN v_now + p_backoff_ms * interval '1 millisecond' END,
            attempts = t.attempts + p_counted::integer,
            last_error = CASE WHEN p_counted THEN p_error ELSE t.last_error END,
            updated_at = v_now
        FROM unnest(v_ok) k
        WHERE t.tenant_id = p_tenants[k] AND t.queue = p_queues[k] AND t.timer_key = p_keys[k]
        RETURNING t.tenant_id, t.queue, t.timer_key, t.attempts)
    SELECT (SELECT count(*) FROM given),
           coalesce(array_agg(g.tenant_id), '{}'), coalesce(array_agg(g.queue), '{}'),
           coalesce(array_agg(g.timer_key), '{}'), v_locked
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
-- __timer__, offset -1, and the id of their queue in place of a partition, so that a letter keeps no
-- partition from being cleaned up and none has to be made. Their queue is made if need be.
-- @return how many
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
        (queue_id, partition_id, partition_name, timer_key, consumer_group, "offset", message_id,
         transaction_id, producer_sub, payload, encrypted, error, retry_count, created_at,
         failed_at)
    SELECT q.id, q.id, g."partition", g.timer_key, '__timer__', -1, g.message_id, g.txn,
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
SELECT queen._keep_only(ARRAY[
    '_timer_shards(bigint)',
    'log_timers_due_v1(bigint, integer)',
    'log_timers_claim_v1(bigint, bigint, integer, integer, bigint)',
    '_timers_held(uuid[], text[], text[], uuid[])',
    '_fire_lock_timeout()',
    'log_timers_fire_v1(uuid[], text[], text[], integer[], bytea[], bytea[], integer[], text[], '
        || 'uuid[])',
    'log_timers_fail_v1(uuid[], text[], text[], uuid[], bigint, text, boolean, integer)',
    '_timer_letter(bytea, boolean, boolean)',
    'log_timers_dlq_v1(uuid[], text[], text[], integer)']);
