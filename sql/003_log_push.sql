-- 003_log_push.sql: appending segments.
--
-- A push locks its partition rows, ascending by id, and keeps them to its commit; the stamp of a
-- segment is read after the lock, so created_at grows with the offset (ORD-1), and a late
-- committer can never land behind a cursor (K01).
-- Lock order: queue creation keys ascending, queues, log_partitions by id, leaves. Rows are locked
-- FOR NO KEY UPDATE: the stronger FOR UPDATE would block the foreign key checks of pops (LK-3).
-- Errors: 22023 for arguments that do not fit together (text starts with QMULTI or QPUSH) and for
-- clear text on an encrypted queue from a caller that knows no encryption (QENCRYPT),
-- 40001 when a partition was deleted under the push (QVANISHED): a retry makes it again.

-- Appends one segment to a partition that exists; the caller named it by id. Window in seconds.
--
-- A vouch says: every offset in (p_vouch_from, p_vouch_upto] of partition p_vouch_pid was compared
-- with these hashes and none matched; the row that holds p_vouch_upto bears the stamp p_vouch_at.
-- It is believed, and only what lies above is probed, when
--   - the partition is this very row: one deleted and made again starts its offsets anew;
--   - the end exists and bears the stamp: a database that was set back, by a failover to a standby
--     that lacked its last commits, gives the same offsets to other messages. The stamp stands for
--     all below it, because each answer names the stamp it was stored after;
--   - nothing below the span is left to compare: it reaches below txns_start, or the row that holds
--     its lower end is older than the window, however wide that is by now.
-- What is not believed costs time and nothing else: all of the window is probed (DED-1, DED-4).
CREATE OR REPLACE FUNCTION queen._append(
    p_pid uuid, p_window integer, p_count integer, p_hashes bytea, p_verified bigint, p_blob bytea,
    p_vouch_pid uuid DEFAULT NULL, p_vouch_from bigint DEFAULT NULL,
    p_vouch_upto bigint DEFAULT NULL, p_vouch_at timestamptz DEFAULT NULL)
RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    v_part   record;
    v_now    timestamptz;
    v_start  timestamptz;
    v_base   bigint;
    v_bound  bigint;
    v_from   bigint;
    v_probed bigint := 0;
    v_after  timestamptz;
    v_dups   jsonb;
