-- 007_log_stats.sql: where the statistics are kept, which 008 reads and 014 refreshes.
--
-- Lock order: leaves. Whoever writes rows takes them by queue id (LK-5).

-- The figures of a queue as they were at the last refresh that saw them differ. behind and what
-- begins with lag_ or waits_ are over its partitions with a backlog: how many, how many messages
-- each has, since when its oldest has been stored; times, so that ages grow while nothing is
-- written. pushed and consumed only count up: offsets given out, and messages that groups were
-- done with; as of counted_at. sampled_* are earlier values of them, newest first, kept for rates.
CREATE TABLE IF NOT EXISTS queen.queue_stats (
    queue_id         uuid PRIMARY KEY REFERENCES queen.queues (id) ON DELETE CASCADE,
    partitions       bigint NOT NULL,
    segments         bigint NOT NULL,
    bytes            bigint NOT NULL,
    total            bigint NOT NULL,
    backlog          bigint NOT NULL,
    processing       bigint NOT NULL,
    dead             bigint NOT NULL,
    dead_kept        bigint NOT NULL,
    behind           bigint NOT NULL,
    lag_min          bigint,
    lag_max          bigint,
    lag_median       bigint,
    waits_oldest     timestamptz,
    waits_newest     timestamptz,
    waits_mean       timestamptz,
    waits_median     timestamptz,
    pushed           bigint NOT NULL,
    consumed         bigint NOT NULL,
    counted_at       timestamptz NOT NULL,
    sampled_at       timestamptz[] NOT NULL,
    sampled_pushed   bigint[] NOT NULL,
    sampled_consumed bigint[] NOT NULL
);

-- @
-- The same for each group of a queue, queue mode where it has a cursor.
CREATE TABLE IF NOT EXISTS queen.group_stats (
    queue_id       uuid NOT NULL REFERENCES queen.queues (id) ON DELETE CASCADE,
    consumer_group text NOT NULL,
    backlog        bigint NOT NULL,
    waits_oldest   timestamptz,
    PRIMARY KEY (queue_id, consumer_group)
);

-- @
-- The last refresh that reached its end; one row.
CREATE TABLE IF NOT EXISTS queen.stats_state (
    only_row   boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    started_at timestamptz NOT NULL,
    took_ms    bigint NOT NULL
);

-- @
-- How many timers a tenant has, and the bytes of their payloads, as of the last count.
CREATE TABLE IF NOT EXISTS queen.timer_stats (
    tenant_id  uuid PRIMARY KEY,
    timers     bigint NOT NULL,
    bytes      bigint NOT NULL,
    counted_at timestamptz NOT NULL
);

-- @
-- Small rows that are written again and again: room for their next version, early vacuum.
SELECT queen._storage('queen.queue_stats', ARRAY[
    'fillfactor=70', 'autovacuum_vacuum_scale_factor=0', 'autovacuum_vacuum_threshold=1000']);

-- @
SELECT queen._storage('queen.group_stats', ARRAY[
    'fillfactor=70', 'autovacuum_vacuum_scale_factor=0', 'autovacuum_vacuum_threshold=1000']);

-- @
-- How much pushed and consumed grew per second over the 5 minutes before p_now, or over what is
-- known of them; null when that is less than 3 s (ST-4). p_pushed and p_consumed are the values at
-- p_now. Values that fell (a group or a partition was deleted) count as no growth.
CREATE OR REPLACE FUNCTION queen._rates(
    p_stats queen.queue_stats, p_now timestamptz, p_pushed bigint, p_consumed bigint,
    OUT pushed numeric, OUT consumed numeric)
LANGUAGE sql STABLE AS $$
    SELECT greatest(p_pushed - b.pushed, 0) / b.seconds,
           greatest(p_consumed - b.consumed, 0) / b.seconds
    FROM (SELECT c.pushed, c.consumed, CASE
                 -- Nothing changed between this sample and the next, for long: the growth is later.
                 WHEN c.at < p_now - interval '345 seconds' THEN 300
                 ELSE extract(epoch FROM p_now - c.at) END AS seconds
          FROM (SELECT p_stats.counted_at AS at, p_stats.pushed, p_stats.consumed
                UNION ALL
                SELECT * FROM unnest(p_stats.sampled_at, p_stats.sampled_pushed,
                                     p_stats.sampled_consumed)) c
          ORDER BY CASE WHEN c.at <= p_now - interval '5 minutes' THEN c.at END DESC NULLS LAST,
                   c.at
          LIMIT 1) b
    WHERE b.seconds >= 3
$$;

-- @
SELECT queen._keep_only(ARRAY['_rates(queen.queue_stats, timestamptz, bigint, bigint)']);
