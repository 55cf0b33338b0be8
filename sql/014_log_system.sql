-- 014_log_system.sql: what brokers keep about themselves: switches, statistics, counts.
--
-- Statistics are the figures of 008, remembered: counting 100,000 partitions takes seconds, reading
-- what a refresh wrote some milliseconds. They buy rates too, which a single look cannot give. A
-- refresh goes over all queues by id, so many of them a transaction, and writes only the rows that
-- differ (ST-6). Their tables stand in 007. Sizes need no lane of their own: a partition's row has its exact segment_count and
-- stored_bytes, so a refresh never has to guess or to keep them (ST-3, F-61).
--
-- Lock order: a step takes queues FOR KEY SHARE, skipping those that are being deleted, then rows of
-- the statistics by queue id (LK-5); two steps at once wait for each other and never cross. Counts
-- are added by name, in one transaction of their own. All tables here are leaves.
--
-- Measured with 10,000 queues of 10 partitions, two groups each, on 2 cores that others kept busy, so
-- in CPU time of the server: a refresh 3.9 s when nobody is behind, 4.6 s when all are; list and
-- overview 0.7 s and 0.15 s from the statistics, 1.7 s and 2.3 s live (2026-11-30, PostgreSQL 15).

-- A version without timers told of maintenance alone.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_proc p
               WHERE p.oid = to_regprocedure('queen.read_switches_v1()')
                 AND NOT 'timers_fire' = ANY (p.proargnames)) THEN
        DROP FUNCTION queen.read_switches_v1();
    END IF;
END $$;

-- @
-- Whether pushes, and pops, are in maintenance; whether timers are taken, and fired. Nothing but an
-- outspoken true puts into maintenance, and nothing but an outspoken false stops timers (SWI-3).
CREATE OR REPLACE FUNCTION queen.read_switches_v1(
    OUT maintenance boolean, OUT pop_maintenance boolean,
    OUT timers_schedule boolean, OUT timers_fire boolean)
LANGUAGE sql STABLE AS $$
    SELECT coalesce(bool_or(s.value -> 'enabled' = 'true') FILTER (WHERE s.key = 'maintenance_mode'),
                    false),
           coalesce(bool_or(s.value -> 'enabled' = 'true')
                        FILTER (WHERE s.key = 'pop_maintenance_mode'), false),
           coalesce(bool_and(s.value -> 'enabled' <> 'false')
                        FILTER (WHERE s.key = 'timers_schedule_enabled'), true),
           coalesce(bool_and(s.value -> 'enabled' <> 'false')
                        FILTER (WHERE s.key = 'timers_fire_enabled'), true)
    FROM queen.system_state s
    WHERE s.key IN ('maintenance_mode', 'pop_maintenance_mode', 'timers_schedule_enabled',
                    'timers_fire_enabled')
$$;

