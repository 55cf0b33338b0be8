-- 004_log_pop_scan.sql: pops that find their candidates by a scan, and the probes for pending work.
--
-- The scan's filter is coarse on purpose: the claim verifies under the row lock, so a stale
-- candidate costs one empty claim. Waiting, locks and errors: see 004_log_claim.sql.

-- The oldest last_write_at a scan has to look at: the watermark less two minutes, which cover the
-- second by which last_write_at is rounded and pushes that commit late. Epoch without a watermark,
-- and with one in the future: the clock was set back, and what is written now lies below it.
CREATE OR REPLACE FUNCTION queen._scan_floor(p_qid uuid, p_group text, p_now timestamptz)
RETURNS timestamptz
LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT w.last_empty_scan_at FROM queen.consumer_watermarks w
                     WHERE w.queue_id = p_qid AND w.consumer_group = p_group
                       AND w.last_empty_scan_at <= p_now),
                    'epoch') - interval '2 minutes'
$$;

-- @
-- After a scan of these queues that took nothing: moves the watermark of each to p_scan_at, when
-- the last check is 30 s old and nothing at all is pending there, leases ignored. Otherwise only
-- the check is noted, so that a backlog under somebody's lease stays in sight (SC-2, K10). A check
-- in the future was made before the clock was set back, and counts as old.
CREATE OR REPLACE FUNCTION queen._note_empty_scan(
    p_qids uuid[], p_group text, p_scan_at timestamptz)
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_qid  uuid;
    v_mark record;
BEGIN
    FOREACH v_qid IN ARRAY p_qids LOOP
        SELECT w.last_empty_scan_at, w.updated_at INTO v_mark
        FROM queen.consumer_watermarks w
        WHERE w.queue_id = v_qid AND w.consumer_group = p_group;
        IF NOT FOUND THEN
            -- Somebody who moved cursors back has deleted it: the scan starts at the epoch again.
            IF pg_try_advisory_xact_lock(hashtextextended(v_qid || '/' || p_group, 44)) THEN
                PERFORM 1 FROM queen.queues q WHERE q.id = v_qid FOR KEY SHARE SKIP LOCKED;
                IF FOUND THEN
                    INSERT INTO queen.consumer_watermarks (queue_id, consumer_group, updated_at)
                    VALUES (v_qid, p_group, 'epoch')
                    ON CONFLICT DO NOTHING;
                END IF;
            END IF;
            CONTINUE;
        END IF;
        CONTINUE WHEN v_mark.updated_at > p_scan_at - interval '30 s'
            AND v_mark.updated_at < p_scan_at + interval '30 s';
        SELECT w.last_empty_scan_at, w.updated_at INTO v_mark
        FROM queen.consumer_watermarks w
        WHERE w.queue_id = v_qid AND w.consumer_group = p_group
        FOR UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND OR (v_mark.updated_at > p_scan_at - interval '30 s'
                                    AND v_mark.updated_at < p_scan_at + interval '30 s');
        UPDATE queen.consumer_watermarks w SET
            updated_at = p_scan_at,
            last_empty_scan_at = CASE WHEN EXISTS (
                SELECT 1
                FROM queen.log_partitions p
                LEFT JOIN queen.log_consumers c
                  ON c.partition_id = p.id AND c.consumer_group = p_group
                WHERE p.queue_id = v_qid
                  AND p.last_write_at >= queen._scan_floor(v_qid, p_group, p_scan_at)
                  AND (c.partition_id IS NULL OR p.last_offset > c.committed))
                THEN CASE WHEN w.last_empty_scan_at > p_scan_at THEN 'epoch'
                          ELSE w.last_empty_scan_at END
                ELSE p_scan_at END
        WHERE w.queue_id = v_qid AND w.consumer_group = p_group;
    END LOOP;
END $$;

