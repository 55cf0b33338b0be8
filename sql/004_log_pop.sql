-- 004_log_pop.sql: who may take which offsets: the claim, and the pops that name partitions.
--
-- One claim core, queen._claim, decides one (partition, group); every pop calls it once for each
-- candidate. Wildcard and discovery pops, which pick candidates by a scan: 004_log_pop_scan.sql.
--
-- No pop ever waits for another transaction (LK-3). A cursor row that is locked is skipped; a row
-- that must be created is created only under a lock got without waiting; a row that a foreign key
-- check would wait for is locked first, with SKIP LOCKED. What is skipped comes back in the next
-- pop. Who creates what under which lock:
--   queue row             its creation key (001)
--   marker, cursors of all partitions, watermark row       group key, exclusive
--   one cursor            group key, shared, and the cursor's own key
-- Lock order as in 001. Assumes READ COMMITTED. Raises 22023 for an unknown subscription mode,
-- 22007 and 22008 for an unreadable time, 0A000 for conflation.

-- What a pop says about where a new group begins. Modes: all, new, timestamp; at: their time.
-- p_conflate is part of the procedures' contract and refused: there is no conflation.
CREATE OR REPLACE FUNCTION queen._subscription(
    p_mode text, p_from text, p_conflate boolean, OUT mode text, OUT at timestamptz)
LANGUAGE plpgsql AS $$
BEGIN
    IF p_conflate THEN
        RAISE EXCEPTION 'conflation is not supported' USING ERRCODE = '0A000';
    END IF;
    IF coalesce(p_mode, '') NOT IN ('', 'all', 'new', 'new-only', 'new_only', 'newonly') THEN
        RAISE EXCEPTION 'unknown subscriptionMode "%"; allowed: all, new', p_mode
            USING ERRCODE = '22023';
    END IF;
    IF coalesce(p_from, '') NOT IN ('', 'now') THEN
        mode := 'timestamp';
        at := p_from::timestamptz;
    ELSIF p_from = 'now' OR p_mode IN ('new', 'new-only', 'new_only', 'newonly') THEN
        mode := 'new';
        at := queen._clock();
    ELSE
        mode := 'all';
        at := 'epoch';
    END IF;
END $$;

-- @
-- The cursor of a group that begins at p_at: just before the first segment that is not older, or
-- at the end (CL-3). Walks forward from the retention watermark, never from offset zero; a time
-- after the newest segment needs no walk. The partition's values are the caller's snapshot, older
-- than the walk, so a push in between stays ahead of the cursor.
CREATE OR REPLACE FUNCTION queen._offset_before(
    p_pid uuid, p_at timestamptz, p_log_start bigint, p_last_offset bigint, p_newest timestamptz)
RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF p_newest < p_at THEN
        RETURN p_last_offset;
    END IF;
    RETURN coalesce((SELECT s.base_offset - 1 FROM queen.log_segments s
                     WHERE s.partition_id = p_pid AND s.base_offset >= p_log_start
                       AND s.created_at >= p_at
                     ORDER BY s.base_offset LIMIT 1), p_last_offset);
END $$;

-- @
-- Registers a group with a queue and seeds its cursor in every partition, once (CL-4). True when
-- the marker is there afterwards; false when somebody else is at it, or the queue is being deleted:
-- then the caller leaves the queue alone this time. Queue mode always begins at the start.
CREATE OR REPLACE FUNCTION queen._register_group(
    p_tenant uuid, p_qid uuid, p_group text, p_mode text, p_at timestamptz)
RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_mode text := CASE WHEN p_group = '__QUEUE_MODE__' THEN 'all' ELSE p_mode END;
    v_at   timestamptz := CASE WHEN p_group = '__QUEUE_MODE__' THEN 'epoch' ELSE p_at END;
