-- 011_log_messages.sql: looking at messages without taking them.
--
-- A list is the question "the newest messages of these partitions before this position", its answer
-- a list of slices: ranges of offsets inside one segment each. No message is opened here, and no
-- blob is read: whoever asks fetches the segments of the slices he shows. Only reads.
--
-- Order: created_at descending, then the partition's id ascending, then offset descending: stamps
-- grow with the offsets of a partition (ORD-1), so inside one it is offset order, and equal stamps
-- of different partitions have an order too (K41). A position is (created_at, partition, offset) of
-- the message last seen.
--
-- Words: a message is completed when it lies at or below `done` of its partition, as figures have
-- it (008, ST-2, ST-5); processing above that and inside a live lease; pending else. A dead letter
-- with its position goes before all of that.
--
-- Bounds, each told by `complete` being false: a tenant's 10,000 newest queues, 100,000 partitions
-- (20,000 when a status is asked for), and 10,000 of them that were written to behind the position,
-- for each of which the position has to be searched for. Within them the work is that of the page:
-- one step for each partition that may have something in it, then the slices.

-- The cursors of a partition: groups that have one, and registered groups that have none yet, where
-- theirs will begin, as _partition_figures has it. leased_to and expires_at are those of a live
-- lease.
CREATE OR REPLACE FUNCTION queen._message_groups(
    p_qid uuid, p_pid uuid, p_log_start bigint, p_last_offset bigint, p_newest timestamptz,
    p_now timestamptz)
RETURNS TABLE (name text, committed bigint, leased_to bigint, expires_at timestamptz)
LANGUAGE sql STABLE ROWS 4 AS $$
    SELECT c.consumer_group, c.committed,
           CASE WHEN c.lease_expires_at >= p_now AND c.batch_end > c.committed
                THEN c.batch_end END,
           CASE WHEN c.lease_expires_at >= p_now AND c.batch_end > c.committed
                THEN c.lease_expires_at END
    FROM queen.log_consumers c
    WHERE c.partition_id = p_pid
    UNION ALL
    SELECT m.consumer_group,
           queen._offset_before(p_pid, m.subscription_timestamp, p_log_start, p_last_offset,
                                p_newest),
           NULL, NULL
    FROM queen.consumer_groups_metadata m
    WHERE m.queue_id = p_qid AND m.partition_name = '' AND m.consumer_group <> '__QUEUE_MODE__'
      AND NOT EXISTS (SELECT 1 FROM queen.log_consumers c
                      WHERE c.partition_id = p_pid AND c.consumer_group = m.consumer_group)
$$;

-- @
-- Slices of a partition, newest first: of its stored offsets p_low to p_high those of p_from or
-- later, until they hold p_most messages; with p_dead only messages that have a letter. Walks down
-- the primary key, or the letters, and stops by itself: a bound on the age inside a query would be
-- a filter, and read to the partition's beginning.
CREATE OR REPLACE FUNCTION queen._message_slices(
    p_pid uuid, p_low bigint, p_high bigint, p_from timestamptz, p_most integer, p_dead boolean)
RETURNS TABLE (base_offset bigint, created_at timestamptz, low bigint, high bigint, bytes integer)
LANGUAGE plpgsql STABLE ROWS 10 AS $$
DECLARE
    v_left bigint := p_most;
    v_end  bigint;
