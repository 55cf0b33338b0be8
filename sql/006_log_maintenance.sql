-- 006_log_maintenance.sql: looking at queues and removing them.
--
-- Figures are counted live from the partition and cursor rows, never from segments: the cost is
-- that of the partitions, whatever the backlog. Lock order of the delete as in 001: creation key,
-- queue, partitions by id, cursors, leaves.

-- Removes a queue with its partitions, segments, sidecar rows, cursors, subscriptions and
-- watermarks. False when there is none. In-flight pushes are waited for; pushes that waited here
-- find their partition gone and fail (40001), pops skip what is locked.
CREATE OR REPLACE FUNCTION queen.delete_queue_v1(p_tenant uuid, p_name text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_qid  uuid;
    v_pids uuid[];
BEGIN
    PERFORM pg_advisory_xact_lock(queen._queue_lock(p_tenant, p_name));
    SELECT q.id INTO v_qid FROM queen.queues q
    WHERE q.tenant_id = p_tenant AND q.name = p_name
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    v_pids := ARRAY(SELECT p.id FROM queen.log_partitions p WHERE p.queue_id = v_qid
                    ORDER BY p.id FOR UPDATE);
    PERFORM 1 FROM queen.log_consumers c WHERE c.partition_id = ANY (v_pids)
    ORDER BY c.partition_id, c.consumer_group FOR UPDATE;
    -- By hand in sets; the cascades would run a statement for each partition, and the sidecar has
    -- no foreign key.
    DELETE FROM queen.log_consumers c WHERE c.partition_id = ANY (v_pids);
    DELETE FROM queen.log_txns t WHERE t.partition_id = ANY (v_pids);
    DELETE FROM queen.log_segments s WHERE s.partition_id = ANY (v_pids);
    DELETE FROM queen.queues q WHERE q.id = v_qid;
    RETURN true;
END $$;

-- @
-- Counts of the partitions of some queues (ST-1, ST-2). total: stored messages, acked or not.
-- backlog: after the slowest named group, or the group-less cursor when no group is named, or the
-- start; processing: the part of the backlog under live leases. A group-less cursor that somebody
-- abandoned beside named groups does not count.
CREATE OR REPLACE FUNCTION queen._partition_figures(p_qids uuid[])
RETURNS TABLE (queue_id uuid, pid uuid, name text, created_at timestamptz,
               last_write_at timestamptz, newest_at timestamptz, log_start bigint,
               segments bigint, bytes bigint, total bigint, backlog bigint, processing bigint, consumed bigint)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_now timestamptz := queen._clock();
BEGIN
    RETURN QUERY
    WITH cursors AS (
        SELECT c.partition_id,
               coalesce(min(c.committed) FILTER (WHERE c.consumer_group <> '__QUEUE_MODE__'),
                        min(c.committed)) AS worst,
               sum(c.batch_end - c.committed)
                   FILTER (WHERE c.lease_expires_at >= v_now) AS leased,
               sum(c.total_consumed) AS consumed
        FROM queen.log_consumers c
        WHERE c.partition_id IN (SELECT l.id FROM queen.log_partitions l
                                 WHERE l.queue_id = ANY (p_qids))
        GROUP BY c.partition_id)
    SELECT p.queue_id, p.id, p.name, p.created_at, p.last_write_at, p.newest_at, p.log_start,
           p.segment_count, p.stored_bytes, p.last_offset - p.log_start + 1, b.backlog,
           least(coalesce(k.leased, 0)::bigint, b.backlog), coalesce(k.consumed, 0)::bigint
    FROM queen.log_partitions p
    LEFT JOIN cursors k ON k.partition_id = p.id
    CROSS JOIN LATERAL (SELECT greatest(p.last_offset - greatest(
        coalesce(k.worst, -1), p.log_start - 1), 0) AS backlog) b
    WHERE p.queue_id = ANY (p_qids);
END $$;

-- @
-- Every queue of a tenant, newest first: {queues: [{id, name, namespace, task, createdAt,
-- partitions, retainedBytes, messages: {total, pending, processing}, segments}], kvRows, kvBytes,
-- timerRows, timerBytes}. pending is net of processing.
CREATE OR REPLACE FUNCTION queen.list_queues_v1(p_tenant uuid) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    WITH figures AS (
        SELECT f.queue_id, count(*) AS partitions, sum(f.bytes) AS bytes,
               sum(f.segments) AS segments, sum(f.total) AS total, sum(f.backlog) AS backlog,
               sum(f.processing) AS processing
        FROM queen._partition_figures(ARRAY(SELECT q.id FROM queen.queues q
                                            WHERE q.tenant_id = p_tenant)) f
        GROUP BY f.queue_id)
    SELECT jsonb_build_object(
        'queues', coalesce(jsonb_agg(jsonb_build_object(
            'id', q.id, 'name', q.name, 'namespace', coalesce(q.namespace, ''),
            'task', coalesce(q.task, ''), 'createdAt', queen._iso_ms(q.created_at),
            'partitions', coalesce(f.partitions, 0), 'retainedBytes', coalesce(f.bytes, 0),
            'messages', jsonb_build_object(
                'total', coalesce(f.total, 0),
                'pending', coalesce(f.backlog - f.processing, 0),
                'processing', coalesce(f.processing, 0)),
            'segments', jsonb_build_object(
                'segments', coalesce(f.segments, 0), 'messages', coalesce(f.total, 0)))
            ORDER BY q.created_at DESC, q.name), '[]'),
        'kvRows', 0, 'kvBytes', 0, 'timerRows', 0, 'timerBytes', 0)
    FROM queen.queues q
    LEFT JOIN figures f ON f.queue_id = q.id
    WHERE q.tenant_id = p_tenant
$$;

-- @
-- One queue in full, null when there is none. Totals cover every partition; the list names the
-- first 10,000 by name and partitionCount says how many there are.
CREATE OR REPLACE FUNCTION queen.queue_detail_v1(p_tenant uuid, p_name text) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_queue  queen.queues;
    v_totals record;
    v_parts  jsonb;
BEGIN
    SELECT * INTO v_queue FROM queen.queues q WHERE q.tenant_id = p_tenant AND q.name = p_name;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    WITH figures AS MATERIALIZED (SELECT * FROM queen._partition_figures(ARRAY[v_queue.id])),
    listed AS (
        SELECT f.name, queen._message_stats(f.total, f.backlog, f.processing) AS stats,
               jsonb_build_object(
                   'id', f.pid, 'name', f.name, 'createdAt', queen._iso_ms(f.created_at),
                   'oldestMessage', queen._iso_ms(o.created_at),
                   'newestMessage', CASE WHEN f.segments > 0 THEN queen._iso_ms(f.newest_at) END,
                   'lastActivity', queen._iso_ms(f.last_write_at), 'retainedBytes', f.bytes,
                   'cursor', jsonb_build_object('totalConsumed', f.consumed,
                                                'batchesConsumed', 0)) AS part
        FROM (SELECT * FROM figures ORDER BY figures.name LIMIT 10000) f
        LEFT JOIN queen.log_segments o
          ON o.partition_id = f.pid AND o.base_offset = f.log_start)
    SELECT t.*, l.parts
    INTO v_totals
    FROM (SELECT count(*) AS partitions, coalesce(sum(f.total), 0)::bigint AS total,
                 coalesce(sum(f.backlog), 0)::bigint AS backlog,
                 coalesce(sum(f.processing), 0)::bigint AS processing,
                 coalesce(sum(f.segments), 0)::bigint AS segments,
                 coalesce(sum(f.bytes), 0)::bigint AS bytes
          FROM figures f) t
    CROSS JOIN (SELECT coalesce(jsonb_agg(
                    d.part || jsonb_build_object('stats', d.stats, 'messages', d.stats)
                    ORDER BY d.name), '[]') AS parts
                FROM listed d) l;
    RETURN jsonb_build_object(
        'id', v_queue.id, 'name', v_queue.name, 'namespace', coalesce(v_queue.namespace, ''),
        'task', coalesce(v_queue.task, ''), 'createdAt', queen._iso_ms(v_queue.created_at),
        'partitions', v_totals.parts, 'partitionCount', v_totals.partitions,
        'totals', queen._message_stats(v_totals.total, v_totals.backlog, v_totals.processing),
        'retainedBytes', v_totals.bytes,
        'segments', jsonb_build_object('segments', v_totals.segments,
                                       'messages', v_totals.total),
        'options', queen._options_of(v_queue) - 'namespace' - 'task');
END $$;

-- @
-- The message counts of the contract. pending is net of processing; failed is not counted.
CREATE OR REPLACE FUNCTION queen._message_stats(
    p_total bigint, p_backlog bigint, p_processing bigint)
RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_build_object(
        'total', p_total, 'pending', p_backlog - p_processing, 'processing', p_processing,
        'completed', greatest(p_total - p_backlog, 0), 'failed', NULL, 'deadLetter', 0)
$$;

-- @
SELECT queen._keep_only(ARRAY[
    'delete_queue_v1(uuid, text)', '_partition_figures(uuid[])', 'list_queues_v1(uuid)',
    'queue_detail_v1(uuid, text)', '_message_stats(bigint, bigint, bigint)']);