-- @
CREATE OR REPLACE FUNCTION queen.set_switch_v1(p_key text, p_enabled boolean) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO queen.system_state AS s (key, value, updated_at)
    VALUES (p_key, jsonb_build_object('enabled', p_enabled), queen._clock())
    ON CONFLICT (key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at
$$;

-- @
-- Refreshes the next p_limit queues behind p_after. next is null after the last one.
--
-- A new value of pushed or consumed makes the one before it a sample, when the newest is 45 s old:
-- they then lie 22 s apart or more whatever the interval, and 16 of them reach back 5 minutes. A
-- queue born in the last 5 minutes had nothing before: its first sample is zero, long ago.
CREATE OR REPLACE FUNCTION queen.refresh_stats_step_v1(
    p_after uuid, p_limit integer,
    OUT queues bigint, OUT partitions bigint, OUT written bigint, OUT next uuid)
LANGUAGE plpgsql SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    v_now  timestamptz := queen._clock();
    v_page uuid[] := ARRAY(SELECT q.id FROM queen.queues q
                           WHERE q.id > coalesce(p_after, '00000000-0000-0000-0000-000000000000')
                           ORDER BY q.id LIMIT p_limit + 1);
    v_qids uuid[] := ARRAY(SELECT q.id FROM queen.queues q WHERE q.id = ANY (v_page[:p_limit])
                           ORDER BY q.id FOR KEY SHARE SKIP LOCKED);
    v_rows bigint;
BEGIN
    queues := cardinality(v_qids);
    next := CASE WHEN cardinality(v_page) > p_limit THEN v_page[p_limit] END;
    WITH figures AS (
        SELECT f.queue_id, count(*) AS partitions, sum(f.segments)::bigint AS segments,
               sum(f.bytes)::bigint AS bytes, sum(f.total)::bigint AS total,
               sum(f.backlog)::bigint AS backlog, sum(f.processing)::bigint AS processing,
               sum(f.dead)::bigint AS dead, sum(f.dead_kept)::bigint AS dead_kept,
               count(*) FILTER (WHERE f.backlog > 0) AS behind,
               min(f.backlog) FILTER (WHERE f.backlog > 0) AS lag_min,
               max(f.backlog) AS lag_max,
               percentile_disc(0.5) WITHIN GROUP (ORDER BY f.backlog)
                   FILTER (WHERE f.backlog > 0) AS lag_median,
               min(f.waits) AS waits_oldest, max(f.waits) AS waits_newest,
               to_timestamp(avg(extract(epoch FROM f.waits))) AS waits_mean,
               percentile_disc(0.5) WITHIN GROUP (ORDER BY f.waits) AS waits_median,
               sum(f.last_offset + 1)::bigint AS pushed, sum(f.consumed)::bigint AS consumed
        FROM (SELECT w.*, CASE WHEN w.backlog > 0 THEN (
                         SELECT s.created_at FROM queen.log_segments s
                         WHERE s.partition_id = w.pid AND s.base_offset <= w.done + 1
                         ORDER BY s.base_offset DESC LIMIT 1) END AS waits
              FROM queen._queue_figures(v_qids, v_now) w
              OFFSET 0) f  -- else each aggregate looks the time up again
        GROUP BY f.queue_id),
    now_is AS (
        SELECT q.id AS queue_id, q.created_at, coalesce(f.partitions, 0) AS partitions,
               coalesce(f.segments, 0) AS segments, coalesce(f.bytes, 0) AS bytes,
               coalesce(f.total, 0) AS total, coalesce(f.backlog, 0) AS backlog,
               coalesce(f.processing, 0) AS processing, coalesce(f.dead, 0) AS dead,
               coalesce(f.dead_kept, 0) AS dead_kept, coalesce(f.behind, 0) AS behind, f.lag_min,
               CASE WHEN f.behind > 0 THEN f.lag_max END AS lag_max, f.lag_median, f.waits_oldest,
               f.waits_newest, f.waits_mean, f.waits_median, coalesce(f.pushed, 0) AS pushed,
               coalesce(f.consumed, 0) AS consumed
        FROM queen.queues q
        LEFT JOIN figures f ON f.queue_id = q.id
        WHERE q.id = ANY (v_qids)),
    stored AS (
        INSERT INTO queen.queue_stats AS s
        SELECT n.queue_id, n.partitions, n.segments, n.bytes, n.total, n.backlog, n.processing,
               n.dead, n.dead_kept, n.behind, n.lag_min, n.lag_max, n.lag_median, n.waits_oldest,
               n.waits_newest, n.waits_mean, n.waits_median, n.pushed, n.consumed,
               CASE WHEN c.moved THEN v_now ELSE o.counted_at END,
               CASE WHEN c.born THEN ARRAY['epoch'::timestamptz]
                    WHEN o.queue_id IS NULL THEN '{}'
                    WHEN c.sampled THEN (o.counted_at || o.sampled_at)[:16]
                    ELSE o.sampled_at END,
               CASE WHEN c.born THEN ARRAY[0::bigint]
                    WHEN o.queue_id IS NULL THEN '{}'
                    WHEN c.sampled THEN (o.pushed || o.sampled_pushed)[:16]
                    ELSE o.sampled_pushed END,
               CASE WHEN c.born THEN ARRAY[0::bigint]
                    WHEN o.queue_id IS NULL THEN '{}'
                    WHEN c.sampled THEN (o.consumed || o.sampled_consumed)[:16]
                    ELSE o.sampled_consumed END
        FROM now_is n
        LEFT JOIN queen.queue_stats o ON o.queue_id = n.queue_id
        CROSS JOIN LATERAL (
            SELECT (o.pushed, o.consumed) IS DISTINCT FROM (n.pushed, n.consumed) AS moved,
                   o.queue_id IS NULL AND n.created_at > v_now - interval '5 minutes' AS born,
                   (o.pushed, o.consumed) IS DISTINCT FROM (n.pushed, n.consumed)
                       AND coalesce(o.sampled_at[1] <= v_now - interval '45 seconds', true)
                       AS sampled) c
        WHERE o.queue_id IS NULL
           OR (o.partitions, o.segments, o.bytes, o.total, o.backlog, o.processing, o.dead,
               o.dead_kept, o.behind, o.lag_min, o.lag_max, o.lag_median, o.waits_oldest,
               o.waits_newest, o.waits_mean, o.waits_median, o.pushed, o.consumed)
              IS DISTINCT FROM
              (n.partitions, n.segments, n.bytes, n.total, n.backlog, n.processing, n.dead,
               n.dead_kept, n.behind, n.lag_min, n.lag_max, n.lag_median, n.waits_oldest,
               n.waits_newest, n.waits_mean, n.waits_median, n.pushed, n.consumed)
        ORDER BY n.queue_id
        ON CONFLICT (queue_id) DO UPDATE SET
            partitions = excluded.partitions, segments = excluded.segments,
            bytes = excluded.bytes, total = excluded.total, backlog = excluded.backlog,
            processing = excluded.processing, dead = excluded.dead,
            dead_kept = excluded.dead_kept, behind = excluded.behind, lag_min = excluded.lag_min,
            lag_max = excluded.lag_max, lag_median = excluded.lag_median,
            waits_oldest = excluded.waits_oldest, waits_newest = excluded.waits_newest,
            waits_mean = excluded.waits_mean, waits_median = excluded.waits_median,
            pushed = excluded.pushed, consumed = excluded.consumed,
            counted_at = excluded.counted_at, sampled_at = excluded.sampled_at,
            sampled_pushed = excluded.sampled_pushed,
            sampled_consumed = excluded.sampled_consumed
        RETURNING 1)
    SELECT (SELECT coalesce(sum(n.partitions), 0)::bigint FROM now_is n),
           (SELECT count(*) FROM stored)
    INTO partitions, v_rows;
    written := v_rows;

    -- Most groups have a cursor in every partition of their queue, and one walk over the cursors has
    -- all of them. The others, and registered ones without any, are asked about one by one.
    WITH seen AS MATERIALIZED (
        SELECT p.queue_id, c.consumer_group, count(*) AS partitions,
               sum(d.backlog)::bigint AS backlog, min(d.waits) AS waits_oldest
        FROM unnest(v_qids) AS u (qid)
        CROSS JOIN LATERAL (
            SELECT * FROM queen.log_partitions l WHERE l.queue_id = u.qid OFFSET 0) p
        CROSS JOIN LATERAL (
            SELECT l.consumer_group, greatest(l.committed, p.log_start - 1) AS done
            FROM queen.log_consumers l WHERE l.partition_id = p.id OFFSET 0) c
        CROSS JOIN LATERAL (
            SELECT greatest(p.last_offset - c.done, 0) AS backlog,
                   CASE WHEN p.last_offset > c.done THEN (
                       SELECT s.created_at FROM queen.log_segments s
                       WHERE s.partition_id = p.id AND s.base_offset <= c.done + 1
                       ORDER BY s.base_offset DESC LIMIT 1) END AS waits) d
        GROUP BY p.queue_id, c.consumer_group),
    whole AS (
        SELECT w.queue_id, w.consumer_group, w.backlog, w.waits_oldest
        FROM seen w JOIN queen.queue_stats q ON q.queue_id = w.queue_id
        WHERE w.partitions = q.partitions),
    rest AS (
        SELECT w.queue_id, w.consumer_group FROM seen w
        UNION
        SELECT m.queue_id, m.consumer_group
        FROM queen.consumer_groups_metadata m
        WHERE m.queue_id = ANY (v_qids) AND m.partition_name = ''
          AND m.consumer_group <> '__QUEUE_MODE__'
        EXCEPT
        SELECT w.queue_id, w.consumer_group FROM whole w),
    now_is AS (
        SELECT * FROM whole
        UNION ALL
        SELECT g.queue_id, g.consumer_group, coalesce(sum(f.backlog), 0)::bigint,
               min(CASE WHEN f.backlog > 0 THEN (
                   SELECT s.created_at FROM queen.log_segments s
                   WHERE s.partition_id = f.pid AND s.base_offset <= f.done + 1
                   ORDER BY s.base_offset DESC LIMIT 1) END)
        FROM rest g
        LEFT JOIN LATERAL queen._group_figures(g.queue_id, g.consumer_group, v_now) f ON true
        GROUP BY g.queue_id, g.consumer_group),
    gone AS (
        DELETE FROM queen.group_stats o
        WHERE o.queue_id = ANY (v_qids)
          AND NOT EXISTS (SELECT 1 FROM now_is n
                          WHERE n.queue_id = o.queue_id AND n.consumer_group = o.consumer_group)
        RETURNING 1),
    stored AS (
        INSERT INTO queen.group_stats AS s
        SELECT n.* FROM now_is n
        LEFT JOIN queen.group_stats o
               ON o.queue_id = n.queue_id AND o.consumer_group = n.consumer_group
        WHERE o.queue_id IS NULL
           OR (o.backlog, o.waits_oldest) IS DISTINCT FROM (n.backlog, n.waits_oldest)
        ORDER BY n.queue_id, n.consumer_group
        ON CONFLICT (queue_id, consumer_group) DO UPDATE SET
            backlog = excluded.backlog, waits_oldest = excluded.waits_oldest
        RETURNING 1)
    SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM stored) INTO v_rows;
    written := written + v_rows;
