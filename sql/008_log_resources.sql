-- 008_log_resources.sql: what there is: queues, their depth and sizes, namespaces, tasks.
--
-- Every figure is counted at the moment of the question, from partition and cursor rows and never
-- by reading messages: the cost is that of the partitions, whatever the backlog. Only reads: no
-- locks but those of any SELECT, one snapshot an answer.
--
-- The words (ST-1, ST-2), the same in every answer:
--   total       stored messages, consumed or not
--   backlog     stored messages above a cursor; for a queue as a whole, above the lowest cursor of
--               its named groups, of queue mode where no group is named, else all
--   processing  the part of the backlog that live leases hold
--   pending     the rest of it: backlog - processing
--   ready       the part of pending that a pop would get now: nothing of a partition that is
--               leased or that the window holds back, nothing that is younger than the delay
--   dead        dead letters, one for each group that gave a message up; dead_kept: the messages of
--               them that are stored still and below the backlog
--   completed   total - backlog - dead_kept
-- Groups count in a partition when they have a cursor there. A group that is registered with the
-- queue and has none yet counts where its cursor will begin, as _create_cursor has it; a group
-- nobody has heard of begins at the start.
--
-- Plans. The functions that clients call switch sequential scans off: whatever the statistics say,
-- one queue is one index range of the partitions and one key range of the cursors for each (F-54).
-- _queue_figures and _group_figures are inlined into their callers, so they must stay single
-- STABLE selects without SET, called with plain variables; else each answer is written to a
-- temporary file in between.
--
-- Measured with 100,000 partitions of the queue beside 100,000 of another, two groups each, a tenth
-- leased, all behind and all written to in the last minutes, which is the worst (2026-11-29,
-- PostgreSQL 15, 2 busy cores, warm): depth of a group 0.37 s, of the queue 0.48 s, the same with a
-- delay 0.9 s, detail 0.8 s, sizes 0.03 s, list and labels 0.5 s, overview 1.5 s for each 100,000.
-- Two of them at a time are the most that a broker asks for (broker/figure_reads.hpp).

-- The last offset of (p_low, p_high] that was stored at p_at or before, p_low when there is none.
-- A search by halves over the primary key, since stamps grow with offsets (ORD-1): 20 steps for a
-- million messages, where a walk would read every segment of the time.
CREATE OR REPLACE FUNCTION queen._offset_until(
    p_pid uuid, p_at timestamptz, p_low bigint, p_high bigint)
RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_low  bigint := p_low;
    v_high bigint := p_high;
    v_seg  record;
BEGIN
    WHILE v_low < v_high LOOP
        SELECT s.base_offset, s.end_offset, s.created_at INTO v_seg
        FROM queen.log_segments s
        WHERE s.partition_id = p_pid AND s.base_offset <= v_low + (v_high - v_low + 1) / 2
        ORDER BY s.base_offset DESC LIMIT 1;
        IF NOT FOUND THEN
            RETURN p_low;  -- retention emptied the partition after the caller looked
        ELSIF v_seg.created_at > p_at THEN
            v_high := v_seg.base_offset - 1;
        ELSE
            v_low := least(v_seg.end_offset, v_high);
        END IF;
    END LOOP;
    RETURN v_low;
END $$;

-- @
-- The partitions of some queues, each as its queue as a whole sees it. done: the offset that the
-- backlog lies above. held: a live lease, or the delay after a failure, keeps it from somebody.
CREATE OR REPLACE FUNCTION queen._queue_figures(p_qids uuid[], p_now timestamptz)
RETURNS TABLE (queue_id uuid, pid uuid, name text, created_at timestamptz,
               last_write_at timestamptz, newest_at timestamptz, log_start bigint,
               last_offset bigint, segments bigint, bytes bigint, total bigint, done bigint,
               backlog bigint, processing bigint, held boolean, consumed bigint, dead bigint,
               dead_kept bigint)