BEGIN
    IF p_high < p_low THEN
        RETURN;
    END IF;
    IF p_dead THEN
        FOR low, base_offset, created_at, bytes IN
            SELECT d.at, s.base_offset, s.created_at, s.bytes
            FROM (SELECT DISTINCT l."offset" AS at FROM queen.log_dlq l
                  WHERE l.partition_id = p_pid AND l."offset" >= p_low AND l."offset" <= p_high
                  ORDER BY 1 DESC) d
            CROSS JOIN LATERAL (
                SELECT g.base_offset, g.created_at, octet_length(g.blob) AS bytes
                FROM queen.log_segments g
                WHERE g.partition_id = p_pid AND g.base_offset <= d.at
                ORDER BY g.base_offset DESC LIMIT 1) s
            ORDER BY d.at DESC
        LOOP
            EXIT WHEN v_left <= 0 OR created_at < p_from;
            high := low;
            RETURN NEXT;
            v_left := v_left - 1;
        END LOOP;
    ELSE
        FOR base_offset, v_end, created_at, bytes IN
            SELECT g.base_offset, g.end_offset, g.created_at, octet_length(g.blob)
            FROM queen.log_segments g
            WHERE g.partition_id = p_pid AND g.base_offset <= p_high
            ORDER BY g.base_offset DESC
        LOOP
            EXIT WHEN v_left <= 0 OR created_at < p_from OR v_end < p_low;
            low := greatest(base_offset, p_low);
            high := least(v_end, p_high);
            RETURN NEXT;
            v_left := v_left - (high - low + 1);
        END LOOP;
    END IF;
END $$;

-- @
-- The slices of some partitions together, p_most messages of each, until they hold p_want; total is
-- how many messages were found.
CREATE OR REPLACE FUNCTION queen._message_round(
    p_pids uuid[], p_lows bigint[], p_highs bigint[], p_from timestamptz, p_most integer,
    p_want integer, p_dead boolean)
RETURNS TABLE (ord bigint, pid uuid, base_offset bigint, created_at timestamptz, low bigint,
               high bigint, bytes integer, total numeric)
LANGUAGE sql STABLE AS $$
    SELECT w.ord, w.pid, w.base_offset, w.created_at, w.low, w.high, w.bytes, w.total
    FROM (SELECT t.pid, s.*, row_number() OVER newest AS ord,
                 sum(s.high - s.low + 1) OVER newest - (s.high - s.low + 1) AS before,
                 sum(s.high - s.low + 1) OVER () AS total
          FROM unnest(p_pids, p_lows, p_highs) AS t (pid, low, high)
          CROSS JOIN LATERAL queen._message_slices(
              t.pid, t.low, t.high, p_from, p_most, p_dead) s
          WINDOW newest AS (ORDER BY s.created_at DESC, t.pid, s.high DESC)) w
    WHERE w.before < p_want
$$;

-- @
-- What an answer says of a partition: names, settings and cursors. Times as microseconds.
CREATE OR REPLACE FUNCTION queen._message_place(p_pid uuid, p_now timestamptz) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'id', p.id, 'partition', p.name, 'queue', q.name, 'namespace', coalesce(q.namespace, ''),
        'task', coalesce(q.task, ''), 'priority', q.priority,
        'groups', (SELECT coalesce(jsonb_agg(jsonb_build_object(
                              'name', g.name, 'committed', g.committed, 'leasedTo', g.leased_to,
                              'expires', (extract(epoch FROM g.expires_at) * 1000000)::bigint)
                              ORDER BY g.name), '[]')
                   FROM queen._message_groups(q.id, p.id, p.log_start, p.last_offset, p.newest_at,
                                              p_now) g))
    FROM queen.log_partitions p JOIN queen.queues q ON q.id = p.queue_id
    WHERE p.id = p_pid
$$;