BEGIN
    -- The marker is looked for again under the lock: its last holder may have committed one.
    FOR v_try IN 1..2 LOOP
        PERFORM 1 FROM queen.consumer_groups_metadata m
        WHERE m.queue_id = p_qid AND m.consumer_group = p_group;
        IF FOUND THEN
            RETURN true;
        END IF;
        IF v_try = 1 AND NOT pg_try_advisory_xact_lock(
               hashtextextended(p_qid || '/' || p_group, 43)) THEN
            RETURN false;
        END IF;
    END LOOP;
    PERFORM 1 FROM queen.queues q WHERE q.id = p_qid FOR KEY SHARE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN false;
    END IF;

    INSERT INTO queen.consumer_groups_metadata
        (tenant_id, consumer_group, queue_id, subscription_mode, subscription_timestamp)
    VALUES (p_tenant, p_group, p_qid, v_mode, v_at)
    ON CONFLICT DO NOTHING;
    INSERT INTO queen.consumer_watermarks (queue_id, consumer_group, updated_at)
    VALUES (p_qid, p_group, 'epoch')
    ON CONFLICT DO NOTHING;
    -- A partition that is being deleted is skipped. A row that exists keeps its cursor.
    INSERT INTO queen.log_consumers (partition_id, consumer_group, committed)
    SELECT p.id, p_group,
           CASE WHEN v_mode = 'all' THEN greatest(p.log_start - 1, -1)
                ELSE queen._offset_before(p.id, v_at, p.log_start, p.last_offset, p.newest_at) END
    FROM (SELECT l.id, l.log_start, l.last_offset, l.newest_at
          FROM queen.log_partitions l WHERE l.queue_id = p_qid
          ORDER BY l.id
          FOR KEY SHARE SKIP LOCKED) p
    ON CONFLICT (partition_id, consumer_group) DO NOTHING;
    RETURN true;
END $$;

-- @
-- Creates the cursor row of (partition, group) where its group begins. False when that would mean
-- waiting (CL-2). Preference: the stored subscription, the intent of this pop, the start; queue
-- mode skips the first two (CL-3).
CREATE OR REPLACE FUNCTION queen._create_cursor(
    p_qid uuid, p_pid uuid, p_group text, p_mode text, p_at timestamptz)
RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_part   record;
    v_stored timestamptz;
    v_seed   bigint := -1;
BEGIN
    IF NOT pg_try_advisory_xact_lock_shared(hashtextextended(p_qid || '/' || p_group, 43))
       OR NOT pg_try_advisory_xact_lock(hashtextextended(p_pid || '/' || p_group, 42)) THEN
        RETURN false;
    END IF;
    SELECT p.log_start, p.last_offset, p.newest_at INTO v_part
    FROM queen.log_partitions p WHERE p.id = p_pid FOR KEY SHARE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF p_group <> '__QUEUE_MODE__' THEN
        SELECT m.subscription_timestamp INTO v_stored
        FROM queen.consumer_groups_metadata m
        WHERE m.queue_id = p_qid AND m.consumer_group = p_group AND m.partition_name = '';
        IF FOUND OR p_mode = 'timestamp' THEN
            v_seed := queen._offset_before(p_pid, coalesce(v_stored, p_at), v_part.log_start,
                                           v_part.last_offset, v_part.newest_at);
        ELSIF p_mode = 'new' THEN
            v_seed := v_part.last_offset;
        END IF;
    END IF;
    INSERT INTO queen.log_consumers (partition_id, consumer_group, committed)
    VALUES (p_pid, p_group, v_seed)
    ON CONFLICT (partition_id, consumer_group) DO NOTHING;
    RETURN true;
END $$;

-- @
-- Bytes of stored segments that one pop stops at; its first segment is taken whatever its size.
-- Without it a batch of large messages is no answer any more: an array ends at 1 GiB, and the
-- broker holds all of it. 64 MiB is the broker's default for an answer.
CREATE OR REPLACE FUNCTION queen._pop_bytes() RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT 67108864::bigint $$;