LANGUAGE sql STABLE ROWS 1000 AS $$
    SELECT p.queue_id, p.id, p.name, p.created_at, p.last_write_at, p.newest_at, p.log_start,
           p.last_offset, p.segment_count, p.stored_bytes, p.last_offset - p.log_start + 1, d.done,
           greatest(p.last_offset - d.done, 0),
           least(coalesce(k.leased, 0)::bigint, greatest(p.last_offset - d.done, 0)),
           coalesce(k.held, false), coalesce(k.consumed, 0)::bigint, x.dead, x.kept
    FROM unnest(p_qids) AS u (qid)
    CROSS JOIN LATERAL (
        SELECT array_agg(m.consumer_group) AS names
        FROM queen.consumer_groups_metadata m
        WHERE m.queue_id = u.qid AND m.partition_name = ''
          AND m.consumer_group <> '__QUEUE_MODE__') g
    CROSS JOIN LATERAL (
        SELECT EXISTS (SELECT 1 FROM queen.log_dlq l WHERE l.queue_id = u.qid) AS has_any) y
    CROSS JOIN LATERAL (
        SELECT * FROM queen.log_partitions l WHERE l.queue_id = u.qid OFFSET 0) p
    CROSS JOIN LATERAL (
        SELECT min(c.committed) FILTER (WHERE c.consumer_group <> '__QUEUE_MODE__') AS named,
               min(c.committed) AS lowest,
               count(*) FILTER (WHERE c.consumer_group = ANY (g.names)) AS registered,
               sum(greatest(c.batch_end - greatest(c.committed, p.log_start - 1), 0))
                   FILTER (WHERE c.lease_expires_at >= p_now) AS leased,
               bool_or(c.worker_id IS NOT NULL AND c.lease_expires_at >= p_now) AS held,
               sum(c.total_consumed) AS consumed
        FROM queen.log_consumers c
        WHERE c.partition_id = p.id) k
    CROSS JOIN LATERAL (
        SELECT min(queen._offset_before(p.id, m.subscription_timestamp, p.log_start,
                                        p.last_offset, p.newest_at)) AS seed
        FROM queen.consumer_groups_metadata m
        WHERE k.registered < cardinality(g.names)
          AND m.queue_id = u.qid AND m.partition_name = ''
          AND m.consumer_group <> '__QUEUE_MODE__'
          AND NOT EXISTS (SELECT 1 FROM queen.log_consumers c
                          WHERE c.partition_id = p.id
                            AND c.consumer_group = m.consumer_group)) r
    CROSS JOIN LATERAL (
        SELECT greatest(coalesce(least(k.named, r.seed), k.lowest, -1), p.log_start - 1)
            AS done) d
    CROSS JOIN LATERAL (
        SELECT count(*) AS dead,
               count(DISTINCT l."offset") FILTER (
                   WHERE l."offset" BETWEEN p.log_start AND least(d.done, p.last_offset)) AS kept
        FROM queen.log_dlq l
        WHERE y.has_any AND l.partition_id = p.id) x
$$;

-- @
-- The partitions of one queue as one group sees them.
CREATE OR REPLACE FUNCTION queen._group_figures(p_qid uuid, p_group text, p_now timestamptz)
RETURNS TABLE (pid uuid, name text, newest_at timestamptz, last_offset bigint, done bigint,
               backlog bigint, processing bigint, held boolean)