END $$;

-- @
-- A refresh that took so long reached its end now.
CREATE OR REPLACE FUNCTION queen.stats_refreshed_v1(p_took_ms bigint) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO queen.stats_state AS s (started_at, took_ms)
    VALUES (queen._clock() - make_interval(secs => p_took_ms / 1000.0), p_took_ms)
    ON CONFLICT (only_row) DO UPDATE SET started_at = excluded.started_at, took_ms = excluded.took_ms
$$;

-- @
-- For how long there have been the statistics that there are, and how long they took to make; a
-- null age when nobody has made any.
CREATE OR REPLACE FUNCTION queen.stats_state_v1(OUT age_ms bigint, OUT took_ms bigint)
LANGUAGE sql STABLE AS $$
    SELECT (SELECT floor(extract(epoch FROM queen._clock() - s.started_at) * 1000)::bigint
            FROM queen.stats_state s),
           coalesce((SELECT s.took_ms FROM queen.stats_state s), 0)
$$;

-- @
-- Seconds since the statistics were made, -1 for never, as answers have it.
CREATE OR REPLACE FUNCTION queen._stats_age(p_now timestamptz) RETURNS numeric
LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT trim_scale(greatest(
        round(extract(epoch FROM p_now - s.started_at), 3), 0)) FROM queen.stats_state s), -1)
