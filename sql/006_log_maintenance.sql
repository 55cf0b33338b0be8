-- 006_log_maintenance.sql: removing what is not wanted any more: messages by age, their hashes,
-- partitions that nobody uses, whole queues, old records of all that.
--
-- What goes when. Only whole segments go, from the front of a partition (RT-4):
--   retention             older than retentionSeconds, consumed or not; needs retentionEnabled
--   completed_retention   older than completedRetentionSeconds and consumed by every group that is
--                         known; needs retentionEnabled. Known is a group with a cursor in the
--                         partition, and one that is registered, with the queue or its labels, and
--                         has none yet: it counts where it would begin. Of a partition without a
--                         known group this rule removes nothing: the first may still come (K05).
--   max_wait_time_eviction   older than maxWaitTimeSeconds, or than ttl where somebody set it;
--                         whatever retentionEnabled says (RT-8)
-- A zero switches a rule off. What is leased goes as well; a cursor below log_start goes on with
-- the next segment that exists (RT-9).
--
-- Each step is one short transaction: bounded in rows and bytes, one partition locked at a time
-- (LK-4); the cleanup, which needs many, takes them by id and skips those in use. Lock order as in
-- 001: timers, creation key, queue, partitions by id, cursors, leaves.
-- Isolation: READ COMMITTED; whatever decides is read by a statement after the one that locked.
-- Errors: 22004 for a cutoff that must not be null, 55P03 when a row stays locked.

-- What retention looks for, oldest first within a queue (RT-10): partitions with messages, and
-- partitions with hashes of messages that are gone. Pushes into partitions that hold something
-- touch neither index. Built beside the traffic; one that was left unfinished is made anew.
DO $$
DECLARE
    v_index text;
BEGIN
    FOREACH v_index IN ARRAY ARRAY['log_partitions_live', 'log_partitions_purgeable',
                                   'log_partitions_idle'] LOOP
        IF (SELECT NOT i.indisvalid FROM pg_index i
            WHERE i.indexrelid = to_regclass('queen.' || v_index)) THEN
            EXECUTE format('DROP INDEX queen.%I', v_index);
        END IF;
    END LOOP;
END $$;

-- @
CREATE INDEX CONCURRENTLY IF NOT EXISTS log_partitions_live
    ON queen.log_partitions (queue_id, oldest_live_at, id) WHERE oldest_live_at IS NOT NULL;

-- @
CREATE INDEX CONCURRENTLY IF NOT EXISTS log_partitions_purgeable
    ON queen.log_partitions (queue_id, oldest_txn_at, id) WHERE txns_start < log_start;

-- @
-- Partitions without messages, longest unwritten first: what the cleanup looks at.
CREATE INDEX CONCURRENTLY IF NOT EXISTS log_partitions_idle
    ON queen.log_partitions (last_write_at, id) WHERE oldest_live_at IS NULL;