LANGUAGE sql STABLE ROWS 1000 AS $$
    SELECT p.id, p.name, p.newest_at, p.last_offset, d.done, greatest(p.last_offset - d.done, 0),
           CASE WHEN c.lease_expires_at >= p_now
                THEN least(greatest(c.batch_end - d.done, 0), greatest(p.last_offset - d.done, 0))
                ELSE 0 END,
           coalesce(c.worker_id IS NOT NULL AND c.lease_expires_at >= p_now, false)
    FROM (SELECT min(m.subscription_timestamp) AS at
          FROM queen.consumer_groups_metadata m
          WHERE m.queue_id = p_qid AND m.partition_name = '' AND m.consumer_group = p_group
            AND p_group <> '__QUEUE_MODE__') g
    CROSS JOIN LATERAL (
        SELECT * FROM queen.log_partitions l WHERE l.queue_id = p_qid OFFSET 0) p
    LEFT JOIN LATERAL (
        SELECT * FROM queen.log_consumers l
        WHERE l.partition_id = p.id AND l.consumer_group = p_group OFFSET 0) c ON true
    CROSS JOIN LATERAL (
        SELECT greatest(p.log_start - 1, CASE
            WHEN c.partition_id IS NOT NULL THEN c.committed
            WHEN g.at IS NOT NULL
            THEN queen._offset_before(p.id, g.at, p.log_start, p.last_offset, p.newest_at)
            ELSE -1 END) AS done) d
$$;

-- @
-- The message counts of the contract. pending is net of processing; failed is not counted: what
-- failed is pending again or a dead letter.
CREATE OR REPLACE FUNCTION queen._message_stats(
    p_total numeric, p_backlog numeric, p_processing numeric, p_dead numeric, p_dead_kept numeric)
RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_build_object(
        'total', coalesce(p_total, 0),
        'pending', coalesce(p_backlog - p_processing, 0),
        'processing', coalesce(p_processing, 0),
        'completed', coalesce(greatest(p_total - p_backlog - p_dead_kept, 0), 0),
        'failed', NULL, 'deadLetter', coalesce(p_dead, 0))
$$;

-- @
-- A queue in a list.
CREATE OR REPLACE FUNCTION queen._queue_row(
    q queen.queues, p_partitions bigint, p_bytes numeric, p_segments numeric, p_total numeric,
    p_backlog numeric, p_processing numeric, p_dead numeric, p_dead_kept numeric)
RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'id', q.id, 'name', q.name, 'queue', q.name, 'namespace', coalesce(q.namespace, ''),
        'task', coalesce(q.task, ''), 'storage', 'segments',
        'createdAt', queen._iso_ms(q.created_at), 'partitions', coalesce(p_partitions, 0),
        'retainedBytes', coalesce(p_bytes, 0),
        'messages', queen._message_stats(p_total, p_backlog, p_processing, p_dead, p_dead_kept)
                    - 'failed',
        'segments', jsonb_build_object('segments', coalesce(p_segments, 0),
                                       'messages', coalesce(p_total, 0)),
        'options', queen._options_of(q) - 'namespace' - 'task')
$$;

-- @
-- What stands around the rows of a list. There are no keys, and timers are counted by the refresh of
-- the statistics: their table has no count that is cheap.
CREATE OR REPLACE FUNCTION queen._queue_list(p_tenant uuid, p_rows jsonb) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'queues', coalesce(p_rows, '[]'),
        'queueCount', (SELECT count(*) FROM queen.queues q WHERE q.tenant_id = p_tenant),
        'kvRows', 0, 'kvBytes', 0,
        'timerRows', coalesce((SELECT s.timers FROM queen.timer_stats s
                               WHERE s.tenant_id = p_tenant), 0),
        'timerBytes', coalesce((SELECT s.bytes FROM queen.timer_stats s
                                WHERE s.tenant_id = p_tenant), 0))
$$;

-- @
-- The queues of a tenant, newest first: {queues: [{id, name, queue, namespace, task, storage,
-- createdAt, partitions, retainedBytes, messages: {total, pending, processing, completed,
-- deadLetter}, segments: {segments, messages}, options}], queueCount, kvRows, kvBytes, timerRows,
-- timerBytes}. The 10,000 newest are listed and counted in full; queueCount says how many there
-- are.
CREATE OR REPLACE FUNCTION queen.list_queues_v1(p_tenant uuid) RETURNS jsonb
LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
DECLARE
    v_now  timestamptz := queen._clock();
    v_qids uuid[] := ARRAY(SELECT q.id FROM queen.queues q WHERE q.tenant_id = p_tenant
                           ORDER BY q.created_at DESC, q.name LIMIT 10000);
    v_rows jsonb;
