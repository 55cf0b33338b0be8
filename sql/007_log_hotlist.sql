-- 007_log_hotlist.sql: walks over a queue's partitions, for sources that keep candidates in memory.
--
-- A walk finds again what such a source may have lost. It says too much rather than too little:
-- "probably pending" is no cursor row, or an offset behind the last one; leased partitions are
-- named as well. It reads, and takes no lock.
--
-- Pages. A page looks at p_limit partitions of the queue, whatever it finds in them, so its time is
-- bounded on a queue where nothing is pending. When partitions are left behind it, its last row has
-- no name and carries the key to go on from; a page without such a row ends the walk. Rows come in
-- the order of the key. A partition that is written during a walk stays where it is (order of id)
-- or moves ahead and is seen twice (order of last_write_at); none is passed over.
--
-- Plans (F-53, F-54). A plan made for the table as it was may not fit the table as it will be: with
-- one large queue in the statistics a page over the primary key, or over the whole table and a
-- sort, looks as good as one over the queue's own index range. So the ranges are written as
-- comparisons of rows that begin with the queue's id, which only the queue's own indexes can
-- answer in order, and each function forbids the rest for its statements. The queue's id is a
-- value, from a subquery over the queue's key, not a join.
-- Isolation: one snapshot a page. Errors: none of its own; an unknown queue has no rows.

-- The order of full walks: a partition keeps its place in it for life.
DO $$
BEGIN
    IF to_regclass('queen.log_partitions_walked') IS NULL THEN
        CREATE INDEX log_partitions_walked ON queen.log_partitions (queue_id, id);
    END IF;
END $$;

-- @
-- By how much last_write_at may lie before the moment at which its push became visible: a second,
-- since pushes move it at most that often, and the time from the update to the commit, which is
-- that of one statement: 30 s by default, and 2 s until a late one is cut off. Two minutes leave
-- room for longer limits, as in _scan_floor; a push that takes longer still is found by a full walk.
CREATE OR REPLACE FUNCTION queen._write_lag() RETURNS interval
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT interval '2 minutes' $$;

-- @
-- One page of a walk over all partitions of a queue, ascending by id, from behind p_after; null or
-- the zero uuid begins.
CREATE OR REPLACE FUNCTION queen.log_hotlist_reseed_v1(
    p_queue text, p_group text, p_after uuid, p_limit integer,
    p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001')
RETURNS TABLE (id uuid, name text)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET enable_incremental_sort = off SET max_parallel_workers_per_gather = 0 AS $$
DECLARE
    v_qid   uuid := (SELECT q.id FROM queen.queues q
                     WHERE q.tenant_id = p_tenant AND q.name = p_queue);
    v_limit integer := greatest(p_limit, 1);
    v_after uuid := coalesce(p_after, '00000000-0000-0000-0000-000000000000');
BEGIN
    -- One partition more than the page looks at tells whether there is another page.
    RETURN QUERY
    SELECT CASE WHEN s.ord <= v_limit THEN s.pid ELSE s.before END,
           CASE WHEN s.ord <= v_limit THEN s.pname END
    FROM (SELECT l.pid, l.pname, l.last_offset,
                 row_number() OVER (ORDER BY l.qid, l.pid) AS ord,
                 lag(l.pid) OVER (ORDER BY l.qid, l.pid) AS before
          FROM (SELECT p.queue_id AS qid, p.id AS pid, p.name AS pname, p.last_offset
                FROM queen.log_partitions p
                WHERE (p.queue_id, p.id) > (v_qid, v_after) AND p.queue_id <= v_qid
                ORDER BY p.queue_id, p.id
                LIMIT v_limit::bigint + 1) l) s
    WHERE s.ord > v_limit
       OR s.last_offset > coalesce((SELECT c.committed FROM queen.log_consumers c
                                    WHERE c.partition_id = s.pid AND c.consumer_group = p_group),
                                   -2);
END $$;

-- @
-- One page of a walk over the partitions written in the last p_window_ms, ascending by
-- (last_write_at, id); null or a window of zero or less is all of them. The first page (p_cutoff
-- null) fixes the oldest last_write_at of the walk, _write_lag() included; later pages are given
-- what it returned. p_after_write null or -infinity begins.
CREATE OR REPLACE FUNCTION queen.log_hotlist_reseed_window_v1(
    p_queue text, p_group text, p_after_write timestamptz, p_after uuid, p_limit integer,
    p_window_ms bigint, p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001',
    p_cutoff timestamptz DEFAULT NULL)
RETURNS TABLE (id uuid, name text, write timestamptz, cutoff timestamptz)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET enable_incremental_sort = off SET max_parallel_workers_per_gather = 0 AS $$
DECLARE
    v_qid    uuid := (SELECT q.id FROM queen.queues q
                      WHERE q.tenant_id = p_tenant AND q.name = p_queue);
    v_limit  integer := greatest(p_limit, 1);
    v_cutoff timestamptz := coalesce(p_cutoff, CASE WHEN p_window_ms > 0
        THEN queen._clock() - p_window_ms * interval '1 ms' - queen._write_lag()
        ELSE '-infinity' END);
    v_write  timestamptz := coalesce(p_after_write, '-infinity');
    v_after  uuid := coalesce(p_after, '00000000-0000-0000-0000-000000000000');
BEGIN
    IF v_write < v_cutoff THEN
        v_write := v_cutoff;
        v_after := '00000000-0000-0000-0000-000000000000';
    END IF;
    RETURN QUERY
    SELECT CASE WHEN s.ord <= v_limit THEN s.pid ELSE s.before END,
           CASE WHEN s.ord <= v_limit THEN s.pname END,
           CASE WHEN s.ord <= v_limit THEN s.at ELSE s.before_at END, v_cutoff
    FROM (SELECT l.pid, l.pname, l.at, l.last_offset,
                 row_number() OVER (ORDER BY l.qid, l.at, l.pid) AS ord,
                 lag(l.pid) OVER (ORDER BY l.qid, l.at, l.pid) AS before,
                 lag(l.at) OVER (ORDER BY l.qid, l.at, l.pid) AS before_at
          FROM (SELECT p.queue_id AS qid, p.id AS pid, p.name AS pname, p.last_write_at AS at,
                       p.last_offset
                FROM queen.log_partitions p
                WHERE (p.queue_id, p.last_write_at, p.id) > (v_qid, v_write, v_after)
                  AND p.queue_id <= v_qid
                ORDER BY p.queue_id, p.last_write_at, p.id
                LIMIT v_limit::bigint + 1) l) s
    WHERE s.ord > v_limit
       OR s.last_offset > coalesce((SELECT c.committed FROM queen.log_consumers c
                                    WHERE c.partition_id = s.pid AND c.consumer_group = p_group),
                                   -2);
END $$;

-- @
SELECT queen._keep_only(ARRAY[
    '_write_lag()', 'log_hotlist_reseed_v1(text, text, uuid, integer, uuid)',
    'log_hotlist_reseed_window_v1(text, text, timestamptz, uuid, integer, bigint, uuid, timestamptz)']);
