-- 012_log_groups.sql: consumer groups as an operator sees and moves them: list, lag, detail; delete,
-- subscription, seek; and the repairs that tell other brokers.
--
-- The figures only read, one snapshot an answer. done, lag and the seed of a registered group
-- without a cursor row mean what they mean in 008 (ST-2); the age of a lag is that of the segment
-- that holds the first message above the cursor, one step on the primary key (GRP-2).
--
-- What moves cursors, in the lock order of 001:
--   group of queue, exclusive     a seek takes that of its queue, a delete those of all its queues
--                                 by ascending key. Pops only try it: while it is held they create
--                                 no cursor of the group and register it nowhere
--   queues                        FOR KEY SHARE, by name: from here on a queue's delete waits
--   log_partitions                FOR KEY SHARE, by id, those without a cursor (seek only)
--   log_consumers                 FOR UPDATE, by (partition_id, consumer_group)
--   leaves                        consumer_groups_metadata, consumer_watermarks, hotlist_repairs
-- So a seek or a delete may wait for a pop, an ack or a delete of the queue; a pop never waits for
-- one: it skips the locked rows and sees them leased for a quarter of a second (LK-3, CL-12). Acks
-- of the same group wait; other groups, and all pushes, go on.
--
-- Cost of one call over 100,000 partitions: see _seek. It is one transaction, so that a group is
-- never half moved.
-- Isolation: READ COMMITTED. Cursor rows are locked by a statement of their own before they are
-- written, so the write sees what whoever held them left, and what was pushed until then (GRP-5).
-- Expected refusals are values ("error"); errors are raised for none of them.

-- Repairs are few and go after an hour; whoever writes one looks for the old ones.
DO $$
BEGIN
    IF to_regclass('queen.hotlist_repairs_at') IS NULL THEN
        CREATE INDEX hotlist_repairs_at ON queen.hotlist_repairs (repair_at);
    END IF;
END $$;

-- @
-- The cursors of some queues, of one group or (p_group null) of all, with those that a registered
-- group has not got yet: its seed, and is_row false. oldest_at: when the first message above the
-- cursor was stored; null without a lag. Inlined into its callers: see 008.
CREATE OR REPLACE FUNCTION queen._cursor_figures(
    p_qids uuid[], p_group text, p_now timestamptz)
RETURNS TABLE (queue_id uuid, consumer_group text, pid uuid, name text, is_row boolean,
               lag bigint, oldest_at timestamptz, consumed bigint, worker_id text, held boolean)
LANGUAGE sql STABLE ROWS 1000 AS $$
    SELECT p.queue_id, g.consumer_group, p.id, p.name, g.is_row,
           greatest(p.last_offset - d.done, 0), o.created_at, g.consumed, g.worker_id, g.held
    FROM unnest(p_qids) AS u (qid)
    CROSS JOIN LATERAL (
        SELECT * FROM queen.log_partitions l WHERE l.queue_id = u.qid OFFSET 0) p
    CROSS JOIN LATERAL (
        SELECT c.consumer_group, true AS is_row, c.committed AS at, c.total_consumed AS consumed,
               CASE WHEN c.lease_expires_at >= p_now THEN nullif(c.worker_id, '') END AS worker_id,
               coalesce(c.worker_id <> '' AND c.lease_expires_at >= p_now, false) AS held
        FROM queen.log_consumers c
        WHERE c.partition_id = p.id AND c.consumer_group = coalesce(p_group, c.consumer_group)
        UNION ALL
        SELECT m.consumer_group, false,
               queen._offset_before(p.id, m.subscription_timestamp, p.log_start, p.last_offset,
                                    p.newest_at),
               0, NULL, false
        FROM queen.consumer_groups_metadata m
        WHERE m.queue_id = u.qid AND m.partition_name = ''
          AND m.consumer_group = coalesce(p_group, m.consumer_group)
          AND NOT EXISTS (SELECT 1 FROM queen.log_consumers c
                          WHERE c.partition_id = p.id
                            AND c.consumer_group = m.consumer_group)) g
    CROSS JOIN LATERAL (SELECT greatest(g.at, p.log_start - 1) AS done) d
    LEFT JOIN LATERAL (
        SELECT s.created_at FROM queen.log_segments s
        WHERE s.partition_id = p.id AND s.base_offset <= d.done + 1 AND p.last_offset > d.done
        ORDER BY s.base_offset DESC LIMIT 1) o ON true