-- @
-- The newest p_want messages before a position: {complete, places: [{id, partition, queue,
-- namespace, task, priority, groups: [{name, committed, leasedTo, expires}]}], slices: [[index of
-- the place, base offset of the segment, its stamp in microseconds, lowest and highest offset, bytes
-- of the segment's blob]], dead: [[index of the place, offset]]}. The slices are in the order of
-- the list, the highest offset of each first, and hold p_want messages or a few more of the last
-- segment; fewer: there are no more. A status leaves out what cannot have it; what the slices hold
-- may still have another.
-- p_from null: an hour before p_to or now; p_to is exclusive, null is now.
CREATE OR REPLACE FUNCTION queen.log_messages_v1(
    p_tenant uuid, p_queue text, p_partition text, p_namespace text, p_task text, p_status text,
    p_from timestamptz, p_to timestamptz, p_after_at timestamptz, p_after_pid uuid,
    p_after_offset bigint, p_want integer)
RETURNS jsonb
LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
DECLARE
    v_now      timestamptz := queen._clock();
    v_from     timestamptz := coalesce(p_from, coalesce(p_to, v_now) - interval '1 hour');
    v_last     timestamptz := coalesce(p_to - interval '1 us', 'infinity');
    -- A write moves last_write_at when it is more than a second old, so a partition's newest
    -- message may be that much younger than it says; twice that for good measure.
    v_slack    interval := '2 s';
    v_bound    timestamptz := least(v_last, coalesce(p_after_at, 'infinity'));
    v_edge     timestamptz;
    v_most     integer := CASE WHEN p_status IS NULL THEN 100000 ELSE 20000 END;
    v_complete boolean;
    v_qids     uuid[];
    v_pids     uuid[];
    v_lows     bigint[];
    v_highs    bigint[];
    v_depth    integer;
    v_floor    timestamptz := v_from;
    v_keep     uuid[];
    v_answer   jsonb;
    v_dead     boolean := p_status IS NOT DISTINCT FROM 'dead_letter';
BEGIN
    IF p_queue IS NOT NULL THEN
        v_qids := ARRAY(SELECT q.id FROM queen.queues q
                        WHERE q.tenant_id = p_tenant AND q.name = p_queue
                          AND (p_namespace IS NULL OR q.namespace = p_namespace)
                          AND (p_task IS NULL OR q.task = p_task));
    ELSE
        v_qids := ARRAY(SELECT q.id FROM queen.queues q
                        WHERE q.tenant_id = p_tenant
                          AND (p_namespace IS NULL OR q.namespace = p_namespace)
                          AND (p_task IS NULL OR q.task = p_task)
                        ORDER BY q.created_at DESC, q.id LIMIT 10001);
    END IF;
    v_complete := cardinality(v_qids) <= 10000;
    v_qids := v_qids[:10000];

    -- Partitions in which p_want messages can be found already, the newest of each at least, leave
    -- out all that were last written to before them. A status may leave out that newest one.
    v_edge := v_from;
    IF p_status IS NULL AND p_partition IS NULL THEN
        SELECT CASE WHEN count(*) = p_want THEN greatest(min(w.at), v_from)
                    ELSE v_from END
        INTO v_edge
        FROM (SELECT e.at
              FROM unnest(v_qids) AS u (qid)
              CROSS JOIN LATERAL (
                  SELECT l.last_write_at AS at FROM queen.log_partitions l
                  WHERE l.queue_id = u.qid AND l.last_write_at < v_bound - v_slack
                    AND l.last_write_at >= v_from - v_slack
                    AND l.last_offset >= l.log_start AND l.newest_at >= v_from
                  ORDER BY l.last_write_at DESC LIMIT p_want) e
              ORDER BY e.at DESC LIMIT p_want) w;
    END IF;

    WITH parts AS MATERIALIZED (
        SELECT p.id, p.queue_id, p.log_start, p.last_offset, p.newest_at, p.bound,
               -- The newest message of these is in the list. That of the position's own partition
               -- may be the position.
               p.newest_at <= p.bound AND p.id IS DISTINCT FROM p_after_pid AS sure
        FROM (SELECT l.id, l.queue_id, l.log_start, l.last_offset, l.newest_at, l.last_write_at,
                     least(v_last, CASE WHEN l.id >= p_after_pid THEN p_after_at
                                        ELSE p_after_at - interval '1 us' END) AS bound
              FROM unnest(v_qids) AS u (qid)
              CROSS JOIN LATERAL (
                  (SELECT * FROM queen.log_partitions a
                   WHERE p_partition IS NULL AND a.queue_id = u.qid
                     AND a.last_write_at >= v_edge - v_slack
                     AND a.last_offset >= a.log_start AND a.newest_at >= v_from
                   ORDER BY a.last_write_at DESC LIMIT v_most + 1)
                  UNION ALL
                  (SELECT * FROM queen.log_partitions b
                   WHERE p_partition IS NOT NULL AND b.queue_id = u.qid AND b.name = p_partition
                     AND b.last_offset >= b.log_start AND b.newest_at >= v_from)) l
              ORDER BY l.last_write_at DESC LIMIT v_most + 1) p),
    few AS (
        (SELECT * FROM parts WHERE parts.sure
         ORDER BY parts.newest_at DESC, parts.id
         LIMIT CASE WHEN p_status IS NULL THEN p_want ELSE v_most END)
        UNION ALL
        (SELECT * FROM parts WHERE NOT parts.sure LIMIT 10000)),
    ranges AS (
        SELECT f.id,
               CASE p_status WHEN 'pending' THEN greatest(s.done + 1, f.log_start)
                             WHEN 'processing' THEN greatest(s.done, s.lease_from) + 1
                             ELSE f.log_start END AS low,
               least(CASE WHEN f.sure THEN f.last_offset
                          ELSE queen._offset_until(f.id, f.bound, f.log_start - 1, f.last_offset)
                          END,
                     CASE WHEN f.id = p_after_pid THEN p_after_offset - 1 END,
                     CASE p_status WHEN 'completed' THEN s.done
                                   WHEN 'processing' THEN coalesce(s.lease_to, -1) END) AS high
        FROM few f
        LEFT JOIN LATERAL (
            SELECT greatest(coalesce(
                       min(g.committed) FILTER (WHERE g.name <> '__QUEUE_MODE__'),
                       min(g.committed), -1), f.log_start - 1) AS done,
                   min(g.committed) FILTER (WHERE g.leased_to IS NOT NULL) AS lease_from,
                   max(g.leased_to) AS lease_to
            FROM queen._message_groups(f.queue_id, f.id, f.log_start, f.last_offset, f.newest_at,
                                       v_now) g) s ON p_status IN ('pending', 'processing', 'completed'))
    SELECT array_agg(r.id), array_agg(r.low), array_agg(r.high),
           v_complete AND (SELECT count(*) <= v_most
                                  AND count(*) FILTER (WHERE NOT parts.sure) <= 10000 FROM parts)
    INTO v_pids, v_lows, v_highs, v_complete
    FROM ranges r
    WHERE r.high >= r.low;

    -- Which slices those are, in up to three rounds: a little of each partition shows how old the
    -- page's oldest message is at most, and which partitions cannot reach that.
    IF cardinality(v_pids) > 8 AND p_want > 8 THEN
        FOREACH v_depth IN ARRAY ARRAY[1, 32] LOOP
            SELECT array_agg(DISTINCT r.pid),
                   CASE WHEN max(r.total) >= p_want THEN min(r.created_at) ELSE v_from END
            INTO v_keep, v_floor
            FROM queen._message_round(v_pids, v_lows, v_highs, v_floor, v_depth, p_want, v_dead) r;
            SELECT array_agg(t.pid), array_agg(t.low), array_agg(t.high)
            INTO v_pids, v_lows, v_highs
            FROM unnest(v_pids, v_lows, v_highs) AS t (pid, low, high)
            JOIN unnest(v_keep) AS k (pid) ON k.pid = t.pid;
        END LOOP;
    END IF;
    WITH slices AS MATERIALIZED (
        SELECT r.* FROM queen._message_round(
            v_pids, v_lows, v_highs, v_floor, p_want, p_want, v_dead) r),
    places AS MATERIALIZED (
        SELECT d.pid, row_number() OVER (ORDER BY d.pid) - 1 AS nth
        FROM (SELECT DISTINCT s.pid FROM slices s) d)
    SELECT jsonb_build_object(
        'complete', v_complete,
        'places', (SELECT coalesce(jsonb_agg(queen._message_place(p.pid, v_now) ORDER BY p.nth),
                                   '[]')
                   FROM places p),
        'slices', (SELECT coalesce(jsonb_agg(jsonb_build_array(
                              p.nth, s.base_offset,
                              (extract(epoch FROM s.created_at) * 1000000)::bigint,
                              s.low, s.high, s.bytes)
                              ORDER BY s.ord), '[]')
                   FROM slices s JOIN places p ON p.pid = s.pid),
        'dead', (SELECT coalesce(jsonb_agg(DISTINCT jsonb_build_array(p.nth, l."offset")), '[]')
                 FROM slices s JOIN places p ON p.pid = s.pid
                 CROSS JOIN LATERAL (
                     SELECT d."offset" FROM queen.log_dlq d
                     WHERE d.partition_id = s.pid AND d."offset" >= s.low AND d."offset" <= s.high
                     OFFSET 0) l))
    INTO v_answer;
    RETURN v_answer;
END $$;

-- @
-- The blobs of some segments, in the order they are asked for; no row for one that retention took.
CREATE OR REPLACE FUNCTION queen.log_segments_v1(p_pids uuid[], p_bases bigint[])
RETURNS TABLE (nth bigint, blob bytea)
LANGUAGE sql STABLE AS $$
    SELECT w.ord - 1, s.blob
    FROM unnest(p_pids, p_bases) WITH ORDINALITY AS w (pid, base, ord)
    JOIN queen.log_segments s ON s.partition_id = w.pid AND s.base_offset = w.base
    ORDER BY w.ord
$$;

-- @
-- A message by the hash of its transaction id: one row when the partition is the tenant's, with the
-- newest offset that has the hash, null when the sidecar knows none, and the segment, null once
-- retention took it. The search reads the sidecar downwards, 16 bytes a message.
CREATE OR REPLACE FUNCTION queen.log_message_v1(p_tenant uuid, p_pid uuid, p_hash bytea)
RETURNS TABLE (place jsonb, options jsonb, "offset" bigint, base_offset bigint,
               created_at timestamptz, blob bytea)
LANGUAGE sql STABLE AS $$
    SELECT queen._message_place(p.id, queen._clock()),
           queen._options_of(q) - 'namespace' - 'task', t.at, s.base_offset, s.created_at, s.blob
    FROM queen.log_partitions p
    JOIN queen.queues q ON q.id = p.queue_id AND q.tenant_id = p_tenant
    LEFT JOIN LATERAL (
        SELECT x.base_offset + f.idx AS at
        FROM queen.log_txns x
        CROSS JOIN LATERAL (
            -- Found at a multiple of 16 as a rule; else those bytes may be halves of two hashes.
            SELECT min(u.idx) AS idx FROM queen.log_unnest_hashes(x.hashes) u
            WHERE u.h = p_hash) f
        WHERE x.partition_id = p.id AND position(p_hash IN x.hashes) > 0 AND f.idx IS NOT NULL
        ORDER BY x.base_offset DESC LIMIT 1) t ON true
    LEFT JOIN LATERAL queen.log_segment_at_v1(p.id, t.at) s ON true
    WHERE p.id = p_pid
$$;

-- @
SELECT queen._keep_only(ARRAY[
    '_message_groups(uuid, uuid, bigint, bigint, timestamptz, timestamptz)',
    '_message_slices(uuid, bigint, bigint, timestamptz, integer, boolean)',
    '_message_round(uuid[], bigint[], bigint[], timestamptz, integer, integer, boolean)',
    '_message_place(uuid, timestamptz)',
    'log_messages_v1(uuid, text, text, text, text, text, timestamptz, timestamptz, timestamptz, '
        || 'uuid, bigint, integer)',
    'log_segments_v1(uuid[], bigint[])', 'log_message_v1(uuid, uuid, bytea)']);