BEGIN
    IF p_count IS NULL OR p_count < 1 OR p_hashes IS NULL OR p_blob IS NULL
       OR octet_length(p_hashes) <> 16 * p_count::bigint THEN
        RAISE EXCEPTION 'QPUSH: % messages need % bytes of hashes, got %',
            p_count, 16 * p_count::bigint, octet_length(p_hashes) USING ERRCODE = '22023';
    END IF;

    IF p_window > 0 THEN
        SELECT p.last_offset, p.txns_start, p.newest_at INTO v_part
        FROM queen.log_partitions p WHERE p.id = p_pid
        FOR NO KEY UPDATE;
        IF FOUND THEN
            v_now := greatest(queen._clock(), v_part.newest_at);
            v_after := v_part.newest_at;
            v_start := v_now - make_interval(secs => p_window);
            -- The caller compared every offset up to p_verified, and below txns_start nothing is
            -- left to compare with.
            v_bound := greatest(coalesce(p_verified, -1), v_part.txns_start - 1);
            IF p_vouch_pid = p_pid AND p_vouch_upto <= v_part.last_offset
               -- In parentheses: an IF of PL/pgSQL ends at the first THEN outside of any.
               AND p_vouch_at = (CASE WHEN p_vouch_upto = v_part.last_offset THEN v_part.newest_at
                   ELSE (SELECT t.created_at FROM queen.log_txns t
                         WHERE t.partition_id = p_pid AND t.base_offset <= p_vouch_upto
                         ORDER BY t.base_offset DESC LIMIT 1) END)
               AND (p_vouch_from < v_part.txns_start
                    OR (SELECT t.created_at FROM queen.log_txns t
                        WHERE t.partition_id = p_pid AND t.base_offset <= p_vouch_from
                        ORDER BY t.base_offset DESC LIMIT 1) < v_start)
            THEN
                v_bound := greatest(v_bound, p_vouch_upto);
            END IF;
            IF v_part.last_offset > v_bound THEN
                -- First row to compare: the one that holds v_bound + 1, unless the window starts
                -- later; that is found backwards, so neither walk leaves window and span.
                v_from := coalesce((SELECT t.base_offset FROM queen.log_txns t
                                    WHERE t.partition_id = p_pid AND t.base_offset <= v_bound + 1
                                    ORDER BY t.base_offset DESC LIMIT 1), v_bound + 1);
                v_from := coalesce((SELECT t.end_offset + 1 FROM queen.log_txns t
                                    WHERE t.partition_id = p_pid AND t.base_offset >= v_from
                                      AND t.created_at < v_start
                                    ORDER BY t.base_offset DESC LIMIT 1), v_from);
                v_probed := v_part.last_offset - greatest(v_from - 1, v_bound);
                SELECT jsonb_agg(jsonb_build_object('i', d.i, 'off', d.off) ORDER BY d.i)
                INTO v_dups
                FROM (SELECT n.idx AS i, min(t.base_offset + u.idx) AS off
                      -- Concatenation reads a large value once; OFFSET 0 keeps it to itself.
                      FROM (SELECT s.base_offset, s.hashes || ''::bytea AS hashes
                            FROM queen.log_txns s
                            WHERE s.partition_id = p_pid AND s.base_offset >= v_from
                            OFFSET 0) t
                      CROSS JOIN LATERAL queen.log_unnest_hashes(t.hashes) u
                      JOIN queen.log_unnest_hashes(p_hashes) n ON n.h = u.h
                      WHERE t.base_offset + u.idx > v_bound
                      GROUP BY n.idx) d;
                IF v_dups IS NOT NULL THEN
                    RETURN jsonb_build_object(
                        'status', 'duplicate', 'partitionId', p_pid, 'dups', v_dups,
                        'window', p_window, 'probed', v_probed);
                END IF;
            END IF;
        END IF;
    END IF;

    -- With no window this update is the serializer. Its expressions are evaluated after the wait
    -- for the row, so the stamp is younger than that of the push before; once, by the subquery. What
    -- retention looks for is written as it was unless the partition was empty: the update stays HOT.
    UPDATE queen.log_partitions p SET
        last_offset = p.last_offset + p_count,
        (newest_at, oldest_live_at, oldest_txn_at) = (
            SELECT s.at, CASE WHEN p.segment_count = 0 THEN s.at ELSE p.oldest_live_at END,
                   CASE WHEN p.txns_start > p.last_offset THEN s.at ELSE p.oldest_txn_at END
            FROM (SELECT greatest(queen._clock(), p.newest_at, v_now) AS at OFFSET 0) s),
        segment_count = p.segment_count + 1,
        stored_bytes = p.stored_bytes + octet_length(p_blob),
        last_write_at = CASE WHEN queen._clock() - p.last_write_at > interval '1 s'
                             THEN queen._clock() ELSE p.last_write_at END
    WHERE p.id = p_pid
    RETURNING p.last_offset - p_count + 1, p.newest_at INTO v_base, v_now;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'QVANISHED: partition % was deleted', p_pid USING ERRCODE = '40001';
    END IF;

    INSERT INTO queen.log_segments (partition_id, base_offset, end_offset, created_at, blob)
    VALUES (p_pid, v_base, v_base + p_count - 1, v_now, p_blob);
    INSERT INTO queen.log_txns (partition_id, base_offset, end_offset, created_at, hashes)
    VALUES (p_pid, v_base, v_base + p_count - 1, v_now, p_hashes);
    RETURN jsonb_build_object('status', 'queued', 'partitionId', p_pid,
                              'baseOffset', v_base, 'createdAt', queen._iso(v_now),
                              'window', p_window, 'probed', v_probed,
                              'after', queen._iso(v_after));
END $$;

