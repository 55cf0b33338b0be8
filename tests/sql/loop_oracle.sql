-- loop_oracle.sql: the claim as a loop over candidates, kept as the oracle of the set form.
--
-- One candidate after the other: its row is locked, its segments are read one by one, its lease is
-- written. Slower than queen._claim and easier to believe; pop_property_test.cpp holds the two
-- against each other. Not part of the product, and not to be made faster.
CREATE SCHEMA IF NOT EXISTS oracle;

-- @
CREATE OR REPLACE FUNCTION oracle._claim(
    p_qid uuid, p_pid uuid, p_group text, p_budget integer, p_lease_s integer, p_worker text,
    p_auto_ack boolean, p_delay integer, p_window integer, p_mode text, p_at timestamptz,
    p_newest boolean, OUT o_state text, OUT o_until timestamptz, OUT o_left_ms bigint, OUT o_last_off bigint,
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
    -- Conflation: the newest message that may be seen, alone (CF-2).
    IF p_newest THEN
        v_withheld := EXISTS (SELECT 1 FROM queen.log_segments s
                              WHERE s.partition_id = p_pid AND s.end_offset > v_committed
                                AND p_delay > 0
                                AND s.created_at > v_now - make_interval(secs => p_delay));
        FOR v_seg IN
            SELECT s.base_offset, s.end_offset, s.created_at, s.blob
            FROM queen.log_segments s
            WHERE s.partition_id = p_pid AND s.end_offset > v_committed
              AND (p_delay <= 0 OR s.created_at <= v_now - make_interval(secs => p_delay))
            ORDER BY s.base_offset DESC LIMIT 1
        LOOP
            o_taken := 1;
            v_first := v_seg.end_offset;
            o_batch_end := v_seg.end_offset;
            o_bases := ARRAY[v_seg.base_offset];
            o_starts := ARRAY[(v_seg.end_offset - v_seg.base_offset)::integer];
            o_takes := ARRAY[1];
            o_counts := ARRAY[(v_seg.end_offset - v_seg.base_offset + 1)::integer];
            o_times := ARRAY[v_seg.created_at];
            o_blobs := ARRAY[v_seg.blob];
        END LOOP;
    ELSE
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
        batch_end = o_batch_end, lease_conflated = p_newest,
        prior_attempt_offset = c.attempt_offset, prior_attempt_count = c.attempt_count,
        attempt_count = CASE WHEN c.attempt_offset IS NOT DISTINCT FROM v_first
                             THEN c.attempt_count + 1 ELSE 1 END,
        attempt_offset = v_first
    WHERE c.partition_id = p_pid AND c.consumer_group = p_group
    RETURNING c.attempt_count INTO o_attempt;
END $$;

-- @
CREATE OR REPLACE FUNCTION oracle._leased(
    p_name text, p_pid uuid, p_until timestamptz, p_left_ms bigint)
RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('p', p_name, 'id', p_pid, 's', 'leased',
                              'until', queen._iso(p_until), 'leftMs', p_left_ms)
$$;

-- @
CREATE OR REPLACE FUNCTION oracle._claim_many(
    p_qids uuid[], p_pids uuid[], p_names text[], p_group text, p_budget integer,
    p_lease_s integer, p_worker text, p_auto_ack boolean, p_max_partitions integer, p_mode text,
    p_at timestamptz, p_skip_window boolean, p_name_queue boolean, p_now timestamptz,
    p_idle boolean[], p_untils timestamptz[], p_newest boolean,
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
            o_states := array_append(o_states, oracle._leased(
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
        v_claim := oracle._claim(
            v_qid, p_pids[i], p_group, v_budget, v_queue.lease, p_worker, p_auto_ack,
            v_queue.delayed_processing, v_queue.window_buffer, p_mode, p_at, p_newest);
        v_state := jsonb_build_object('p', p_names[i], 'id', p_pids[i], 's', v_claim.o_state);
        IF v_claim.o_state = 'leased' THEN
            v_state := oracle._leased(p_names[i], p_pids[i], v_claim.o_until, v_claim.o_left_ms);
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
CREATE OR REPLACE FUNCTION oracle.log_pop_v1(
    p_queue text, p_partition text, p_group text, p_budget integer, p_lease_s integer,
    p_worker text, p_auto_ack boolean DEFAULT false, p_sub_mode text DEFAULT 'all',
    p_sub_from text DEFAULT '', p_skip_window boolean DEFAULT false,
    p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001', p_conflate boolean DEFAULT NULL)
RETURNS TABLE (r_base bigint, r_start_idx integer, r_take integer, r_msg_count integer,
               r_created_at timestamptz, r_blob bytea)
LANGUAGE plpgsql AS $$
DECLARE
    v_sub   record := queen._subscription(p_sub_mode, p_sub_from);
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
    v_claim := oracle._claim(
        v_queue.qid, v_queue.pid, p_group, greatest(coalesce(p_budget, 1), 1),
        coalesce(nullif(greatest(p_lease_s, 0), 0),
                 nullif(greatest(v_queue.lease_time, 0), 0), 60),
        p_worker, p_auto_ack, v_queue.delayed_processing,
        CASE WHEN p_skip_window THEN 0 ELSE v_queue.window_buffer END, v_sub.mode, v_sub.at,
        coalesce(p_conflate, false));
    RETURN QUERY SELECT * FROM unnest(v_claim.o_bases, v_claim.o_starts, v_claim.o_takes,
                                      v_claim.o_counts, v_claim.o_times, v_claim.o_blobs);
END $$;

-- @
CREATE OR REPLACE FUNCTION oracle.log_pop_list_v1(
    p_queue text, p_group text, p_names text[], p_budget integer, p_lease_s integer,
    p_worker text, p_auto_ack boolean DEFAULT false, p_max_partitions integer DEFAULT NULL,
    p_sub_mode text DEFAULT 'all', p_sub_from text DEFAULT '', p_skip_window boolean DEFAULT false,
    p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001', p_conflate boolean DEFAULT NULL,
    OUT meta jsonb, OUT blobs bytea[], OUT states jsonb)
LANGUAGE plpgsql AS $$
DECLARE
    v_sub    record := queen._subscription(p_sub_mode, p_sub_from);
    v_now    timestamptz := queen._clock();
    v_queue  record;
    v_pids   uuid[];
    v_names  text[];
    v_idle   boolean[];
    v_untils timestamptz[];
    v_claim  record;
    v_newest boolean;
BEGIN
    SELECT q.id, q.delayed_processing, q.window_buffer, q.min_pop_wait_time,
           EXISTS (SELECT 1 FROM queen.consumer_groups_metadata m
                   WHERE m.queue_id = q.id AND m.consumer_group = p_group) AS seeded
    INTO v_queue
    FROM queen.queues q WHERE q.tenant_id = p_tenant AND q.name = p_queue;
    -- Whoever registered the group decides, else this pop.
    v_newest := coalesce((SELECT m.conflation FROM queen.consumer_groups_metadata m
                          WHERE m.queue_id = v_queue.id AND m.consumer_group = p_group),
                         p_conflate, false);
    SELECT array_agg(p.id ORDER BY n.ord), array_agg(n.name ORDER BY n.ord),
           array_agg(p.last_offset <= c.committed ORDER BY n.ord),
           array_agg(CASE WHEN c.worker_id IS NOT NULL AND c.lease_expires_at >= v_now
                          THEN c.lease_expires_at END ORDER BY n.ord)
    INTO v_pids, v_names, v_idle, v_untils
    FROM (SELECT u.name, min(u.ord) AS ord
          FROM unnest(p_names) WITH ORDINALITY AS u (name, ord) GROUP BY u.name) n
    LEFT JOIN queen.log_partitions p ON p.queue_id = v_queue.id AND p.name = n.name
    LEFT JOIN queen.log_consumers c ON c.partition_id = p.id AND c.consumer_group = p_group;
    v_claim := oracle._claim_many(
        array_fill(v_queue.id, ARRAY[coalesce(cardinality(v_pids), 0)]), v_pids, v_names, p_group,
        p_budget, p_lease_s, p_worker, p_auto_ack, p_max_partitions, v_sub.mode, v_sub.at,
        p_skip_window, false, v_now, v_idle, v_untils, v_newest);
    meta := jsonb_build_object(
        'partitions', to_jsonb(v_claim.o_parts), 'seeded', coalesce(v_queue.seeded, false),
        'delay', coalesce(v_queue.delayed_processing, 0),
        'window', coalesce(v_queue.window_buffer, 0),
        'minWait', coalesce(v_queue.min_pop_wait_time, 0));
    IF v_newest THEN
        meta := meta || '{"conflation": true}';
    END IF;
    IF p_conflate IS NOT NULL AND p_conflate <> v_newest THEN
        meta := meta || '{"conflationConflict": true}';
    END IF;
    blobs := v_claim.o_blobs;
    states := to_jsonb(v_claim.o_states);
END $$;