$$;

-- @
-- list_queues_v1 from the statistics, with statsAge beside it; what is not counted (names, labels,
-- options, which queues there are) is as of now. A queue younger than its statistics has zeros.
CREATE OR REPLACE FUNCTION queen.list_queues_cached_v1(p_tenant uuid) RETURNS jsonb
LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
DECLARE
    v_now  timestamptz := queen._clock();
    v_qids uuid[] := ARRAY(SELECT q.id FROM queen.queues q WHERE q.tenant_id = p_tenant
                           ORDER BY q.created_at DESC, q.name LIMIT 10000);
    v_rows jsonb;
BEGIN
    SELECT jsonb_agg(queen._queue_row(q, f.partitions, f.bytes, f.segments, f.total, f.backlog,
                                      f.processing, f.dead, f.dead_kept)
                     ORDER BY q.created_at DESC, q.name)
    INTO v_rows
    FROM queen.queues q
    LEFT JOIN queen.queue_stats f ON f.queue_id = q.id
    WHERE q.id = ANY (v_qids);
    RETURN queen._queue_list(p_tenant, v_rows)
        || jsonb_build_object('statsAge', queen._stats_age(v_now));
END $$;

-- @
-- resources_overview_v1 from the statistics. Of several queues the median is that of their medians,
-- each as often as it has partitions behind.
CREATE OR REPLACE FUNCTION queen.resources_overview_cached_v1(p_tenant uuid) RETURNS jsonb
LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
DECLARE
    v_now   timestamptz := queen._clock();
    v_qids  uuid[] := ARRAY(SELECT q.id FROM queen.queues q WHERE q.tenant_id = p_tenant);
    v_names record;
    v_is    record;
    v_ages  jsonb;
    v_lags  jsonb;