-- @
-- Creates what is missing of the named queues, under their creation keys.
CREATE OR REPLACE FUNCTION queen._provision_queues(p_tenants uuid[], p_queues text[])
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(k.key)
    FROM (SELECT DISTINCT queen._queue_lock(w.tenant, w.queue) AS key
          FROM unnest(p_tenants, p_queues) AS w (tenant, queue)
          WHERE NOT EXISTS (SELECT 1 FROM queen.queues q
                            WHERE q.tenant_id = w.tenant AND q.name = w.queue)
          ORDER BY 1) k;
    IF FOUND THEN
        INSERT INTO queen.queues (tenant_id, name, namespace, task)
        SELECT w.tenant, w.queue, l.namespace, l.task
        FROM (SELECT DISTINCT u.tenant, u.queue
              FROM unnest(p_tenants, p_queues) AS u (tenant, queue)) w
        CROSS JOIN LATERAL queen._labels(w.queue) l
        WHERE NOT EXISTS (SELECT 1 FROM queen.queues q
                          WHERE q.tenant_id = w.tenant AND q.name = w.queue)
        ORDER BY w.tenant, w.queue
        ON CONFLICT (tenant_id, name) DO NOTHING;
    END IF;
END $$;

-- @
-- Creates what is missing of the named queues and partitions. Whoever finds nothing missing writes
-- nothing (F-9). Inserts are ordered on their unique keys (LK-2, K09).
CREATE OR REPLACE FUNCTION queen._provision(
    p_tenants uuid[], p_queues text[], p_partitions text[])
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1
    FROM unnest(p_tenants, p_queues, p_partitions) AS w (tenant, queue, part)
    WHERE NOT EXISTS (SELECT 1 FROM queen.queues q
                      JOIN queen.log_partitions p ON p.queue_id = q.id AND p.name = w.part
                      WHERE q.tenant_id = w.tenant AND q.name = w.queue);
    IF NOT FOUND THEN
        RETURN;
    END IF;

    PERFORM queen._provision_queues(p_tenants, p_queues);

    INSERT INTO queen.log_partitions (queue_id, name, last_write_at)
    SELECT q.id, w.part, queen._clock()
    FROM (SELECT DISTINCT u.tenant, u.queue, u.part
          FROM unnest(p_tenants, p_queues, p_partitions) AS u (tenant, queue, part)) w
    JOIN queen.queues q ON q.tenant_id = w.tenant AND q.name = w.queue
    WHERE NOT EXISTS (SELECT 1 FROM queen.log_partitions p
                      WHERE p.queue_id = q.id AND p.name = w.part)
    ORDER BY q.id, w.part
    ON CONFLICT (queue_id, name) DO NOTHING;
END $$;

-- @
-- The answer to a segment whose form is not the queue's: {status: form, encrypted} with what the
-- queue wants; nothing of it is written, and its caller packs it again. The flag is read after the
-- partition's lock and not held to the commit: a push that overlaps a configure may count as the
-- earlier of the two, one that begins after its answer sees it (ENC-5).
-- A caller of the first release says nothing about its frames, which are clear text, and knows no
-- such answer. It gets an error.
CREATE OR REPLACE FUNCTION queen._other_form(
    p_enabled boolean, p_encrypted boolean, p_queue text) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF p_encrypted IS NULL THEN
        RAISE EXCEPTION 'QENCRYPT: queue % is encrypted, and this broker''s version does not encrypt',
            p_queue USING ERRCODE = '22023';
    END IF;
    RETURN jsonb_build_object('status', 'form', 'encrypted', p_enabled);
END $$;

-- @
-- Appends one segment, creating queue and partition if need be.
-- Result: {status: queued, partitionId, baseOffset, createdAt} or, when any hash is inside the
-- dedup window already and then nothing was written, {status: duplicate, partitionId,
-- dups: [{i, off}]} with i the frame and off the first offset of its hash (DED-1, DED-2); both with
-- window, the queue's in seconds, and probed, how many offsets were compared here. after is the
-- stamp of the segment before this one, null for the first and without a window.
-- p_verified: every offset up to it was compared by the broker; -1 vouches for nothing. It is
-- believed as it stands, so it must have been read under the row's lock; a broker that compared on
-- its own vouches for a span instead, which _append judges (DED-4).
-- p_encrypted: whether the frames are; when that is not what the queue wants, {status: form,
-- encrypted: what it wants} and nothing was written. Null is a caller of the first release.
-- The predecessor goes in the same transaction: two that fit one call would fail it (DM-4).
DROP FUNCTION IF EXISTS queen.log_push_one_v1(
    text, text, integer, bytea, bigint, bytea, uuid, integer, uuid, uuid, bigint, bigint,
    timestamptz);