BEGIN
    WITH figures AS (
        SELECT f.queue_id, count(*) AS partitions, sum(f.bytes) AS bytes,
               sum(f.segments) AS segments, sum(f.total) AS total, sum(f.backlog) AS backlog,
               sum(f.processing) AS processing, sum(f.dead) AS dead,
               sum(f.dead_kept) AS dead_kept
        FROM queen._queue_figures(v_qids, v_now) f
        GROUP BY f.queue_id)
    SELECT jsonb_agg(queen._queue_row(q, f.partitions, f.bytes, f.segments, f.total, f.backlog,
                                      f.processing, f.dead, f.dead_kept)
                     ORDER BY q.created_at DESC, q.name)
    INTO v_rows
    FROM queen.queues q
    LEFT JOIN figures f ON f.queue_id = q.id
    WHERE q.id = ANY (v_qids);
    RETURN queen._queue_list(p_tenant, v_rows) || jsonb_build_object('statsAge', 0);
END $$;

-- @
-- Names that partition lists name, and where the next page begins: the name to give as p_after,
-- null on the last page.
CREATE OR REPLACE FUNCTION queen._page_end(p_rows bigint, p_limit integer, p_last text)
RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$ SELECT to_jsonb(CASE WHEN p_rows > p_limit THEN p_last END) $$;

-- @
-- One queue in full, null when there is none. Totals cover every partition; the list names up to
-- p_limit of them by name, those behind p_after; partitionCount says how many there are and next
-- where to go on.
CREATE OR REPLACE FUNCTION queen.queue_detail_v1(
    p_tenant uuid, p_name text, p_after text DEFAULT NULL, p_limit integer DEFAULT 10000)
RETURNS jsonb
LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
DECLARE
    v_now   timestamptz := queen._clock();
    v_queue queen.queues;
    v_qids  uuid[];
    v_is    record;
BEGIN
    SELECT * INTO v_queue FROM queen.queues q WHERE q.tenant_id = p_tenant AND q.name = p_name;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    v_qids := ARRAY[v_queue.id];
    WITH figures AS MATERIALIZED (SELECT * FROM queen._queue_figures(v_qids, v_now)),
    page AS (
        SELECT f.*, row_number() OVER (ORDER BY f.name) AS place
        FROM (SELECT * FROM figures WHERE p_after IS NULL OR figures.name > p_after
              ORDER BY figures.name LIMIT p_limit + 1) f),
    listed AS (
        SELECT f.name, f.place, queen._message_stats(f.total, f.backlog, f.processing, f.dead,
                                                    f.dead_kept) AS stats,
               jsonb_build_object(
                   'id', f.pid, 'name', f.name, 'createdAt', queen._iso_ms(f.created_at),
                   'oldestMessage', queen._iso_ms(o.created_at),
                   'newestMessage', CASE WHEN f.segments > 0 THEN queen._iso_ms(f.newest_at) END,
                   'lastActivity', queen._iso_ms(f.last_write_at), 'retainedBytes', f.bytes,
                   'cursor', jsonb_build_object('totalConsumed', f.consumed,
                                                'batchesConsumed', 0)) AS part
        FROM page f
        LEFT JOIN LATERAL (
            SELECT s.created_at FROM queen.log_segments s
            WHERE s.partition_id = f.pid AND s.base_offset = f.log_start OFFSET 0) o ON true
        WHERE f.place <= p_limit)
    SELECT t.*, l.*, (SELECT count(*) FROM page) AS rows
    INTO v_is
    FROM (SELECT count(*) AS partitions, sum(f.total) AS total, sum(f.backlog) AS backlog,
                 sum(f.processing) AS processing, sum(f.dead) AS dead,
                 sum(f.dead_kept) AS dead_kept, coalesce(sum(f.segments), 0) AS segments,
                 coalesce(sum(f.bytes), 0) AS bytes
          FROM figures f) t
    CROSS JOIN (SELECT coalesce(jsonb_agg(
                           d.part || jsonb_build_object('stats', d.stats, 'messages', d.stats)
                           ORDER BY d.place), '[]') AS parts,
                       max(d.name) FILTER (WHERE d.place = p_limit) AS last
                FROM listed d) l;
    RETURN jsonb_build_object(
        'id', v_queue.id, 'name', v_queue.name, 'namespace', coalesce(v_queue.namespace, ''),
        'task', coalesce(v_queue.task, ''), 'createdAt', queen._iso_ms(v_queue.created_at),
        'partitions', v_is.parts, 'partitionCount', v_is.partitions,
        'next', queen._page_end(v_is.rows, p_limit, v_is.last),
        'totals', queen._message_stats(v_is.total, v_is.backlog, v_is.processing, v_is.dead,
                                       v_is.dead_kept),
        'retainedBytes', v_is.bytes,
        'segments', jsonb_build_object('segments', v_is.segments,
                                       'messages', coalesce(v_is.total, 0)),
        'options', queen._options_of(v_queue) - 'namespace' - 'task');