-- @
-- Removes a queue with its partitions, segments, sidecar rows, cursors, subscriptions and
-- watermarks, and the timers that were to go into it: one that stayed would make it anew when it
-- fires (F-64). True when there was any of that. In-flight pushes are waited for; pushes that waited
-- here find their partition gone and fail (40001), pops skip what is locked. A fire under way is
-- waited for; one that comes later finds its rows gone.
CREATE OR REPLACE FUNCTION queen.delete_queue_v1(p_tenant uuid, p_name text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_qid  uuid;
    v_pids uuid[];
    v_keys text[] := '{}';
BEGIN
    -- First of all (LK-1). During the boot that makes that table there is none yet.
    IF to_regclass('queen.log_timers') IS NOT NULL THEN
        v_keys := ARRAY(SELECT t.timer_key FROM queen.log_timers t
                        WHERE t.tenant_id = p_tenant AND t.queue = p_name
                        ORDER BY t.timer_key FOR UPDATE);
        DELETE FROM queen.log_timers t
        WHERE t.tenant_id = p_tenant AND t.queue = p_name AND t.timer_key = ANY (v_keys);
    END IF;
    PERFORM pg_advisory_xact_lock(queen._queue_lock(p_tenant, p_name));
    SELECT q.id INTO v_qid FROM queen.queues q
    WHERE q.tenant_id = p_tenant AND q.name = p_name
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN cardinality(v_keys) > 0;
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
-- A page of the partitions in which a rule has something to look at, from behind the key given;
-- nulls begin. p_work: retention, max_wait or txns. Queue by queue, oldest first; a page shorter
-- than p_limit is the last. The cutoffs are those of the queue by the database's clock, null where
-- a rule is off; completed_cutoff is of retention only. Rows read follow what is due, and the
-- number of queues, whatever the number of partitions (F-21).
-- Hashes are kept for the dedup window, completedRetentionSeconds and 900 s, the longest of these,
-- and for as long as their messages: an ack names a message by its hash however old it is (RT-7).
CREATE OR REPLACE FUNCTION queen.log_due_v1(
    p_work text, p_after_queue uuid, p_after_at timestamptz, p_after_id uuid, p_limit integer)
RETURNS TABLE (queue_id uuid, oldest_at timestamptz, partition_id uuid, cutoff timestamptz,
               completed_cutoff timestamptz)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET enable_incremental_sort = off SET max_parallel_workers_per_gather = 0 AS $$
DECLARE
    c_nobody CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
    v_now    timestamptz := queen._clock();
    v_left   integer := greatest(p_limit, 1);
    v_at     timestamptz;
    v_id     uuid;
    v_found  integer;
    v_queue  record;
BEGIN
    IF p_work NOT IN ('retention', 'max_wait', 'txns') THEN
        RAISE EXCEPTION 'unknown work "%"; allowed: retention, max_wait, txns', p_work
            USING ERRCODE = '22023';
    END IF;
    FOR v_queue IN
        SELECT w.id, v_now - make_interval(secs => w.age) AS first_cutoff,
               v_now - make_interval(secs => w.completed_age) AS second_cutoff
        FROM (SELECT q.id,
                     CASE p_work
                         WHEN 'retention' THEN
                             CASE WHEN q.retention_enabled THEN nullif(q.retention_seconds, 0) END
                         WHEN 'max_wait' THEN
                             least(nullif(q.max_wait_time_seconds, 0), nullif(q.ttl, 0))
                         ELSE greatest(q.dedup_window_seconds, q.completed_retention_seconds, 900)
                     END AS age,
                     CASE WHEN p_work = 'retention' AND q.retention_enabled
                          THEN nullif(q.completed_retention_seconds, 0) END AS completed_age
              FROM queen.queues q
              WHERE q.id >= coalesce(p_after_queue, c_nobody)
              ORDER BY q.id OFFSET 0) w
        WHERE w.age IS NOT NULL OR w.completed_age IS NOT NULL
    LOOP
        v_at := CASE WHEN v_queue.id = p_after_queue THEN p_after_at END;
        v_id := CASE WHEN v_queue.id = p_after_queue THEN p_after_id END;
        IF p_work = 'txns' THEN
            RETURN QUERY
            SELECT v_queue.id, p.oldest_txn_at, p.id, v_queue.first_cutoff, NULL::timestamptz
            FROM queen.log_partitions p
            WHERE p.queue_id = v_queue.id AND p.oldest_txn_at < v_queue.first_cutoff
              AND p.txns_start < p.log_start
              AND (p.oldest_txn_at, p.id)
                  > (coalesce(v_at, '-infinity'), coalesce(v_id, c_nobody))
            ORDER BY p.queue_id, p.oldest_txn_at, p.id
            LIMIT v_left;
        ELSE
            RETURN QUERY
            SELECT v_queue.id, p.oldest_live_at, p.id, v_queue.first_cutoff, v_queue.second_cutoff
            FROM queen.log_partitions p
            WHERE p.queue_id = v_queue.id
              AND p.oldest_live_at < greatest(v_queue.first_cutoff, v_queue.second_cutoff)
              AND (p.oldest_live_at, p.id)
                  > (coalesce(v_at, '-infinity'), coalesce(v_id, c_nobody))
            ORDER BY p.queue_id, p.oldest_live_at, p.id
            LIMIT v_left;
        END IF;
        GET DIAGNOSTICS v_found = ROW_COUNT;
        v_left := v_left - v_found;
        EXIT WHEN v_left <= 0;
    END LOOP;
END $$;

-- @
-- Bytes of stored segments after which a step stops: large segments are many rows outside of the
-- table, and the lock of the partition is held while they go. A guess.
CREATE OR REPLACE FUNCTION queen._step_bytes() RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT 67108864::bigint $$;

-- @
-- How long a step waits for a row: what is not had is due again in the next turn.
CREATE OR REPLACE FUNCTION queen._step_lock_timeout() RETURNS text
LANGUAGE sql IMMUTABLE AS $$ SELECT '2s' $$;

-- @
-- The last offset that every known group has consumed, null when none is known. Read under a lock
-- that keeps cursors from being created.
CREATE OR REPLACE FUNCTION queen._consumed_by_all(p_pid uuid) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT min(g.committed)
    FROM (SELECT c.committed
          FROM queen.log_consumers c WHERE c.partition_id = p_pid
          UNION ALL
          SELECT queen._offset_before(p.id, m.subscription_timestamp, p.log_start, p.last_offset,
                                      p.newest_at)
          FROM queen.log_partitions p
          JOIN queen.queues q ON q.id = p.queue_id
          JOIN queen.consumer_groups_metadata m
            ON m.queue_id = q.id
            -- A discovery that has not met the queue yet.
            OR (m.queue_id IS NULL AND m.tenant_id = q.tenant_id
                AND (m.namespace = '' OR m.namespace = q.namespace)
                AND (m.task = '' OR m.task = q.task)
                AND NOT EXISTS (SELECT 1 FROM queen.consumer_groups_metadata r
                                WHERE r.queue_id = q.id
                                  AND r.consumer_group = m.consumer_group))
          WHERE p.id = p_pid AND m.partition_name = ''
            AND NOT EXISTS (SELECT 1 FROM queen.log_consumers c
                            WHERE c.partition_id = p_pid
                              AND c.consumer_group = m.consumer_group)) g
$$;

-- @
-- Removes whole segments from the front of a partition: those older than p_all_cutoff, and those
-- older than p_completed_cutoff that every known group has consumed; null switches a rule off
-- (RT-2, RT-3). At most p_max_rows segments and _step_bytes(), one segment at least; done says
-- that nothing is left which these cutoffs would take. The walk begins at log_start and looks at
-- one segment more than it may take, so it reads neither what was removed before nor a long stale
-- backlog (RT-5, F-22). p_history_type: instead of retention.
-- consumed_*: the part of it that went because it was consumed.
-- Locks the partition; for the second rule against the creation of cursors as well, which pops
-- skip: a group is known before it is served, or begins behind what is gone.
CREATE OR REPLACE FUNCTION queen.log_retention_step_v1(
    p_pid uuid, p_all_cutoff timestamptz, p_completed_cutoff timestamptz, p_max_rows integer,
    p_history_type text DEFAULT NULL)
RETURNS TABLE (deleted bigint, new_log_start bigint, done boolean, messages bigint, bytes bigint,
               consumed_deleted bigint, consumed_messages bigint, consumed_bytes bigint)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    v_part record;
    v_upto bigint;
    v_walk record;
BEGIN
    PERFORM set_config('lock_timeout', queen._step_lock_timeout(), true);
    IF p_completed_cutoff IS NULL THEN
        PERFORM 1 FROM queen.log_partitions p WHERE p.id = p_pid FOR NO KEY UPDATE;
    ELSE
        PERFORM 1 FROM queen.log_partitions p WHERE p.id = p_pid FOR UPDATE;
        v_upto := queen._consumed_by_all(p_pid);
    END IF;
    SELECT p.log_start, p.oldest_live_at INTO v_part
    FROM queen.log_partitions p WHERE p.id = p_pid;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 0::bigint, 0::bigint, true, 0::bigint, 0::bigint, 0::bigint, 0::bigint,
                            0::bigint;
        RETURN;
    END IF;

    SELECT count(*) FILTER (WHERE w.goes) AS segments,
           coalesce(sum(w.frames) FILTER (WHERE w.goes), 0)::bigint AS frames,
           coalesce(sum(w.size) FILTER (WHERE w.goes), 0)::bigint AS size,
           count(*) FILTER (WHERE w.goes AND NOT w.aged) AS consumed,
           coalesce(sum(w.frames) FILTER (WHERE w.goes AND NOT w.aged), 0)::bigint
               AS consumed_frames,
           coalesce(sum(w.size) FILTER (WHERE w.goes AND NOT w.aged), 0)::bigint AS consumed_size,
           max(w.end_offset) FILTER (WHERE w.goes) + 1 AS start,
           min(w.created_at) FILTER (WHERE NOT w.goes) AS oldest,
           coalesce(bool_or(w.may AND NOT w.goes), false) AS more
    INTO v_walk
    FROM (SELECT u.*, u.may AND u.n <= greatest(p_max_rows, 1)
                      AND (u.n = 1 OR u.before < queen._step_bytes()) AS goes
          FROM (SELECT s.end_offset, s.created_at, s.size, s.aged,
                       s.end_offset - s.base_offset + 1 AS frames,
                       row_number() OVER f AS n,
                       coalesce(sum(s.size) OVER (f ROWS BETWEEN UNBOUNDED PRECEDING
                                                          AND 1 PRECEDING), 0) AS before,
                       bool_and(s.aged OR s.completed) OVER f AS may
                FROM (SELECT g.base_offset, g.end_offset, g.created_at,
                             octet_length(g.blob) AS size,
                             coalesce(g.created_at < p_all_cutoff, false) AS aged,
                             coalesce(g.created_at < p_completed_cutoff
                                      AND g.end_offset <= v_upto, false) AS completed
                      FROM queen.log_segments g
                      WHERE g.partition_id = p_pid AND g.base_offset >= v_part.log_start
                      ORDER BY g.base_offset
                      LIMIT greatest(p_max_rows, 1)::bigint + 1) s
                WINDOW f AS (ORDER BY s.base_offset)) u) w;

    IF v_walk.segments > 0 THEN
        DELETE FROM queen.log_segments s
        WHERE s.partition_id = p_pid AND s.base_offset >= v_part.log_start
          AND s.base_offset < v_walk.start;
        UPDATE queen.log_partitions p SET
            log_start = v_walk.start,
            segment_count = p.segment_count - v_walk.segments,
            stored_bytes = p.stored_bytes - v_walk.size,
            oldest_live_at = v_walk.oldest
        WHERE p.id = p_pid;
        INSERT INTO queen.retention_history
            (partition_id, messages_deleted, retention_type, executed_at)
        SELECT p_pid, h.messages, h.type, queen._clock()
        FROM (VALUES (v_walk.frames - v_walk.consumed_frames,
                      coalesce(p_history_type, 'retention')),
                     (v_walk.consumed_frames, 'completed_retention')) AS h (messages, type)
        WHERE h.messages > 0;
    ELSIF v_walk.oldest IS DISTINCT FROM v_part.oldest_live_at THEN
        -- Else a watermark that is wrong would bring the partition here for ever.
        UPDATE queen.log_partitions p SET oldest_live_at = v_walk.oldest WHERE p.id = p_pid;
    END IF;
    RETURN QUERY SELECT v_walk.segments, coalesce(v_walk.start, v_part.log_start), NOT v_walk.more,
                        v_walk.frames, v_walk.size, v_walk.consumed, v_walk.consumed_frames,
                        v_walk.consumed_size;
END $$;

-- @
-- The first rule by another name: what waited too long (RT-8).
CREATE OR REPLACE FUNCTION queen.log_evict_max_wait_step_v1(
    p_pid uuid, p_cutoff timestamptz, p_max_rows integer)
RETURNS TABLE (deleted bigint, new_log_start bigint, done boolean, messages bigint, bytes bigint)
LANGUAGE plpgsql AS $$
BEGIN
    IF p_cutoff IS NULL THEN
        RAISE EXCEPTION 'a cutoff is required' USING ERRCODE = '22004';
    END IF;
    RETURN QUERY
    SELECT s.deleted, s.new_log_start, s.done, s.messages, s.bytes
    FROM queen.log_retention_step_v1(p_pid, p_cutoff, NULL, p_max_rows,
                                     'max_wait_time_eviction') s;
END $$;

-- @
-- Removes hashes that are older than p_cutoff and whose messages are gone, at most p_max_rows rows
-- from the front. Below txns_start nothing is left to compare with and nothing to be acked.
CREATE OR REPLACE FUNCTION queen.log_txns_purge_step_v1(
    p_pid uuid, p_cutoff timestamptz, p_max_rows integer)
RETURNS TABLE (deleted bigint, new_txns_start bigint, done boolean)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    v_part record;
    v_walk record;
BEGIN
    IF p_cutoff IS NULL THEN
        RAISE EXCEPTION 'a cutoff is required' USING ERRCODE = '22004';
    END IF;
    PERFORM set_config('lock_timeout', queen._step_lock_timeout(), true);
    PERFORM 1 FROM queen.log_partitions p WHERE p.id = p_pid FOR NO KEY UPDATE;
    SELECT p.txns_start, p.log_start, p.oldest_txn_at INTO v_part
    FROM queen.log_partitions p WHERE p.id = p_pid;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 0::bigint, 0::bigint, true;
        RETURN;
    END IF;
    SELECT count(*) FILTER (WHERE w.goes) AS rows,
           max(w.end_offset) FILTER (WHERE w.goes) + 1 AS start,
           min(w.created_at) FILTER (WHERE NOT w.goes) AS oldest,
           coalesce(bool_or(w.may AND NOT w.goes), false) AS more
    INTO v_walk
    FROM (SELECT u.*, u.may AND u.n <= greatest(p_max_rows, 1) AS goes
          FROM (SELECT s.end_offset, s.created_at, row_number() OVER f AS n,
                       bool_and(s.created_at < p_cutoff
                                AND s.end_offset < v_part.log_start) OVER f AS may
                FROM (SELECT t.base_offset, t.end_offset, t.created_at
                      FROM queen.log_txns t
                      WHERE t.partition_id = p_pid AND t.base_offset >= v_part.txns_start
                      ORDER BY t.base_offset
                      LIMIT greatest(p_max_rows, 1)::bigint + 1) s
                WINDOW f AS (ORDER BY s.base_offset)) u) w;
    IF v_walk.rows > 0 THEN
        DELETE FROM queen.log_txns t
        WHERE t.partition_id = p_pid AND t.base_offset >= v_part.txns_start
          AND t.base_offset < v_walk.start;
        UPDATE queen.log_partitions p SET
            txns_start = v_walk.start, oldest_txn_at = v_walk.oldest
        WHERE p.id = p_pid;
    ELSIF v_walk.oldest IS DISTINCT FROM v_part.oldest_txn_at THEN
        UPDATE queen.log_partitions p SET oldest_txn_at = v_walk.oldest WHERE p.id = p_pid;
    END IF;
    RETURN QUERY SELECT v_walk.rows, coalesce(v_walk.start, v_part.txns_start), NOT v_walk.more;
END $$;

-- @
-- A page of the walk over all partitions that sets right when their oldest rows were stored, from
-- behind p_after; null begins. After an upgrade from a release that did not keep these times it
-- fills them in, and until it has come by retention does not see a partition. Rows that are right
-- are not written; at most 200 are repaired in a step, then the page ends there. Locked by id and
-- looked at again under the lock, so a push or a step in between is not undone (RT-11).
CREATE OR REPLACE FUNCTION queen.log_watermark_walk_step_v1(
    p_after uuid, p_max_rows integer DEFAULT 5000)
RETURNS TABLE (scanned bigint, repaired bigint, last_id uuid, done boolean)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET enable_hashjoin = off SET enable_mergejoin = off SET max_parallel_workers_per_gather = 0 AS $$
DECLARE
    c_repairs CONSTANT integer := 200;
    v_limit   integer := least(greatest(p_max_rows, 1), 5000);
    v_page    record;
    v_wrong   uuid[];
BEGIN
    SELECT count(*) AS rows, (array_agg(w.id ORDER BY w.ord DESC))[1] AS last,
           array_agg(w.id ORDER BY w.ord) FILTER (WHERE w.live IS DISTINCT FROM w.oldest_live_at
                                               OR w.txn IS DISTINCT FROM w.oldest_txn_at) AS wrong
    INTO v_page
    FROM (SELECT p.id, p.oldest_live_at, p.oldest_txn_at, row_number() OVER (ORDER BY p.id) AS ord,
                 (SELECT s.created_at FROM queen.log_segments s
                  WHERE s.partition_id = p.id AND s.base_offset >= p.log_start
                  ORDER BY s.base_offset LIMIT 1) AS live,
                 (SELECT t.created_at FROM queen.log_txns t
                  WHERE t.partition_id = p.id AND t.base_offset >= p.txns_start
                  ORDER BY t.base_offset LIMIT 1) AS txn
          FROM (SELECT l.id, l.log_start, l.txns_start, l.oldest_live_at, l.oldest_txn_at
                FROM queen.log_partitions l
                WHERE l.id > coalesce(p_after, '00000000-0000-0000-0000-000000000000')
                ORDER BY l.id LIMIT v_limit) p) w;
    v_wrong := coalesce(v_page.wrong, '{}');
    IF cardinality(v_wrong) > c_repairs THEN
        v_wrong := v_wrong[1:c_repairs];
        v_page.last := v_wrong[c_repairs];
    END IF;
    IF cardinality(v_wrong) > 0 THEN
        PERFORM set_config('lock_timeout', queen._step_lock_timeout(), true);
        PERFORM 1 FROM queen.log_partitions p
        WHERE p.id = ANY (v_wrong) ORDER BY p.id FOR NO KEY UPDATE;
        UPDATE queen.log_partitions p SET
            (oldest_live_at, oldest_txn_at) = (
                SELECT (SELECT s.created_at FROM queen.log_segments s
                        WHERE s.partition_id = p.id AND s.base_offset >= p.log_start
                        ORDER BY s.base_offset LIMIT 1),
                       (SELECT t.created_at FROM queen.log_txns t
                        WHERE t.partition_id = p.id AND t.base_offset >= p.txns_start
                        ORDER BY t.base_offset LIMIT 1))
        WHERE p.id = ANY (v_wrong);
    END IF;
    RETURN QUERY SELECT v_page.rows, cardinality(v_wrong)::bigint, v_page.last,
                        v_page.rows < v_limit AND cardinality(v_wrong) < c_repairs;
END $$;

-- @
-- Whether a partition may go: made and last written before p_cutoff, nothing of it is left (no
-- segment, no dead letter), no id of it is inside the dedup window, nobody holds a lease, and no
-- cursor was made, leased or left to expire since the cutoff (RT-13). A lease that ran out long ago
-- keeps nothing. A named group that is not registered with the queue keeps the partitions it read:
-- it only ever popped by partition name, and where it would begin in a partition made anew is
-- written nowhere but in its cursor (K49).
-- In SQL on purpose: names are looked up as the function is made, and this file comes before
-- those of features that must not hold up a cleanup (DM-5).
CREATE OR REPLACE FUNCTION queen.log_partition_dead_v1(p_pid uuid, p_cutoff timestamptz)
RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT 1
        FROM queen.log_partitions p
        JOIN queen.queues q ON q.id = p.queue_id
        WHERE p.id = p_pid AND p.created_at < p_cutoff AND p.last_write_at < p_cutoff
          AND p.segment_count = 0
          AND (p.newest_at IS NULL
               OR p.newest_at < queen._clock() - make_interval(secs => q.dedup_window_seconds))
          AND NOT EXISTS (SELECT 1 FROM queen.log_segments s WHERE s.partition_id = p.id)
          AND NOT EXISTS (SELECT 1 FROM queen.log_dlq d WHERE d.partition_id = p.id)
          AND NOT EXISTS (
              SELECT 1 FROM queen.log_consumers c
              WHERE c.partition_id = p.id
                AND ((c.batch_end IS NOT NULL
                      AND (c.lease_expires_at IS NULL OR c.lease_expires_at > queen._clock()))
                     OR c.created_at >= p_cutoff OR c.lease_acquired_at >= p_cutoff
                     OR c.lease_expires_at >= p_cutoff
                     OR (c.consumer_group <> '__QUEUE_MODE__'
                         AND NOT EXISTS (SELECT 1 FROM queen.consumer_groups_metadata m
                                         WHERE m.queue_id = p.queue_id
                                           AND m.consumer_group = c.consumer_group
                                           AND m.partition_name = '')))))