BEGIN
    SELECT count(DISTINCT nullif(q.namespace, '')) AS namespaces,
           count(DISTINCT nullif(q.task, '')) AS tasks
    INTO v_names
    FROM queen.queues q WHERE q.tenant_id = p_tenant;
    SELECT coalesce(sum(s.partitions), 0) AS partitions, sum(s.total) AS total,
           sum(s.backlog) AS backlog, sum(s.processing) AS processing, sum(s.dead) AS dead,
           sum(s.dead_kept) AS dead_kept, sum(s.behind) AS behind,
           sum(s.backlog)::numeric / nullif(sum(s.behind), 0) AS lag_mean,
           min(s.lag_min) AS lag_min, max(s.lag_max) AS lag_max,
           min(s.waits_oldest) AS oldest, max(s.waits_newest) AS newest,
           sum(extract(epoch FROM v_now - s.waits_mean) * s.behind) / nullif(sum(s.behind), 0)
               AS mean_age,
           sum(r.pushed) AS pushed, sum(r.consumed) AS consumed
    INTO v_is
    FROM queen.queue_stats s
    CROSS JOIN LATERAL (
        SELECT * FROM (SELECT 1) one
        LEFT JOIN queen._rates(s, v_now, s.pushed, s.consumed) g ON true) r
    WHERE s.queue_id = ANY (v_qids);
    v_lags := queen._spread_of(v_is.lag_mean, (
        SELECT min(m.lag_median) FROM (
            SELECT s.lag_median, sum(s.behind) OVER (ORDER BY s.lag_median) AS upto
            FROM queen.queue_stats s WHERE s.queue_id = ANY (v_qids) AND s.behind > 0) m
        WHERE m.upto * 2 >= v_is.behind), v_is.lag_min, v_is.lag_max);
    v_ages := queen._spread_of(v_is.mean_age, extract(epoch FROM v_now - (
        SELECT min(m.waits_median) FROM (
            SELECT s.waits_median, sum(s.behind) OVER (ORDER BY s.waits_median) AS upto
            FROM queen.queue_stats s WHERE s.queue_id = ANY (v_qids) AND s.behind > 0) m
        WHERE m.upto * 2 >= v_is.behind)), extract(epoch FROM v_now - v_is.newest),
        extract(epoch FROM v_now - v_is.oldest));
    RETURN jsonb_build_object(
        'queues', cardinality(v_qids), 'partitions', v_is.partitions,
        'namespaces', v_names.namespaces, 'tasks', v_names.tasks,
        'messages', queen._message_stats(v_is.total, v_is.backlog, v_is.processing, v_is.dead,
                                         v_is.dead_kept),
        'lag', jsonb_build_object('time', v_ages, 'offset', v_lags),
        'throughput', jsonb_build_object(
            'ingestedPerSecond', trim_scale(round(v_is.pushed, 3)),
            'processedPerSecond', trim_scale(round(v_is.consumed, 3))),
        'timestamp', queen._iso_ms(v_now), 'statsAge', queen._stats_age(v_now));