END $$;

-- @
-- How much waits in a queue for one group, or, with p_group null, in the queue as a whole: {queue,
-- group, pending, processing, ready, partitionsPending, partitionsReady, conflation,
-- effectivePending, effectiveReady, partitionCount, partitions: [{partition, pending, processing,
-- ready}], next}; null when there is no such queue. A queue as a whole has nothing ready in a
-- partition that any group holds. The effective figures are what will be delivered: of a group that
-- conflates one message a partition, else the plain ones.
CREATE OR REPLACE FUNCTION queen.log_queue_depth_v1(
    p_queue text, p_group text DEFAULT NULL,
    p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001', p_after text DEFAULT NULL,
    p_limit integer DEFAULT 10000)
RETURNS jsonb
LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
DECLARE
    v_now   timestamptz := queen._clock();
    v_queue record;
    v_qids  uuid[];
    v_is    record;
    v_alone boolean;  -- the group takes the newest message of each partition alone
BEGIN
    SELECT q.id, v_now - make_interval(secs => q.delayed_processing) AS visible,
           q.delayed_processing > 0 AS delays,
           CASE WHEN q.window_buffer > 0
                THEN v_now - make_interval(secs => q.window_buffer) END AS quiet
    INTO v_queue
    FROM queen.queues q WHERE q.tenant_id = p_tenant AND q.name = p_queue;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    v_qids := ARRAY[v_queue.id];
    v_alone := coalesce((SELECT m.conflation FROM queen.consumer_groups_metadata m
                         WHERE m.queue_id = v_queue.id AND m.consumer_group = p_group LIMIT 1),
                        false);
    WITH figures AS MATERIALIZED (
        SELECT f.name, f.backlog - f.processing AS pending, f.processing, CASE
            WHEN f.held OR f.backlog = 0 OR f.newest_at > v_queue.quiet THEN 0
            WHEN NOT v_queue.delays OR f.newest_at <= v_queue.visible THEN f.backlog
            ELSE queen._offset_until(f.pid, v_queue.visible, f.done, f.last_offset) - f.done
            END AS ready
        FROM (SELECT g.pid, g.name, g.newest_at, g.last_offset, g.done, g.backlog, g.processing,
                     g.held
              FROM queen._group_figures(v_queue.id, p_group, v_now) g
              WHERE p_group IS NOT NULL
              UNION ALL
              SELECT w.pid, w.name, w.newest_at, w.last_offset, w.done, w.backlog, w.processing,
                     w.held
              FROM queen._queue_figures(v_qids, v_now) w
              WHERE p_group IS NULL) f),
    page AS (
        SELECT f.*, row_number() OVER (ORDER BY f.name) AS place
        FROM (SELECT * FROM figures WHERE p_after IS NULL OR figures.name > p_after
              ORDER BY figures.name LIMIT p_limit + 1) f)
    SELECT t.*, l.*
    INTO v_is
    FROM (SELECT count(*) AS partitions, coalesce(sum(f.pending), 0) AS pending,
                 coalesce(sum(f.processing), 0) AS processing, coalesce(sum(f.ready), 0) AS ready,
                 count(*) FILTER (WHERE f.pending > 0) AS partitions_pending,
                 count(*) FILTER (WHERE f.ready > 0) AS partitions_ready
          FROM figures f) t
    CROSS JOIN (SELECT coalesce(jsonb_agg(jsonb_build_object(
                           'partition', d.name, 'pending', d.pending,
                           'processing', d.processing, 'ready', d.ready)
                           ORDER BY d.place) FILTER (WHERE d.place <= p_limit), '[]') AS parts,
                       count(*) AS rows, max(d.name) FILTER (WHERE d.place = p_limit) AS last
                FROM page d) l;
    RETURN jsonb_build_object(
        'queue', p_queue, 'group', p_group, 'pending', v_is.pending,
        'processing', v_is.processing, 'ready', v_is.ready,
        'partitionsPending', v_is.partitions_pending, 'partitionsReady', v_is.partitions_ready,
        'conflation', v_alone,
        'effectivePending', CASE WHEN v_alone THEN v_is.partitions_pending ELSE v_is.pending END,
        'effectiveReady', CASE WHEN v_alone THEN v_is.partitions_ready ELSE v_is.ready END,
        'partitionCount', v_is.partitions, 'partitions', v_is.parts,
        'next', queen._page_end(v_is.rows, p_limit, v_is.last));