$$;

-- @
-- Removes dead partitions of all queues: looks at p_max_rows partitions without messages, longest
-- unwritten first, from behind the key given; nulls begin. A partition in use is skipped. What is
-- dead is asked again under the locks, which nobody can get past: a push that waited for one finds
-- its partition gone and fails with 40001, and makes it anew when it is tried again, with a new id
-- and from offset 0; a group begins there as its subscription says (RT-14, PROV-6, K49). Brokers
-- learn by queues.partitions_deleted that names they keep are of no use any more.
CREATE OR REPLACE FUNCTION queen.log_partition_cleanup_step_v1(
    p_cutoff timestamptz, p_max_rows integer, p_after_at timestamptz DEFAULT NULL,
    p_after_id uuid DEFAULT NULL)
RETURNS TABLE (deleted bigint, done boolean, last_at timestamptz, last_id uuid)
LANGUAGE plpgsql AS $$
DECLARE
    v_limit  integer := greatest(p_max_rows, 1);
    v_page   record;
    v_qids   uuid[];
    v_pids   uuid[];
BEGIN
    IF p_cutoff IS NULL THEN
        RAISE EXCEPTION 'a cutoff is required' USING ERRCODE = '22004';
    END IF;
    PERFORM set_config('lock_timeout', queen._step_lock_timeout(), true);
    SELECT count(*) AS rows,
           array_agg(w.id) FILTER (WHERE queen.log_partition_dead_v1(w.id, p_cutoff)) AS dead,
           max(w.last_write_at) AS at,
           (array_agg(w.id ORDER BY w.last_write_at DESC, w.id DESC))[1] AS id
    INTO v_page
    FROM (SELECT p.id, p.last_write_at
          FROM queen.log_partitions p
          WHERE p.oldest_live_at IS NULL AND p.last_write_at < p_cutoff
            AND (p.last_write_at, p.id) > (coalesce(p_after_at, '-infinity'),
                coalesce(p_after_id, '00000000-0000-0000-0000-000000000000'))
          ORDER BY p.last_write_at, p.id
          LIMIT v_limit) w;
    v_pids := coalesce(v_page.dead, '{}');
    IF cardinality(v_pids) > 0 THEN
        v_qids := ARRAY(SELECT q.id FROM queen.queues q
                        WHERE q.id IN (SELECT p.queue_id FROM queen.log_partitions p
                                       WHERE p.id = ANY (v_pids))
                        ORDER BY q.tenant_id, q.name
                        FOR NO KEY UPDATE SKIP LOCKED);
        v_pids := ARRAY(SELECT p.id FROM queen.log_partitions p
                        WHERE p.id = ANY (v_pids) AND p.queue_id = ANY (v_qids)
                        ORDER BY p.id
                        FOR UPDATE SKIP LOCKED);
        PERFORM 1 FROM queen.log_consumers c WHERE c.partition_id = ANY (v_pids)
        ORDER BY c.partition_id, c.consumer_group FOR UPDATE;
        v_pids := ARRAY(SELECT u.pid FROM unnest(v_pids) AS u (pid)
                        WHERE queen.log_partition_dead_v1(u.pid, p_cutoff));
        UPDATE queen.queues q SET partitions_deleted = q.partitions_deleted + w.n
        FROM (SELECT p.queue_id, count(*) AS n FROM queen.log_partitions p
              WHERE p.id = ANY (v_pids) GROUP BY p.queue_id) w
        WHERE q.id = w.queue_id;
        INSERT INTO queen.retention_history
            (partition_id, messages_deleted, retention_type, executed_at)
        SELECT u.pid, 0, '__partition_deleted__', queen._clock() FROM unnest(v_pids) AS u (pid);
        DELETE FROM queen.log_consumers c WHERE c.partition_id = ANY (v_pids);
        DELETE FROM queen.log_txns t WHERE t.partition_id = ANY (v_pids);
        DELETE FROM queen.log_partitions p WHERE p.id = ANY (v_pids);
    END IF;
    RETURN QUERY SELECT cardinality(v_pids)::bigint, v_page.rows < v_limit, v_page.at, v_page.id;