END $$;

-- @
-- What brokers have counted since the beginning, and up to which of its deltas each broker's
-- process has been added: one that is told twice counts once.
CREATE TABLE IF NOT EXISTS queen.cluster_counts (
    name  text PRIMARY KEY,
    value bigint NOT NULL
);

-- @
CREATE TABLE IF NOT EXISTS queen.count_sources (
    source  uuid PRIMARY KEY,
    number  bigint NOT NULL,
    told_at timestamptz NOT NULL
);

-- @
-- Adds a broker's delta; false when it was added already. Sources that have been silent for a week
-- are forgotten.
CREATE OR REPLACE FUNCTION queen.add_counts_v1(
    p_source uuid, p_number bigint, p_names text[], p_values bigint[])
RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz := queen._clock();
BEGIN
    INSERT INTO queen.count_sources AS s (source, number, told_at)
    VALUES (p_source, p_number, v_now)
    ON CONFLICT (source) DO UPDATE SET number = excluded.number, told_at = excluded.told_at
    WHERE s.number < excluded.number;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO queen.cluster_counts AS c (name, value)
    SELECT d.name, d.value FROM unnest(p_names, p_values) AS d (name, value) ORDER BY d.name
    ON CONFLICT (name) DO UPDATE SET value = c.value + excluded.value;
    DELETE FROM queen.count_sources s
    WHERE s.source IN (SELECT o.source FROM queen.count_sources o
                       WHERE o.told_at < v_now - interval '7 days' FOR UPDATE SKIP LOCKED);
    RETURN true;
END $$;

-- @
-- For the page of metrics: {counts: {name: n}, deadLetters, queues: [{queue, deadLetters}], groups:
-- [{queue, group, behind, age}], age}. Counts are as of the last flush of each broker, the rest as of
-- the last refresh, age seconds ago. One line a name, over all tenants; p_most lines at most.
CREATE OR REPLACE FUNCTION queen.cluster_figures_v1(p_most integer) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_now timestamptz := queen._clock();
BEGIN
    RETURN jsonb_build_object(
        'counts', (SELECT coalesce(jsonb_object_agg(c.name, c.value), '{}')
                   FROM queen.cluster_counts c),
        'deadLetters', (SELECT coalesce(sum(s.dead), 0) FROM queen.queue_stats s),
        'queues', (SELECT coalesce(jsonb_agg(to_jsonb(l)), '[]') FROM (
            SELECT q.name AS queue, sum(s.dead) AS "deadLetters"
            FROM queen.queue_stats s JOIN queen.queues q ON q.id = s.queue_id
            WHERE s.dead > 0
            GROUP BY q.name ORDER BY sum(s.dead) DESC, q.name LIMIT p_most) l),
        'groups', (SELECT coalesce(jsonb_agg(to_jsonb(l)), '[]') FROM (
            SELECT q.name AS queue, g.consumer_group AS "group", sum(g.backlog) AS behind,
                   coalesce(greatest(extract(epoch FROM v_now - min(g.waits_oldest)), 0), 0) AS age
            FROM queen.group_stats g JOIN queen.queues q ON q.id = g.queue_id
            GROUP BY q.name, g.consumer_group
            ORDER BY sum(g.backlog) DESC, q.name, g.consumer_group LIMIT p_most) l),
        'age', nullif(queen._stats_age(v_now), -1));
END $$;

-- @
SELECT queen._keep_only(ARRAY[
    'read_switches_v1()', 'set_switch_v1(text, boolean)', 'refresh_stats_step_v1(uuid, integer)',
    'stats_refreshed_v1(bigint)', 'stats_state_v1()', '_stats_age(timestamptz)', 'list_queues_cached_v1(uuid)',
    'resources_overview_cached_v1(uuid)', 'add_counts_v1(uuid, bigint, text[], bigint[])',
    'cluster_figures_v1(integer)']);