-- @
-- The claim: takes up to p_budget messages of one partition for one group, as a lease of
-- p_lease_s seconds or, with p_auto_ack, by moving the cursor at once. Delay and window in seconds.
-- o_state: took, empty or leased. Leased until o_until: somebody's lease, or a quarter of a second
-- for a row that was skipped because it is locked while data is pending (CL-12, F-5); what delay
-- or window withhold is empty. o_last_off is the allocator as read before the scan, so that data
-- beyond it was announced after the candidate was picked (CL-14). Segment i gives messages
-- [o_starts[i], o_starts[i] + o_takes[i]) of o_counts[i].
CREATE OR REPLACE FUNCTION queen._claim(
    p_qid uuid, p_pid uuid, p_group text, p_budget integer, p_lease_s integer, p_worker text,
    p_auto_ack boolean, p_delay integer, p_window integer, p_mode text, p_at timestamptz,
    OUT o_state text, OUT o_until timestamptz, OUT o_left_ms bigint, OUT o_last_off bigint,
    OUT o_batch_end bigint, OUT o_attempt integer, OUT o_taken integer, OUT o_bases bigint[],
    OUT o_starts integer[], OUT o_takes integer[], OUT o_counts integer[],
    OUT o_times timestamptz[], OUT o_blobs bytea[])
LANGUAGE plpgsql AS $$
DECLARE
    v_now       timestamptz := queen._clock();
    v_newest    timestamptz;
    v_committed bigint;
    v_row       record;
    v_seg       record;
    v_wanted    bigint;
    v_first     bigint;
    v_take      integer;
    v_bytes     bigint := 0;
    v_withheld  boolean := false;