END $$;

-- @
-- Removes records of what retention did that are older than p_cutoff, oldest first.
CREATE OR REPLACE FUNCTION queen.log_history_purge_step_v1(
    p_cutoff timestamptz, p_max_rows integer)
RETURNS TABLE (deleted bigint, done boolean)
LANGUAGE plpgsql AS $$
DECLARE
    v_ids bigint[];
BEGIN
    IF p_cutoff IS NULL THEN
        RAISE EXCEPTION 'a cutoff is required' USING ERRCODE = '22004';
    END IF;
    -- Ids first: a limit inside of a delete's own subquery is no bound when that is run again.
    v_ids := ARRAY(SELECT h.id FROM queen.retention_history h WHERE h.executed_at < p_cutoff
                   ORDER BY h.executed_at LIMIT greatest(p_max_rows, 1));
    DELETE FROM queen.retention_history h WHERE h.id = ANY (v_ids);
    RETURN QUERY SELECT cardinality(v_ids)::bigint, cardinality(v_ids) < greatest(p_max_rows, 1);
END $$;

-- @
SELECT queen._keep_only(ARRAY[
    'delete_queue_v1(uuid, text)', 'log_due_v1(text, uuid, timestamptz, uuid, integer)',
    '_step_bytes()', '_step_lock_timeout()', '_consumed_by_all(uuid)',
    'log_retention_step_v1(uuid, timestamptz, timestamptz, integer, text)',
    'log_evict_max_wait_step_v1(uuid, timestamptz, integer)',
    'log_txns_purge_step_v1(uuid, timestamptz, integer)',
    'log_watermark_walk_step_v1(uuid, integer)', 'log_partition_dead_v1(uuid, timestamptz)',
    'log_partition_cleanup_step_v1(timestamptz, integer, timestamptz, uuid)',
    'log_history_purge_step_v1(timestamptz, integer)']);