$$;

-- @
-- Whole seconds since p_then, none below zero: a clock that was set back is no lag.
CREATE OR REPLACE FUNCTION queen._seconds_since(p_then timestamptz, p_now timestamptz)
RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT greatest(floor(extract(epoch FROM p_now - p_then)), 0)::bigint
$$;

-- @
-- The groups of a tenant: an array, one element for each (group, queue), in the order of their
-- names, the first 10,000. {name, topics, queueName, members, partitionCursors, partitionsWithLag,
-- totalLag, maxTimeLag (s), state, storage, subscriptionMode, subscriptionTimestamp,
-- subscriptionCreatedAt, conflation, kind}. A group that is registered with a queue and has no
-- cursor there is in it; one that is registered with labels only, which no queue has, has an empty
-- queueName. Subscription fields of queue mode are null.
CREATE OR REPLACE FUNCTION queen.get_consumer_groups_v4(
    p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001')
RETURNS jsonb
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET jit = off AS $$
DECLARE
    v_now  timestamptz := queen._clock();
    v_qids uuid[] := ARRAY(SELECT q.id FROM queen.queues q WHERE q.tenant_id = p_tenant);
    v_rows jsonb;
BEGIN
    WITH figures AS MATERIALIZED (
        SELECT f.queue_id, f.consumer_group, count(*) FILTER (WHERE f.is_row) AS cursors,
               count(*) FILTER (WHERE f.lag > 0) AS lagging, sum(f.lag) AS lag,
               sum(f.consumed) AS consumed, min(f.oldest_at) AS oldest_at
        FROM queen._cursor_figures(v_qids, NULL, v_now) f
        GROUP BY f.queue_id, f.consumer_group),
    records AS (
        SELECT m.* FROM queen.consumer_groups_metadata m
        WHERE m.queue_id = ANY (v_qids) AND m.partition_name = ''),
    listed AS (
        SELECT coalesce(f.queue_id, m.queue_id) AS queue_id,
               coalesce(f.consumer_group, m.consumer_group) AS consumer_group,
               coalesce(f.cursors, 0) AS cursors, coalesce(f.lagging, 0) AS lagging,
               coalesce(f.lag, 0) AS lag, coalesce(f.consumed, 0) AS consumed, f.oldest_at,
               m.subscription_mode AS mode, m.subscription_timestamp AS at,
               m.created_at AS since, m.conflation
        FROM figures f
        FULL JOIN records m ON m.queue_id = f.queue_id AND m.consumer_group = f.consumer_group
        UNION ALL
        SELECT NULL, m.consumer_group, 0, 0, 0, 0, NULL, min(m.subscription_mode),
               min(m.subscription_timestamp), min(m.created_at), bool_or(m.conflation)
        FROM queen.consumer_groups_metadata m
        WHERE m.tenant_id = p_tenant AND m.queue_id IS NULL
          AND NOT EXISTS (SELECT 1 FROM records r WHERE r.consumer_group = m.consumer_group)
        GROUP BY m.consumer_group)
    SELECT jsonb_agg(t.row ORDER BY t.consumer_group COLLATE "C", t.queue COLLATE "C")
    INTO v_rows
    FROM (SELECT l.consumer_group, coalesce(q.name, '') AS queue, jsonb_build_object(
              'name', l.consumer_group,
              'topics', CASE WHEN q.name IS NULL THEN '[]' ELSE jsonb_build_array(q.name) END,
              'queueName', coalesce(q.name, ''), 'members', l.cursors,
              'partitionCursors', l.cursors, 'partitionsWithLag', l.lagging, 'totalLag', l.lag,
              'maxTimeLag', coalesce(a.age, 0),
              'state', CASE WHEN a.age > 300 THEN 'Lagging' WHEN l.consumed > 0 THEN 'Stable'
                            ELSE 'Dead' END,
              'storage', 'segments',
              'subscriptionMode', CASE WHEN s.named THEN l.mode END,
              'subscriptionTimestamp', CASE WHEN s.named THEN queen._iso_ms(l.at) END,
              'subscriptionCreatedAt', CASE WHEN s.named THEN queen._iso_ms(l.since) END,
              'conflation', coalesce(l.conflation, false), 'kind', 'queen') AS row
          FROM listed l
          LEFT JOIN queen.queues q ON q.id = l.queue_id
          CROSS JOIN LATERAL (SELECT queen._seconds_since(l.oldest_at, v_now) AS age) a
          CROSS JOIN LATERAL (SELECT l.consumer_group <> '__QUEUE_MODE__' AS named) s
          ORDER BY l.consumer_group COLLATE "C", q.name COLLATE "C"
          LIMIT 10000) t;
    RETURN coalesce(v_rows, '[]');
END $$;

-- @
-- The cursors of a tenant whose first open message is older than p_seconds: an array, the oldest
-- first, at most p_limit. {consumer_group, queue_name, partition_name, partition_id, worker_id,
-- offset_lag, time_lag_seconds, lag_hours, oldest_unconsumed_at, last_consumed_at}; the last is
-- null, for nothing records it. Ages are compared before they are cut to seconds.
CREATE OR REPLACE FUNCTION queen.get_lagging_partitions_v1(
    p_tenant uuid, p_seconds integer, p_limit integer DEFAULT 10000)
RETURNS jsonb
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET jit = off AS $$
DECLARE
    v_now  timestamptz := queen._clock();
    v_qids uuid[] := ARRAY(SELECT q.id FROM queen.queues q WHERE q.tenant_id = p_tenant);
    v_rows jsonb;
BEGIN
    SELECT jsonb_agg(jsonb_build_object(
               'consumer_group', l.consumer_group, 'queue_name', q.name,
               'partition_name', l.name, 'partition_id', l.pid, 'worker_id', l.worker_id,
               'offset_lag', l.lag, 'time_lag_seconds', queen._seconds_since(l.oldest_at, v_now),
               'lag_hours', round(extract(epoch FROM v_now - l.oldest_at) / 3600, 2),
               'oldest_unconsumed_at', queen._iso_ms(l.oldest_at), 'last_consumed_at', NULL)
               ORDER BY l.oldest_at, l.pid, l.consumer_group)
    INTO v_rows
    FROM (SELECT * FROM queen._cursor_figures(v_qids, NULL, v_now) f
          WHERE f.lag > 0 AND f.oldest_at < v_now - make_interval(secs => p_seconds)
          ORDER BY f.oldest_at, f.pid, f.consumer_group
          LIMIT greatest(p_limit, 1)) l
    JOIN queen.queues q ON q.id = l.queue_id;
    RETURN coalesce(v_rows, '[]');
END $$;

-- @
-- One group, by queue: {queue: {conflation, partitionCount, partitions: [{partition, workerId,
-- lastConsumedAt, totalConsumed, offsetLag, timeLagSeconds, leaseActive}]}}; null when nobody
-- knows the group. p_queue not null: of that queue only. The first 10,000 partitions, by queue and
-- name, are listed; partitionCount says how many there are.
CREATE OR REPLACE FUNCTION queen.get_consumer_group_detail_v1(
    p_tenant uuid, p_group text, p_queue text DEFAULT NULL)
RETURNS jsonb
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET jit = off AS $$
DECLARE
    v_now  timestamptz := queen._clock();
    v_qids uuid[] := ARRAY(SELECT q.id FROM queen.queues q
                           WHERE q.tenant_id = p_tenant AND q.name = coalesce(p_queue, q.name));
    v_rows jsonb;
BEGIN
    WITH figures AS (
        SELECT f.*, q.name AS queue, row_number() OVER (
                   ORDER BY q.name COLLATE "C", f.name COLLATE "C") AS place
        FROM queen._cursor_figures(v_qids, p_group, v_now) f
        JOIN queen.queues q ON q.id = f.queue_id),
    by_queue AS (
        SELECT f.queue_id, count(*) AS partitions,
               jsonb_agg(jsonb_build_object(
                   'partition', f.name, 'workerId', f.worker_id, 'lastConsumedAt', NULL,
                   'totalConsumed', f.consumed, 'offsetLag', f.lag, 'timeLagSeconds',
                   coalesce(queen._seconds_since(f.oldest_at, v_now), 0), 'leaseActive', f.held)
                   ORDER BY f.place) FILTER (WHERE f.place <= 10000) AS parts
        FROM figures f
        GROUP BY f.queue_id)
    SELECT jsonb_object_agg(q.name, jsonb_build_object(
               'conflation', coalesce(m.conflation, false),
               'partitionCount', coalesce(b.partitions, 0),
               'partitions', coalesce(b.parts, '[]')))
    INTO v_rows
    FROM queen.queues q
    LEFT JOIN by_queue b ON b.queue_id = q.id
    LEFT JOIN queen.consumer_groups_metadata m
      ON m.queue_id = q.id AND m.consumer_group = p_group AND m.partition_name = ''
    WHERE q.id = ANY (v_qids) AND (b.queue_id IS NOT NULL OR m.id IS NOT NULL);
    IF v_rows IS NULL AND p_queue IS NULL AND EXISTS (
        SELECT 1 FROM queen.consumer_groups_metadata m
        WHERE m.tenant_id = p_tenant AND m.consumer_group = p_group AND m.queue_id IS NULL) THEN
        RETURN '{}';
    END IF;
    RETURN v_rows;
END $$;

-- @
-- Tells every broker that cursors of a group were moved by hand (F-43). One row for a queue and
-- group; repairs of different partitions become one of the whole queue, since a reader may have
-- seen neither. Its time moves on whatever the clock does, for that is what readers compare.
CREATE OR REPLACE FUNCTION queen._note_repair(
    p_tenant uuid, p_queue text, p_group text, p_partition text, p_reason text)
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz := queen._clock();
BEGIN
    INSERT INTO queen.hotlist_repairs AS r
        (tenant_id, queue_name, consumer_group, partition_name, repair_at, reason)
    VALUES (p_tenant, p_queue, p_group, p_partition, v_now, p_reason)
    ON CONFLICT (tenant_id, queue_name, consumer_group) DO UPDATE SET
        partition_name = CASE WHEN r.partition_name = excluded.partition_name
                                OR r.repair_at < v_now - interval '1 hour'
                              THEN excluded.partition_name END,
        repair_at = greatest(excluded.repair_at, r.repair_at + interval '1 microsecond'),
        reason = excluded.reason;
END $$;

-- @
-- Removes repairs older than an hour: the last thing a transaction does. Whoever writes one that
-- goes here waits for that transaction, which then waits for nobody; one that is being written is
-- left to the next.
CREATE OR REPLACE FUNCTION queen._prune_repairs(p_now timestamptz) RETURNS void
LANGUAGE sql AS $$
    DELETE FROM queen.hotlist_repairs r
    WHERE (r.tenant_id, r.queue_name, r.consumer_group) IN (
        SELECT o.tenant_id, o.queue_name, o.consumer_group
        FROM queen.hotlist_repairs o
        WHERE o.repair_at < p_now - interval '1 hour'
        FOR UPDATE SKIP LOCKED)
$$;

-- @
-- Every repair there is. partition_id: of the partition it names, null when there is none of that
-- name or it means the whole queue; waits: the queue has a delay or a window, so that a mark would
-- be late.
CREATE OR REPLACE FUNCTION queen.log_hotlist_repairs_v1()
RETURNS TABLE (tenant_id uuid, queue_name text, consumer_group text, partition_name text,
               repair_at timestamptz, partition_id uuid, waits boolean)
LANGUAGE sql STABLE ROWS 10
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
    SELECT r.tenant_id, r.queue_name, r.consumer_group, r.partition_name, r.repair_at, p.id,
           coalesce(q.delayed_processing > 0 OR q.window_buffer > 0, false)
    FROM queen.hotlist_repairs r
    LEFT JOIN queen.queues q ON q.tenant_id = r.tenant_id AND q.name = r.queue_name
    LEFT JOIN queen.log_partitions p ON p.queue_id = q.id AND p.name = r.partition_name
$$;

-- @
-- Key of the lock on a group of a queue (001).
CREATE OR REPLACE FUNCTION queen._group_lock(p_qid uuid, p_group text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT hashtextextended(p_qid || '/' || p_group, 43)
$$;

-- @
-- Moves the cursors of a group in a queue, or in one partition of it: to the end, or just before
-- the first segment that was not stored before p_at, which is the end when there is none (GRP-4).
-- Cursors that are missing are created. Leases end: acks and extensions of them are refused from
-- here on, but for the completion of what the cursor has passed, which changes nothing. Retry and
-- attempt counters start anew. Result: {error} and nothing moved, or {partitionsUpdated,
-- partitionId (of one partition), waits}.
--
-- A group that is nobody's is refused: a name mistyped must not make cursors that hold data back.
-- Known is who has a subscription to the queue or to labels that it has, or a cursor in it; queue
-- mode always is.
--
-- Plans: as for the claim, every step goes from the queue's partitions by primary key (F-54).
-- Measured over 100,000 partitions with two segments each, on 2 busy cores: see docs/http-api.md.
CREATE OR REPLACE FUNCTION queen._seek(
    p_tenant uuid, p_queue text, p_partition text, p_group text, p_to_end boolean,
    p_at timestamptz)
RETURNS jsonb
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_memoize = off
SET jit = off
AS $$
DECLARE
    v_queue record;
    v_least uuid := '00000000-0000-0000-0000-000000000000';   -- of the partitions that are moved
    v_most  uuid := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
    v_pid   uuid;
    v_new   uuid[];
    v_moved bigint;
BEGIN
    IF (coalesce(p_to_end, false)) = (p_at IS NOT NULL) THEN
        RETURN jsonb_build_object('error', 'Must specify toEnd=true or a timestamp');
    END IF;
    SELECT q.id INTO v_queue FROM queen.queues q
    WHERE q.tenant_id = p_tenant AND q.name = p_queue;
    IF FOUND THEN
        PERFORM pg_advisory_xact_lock(queen._group_lock(v_queue.id, p_group));
        SELECT q.id, q.namespace, q.task, q.delayed_processing > 0 OR q.window_buffer > 0 AS waits
        INTO v_queue
        FROM queen.queues q WHERE q.id = v_queue.id FOR KEY SHARE;
    END IF;
    IF NOT FOUND OR NOT EXISTS (SELECT 1 FROM queen.log_partitions p
                                WHERE p.queue_id = v_queue.id) THEN
        RETURN jsonb_build_object('error', 'Queue not found or has no partitions');
    END IF;
    IF p_partition IS NOT NULL THEN
        SELECT p.id INTO v_pid FROM queen.log_partitions p
        WHERE p.queue_id = v_queue.id AND p.name = p_partition;
        IF NOT FOUND THEN
            RETURN jsonb_build_object('error', 'Partition not found');
        END IF;
        v_least := v_pid;
        v_most := v_pid;
    END IF;
    IF p_group <> '__QUEUE_MODE__'
       AND NOT EXISTS (SELECT 1 FROM queen.consumer_groups_metadata m
                       WHERE m.tenant_id = p_tenant AND m.consumer_group = p_group
                         AND (m.queue_id = v_queue.id
                              OR m.queue_id IS NULL
                                 AND m.namespace IN ('', v_queue.namespace)
                                 AND m.task IN ('', v_queue.task)))
       AND NOT EXISTS (SELECT 1 FROM queen.log_partitions p
                       JOIN queen.log_consumers c
                         ON c.partition_id = p.id AND c.consumer_group = p_group
                       WHERE p.queue_id = v_queue.id) THEN
        RETURN jsonb_build_object('error', 'Consumer group not found');
    END IF;

    v_new := ARRAY(SELECT p.id FROM queen.log_partitions p
                   WHERE p.queue_id = v_queue.id AND p.id BETWEEN v_least AND v_most
                     AND NOT EXISTS (SELECT 1 FROM queen.log_consumers c
                                     WHERE c.partition_id = p.id AND c.consumer_group = p_group)
                   ORDER BY p.id FOR KEY SHARE);
    PERFORM 1 FROM queen.log_partitions p
    JOIN queen.log_consumers c ON c.partition_id = p.id AND c.consumer_group = p_group
    WHERE p.queue_id = v_queue.id AND p.id BETWEEN v_least AND v_most
    ORDER BY p.id FOR UPDATE OF c;

    INSERT INTO queen.log_consumers (partition_id, consumer_group)
    SELECT n.pid, p_group FROM unnest(v_new) AS n (pid);
    UPDATE queen.log_consumers c SET
        committed = CASE WHEN p_to_end OR p.newest_at < p_at THEN p.last_offset
                         ELSE queen._offset_until(p.id, p_at - interval '1 microsecond',
                                                  p.log_start - 1, p.last_offset) END,
        worker_id = NULL, lease_expires_at = NULL, lease_acquired_at = NULL, batch_end = NULL,
        lease_conflated = false, batch_retry_count = 0, retry_offset = NULL,
        attempt_offset = NULL, attempt_count = 0, prior_attempt_offset = NULL,
        prior_attempt_count = 0
    FROM queen.log_partitions p
    WHERE p.queue_id = v_queue.id AND p.id BETWEEN v_least AND v_most
      AND c.partition_id = p.id AND c.consumer_group = p_group;
    GET DIAGNOSTICS v_moved = ROW_COUNT;

    DELETE FROM queen.consumer_watermarks w
    WHERE w.queue_id = v_queue.id AND w.consumer_group = p_group;
    PERFORM queen._note_repair(p_tenant, p_queue, p_group, p_partition, 'seek');
    PERFORM queen._prune_repairs(queen._clock());
    RETURN jsonb_build_object('partitionsUpdated', v_moved, 'partitionId', v_pid,
                              'waits', v_queue.waits);
END $$;

-- @
-- What both seeks answer: {success, consumerGroup, queueName, partitionName, seekToEnd,
-- targetTimestamp, partitionsUpdated, updated, partitionId, waits}, or {success: false, error, ...}.
CREATE OR REPLACE FUNCTION queen._seek_answer(
    p_did jsonb, p_queue text, p_partition text, p_group text, p_to_end boolean,
    p_at timestamptz)
RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
               'success', NOT p_did ? 'error', 'consumerGroup', p_group, 'queueName', p_queue,
               'partitionName', p_partition, 'seekToEnd', coalesce(p_to_end, false),
               'targetTimestamp', queen._iso(p_at), 'partitionsUpdated', 0,
               'updated', NOT p_did ? 'error')
           || p_did
$$;

-- @
CREATE OR REPLACE FUNCTION queen.log_seek_consumer_group_v1(
    p_group text, p_queue text, p_to_end boolean DEFAULT false, p_at timestamptz DEFAULT NULL,
    p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001')
RETURNS jsonb
LANGUAGE sql AS $$
    SELECT queen._seek_answer(queen._seek(p_tenant, p_queue, NULL, p_group, p_to_end, p_at),
                              p_queue, NULL, p_group, p_to_end, p_at)
$$;

-- @
CREATE OR REPLACE FUNCTION queen.log_seek_partition_v1(
    p_group text, p_queue text, p_partition text, p_to_end boolean DEFAULT false,
    p_at timestamptz DEFAULT NULL,
    p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001')
RETURNS jsonb
LANGUAGE sql AS $$
    SELECT queen._seek_answer(queen._seek(p_tenant, p_queue, p_partition, p_group, p_to_end, p_at),
                              p_queue, p_partition, p_group, p_to_end, p_at)
$$;

-- @
-- Removes the cursors of a group, in one queue or (p_queue null) in every queue of the tenant, and
-- with p_metadata its subscriptions, those to labels only with the whole group. Result:
-- {deletedPartitions, metadataDeleted, queues: [those where there was something]}. What pops make
-- of the group next is first contact, or with its subscription kept begins where that says.
CREATE OR REPLACE FUNCTION queen.log_delete_consumer_group_v1(
    p_group text, p_metadata boolean DEFAULT true,
    p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001', p_queue text DEFAULT NULL)
RETURNS jsonb
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_memoize = off
SET jit = off
AS $$
DECLARE
    v_qids    uuid[];
    v_qid     uuid;
    v_pids    uuid[];
    v_touched uuid[];
    v_records bigint := 0;
    v_names   text[];
    v_name    text;
BEGIN
    -- Queues where the group has a subscription or a cursor. One that appears while this waits is
    -- first contact after the delete.
    v_qids := ARRAY(
        SELECT q.id FROM queen.queues q
        WHERE q.tenant_id = p_tenant AND q.name = coalesce(p_queue, q.name)
          AND (EXISTS (SELECT 1 FROM queen.consumer_groups_metadata m
                       WHERE m.queue_id = q.id AND m.consumer_group = p_group)
               OR EXISTS (SELECT 1 FROM queen.log_partitions p
                          JOIN queen.log_consumers c
                            ON c.partition_id = p.id AND c.consumer_group = p_group
                          WHERE p.queue_id = q.id))
        ORDER BY queen._group_lock(q.id, p_group));
    FOREACH v_qid IN ARRAY v_qids LOOP
        PERFORM pg_advisory_xact_lock(queen._group_lock(v_qid, p_group));
    END LOOP;
    PERFORM 1 FROM queen.queues q WHERE q.id = ANY (v_qids) ORDER BY q.name FOR KEY SHARE;
    v_pids := ARRAY(
        SELECT c.partition_id
        FROM unnest(v_qids) AS u (qid)
        JOIN queen.log_partitions p ON p.queue_id = u.qid
        JOIN queen.log_consumers c ON c.partition_id = p.id AND c.consumer_group = p_group
        ORDER BY c.partition_id FOR UPDATE OF c);
    WITH gone AS (
        DELETE FROM queen.log_consumers c
        USING unnest(v_pids) AS u (pid)
        WHERE c.partition_id = u.pid AND c.consumer_group = p_group
        RETURNING c.partition_id)
    SELECT array_agg(DISTINCT p.queue_id) INTO v_touched
    FROM gone g JOIN queen.log_partitions p ON p.id = g.partition_id;
    IF p_metadata THEN
        WITH gone AS (
            DELETE FROM queen.consumer_groups_metadata m
            WHERE m.tenant_id = p_tenant AND m.consumer_group = p_group
              AND (m.queue_id = ANY (v_qids) OR m.queue_id IS NULL AND p_queue IS NULL)
            RETURNING m.queue_id)
        SELECT count(*), coalesce(v_touched, '{}')
                         || coalesce(array_agg(g.queue_id) FILTER (WHERE g.queue_id IS NOT NULL), '{}')
        INTO v_records, v_touched
        FROM gone g;
    END IF;
    DELETE FROM queen.consumer_watermarks w
    WHERE w.queue_id = ANY (v_qids) AND w.consumer_group = p_group;
    v_names := ARRAY(SELECT q.name FROM queen.queues q WHERE q.id = ANY (v_touched)
                     ORDER BY q.name COLLATE "C");
    FOREACH v_name IN ARRAY v_names LOOP
        PERFORM queen._note_repair(p_tenant, v_name, p_group, NULL, 'group deleted');
    END LOOP;
    PERFORM queen._prune_repairs(queen._clock());
    RETURN jsonb_build_object('deletedPartitions', cardinality(v_pids),
                              'metadataDeleted', v_records > 0, 'queues', to_jsonb(v_names));
END $$;

-- @
-- From now on the group begins at p_at wherever it has no cursor yet: in partitions and, for a
-- subscription to labels, in queues that it has not seen. Cursors stay. @return records changed
CREATE OR REPLACE FUNCTION queen.update_consumer_group_subscription_v1(
    p_group text, p_at timestamptz,
    p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001')
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_ids uuid[];
BEGIN
    IF p_group = '__QUEUE_MODE__' THEN
        RETURN 0;  -- it begins at the start, always
    END IF;
    PERFORM 1 FROM queen.queues q
    WHERE q.tenant_id = p_tenant
      AND EXISTS (SELECT 1 FROM queen.consumer_groups_metadata m
                  WHERE m.queue_id = q.id AND m.consumer_group = p_group)
    ORDER BY q.name FOR KEY SHARE;
    v_ids := ARRAY(SELECT m.id FROM queen.consumer_groups_metadata m
                   WHERE m.tenant_id = p_tenant AND m.consumer_group = p_group
                   ORDER BY m.id FOR UPDATE);
    UPDATE queen.consumer_groups_metadata m
    SET subscription_mode = 'timestamp', subscription_timestamp = p_at
    WHERE m.id = ANY (v_ids);
    -- Where the scan need not look was found out with another subscription.
    DELETE FROM queen.consumer_watermarks w
    USING queen.consumer_groups_metadata m
    WHERE m.id = ANY (v_ids) AND w.queue_id = m.queue_id AND w.consumer_group = p_group;
    RETURN cardinality(v_ids);
END $$;

-- @
SELECT queen._keep_only(ARRAY[
    '_cursor_figures(uuid[], text, timestamptz)', '_seconds_since(timestamptz, timestamptz)',
    'get_consumer_groups_v4(uuid)', 'get_lagging_partitions_v1(uuid, integer, integer)',
    'get_consumer_group_detail_v1(uuid, text, text)',
    '_note_repair(uuid, text, text, text, text)', '_prune_repairs(timestamptz)', 'log_hotlist_repairs_v1()',
    '_group_lock(uuid, text)', '_seek(uuid, text, text, text, boolean, timestamptz)',
    '_seek_answer(jsonb, text, text, text, boolean, timestamptz)',
    'log_seek_consumer_group_v1(text, text, boolean, timestamptz, uuid)',
    'log_seek_partition_v1(text, text, text, boolean, timestamptz, uuid)',
    'log_delete_consumer_group_v1(text, boolean, uuid, text)',
    'update_consumer_group_subscription_v1(text, timestamptz, uuid)']);