BEGIN
    o_state := 'empty';
    o_taken := 0;
    SELECT p.last_offset, p.newest_at INTO o_last_off, v_newest
    FROM queen.log_partitions p WHERE p.id = p_pid;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    -- Window: nothing at all while the newest segment is younger (CL-7).
    IF p_window > 0 AND v_newest > v_now - make_interval(secs => p_window) THEN
        RETURN;
    END IF;

    -- Claim first, create only what is missing: an insert on each pop made pops wait for each
    -- other's transactions (F-9).
    FOR v_try IN 1..2 LOOP
        SELECT c.committed INTO v_committed
        FROM queen.log_consumers c
        WHERE c.partition_id = p_pid AND c.consumer_group = p_group
          AND (c.worker_id IS NULL OR c.lease_expires_at IS NULL OR c.lease_expires_at < v_now)
        FOR UPDATE SKIP LOCKED;
        EXIT WHEN FOUND;
        SELECT c.committed, c.worker_id, c.lease_expires_at INTO v_row
        FROM queen.log_consumers c
        WHERE c.partition_id = p_pid AND c.consumer_group = p_group;
        IF FOUND AND v_row.worker_id IS NOT NULL AND v_row.lease_expires_at >= v_now THEN
            o_state := 'leased';
            o_until := v_row.lease_expires_at;
        ELSIF FOUND THEN
            IF o_last_off > v_row.committed THEN
                o_state := 'leased';
                o_until := v_now + interval '250 ms';
            END IF;
        ELSIF v_try = 1 AND queen._create_cursor(p_qid, p_pid, p_group, p_mode, p_at) THEN
            CONTINUE;
        ELSE
            o_state := 'leased';
            o_until := v_now + interval '250 ms';
        END IF;
        o_left_ms := ceil(extract(epoch FROM o_until - v_now) * 1000);
        RETURN;
    END LOOP;

    v_wanted := v_committed + 1;
    -- Head probe: one step back. If this segment does not hold the wanted offset, none does; the
    -- test stands outside, so that a miss cannot walk the consumed head (CL-5).
    SELECT s.base_offset, s.end_offset, s.created_at, s.blob INTO v_seg
    FROM queen.log_segments s
    WHERE s.partition_id = p_pid AND s.base_offset <= v_wanted
    ORDER BY s.base_offset DESC LIMIT 1;
    IF FOUND AND v_seg.end_offset >= v_wanted THEN
        IF p_delay > 0 AND v_seg.created_at > v_now - make_interval(secs => p_delay) THEN
            v_withheld := true;
        ELSE
            o_taken := least(v_seg.end_offset - v_wanted + 1, p_budget);
            v_first := v_wanted;
            o_batch_end := v_wanted + o_taken - 1;
            o_bases := ARRAY[v_seg.base_offset];
            o_starts := ARRAY[(v_wanted - v_seg.base_offset)::integer];
            o_takes := ARRAY[o_taken];
            o_counts := ARRAY[(v_seg.end_offset - v_seg.base_offset + 1)::integer];
            o_times := ARRAY[v_seg.created_at];
            o_blobs := ARRAY[v_seg.blob];
            v_bytes := octet_length(v_seg.blob);
        END IF;
    END IF;
    -- Forward scan: ends at the budget, before too many bytes, and at the first segment that the
    -- delay withholds, so that nothing behind it can be delivered before it (CL-6).
    IF NOT v_withheld AND o_taken < p_budget THEN
        FOR v_seg IN
            SELECT s.base_offset, s.end_offset, s.created_at, s.blob
            FROM queen.log_segments s
            WHERE s.partition_id = p_pid AND s.base_offset > v_wanted
            ORDER BY s.base_offset LIMIT p_budget - o_taken
        LOOP
            IF p_delay > 0 AND v_seg.created_at > v_now - make_interval(secs => p_delay) THEN
                v_withheld := true;
                EXIT;
            END IF;
            v_bytes := v_bytes + octet_length(v_seg.blob);
            EXIT WHEN o_taken > 0 AND v_bytes > queen._pop_bytes();
            v_take := least(v_seg.end_offset - v_seg.base_offset + 1, p_budget - o_taken);
            v_first := coalesce(v_first, v_seg.base_offset);
            o_batch_end := v_seg.base_offset + v_take - 1;
            o_taken := o_taken + v_take;
            o_bases := array_append(o_bases, v_seg.base_offset);
            o_starts := array_append(o_starts, 0);
            o_takes := array_append(o_takes, v_take);
            o_counts := array_append(o_counts,
                                     (v_seg.end_offset - v_seg.base_offset + 1)::integer);
            o_times := array_append(o_times, v_seg.created_at);
            o_blobs := array_append(o_blobs, v_seg.blob);
            EXIT WHEN o_taken >= p_budget;
        END LOOP;
    END IF;

    IF o_taken = 0 THEN
        -- Seal: retention emptied the partition, so the cursor goes to the offset read above and
        -- the partition stops looking pending (CL-8, F-11). Never past withheld segments (F-12).
        -- What was pushed meanwhile lies above. Lease and attempts stay as they are.
        IF NOT v_withheld AND o_last_off > v_committed
           AND NOT EXISTS (SELECT 1 FROM queen.log_segments s WHERE s.partition_id = p_pid) THEN
            UPDATE queen.log_consumers c SET committed = o_last_off
            WHERE c.partition_id = p_pid AND c.consumer_group = p_group;
        END IF;
        RETURN;
    END IF;

    o_state := 'took';
    IF p_auto_ack THEN
        UPDATE queen.log_consumers c SET
            committed = o_batch_end, worker_id = NULL, lease_expires_at = NULL,
            lease_acquired_at = NULL, batch_end = NULL,
            total_consumed = c.total_consumed + o_taken
        WHERE c.partition_id = p_pid AND c.consumer_group = p_group;
        o_attempt := 1;
        RETURN;
    END IF;
    o_left_ms := p_lease_s * 1000::bigint;
    o_until := v_now + make_interval(secs => p_lease_s);
    UPDATE queen.log_consumers c SET
        worker_id = p_worker, lease_expires_at = o_until, lease_acquired_at = v_now,
        batch_end = o_batch_end,
        prior_attempt_offset = c.attempt_offset, prior_attempt_count = c.attempt_count,
        attempt_count = CASE WHEN c.attempt_offset IS NOT DISTINCT FROM v_first
                             THEN c.attempt_count + 1 ELSE 1 END,
        attempt_offset = v_first
    WHERE c.partition_id = p_pid AND c.consumer_group = p_group
    RETURNING c.attempt_count INTO o_attempt;