END $$;

-- @
-- Stored bytes of a queue by partition: {queue, partitions: {name: bytes}, partitionCount,
-- retainedBytes, next}; null when there is no such queue.
CREATE OR REPLACE FUNCTION queen.queue_sizes_v1(
    p_tenant uuid, p_name text, p_after text DEFAULT NULL, p_limit integer DEFAULT 10000)
RETURNS jsonb
LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
DECLARE
    v_qid uuid;
    v_all record;
    v_is  record;
BEGIN
    SELECT q.id INTO v_qid FROM queen.queues q WHERE q.tenant_id = p_tenant AND q.name = p_name;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT count(*) AS partitions, coalesce(sum(p.stored_bytes), 0) AS bytes INTO v_all
    FROM queen.log_partitions p WHERE p.queue_id = v_qid;
    SELECT coalesce(jsonb_object_agg(d.name, d.stored_bytes) FILTER (WHERE d.place <= p_limit),
                    '{}') AS sizes,
           count(*) AS rows, max(d.name) FILTER (WHERE d.place = p_limit) AS last
    INTO v_is
    FROM (SELECT p.name, p.stored_bytes, row_number() OVER (ORDER BY p.name) AS place
          FROM queen.log_partitions p
          WHERE p.queue_id = v_qid AND (p_after IS NULL OR p.name > p_after)
          ORDER BY p.name LIMIT p_limit + 1) d;
    RETURN jsonb_build_object(
        'queue', p_name, 'partitions', v_is.sizes, 'partitionCount', v_all.partitions,
        'retainedBytes', v_all.bytes, 'next', queen._page_end(v_is.rows, p_limit, v_is.last));
END $$;

-- @
-- The values of a label, by name: {namespaces: [{namespace, queues, partitions, messages: {total,
-- pending}}], namespaceCount}, or the same of tasks. Queues without the label are in no row. The
-- first 10,000 are listed and counted; the count says how many there are.
CREATE OR REPLACE FUNCTION queen.list_labels_v1(p_tenant uuid, p_label text) RETURNS jsonb
LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
DECLARE
    v_now    timestamptz := queen._clock();
    v_labels text[];
    v_qids   uuid[];
    v_rows   jsonb;