-- @
-- Scan for candidates over registered queues, and their claims. The scan is coarse, the claim
-- decides. Random order keeps consumers off each other's heels; the watermark keeps a caught-up
-- consumer from reading every partition on every pop (SC-1).
CREATE OR REPLACE FUNCTION queen._scan_and_claim(
    p_qids uuid[], p_group text, p_budget integer, p_lease_s integer, p_worker text,
    p_auto_ack boolean, p_max_partitions integer, p_mode text, p_at timestamptz,
    p_name_queue boolean, p_conflated uuid[], OUT o_parts jsonb[], OUT o_blobs bytea[])
LANGUAGE plpgsql AS $$
DECLARE
    v_now   timestamptz := queen._clock();
    v_cap   integer := CASE WHEN p_max_partitions BETWEEN 1 AND 127
                            THEN least(greatest(p_max_partitions * 4, 64), 512) ELSE 512 END;
    v_qids  uuid[];
    v_names text[];
BEGIN
    -- OFFSET 0 makes the planner go queue by queue, over the queue's own index range, instead of
    -- joining every partition of the database to the list (F-54).
    SELECT array_agg(s.queue_id), array_agg(s.name) INTO v_qids, v_names
    FROM (SELECT l.queue_id, l.name
          FROM unnest(p_qids) AS u (qid)
          CROSS JOIN LATERAL (
              SELECT p.queue_id, p.name
              FROM queen.log_partitions p
              LEFT JOIN queen.log_consumers c
                ON c.partition_id = p.id AND c.consumer_group = p_group
              WHERE p.queue_id = u.qid
                AND p.last_write_at >= queen._scan_floor(u.qid, p_group, v_now)
                AND (c.partition_id IS NULL OR p.last_offset > c.committed)
                AND (c.worker_id IS NULL OR c.lease_expires_at IS NULL
                     OR c.lease_expires_at < v_now)
              OFFSET 0) l
          ORDER BY random()
          LIMIT v_cap) s;
    SELECT m.o_parts, m.o_blobs INTO o_parts, o_blobs
    FROM queen._claim(v_qids, v_names, p_group, p_budget, p_lease_s, p_worker, p_auto_ack,
                      p_max_partitions, p_mode, p_at, false, p_name_queue, v_now,
                      p_conflated) m;
    IF cardinality(o_parts) = 0 THEN
        PERFORM queen._note_empty_scan(p_qids, p_group, v_now);
    END IF;
END $$;

-- @
-- Pops across the partitions of a queue. Creates the queue row and registers the group, since a
-- group may subscribe before the first push (PROV-4). While another pop is at either, the answer
-- is empty with seeded false.
CREATE OR REPLACE FUNCTION queen.log_pop_wildcard_bin_v1(
    p_queue text, p_group text, p_budget integer, p_lease_s integer, p_worker text,
    p_auto_ack boolean DEFAULT false, p_max_partitions integer DEFAULT NULL,
    p_sub_mode text DEFAULT 'all', p_sub_from text DEFAULT '',
    p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001', p_conflate boolean DEFAULT NULL,
    OUT meta jsonb, OUT blobs bytea[])
LANGUAGE plpgsql AS $$
DECLARE
    v_sub    record := queen._subscription(p_sub_mode, p_sub_from);
    v_queue  record;
    v_policy boolean;  -- null until the group is registered
    v_parts  jsonb[] := '{}';