END $$;

-- @
-- The verdict leased.
CREATE OR REPLACE FUNCTION queen._leased(
    p_name text, p_pid uuid, p_until timestamptz, p_left_ms bigint)
RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('p', p_name, 'id', p_pid, 's', 'leased',
                              'until', queen._iso(p_until), 'leftMs', p_left_ms)
$$;

-- @
-- Claims candidates in order until p_budget messages, p_max_partitions partitions or _pop_bytes()
-- are taken. A null id is a name nobody knows. p_idle and p_untils, when given, are what a look without locks at
-- p_now has shown: nothing pending, or a live lease until then; these get their verdict without a
-- claim: 256 of them take 9 ms instead of 49 (2026-11-29, 2 busy cores). A push that came since is
-- announced after its commit, so its mark outlives the verdict. o_parts: what was taken, in the
-- shape of the pops' meta; o_blobs in the same order; o_states: a verdict for each candidate that
-- was reached.
CREATE OR REPLACE FUNCTION queen._claim_many(
    p_qids uuid[], p_pids uuid[], p_names text[], p_group text, p_budget integer,
    p_lease_s integer, p_worker text, p_auto_ack boolean, p_max_partitions integer, p_mode text,
    p_at timestamptz, p_skip_window boolean, p_name_queue boolean, p_now timestamptz,
    p_idle boolean[], p_untils timestamptz[],
    OUT o_parts jsonb[], OUT o_blobs bytea[], OUT o_states jsonb[])
LANGUAGE plpgsql AS $$
DECLARE
    v_budget integer := greatest(coalesce(p_budget, 1), 1);
    v_max    integer := CASE WHEN p_max_partitions > 0 THEN p_max_partitions ELSE 2147483647 END;
    v_qid    uuid;
    v_queue  record;
    v_claim  record;
    v_part   jsonb;
    v_state  jsonb;
    v_blob   bytea;
    v_bytes  bigint := 0;