CREATE OR REPLACE FUNCTION queen.log_push_one_v1(
    p_queue text, p_partition text, p_count integer, p_hashes bytea, p_verified bigint,
    p_blob bytea, p_pid uuid DEFAULT NULL, p_window integer DEFAULT NULL,
    p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001',
    p_vouch_pid uuid DEFAULT NULL, p_vouch_from bigint DEFAULT NULL,
    p_vouch_upto bigint DEFAULT NULL, p_vouch_at timestamptz DEFAULT NULL,
    p_encrypted boolean DEFAULT NULL)
RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    v_pid     uuid := p_pid;
    v_window  integer := p_window;
    v_enabled boolean;
BEGIN
    IF v_pid IS NULL OR v_window IS NULL THEN
        IF coalesce(p_queue, '') = '' OR coalesce(p_partition, '') = '' THEN
            RAISE EXCEPTION 'QPUSH: empty queue or partition name' USING ERRCODE = '22023';
        END IF;
        PERFORM queen._provision(ARRAY[p_tenant], ARRAY[p_queue], ARRAY[p_partition]);
        SELECT p.id, q.dedup_window_seconds, q.encryption_enabled INTO v_pid, v_window, v_enabled
        FROM queen.queues q
        JOIN queen.log_partitions p ON p.queue_id = q.id AND p.name = p_partition
        WHERE q.tenant_id = p_tenant AND q.name = p_queue;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'QVANISHED: partition % of queue % was deleted', p_partition, p_queue
                USING ERRCODE = '40001';
        END IF;
    ELSE
        SELECT q.encryption_enabled INTO v_enabled
        FROM queen.log_partitions p JOIN queen.queues q ON q.id = p.queue_id
        WHERE p.id = v_pid;
    END IF;
    IF v_enabled <> coalesce(p_encrypted, false) THEN -- a partition that is gone: _append says so
        RETURN queen._other_form(v_enabled, p_encrypted, p_queue);
    END IF;
    RETURN queen._append(v_pid, v_window, p_count, p_hashes, p_verified, p_blob,
                         p_vouch_pid, p_vouch_from, p_vouch_upto, p_vouch_at);
END $$;

-- @
-- How long a push waits for a row that somebody else has locked. Long beside the queue of pushes for
-- one busy partition, short beside a statement's time-out: one locked partition must not hold up all
-- that came in the same request. A guess. A function, so that a test can lower it.
CREATE OR REPLACE FUNCTION queen._push_lock_timeout() RETURNS text
LANGUAGE sql IMMUTABLE AS $$ SELECT '5s' $$;

-- @
-- Appends many segments in one transaction: an array of results like those of log_push_one_v1, in
-- input order. A duplicate leaves its neighbours alone; an error fails the whole call, 55P03 among
-- them when a row stays locked. Segments of one partition keep their input order. The four arrays
-- of vouches are all there or all null; an element of zeros or null vouches for nothing. A segment
-- in another form than its queue's leaves its neighbours alone, too.
DROP FUNCTION IF EXISTS queen.log_push_multi_v1(
    text[], text[], integer[], bytea[], bigint[], bytea[], uuid[], uuid[], bigint[], bigint[],
    timestamptz[]);
CREATE OR REPLACE FUNCTION queen.log_push_multi_v1(
    p_queues text[], p_partitions text[], p_counts integer[], p_hashes bytea[],
    p_verified bigint[], p_blobs bytea[], p_tenants uuid[] DEFAULT NULL,
    p_vouch_pids uuid[] DEFAULT NULL, p_vouch_from bigint[] DEFAULT NULL,
    p_vouch_upto bigint[] DEFAULT NULL, p_vouch_at timestamptz[] DEFAULT NULL,
    p_encrypted boolean[] DEFAULT NULL)
RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    v_n       integer := coalesce(cardinality(p_queues), 0);
    v_tenants uuid[] := coalesce(p_tenants,
        array_fill('00000000-0000-0000-0000-000000000001'::uuid, ARRAY[v_n]));
    v_results jsonb[] := array_fill(NULL::jsonb, ARRAY[v_n]);
    v_done    integer := 0;
    v_held    uuid[];       -- the partitions this call has locked
    v_at      integer := 1; -- how far the segments have come in them
    v_seg     record;
BEGIN
    IF coalesce(cardinality(p_partitions), 0) <> v_n OR coalesce(cardinality(p_counts), 0) <> v_n
       OR coalesce(cardinality(p_hashes), 0) <> v_n OR coalesce(cardinality(p_verified), 0) <> v_n
       OR coalesce(cardinality(p_blobs), 0) <> v_n OR cardinality(v_tenants) <> v_n
       OR coalesce(cardinality(p_vouch_pids), v_n) <> v_n
       OR cardinality(p_vouch_from) IS DISTINCT FROM cardinality(p_vouch_pids)
       OR cardinality(p_vouch_upto) IS DISTINCT FROM cardinality(p_vouch_pids)
       OR cardinality(p_vouch_at) IS DISTINCT FROM cardinality(p_vouch_pids)
       OR coalesce(cardinality(p_encrypted), v_n) <> v_n THEN
        RAISE EXCEPTION 'QMULTI: arrays of different length' USING ERRCODE = '22023';
    END IF;
    IF v_n = 0 THEN
        RETURN '[]';
    END IF;
    PERFORM 1 FROM unnest(v_tenants, p_queues, p_partitions) AS w (tenant, queue, part)
    WHERE w.tenant IS NULL OR coalesce(w.queue, '') = '' OR coalesce(w.part, '') = '';
    IF FOUND THEN
        RAISE EXCEPTION 'QMULTI: empty tenant, queue or partition name' USING ERRCODE = '22023';
    END IF;

    PERFORM set_config('lock_timeout', queen._push_lock_timeout(), true);
    PERFORM queen._provision(v_tenants, p_queues, p_partitions);
    -- One pass takes every row lock in ascending order; the locks below find them held.
    v_held := ARRAY(
        SELECT l.id FROM queen.log_partitions l
        WHERE l.id IN (SELECT p.id
                       FROM unnest(v_tenants, p_queues, p_partitions) AS w (tenant, queue, part)
                       JOIN queen.queues q ON q.tenant_id = w.tenant AND q.name = w.queue
                       JOIN queen.log_partitions p ON p.queue_id = q.id AND p.name = w.part)
        ORDER BY l.id
        FOR NO KEY UPDATE);

    FOR v_seg IN
        SELECT w.ord::integer AS ord, p.id AS pid, q.dedup_window_seconds AS win,
               q.encryption_enabled AS enabled
        FROM unnest(v_tenants, p_queues, p_partitions) WITH ORDINALITY
             AS w (tenant, queue, part, ord)
        JOIN queen.queues q ON q.tenant_id = w.tenant AND q.name = w.queue
        JOIN queen.log_partitions p ON p.queue_id = q.id AND p.name = w.part
        ORDER BY p.id, w.ord
    LOOP
        -- A queue that was deleted and made anew while the pass waited has partitions that it did
        -- not lock. Locking them here, above others, would be out of order (LK-2): both arrays
        -- ascend, and the first that is not held ends it.
        WHILE v_held[v_at] < v_seg.pid LOOP
            v_at := v_at + 1;
        END LOOP;
        EXIT WHEN v_held[v_at] IS DISTINCT FROM v_seg.pid;
        IF v_seg.enabled = coalesce(p_encrypted[v_seg.ord], false) THEN
            v_results[v_seg.ord] := queen._append(
                v_seg.pid, v_seg.win, p_counts[v_seg.ord], p_hashes[v_seg.ord],
                p_verified[v_seg.ord], p_blobs[v_seg.ord], p_vouch_pids[v_seg.ord],
                p_vouch_from[v_seg.ord], p_vouch_upto[v_seg.ord], p_vouch_at[v_seg.ord]);
        ELSE
            v_results[v_seg.ord] := queen._other_form(
                v_seg.enabled, p_encrypted[v_seg.ord], p_queues[v_seg.ord]);
        END IF;
        v_done := v_done + 1;
    END LOOP;
    IF v_done <> v_n THEN
        RAISE EXCEPTION 'QVANISHED: % of % partitions were deleted', v_n - v_done, v_n
            USING ERRCODE = '40001';
    END IF;
    RETURN to_jsonb(v_results);