BEGIN
    IF p_label NOT IN ('namespace', 'task') THEN
        RAISE EXCEPTION 'unknown label "%"; allowed: namespace, task', p_label
            USING ERRCODE = '22023';
    END IF;
    v_labels := ARRAY(SELECT DISTINCT CASE p_label WHEN 'task' THEN q.task ELSE q.namespace END
                      FROM queen.queues q WHERE q.tenant_id = p_tenant
                        AND CASE p_label WHEN 'task' THEN q.task ELSE q.namespace END <> ''
                      ORDER BY 1);
    v_qids := ARRAY(SELECT q.id FROM queen.queues q WHERE q.tenant_id = p_tenant
                      AND CASE p_label WHEN 'task' THEN q.task ELSE q.namespace END
                          = ANY (v_labels[:10000]));
    WITH figures AS (
        SELECT f.queue_id, count(*) AS partitions, sum(f.total) AS total,
               sum(f.backlog - f.processing) AS pending
        FROM queen._queue_figures(v_qids, v_now) f
        GROUP BY f.queue_id),
    labels AS (
        SELECT CASE p_label WHEN 'task' THEN q.task ELSE q.namespace END AS label,
               count(*) AS queues, coalesce(sum(f.partitions), 0) AS partitions,
               coalesce(sum(f.total), 0) AS total, coalesce(sum(f.pending), 0) AS pending
        FROM queen.queues q
        LEFT JOIN figures f ON f.queue_id = q.id
        WHERE q.id = ANY (v_qids)
        GROUP BY 1)
    SELECT jsonb_agg(jsonb_build_object(
               p_label, l.label, 'queues', l.queues, 'partitions', l.partitions,
               'messages', jsonb_build_object('total', l.total, 'pending', l.pending))
               ORDER BY l.label)
    INTO v_rows
    FROM labels l;
    RETURN jsonb_build_object(p_label || 's', coalesce(v_rows, '[]'),
                              p_label || 'Count', cardinality(v_labels));
END $$;

-- @
-- A tenant at one glance: {queues, partitions, namespaces, tasks, messages, lag: {time, offset},
-- throughput, timestamp, statsAge: 0}. lag is over the partitions with a backlog: how many messages
-- it has and for how many seconds the oldest has been stored; zeros when there is none.
-- ingestedPerSecond: messages of the last 5 minutes that are still stored. processedPerSecond is
-- counted from the statistics on, and null while there are none: rows say what groups are done
-- with, not when they were.
CREATE OR REPLACE FUNCTION queen.resources_overview_v1(p_tenant uuid) RETURNS jsonb
LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
DECLARE
    v_now   timestamptz := queen._clock();
    v_since timestamptz := v_now - interval '5 minutes';
    v_qids  uuid[] := ARRAY(SELECT q.id FROM queen.queues q WHERE q.tenant_id = p_tenant);
    v_names record;
    v_is    record;