BEGIN
    o_parts := '{}';
    o_blobs := '{}';
    o_states := '{}';
    FOR i IN 1..coalesce(cardinality(p_pids), 0) LOOP
        EXIT WHEN v_budget <= 0 OR v_max <= 0 OR v_bytes >= queen._pop_bytes();
        IF p_pids[i] IS NULL THEN
            o_states := array_append(o_states, jsonb_build_object('p', p_names[i], 's', 'empty'));
            CONTINUE;
        ELSIF p_untils[i] IS NOT NULL THEN
            o_states := array_append(o_states, queen._leased(
                p_names[i], p_pids[i], p_untils[i],
                ceil(extract(epoch FROM p_untils[i] - p_now) * 1000)::bigint));
            CONTINUE;
        ELSIF p_idle[i] THEN
            o_states := array_append(o_states, jsonb_build_object(
                'p', p_names[i], 'id', p_pids[i], 's', 'empty'));
            CONTINUE;
        END IF;
        IF v_qid IS DISTINCT FROM p_qids[i] THEN
            v_qid := p_qids[i];
            SELECT q.name, q.delayed_processing,
                   CASE WHEN p_skip_window THEN 0 ELSE q.window_buffer END AS window_buffer,
                   coalesce(nullif(greatest(p_lease_s, 0), 0),
                            nullif(greatest(q.lease_time, 0), 0), 60) AS lease
            INTO v_queue
            FROM queen.queues q WHERE q.id = v_qid;
        END IF;
        v_claim := queen._claim(
            v_qid, p_pids[i], p_group, v_budget, v_queue.lease, p_worker, p_auto_ack,
            v_queue.delayed_processing, v_queue.window_buffer, p_mode, p_at);
        v_state := jsonb_build_object('p', p_names[i], 'id', p_pids[i], 's', v_claim.o_state);
        IF v_claim.o_state = 'leased' THEN
            v_state := queen._leased(p_names[i], p_pids[i], v_claim.o_until, v_claim.o_left_ms);
        ELSIF v_claim.o_state = 'took' THEN
            v_state := v_state || jsonb_build_object('lastOff', v_claim.o_last_off);
            v_part := jsonb_build_object(
                'partition', p_names[i], 'partitionId', p_pids[i],
                'deliveryAttempt', v_claim.o_attempt, 'lastOff', v_claim.o_last_off,
                'batchEnd', v_claim.o_batch_end,
                'segments', (SELECT jsonb_agg(jsonb_build_object(
                                 'seq', s.base, 'startOff', s.start, 'take', s.take,
                                 'msgCount', s.count, 'createdAt', queen._iso(s.at)) ORDER BY s.n)
                             FROM unnest(v_claim.o_bases, v_claim.o_starts, v_claim.o_takes,
                                         v_claim.o_counts, v_claim.o_times) WITH ORDINALITY
                                  AS s (base, start, take, count, at, n)));
            IF NOT p_auto_ack THEN
                v_part := v_part || jsonb_build_object('leaseLeftMs', v_claim.o_left_ms);
            END IF;
            IF p_name_queue THEN
                v_part := v_part || jsonb_build_object('queue', v_queue.name);
            END IF;
            o_parts := array_append(o_parts, v_part);
            FOREACH v_blob IN ARRAY v_claim.o_blobs LOOP
                o_blobs := array_append(o_blobs, v_blob);
                v_bytes := v_bytes + octet_length(v_blob);
            END LOOP;
            v_budget := v_budget - v_claim.o_taken;
            v_max := v_max - 1;
        END IF;
        o_states := array_append(o_states, v_state);
    END LOOP;
END $$;

-- @
-- Meta and blobs as one value: each segment gets its blob in base64, without line breaks.
CREATE OR REPLACE FUNCTION queen._wire(p_meta jsonb, p_blobs bytea[]) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT p_meta || jsonb_build_object('partitions', coalesce(
        (SELECT jsonb_agg(w.part || jsonb_build_object('segments', w.segments) ORDER BY w.np)
         FROM (SELECT n.np, n.part,
                      jsonb_agg(n.seg || jsonb_build_object('blob',
                          translate(encode(p_blobs[n.n], 'base64'), E'\n', '')) ORDER BY n.n)
                      AS segments
               FROM (SELECT p.np, p.part, s.seg, row_number() OVER (ORDER BY p.np, s.ns) AS n
                     FROM jsonb_array_elements(p_meta -> 'partitions') WITH ORDINALITY
                          AS p (part, np)
                     CROSS JOIN LATERAL jsonb_array_elements(p.part -> 'segments')
                          WITH ORDINALITY AS s (seg, ns)) n
               GROUP BY n.np, n.part) w), '[]'))
$$;