BEGIN
    blobs := '{}';
    FOR v_try IN 1..2 LOOP
        SELECT q.id, q.delayed_processing, q.window_buffer, q.min_pop_wait_time INTO v_queue
        FROM queen.queues q WHERE q.tenant_id = p_tenant AND q.name = p_queue;
        EXIT WHEN FOUND OR v_try = 2
            OR NOT pg_try_advisory_xact_lock(queen._queue_lock(p_tenant, p_queue));
        INSERT INTO queen.queues (tenant_id, name, namespace, task)
        SELECT p_tenant, p_queue, l.namespace, l.task FROM queen._labels(p_queue) l
        ON CONFLICT (tenant_id, name) DO NOTHING;
    END LOOP;
    IF v_queue.id IS NOT NULL THEN
        v_policy := queen._register_group(p_tenant, v_queue.id, p_group, v_sub.mode, v_sub.at,
                                          p_conflate);
    END IF;
    IF v_policy IS NOT NULL THEN
        SELECT s.o_parts, s.o_blobs INTO v_parts, blobs
        FROM queen._scan_and_claim(ARRAY[v_queue.id], p_group, p_budget, p_lease_s, p_worker,
                                   p_auto_ack, p_max_partitions, v_sub.mode, v_sub.at, false,
                                   CASE WHEN v_policy THEN ARRAY[v_queue.id] ELSE '{}' END) s;
    END IF;
    meta := jsonb_build_object(
        'partitions', to_jsonb(v_parts), 'seeded', v_policy IS NOT NULL,
        'delay', coalesce(v_queue.delayed_processing, 0),
        'window', coalesce(v_queue.window_buffer, 0),
        'minWait', coalesce(v_queue.min_pop_wait_time, 0))
        || queen._policy(coalesce(v_policy, queen._conflates(p_group, p_conflate)), p_conflate);
END $$;