END $$;

-- @
-- The segment that holds an offset, or no row once retention took it.
CREATE OR REPLACE FUNCTION queen.log_segment_at_v1(p_pid uuid, p_offset bigint)
RETURNS TABLE (base_offset bigint, end_offset bigint, created_at timestamptz, blob bytea)
LANGUAGE sql STABLE AS $$
    SELECT s.base_offset, s.end_offset, s.created_at, s.blob
    FROM (SELECT * FROM queen.log_segments l
          WHERE l.partition_id = p_pid AND l.base_offset <= p_offset
          ORDER BY l.base_offset DESC LIMIT 1) s
    WHERE s.end_offset >= p_offset
$$;

-- @
-- A page of the hashes in a partition's dedup window, for brokers that compare by themselves
-- (DED-5). It begins with the row that holds offset p_edge, by whose stamp the reader sees that
-- these are the neighbours of what it has, and goes downwards, newest first, as far as the window
-- reaches, or upwards, oldest first. It ends with the row that brings what follows the first one to
-- p_bytes of hashes; a smaller page was the last one. No lock: rows commit in the order of their
-- offsets.
CREATE OR REPLACE FUNCTION queen.log_window_hashes_v1(
    p_pid uuid, p_edge bigint, p_downwards boolean, p_bytes bigint)
RETURNS TABLE (base_offset bigint, end_offset bigint, created_at timestamptz, hashes bytea)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_start timestamptz;
    v_left  bigint := p_bytes;
BEGIN
    SELECT queen._clock() - make_interval(secs => q.dedup_window_seconds) INTO v_start
    FROM queen.log_partitions p JOIN queen.queues q ON q.id = p.queue_id
    WHERE p.id = p_pid;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF p_downwards THEN
        FOR base_offset, end_offset, created_at, hashes IN
            SELECT t.base_offset, t.end_offset, t.created_at, t.hashes FROM queen.log_txns t
            WHERE t.partition_id = p_pid AND t.base_offset <= p_edge
            ORDER BY t.base_offset DESC
        LOOP
            EXIT WHEN v_left <= 0 OR created_at < v_start;
            RETURN NEXT;
            v_left := v_left - CASE WHEN end_offset < p_edge THEN octet_length(hashes) ELSE 0 END;
        END LOOP;
    ELSE
        FOR base_offset, end_offset, created_at, hashes IN
            SELECT t.base_offset, t.end_offset, t.created_at, t.hashes FROM queen.log_txns t
            WHERE t.partition_id = p_pid
              AND t.base_offset >= coalesce((SELECT e.base_offset FROM queen.log_txns e
                                             WHERE e.partition_id = p_pid
                                               AND e.base_offset <= p_edge
                                             ORDER BY e.base_offset DESC LIMIT 1), p_edge)
            ORDER BY t.base_offset
        LOOP
            EXIT WHEN v_left <= 0;
            RETURN NEXT;
            v_left := v_left - CASE WHEN base_offset > p_edge THEN octet_length(hashes) ELSE 0 END;
        END LOOP;
    END IF;
END $$;

-- @
SELECT queen._keep_only(ARRAY[
    'log_push_one_v1(text, text, integer, bytea, bigint, bytea, uuid, integer, uuid, uuid, bigint, '
        || 'bigint, timestamptz, boolean)',
    '_other_form(boolean, boolean, text)',
    '_push_lock_timeout()',
    'log_push_multi_v1(text[], text[], integer[], bytea[], bigint[], bytea[], uuid[], uuid[], '
        || 'bigint[], bigint[], timestamptz[], boolean[])',
    'log_segment_at_v1(uuid, bigint)',
    'log_window_hashes_v1(uuid, bigint, boolean, bigint)',
    '_append(uuid, integer, integer, bytea, bigint, bytea, uuid, bigint, bigint, timestamptz)',
    '_provision_queues(uuid[], text[])',
    '_provision(uuid[], text[], text[])']);