-- @
-- The claim on one named partition: rows of slices, none when nothing is to be had. Lease of zero
-- or null seconds: the queue's.
CREATE OR REPLACE FUNCTION queen.log_pop_v1(
    p_queue text, p_partition text, p_group text, p_budget integer, p_lease_s integer,
    p_worker text, p_auto_ack boolean DEFAULT false, p_sub_mode text DEFAULT 'all',
    p_sub_from text DEFAULT '', p_skip_window boolean DEFAULT false,
    p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001', p_conflate boolean DEFAULT false)
RETURNS TABLE (r_base bigint, r_start_idx integer, r_take integer, r_msg_count integer,
               r_created_at timestamptz, r_blob bytea)
LANGUAGE plpgsql AS $$
DECLARE
    v_sub   record := queen._subscription(p_sub_mode, p_sub_from, p_conflate);
    v_queue record;
    v_claim record;
BEGIN
    SELECT p.id AS pid, q.id AS qid, q.delayed_processing, q.window_buffer, q.lease_time
    INTO v_queue
    FROM queen.queues q
    JOIN queen.log_partitions p ON p.queue_id = q.id AND p.name = p_partition
    WHERE q.tenant_id = p_tenant AND q.name = p_queue;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    v_claim := queen._claim(
        v_queue.qid, v_queue.pid, p_group, greatest(coalesce(p_budget, 1), 1),
        coalesce(nullif(greatest(p_lease_s, 0), 0),
                 nullif(greatest(v_queue.lease_time, 0), 0), 60),
        p_worker, p_auto_ack, v_queue.delayed_processing,
        CASE WHEN p_skip_window THEN 0 ELSE v_queue.window_buffer END, v_sub.mode, v_sub.at);
    RETURN QUERY SELECT * FROM unnest(v_claim.o_bases, v_claim.o_starts, v_claim.o_takes,
                                      v_claim.o_counts, v_claim.o_times, v_claim.o_blobs);
END $$;

-- @
-- Pops one named partition. An unknown name is empty and registers nothing. The id is read before
-- the claim and handed to it, so whatever is leased carries it (F-10).
-- Meta of all pops: {partitions: [{partition, partitionId, deliveryAttempt, leaseLeftMs (leased
-- only), lastOff, batchEnd, queue (discovery only), segments: [{seq, startOff, take, msgCount,
-- createdAt}]}], seeded, delay, window}; blobs in the order in which meta is walked. seeded: the
-- group's marker exists. Leases are judged by time left, never by a wall clock.
CREATE OR REPLACE FUNCTION queen.log_pop_specific_bin_v1(
    p_queue text, p_partition text, p_group text, p_budget integer, p_lease_s integer,
    p_worker text, p_auto_ack boolean DEFAULT false, p_sub_mode text DEFAULT 'all',
    p_sub_from text DEFAULT '',
    p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001', p_conflate boolean DEFAULT false,
    OUT meta jsonb, OUT blobs bytea[])
LANGUAGE plpgsql AS $$
BEGIN
    SELECT l.meta, l.blobs INTO meta, blobs
    FROM queen.log_pop_list_v1(p_queue, p_group, ARRAY[p_partition], p_budget, p_lease_s, p_worker,
                               p_auto_ack, 1, p_sub_mode, p_sub_from, false, p_tenant,
                               p_conflate) l;
END $$;

-- @
-- The same as one value: {segments: [{seq, startOff, take, msgCount, createdAt, blob}],
-- partitionId, deliveryAttempt}.
CREATE OR REPLACE FUNCTION queen.log_pop_specific_v1(
    p_queue text, p_partition text, p_group text, p_budget integer, p_lease_s integer,
    p_worker text, p_auto_ack boolean DEFAULT false, p_sub_mode text DEFAULT 'all',
    p_sub_from text DEFAULT '',
    p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001', p_conflate boolean DEFAULT false)
RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    v_part jsonb;
BEGIN
    SELECT queen._wire(b.meta, b.blobs) -> 'partitions' -> 0 INTO v_part
    FROM queen.log_pop_specific_bin_v1(p_queue, p_partition, p_group, p_budget, p_lease_s,
                                       p_worker, p_auto_ack, p_sub_mode, p_sub_from, p_tenant,
                                       p_conflate) b;
    RETURN jsonb_build_object('segments', coalesce(v_part -> 'segments', '[]'),
                              'partitionId', v_part -> 'partitionId',
                              'deliveryAttempt', v_part -> 'deliveryAttempt');
END $$;

-- @
-- Pops from a list of partitions, in its order. states: [{p, id, s: took | empty | leased, until,
-- leftMs (leased only), lastOff (took only)}]; names beyond budget or partition count have none,
-- a name given twice counts once (CL-13), an unknown one is empty.
CREATE OR REPLACE FUNCTION queen.log_pop_list_v1(
    p_queue text, p_group text, p_names text[], p_budget integer, p_lease_s integer,
    p_worker text, p_auto_ack boolean DEFAULT false, p_max_partitions integer DEFAULT NULL,
    p_sub_mode text DEFAULT 'all', p_sub_from text DEFAULT '', p_skip_window boolean DEFAULT false,
    p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001', p_conflate boolean DEFAULT false,
    OUT meta jsonb, OUT blobs bytea[], OUT states jsonb)
LANGUAGE plpgsql AS $$
DECLARE
    v_sub    record := queen._subscription(p_sub_mode, p_sub_from, p_conflate);
    v_now    timestamptz := queen._clock();
    v_queue  record;
    v_pids   uuid[];
    v_names  text[];
    v_idle   boolean[];
    v_untils timestamptz[];
    v_claim  record;
BEGIN
    SELECT q.id, q.delayed_processing, q.window_buffer,
           EXISTS (SELECT 1 FROM queen.consumer_groups_metadata m
                   WHERE m.queue_id = q.id AND m.consumer_group = p_group) AS seeded
    INTO v_queue
    FROM queen.queues q WHERE q.tenant_id = p_tenant AND q.name = p_queue;
    SELECT array_agg(p.id ORDER BY n.ord), array_agg(n.name ORDER BY n.ord),
           array_agg(p.last_offset <= c.committed ORDER BY n.ord),
           array_agg(CASE WHEN c.worker_id IS NOT NULL AND c.lease_expires_at >= v_now
                          THEN c.lease_expires_at END ORDER BY n.ord)
    INTO v_pids, v_names, v_idle, v_untils
    FROM (SELECT u.name, min(u.ord) AS ord
          FROM unnest(p_names) WITH ORDINALITY AS u (name, ord) GROUP BY u.name) n
    LEFT JOIN queen.log_partitions p ON p.queue_id = v_queue.id AND p.name = n.name
    LEFT JOIN queen.log_consumers c ON c.partition_id = p.id AND c.consumer_group = p_group;
    v_claim := queen._claim_many(
        array_fill(v_queue.id, ARRAY[coalesce(cardinality(v_pids), 0)]), v_pids, v_names, p_group,
        p_budget, p_lease_s, p_worker, p_auto_ack, p_max_partitions, v_sub.mode, v_sub.at,
        p_skip_window, false, v_now, v_idle, v_untils);
    meta := jsonb_build_object(
        'partitions', to_jsonb(v_claim.o_parts), 'seeded', coalesce(v_queue.seeded, false),
        'delay', coalesce(v_queue.delayed_processing, 0),
        'window', coalesce(v_queue.window_buffer, 0));
    blobs := v_claim.o_blobs;
    states := to_jsonb(v_claim.o_states);
END $$;

-- @
SELECT queen._keep_only(ARRAY[
    '_subscription(text, text, boolean)',
    '_offset_before(uuid, timestamptz, bigint, bigint, timestamptz)',
    '_register_group(uuid, uuid, text, text, timestamptz)',
    '_create_cursor(uuid, uuid, text, text, timestamptz)',
    '_pop_bytes()',
    '_claim(uuid, uuid, text, integer, integer, text, boolean, integer, integer, text, timestamptz)',
    '_leased(text, uuid, timestamptz, bigint)',
    '_claim_many(uuid[], uuid[], text[], text, integer, integer, text, boolean, integer, text, timestamptz, boolean, boolean, timestamptz, boolean[], timestamptz[])',
    '_wire(jsonb, bytea[])',
    'log_pop_v1(text, text, text, integer, integer, text, boolean, text, text, boolean, uuid, boolean)',
    'log_pop_specific_v1(text, text, text, integer, integer, text, boolean, text, text, uuid, boolean)',
    'log_pop_specific_bin_v1(text, text, text, integer, integer, text, boolean, text, text, uuid, boolean)',
    'log_pop_list_v1(text, text, text[], integer, integer, text, boolean, integer, text, text, boolean, uuid, boolean)']);