BEGIN
    SELECT count(DISTINCT nullif(q.namespace, '')) AS namespaces,
           count(DISTINCT nullif(q.task, '')) AS tasks
    INTO v_names
    FROM queen.queues q WHERE q.tenant_id = p_tenant;
    WITH parts AS MATERIALIZED (
        SELECT w.queue_id, w.total, w.backlog, w.processing, w.dead, w.dead_kept, w.consumed,
               CASE WHEN w.backlog > 0 THEN greatest(0, extract(epoch FROM v_now - (
                   SELECT s.created_at FROM queen.log_segments s
                   WHERE s.partition_id = w.pid AND s.base_offset <= w.done + 1
                   ORDER BY s.base_offset DESC LIMIT 1))) END AS age,
               CASE WHEN w.newest_at >= v_since
                    THEN w.last_offset - queen._offset_until(
                        w.pid, v_since, w.log_start - 1, w.last_offset) END AS ingested
        FROM queen._queue_figures(v_qids, v_now) w)
    SELECT t.*, r.consumed
    INTO v_is
    FROM (SELECT count(*) AS partitions, sum(f.total) AS total, sum(f.backlog) AS backlog,
                 sum(f.processing) AS processing, sum(f.dead) AS dead,
                 sum(f.dead_kept) AS dead_kept, queen._spread(array_agg(f.age)) AS ages,
                 queen._spread(array_agg(f.backlog) FILTER (WHERE f.backlog > 0)) AS offsets,
                 coalesce(sum(f.ingested), 0) AS ingested
          FROM parts f) t
    CROSS JOIN (SELECT sum(g.consumed) AS consumed
                FROM (SELECT f.queue_id, sum(f.consumed)::bigint AS consumed
                      FROM parts f GROUP BY f.queue_id) f
                JOIN queen.queue_stats s ON s.queue_id = f.queue_id
                CROSS JOIN LATERAL queen._rates(s, v_now, s.pushed, f.consumed) g) r;
    RETURN jsonb_build_object(
        'queues', cardinality(v_qids), 'partitions', v_is.partitions,
        'namespaces', v_names.namespaces, 'tasks', v_names.tasks,
        'messages', queen._message_stats(v_is.total, v_is.backlog, v_is.processing, v_is.dead,
                                         v_is.dead_kept),
        'lag', jsonb_build_object('time', v_is.ages, 'offset', v_is.offsets),
        'throughput', jsonb_build_object(
            'ingestedPerSecond', trim_scale(round(v_is.ingested / 300, 3)),
            'processedPerSecond', trim_scale(round(v_is.consumed, 3))),
        'timestamp', queen._iso_ms(v_now), 'statsAge', 0);
END $$;

-- @
-- Average, median, least and greatest, to three decimals; zeros for what is null.
CREATE OR REPLACE FUNCTION queen._spread_of(
    p_avg numeric, p_median numeric, p_min numeric, p_max numeric)
RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_build_object(
        'avg', coalesce(trim_scale(round(p_avg, 3)), 0),
        'median', coalesce(trim_scale(round(p_median, 3)), 0),
        'min', coalesce(trim_scale(round(p_min, 3)), 0),
        'max', coalesce(trim_scale(round(p_max, 3)), 0))
$$;

-- @
-- The same of some numbers; zeros of none.
CREATE OR REPLACE FUNCTION queen._spread(p_values numeric[]) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT queen._spread_of(avg(v), (percentile_cont(0.5) WITHIN GROUP (ORDER BY v))::numeric,
                            min(v), max(v))
    FROM unnest(p_values) AS u (v)
$$;

-- @
-- The name that _queue_figures had while its rows held no dead letters; nothing calls it any more.
DROP FUNCTION IF EXISTS queen._partition_figures(uuid[], timestamptz);

-- @
SELECT queen._keep_only(ARRAY[
    '_offset_until(uuid, timestamptz, bigint, bigint)', '_queue_figures(uuid[], timestamptz)',
    '_group_figures(uuid, text, timestamptz)',
    '_message_stats(numeric, numeric, numeric, numeric, numeric)',
    '_queue_row(queen.queues, bigint, numeric, numeric, numeric, numeric, numeric, numeric, numeric)',
    '_queue_list(uuid, jsonb)', 'list_queues_v1(uuid)', '_page_end(bigint, integer, text)',
    'queue_detail_v1(uuid, text, text, integer)',
    'log_queue_depth_v1(text, text, uuid, text, integer)',
    'queue_sizes_v1(uuid, text, text, integer)', 'list_labels_v1(uuid, text)',
    'resources_overview_v1(uuid)', '_spread_of(numeric, numeric, numeric, numeric)',
    '_spread(numeric[])']);