-- @
CREATE OR REPLACE FUNCTION queen.log_pop_wildcard_wire_v1(
    p_queue text, p_group text, p_budget integer, p_lease_s integer, p_worker text,
    p_auto_ack boolean DEFAULT false, p_max_partitions integer DEFAULT NULL,
    p_sub_mode text DEFAULT 'all', p_sub_from text DEFAULT '',
    p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001', p_conflate boolean DEFAULT NULL)
RETURNS jsonb
LANGUAGE sql AS $$
    SELECT queen._wire(b.meta, b.blobs)
    FROM queen.log_pop_wildcard_bin_v1(p_queue, p_group, p_budget, p_lease_s, p_worker, p_auto_ack,
                                       p_max_partitions, p_sub_mode, p_sub_from, p_tenant,
                                       p_conflate) b
$$;

-- @
-- Pops across every queue with these labels; an empty label matches any. Creates no queue. The
-- group is registered with the labels once, and from that record with each queue on first sight,
-- so that a queue born after the subscription is read from there on. The same goes for conflation;
-- a queue where the group was registered before keeps what it has there, which is a conflict when
-- the pop wants something else.
CREATE OR REPLACE FUNCTION queen.log_pop_discover_bin_v1(
    p_namespace text, p_task text, p_group text, p_budget integer, p_lease_s integer,
    p_worker text, p_auto_ack boolean DEFAULT false, p_max_partitions integer DEFAULT NULL,
    p_sub_mode text DEFAULT 'all', p_sub_from text DEFAULT '',
    p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001', p_conflate boolean DEFAULT NULL,
    OUT meta jsonb, OUT blobs bytea[])
LANGUAGE plpgsql AS $$
DECLARE
    v_ns     text := coalesce(p_namespace, '');
    v_task   text := coalesce(p_task, '');
    v_asked  record := queen._subscription(p_sub_mode, p_sub_from);
    v_sub    record;
    v_qid    uuid;
    v_policy boolean;
    v_mixed  boolean := false;
    v_ready  uuid[] := '{}';
    v_newest uuid[] := '{}';
    v_seeded boolean := true;
    v_parts  jsonb[] := '{}';
BEGIN
    IF v_ns = '' AND v_task = '' THEN
        RAISE EXCEPTION 'namespace or task is required' USING ERRCODE = '22023';
    END IF;
    blobs := '{}';
    FOR v_try IN 1..2 LOOP
        SELECT m.subscription_mode AS mode, m.subscription_timestamp AS at, m.conflation
        INTO v_sub
        FROM queen.consumer_groups_metadata m
        WHERE m.tenant_id = p_tenant AND m.consumer_group = p_group AND m.queue_id IS NULL
          AND m.partition_name = '' AND m.namespace = v_ns AND m.task = v_task;
        EXIT WHEN FOUND;
        v_seeded := v_try = 1 AND pg_try_advisory_xact_lock(hashtextextended(
            p_tenant || '/' || v_ns || '/' || v_task || '/' || p_group, 45));
        EXIT WHEN NOT v_seeded;
        INSERT INTO queen.consumer_groups_metadata
            (tenant_id, consumer_group, namespace, task, subscription_mode,
             subscription_timestamp, conflation)
        VALUES (p_tenant, p_group, v_ns, v_task,
                CASE WHEN p_group = '__QUEUE_MODE__' THEN 'all' ELSE v_asked.mode END,
                CASE WHEN p_group = '__QUEUE_MODE__' THEN 'epoch' ELSE v_asked.at END,
                queen._conflates(p_group, p_conflate))
        ON CONFLICT DO NOTHING;
    END LOOP;
    IF v_seeded THEN
        FOR v_qid IN
            SELECT q.id FROM queen.queues q
            WHERE q.tenant_id = p_tenant AND (v_ns = '' OR q.namespace = v_ns)
              AND (v_task = '' OR q.task = v_task)
            ORDER BY q.name
        LOOP
            v_policy := queen._register_group(p_tenant, v_qid, p_group, v_sub.mode, v_sub.at,
                                              v_sub.conflation);
            IF v_policy IS NULL THEN
                v_seeded := false;
                CONTINUE;
            END IF;
            v_ready := array_append(v_ready, v_qid);
            v_mixed := v_mixed OR coalesce(v_policy <> p_conflate, false);
            IF v_policy THEN
                v_newest := array_append(v_newest, v_qid);
            END IF;
        END LOOP;
        SELECT s.o_parts, s.o_blobs INTO v_parts, blobs
        FROM queen._scan_and_claim(v_ready, p_group, p_budget, p_lease_s, p_worker, p_auto_ack,
                                   p_max_partitions, v_sub.mode, v_sub.at, true, v_newest) s;
    END IF;
    meta := jsonb_build_object('partitions', to_jsonb(v_parts), 'seeded', v_seeded,
                               'delay', 0, 'window', 0)
        || CASE WHEN v_mixed THEN '{"conflationConflict": true}' ELSE '{}' END::jsonb
        || queen._policy(coalesce(v_sub.conflation, queen._conflates(p_group, p_conflate)),
                         p_conflate);
END $$;

-- @
CREATE OR REPLACE FUNCTION queen.log_pop_discover_wire_v1(
    p_namespace text, p_task text, p_group text, p_budget integer, p_lease_s integer,
    p_worker text, p_auto_ack boolean DEFAULT false, p_max_partitions integer DEFAULT NULL,
    p_sub_mode text DEFAULT 'all', p_sub_from text DEFAULT '',
    p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001', p_conflate boolean DEFAULT NULL)
RETURNS jsonb
LANGUAGE sql AS $$
    SELECT queen._wire(b.meta, b.blobs)
    FROM queen.log_pop_discover_bin_v1(p_namespace, p_task, p_group, p_budget, p_lease_s, p_worker,
                                       p_auto_ack, p_max_partitions, p_sub_mode, p_sub_from,
                                       p_tenant, p_conflate) b
$$;

-- @
-- Whether partitions of these queues hold work for a group that no live lease covers. An expired
-- lease counts. Says yes too often rather than not: a group not registered with one of the queues
-- is pending, because the pop that registers it is still owed.
CREATE OR REPLACE FUNCTION queen._any_pending(p_qids uuid[], p_group text) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_now timestamptz := queen._clock();
BEGIN
    PERFORM 1 FROM unnest(p_qids) AS u (qid)
    WHERE NOT EXISTS (SELECT 1 FROM queen.consumer_groups_metadata m
                      WHERE m.queue_id = u.qid AND m.consumer_group = p_group);
    IF FOUND THEN
        RETURN true;
    END IF;
    RETURN EXISTS (
        SELECT 1
        FROM unnest(p_qids) AS u (qid)
        CROSS JOIN LATERAL (
            SELECT 1
            FROM queen.log_partitions p
            LEFT JOIN queen.log_consumers c
              ON c.partition_id = p.id AND c.consumer_group = p_group
            WHERE p.queue_id = u.qid
              AND p.last_write_at >= queen._scan_floor(u.qid, p_group, v_now)
              AND (c.partition_id IS NULL OR p.last_offset > c.committed)
              AND (c.worker_id IS NULL OR c.lease_expires_at IS NULL
                   OR c.lease_expires_at < v_now)
            LIMIT 1) l);
END $$;

-- @
-- Probe of a wildcard scope. An unknown queue is pending: the pop creates it.
CREATE OR REPLACE FUNCTION queen.log_has_pending_v1(
    p_queue text, p_group text,
    p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001')
RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_qid uuid := (SELECT q.id FROM queen.queues q
                   WHERE q.tenant_id = p_tenant AND q.name = p_queue);
BEGIN
    RETURN v_qid IS NULL OR queen._any_pending(ARRAY[v_qid], p_group);
END $$;

-- @
-- Probe of a pinned scope. What retention took does not count; no such partition, or no cursor in
-- it yet, is pending.
CREATE OR REPLACE FUNCTION queen.log_partition_has_pending_v1(
    p_queue text, p_partition text, p_group text,
    p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001')
RETURNS boolean
LANGUAGE sql VOLATILE AS $$
    SELECT coalesce((
        SELECT c.partition_id IS NULL
            OR (p.last_offset > greatest(c.committed, p.log_start - 1)
                AND (c.worker_id IS NULL OR c.lease_expires_at IS NULL
                     OR c.lease_expires_at < queen._clock()))
        FROM queen.queues q
        JOIN queen.log_partitions p ON p.queue_id = q.id AND p.name = p_partition
        LEFT JOIN queen.log_consumers c ON c.partition_id = p.id AND c.consumer_group = p_group
        WHERE q.tenant_id = p_tenant AND q.name = p_queue), true)
$$;

-- @
-- Probe of a discovery scope. Labels the group is not registered with are pending.
CREATE OR REPLACE FUNCTION queen.log_discover_has_pending_v1(
    p_namespace text, p_task text, p_group text,
    p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001')
RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_ns   text := coalesce(p_namespace, '');
    v_task text := coalesce(p_task, '');
BEGIN
    PERFORM 1 FROM queen.consumer_groups_metadata m
    WHERE m.tenant_id = p_tenant AND m.consumer_group = p_group AND m.queue_id IS NULL
      AND m.partition_name = '' AND m.namespace = v_ns AND m.task = v_task;
    RETURN NOT FOUND OR queen._any_pending(
        ARRAY(SELECT q.id FROM queen.queues q
              WHERE q.tenant_id = p_tenant AND (v_ns = '' OR q.namespace = v_ns)
                AND (v_task = '' OR q.task = v_task)), p_group);
END $$;

-- @
SELECT queen._keep_only(ARRAY[
    '_subscription(text, text)',
    '_register_group(uuid, uuid, text, text, timestamptz, boolean)',
    '_claim(uuid[], text[], text, integer, integer, text, boolean, integer, text, timestamptz, boolean, boolean, timestamptz, uuid[])',
    '_scan_floor(uuid, text, timestamptz)', '_note_empty_scan(uuid[], text, timestamptz)',
    '_scan_and_claim(uuid[], text, integer, integer, text, boolean, integer, text, timestamptz, boolean, uuid[])',
    '_any_pending(uuid[], text)',
    'log_pop_wildcard_bin_v1(text, text, integer, integer, text, boolean, integer, text, text, uuid, boolean)',
    'log_pop_wildcard_wire_v1(text, text, integer, integer, text, boolean, integer, text, text, uuid, boolean)',
    'log_pop_discover_bin_v1(text, text, text, integer, integer, text, boolean, integer, text, text, uuid, boolean)',
    'log_pop_discover_wire_v1(text, text, text, integer, integer, text, boolean, integer, text, text, uuid, boolean)',
    'log_has_pending_v1(text, text, uuid)',
    'log_partition_has_pending_v1(text, text, text, uuid)',
    'log_discover_has_pending_v1(text, text, text, uuid)']);
