-- 004_log_pop.sql: the pops that name partitions, on top of the claim (004_log_claim.sql).
--
-- Waiting, locks, isolation and errors are those of the claim. A pop reads the clock once, before
-- it takes any lock.

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
-- or null seconds: the queue's. The list pop as rows, so that there is one claim.
CREATE OR REPLACE FUNCTION queen.log_pop_v1(
    p_queue text, p_partition text, p_group text, p_budget integer, p_lease_s integer,
    p_worker text, p_auto_ack boolean DEFAULT false, p_sub_mode text DEFAULT 'all',
    p_sub_from text DEFAULT '', p_skip_window boolean DEFAULT false,
    p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001', p_conflate boolean DEFAULT NULL)
RETURNS TABLE (r_base bigint, r_start_idx integer, r_take integer, r_msg_count integer,
               r_created_at timestamptz, r_blob bytea)
LANGUAGE plpgsql AS $$
DECLARE
    v_pop record;
BEGIN
    SELECT l.meta, l.blobs INTO v_pop
    FROM queen.log_pop_list_v1(p_queue, p_group, ARRAY[p_partition], p_budget, p_lease_s, p_worker,
                               p_auto_ack, 1, p_sub_mode, p_sub_from, p_skip_window, p_tenant,
                               p_conflate) l;
    RETURN QUERY
        SELECT (s.seg ->> 'seq')::bigint, (s.seg ->> 'startOff')::integer,
               (s.seg ->> 'take')::integer, (s.seg ->> 'msgCount')::integer,
               (s.seg ->> 'createdAt')::timestamptz, v_pop.blobs[s.n]
        FROM jsonb_array_elements(v_pop.meta #> '{partitions,0,segments}') WITH ORDINALITY
             AS s (seg, n);
END $$;

-- @
-- Pops one named partition. An unknown name is empty and registers nothing. The id is read before
-- the claim and handed to it, so whatever is leased carries it (F-10).
-- Meta of all pops: {partitions: [{partition, partitionId, deliveryAttempt, leaseLeftMs (leased
-- only), lastOff, batchEnd, queue (discovery only), segments: [{seq, startOff, take, msgCount,
-- createdAt}]}], seeded, delay, window, minWait (not of discovery), conflation and
-- conflationConflict (only when true)}; blobs in the order in which meta is walked. seeded: the
-- group's marker exists. delay, window: s; minWait: ms. Leases are judged by time left, never by a
-- wall clock.
-- p_conflate is null when the pop does not say. What the group was registered with counts; a group
-- that is not registered gets what it asks for, from this pop only.
CREATE OR REPLACE FUNCTION queen.log_pop_specific_bin_v1(
    p_queue text, p_partition text, p_group text, p_budget integer, p_lease_s integer,
    p_worker text, p_auto_ack boolean DEFAULT false, p_sub_mode text DEFAULT 'all',
    p_sub_from text DEFAULT '',
    p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001', p_conflate boolean DEFAULT NULL,
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
    p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001', p_conflate boolean DEFAULT NULL)
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
-- a name given twice counts once (CL-13), an unknown one is empty. Settings: as for the claim.
CREATE OR REPLACE FUNCTION queen.log_pop_list_v1(
    p_queue text, p_group text, p_names text[], p_budget integer, p_lease_s integer,
    p_worker text, p_auto_ack boolean DEFAULT false, p_max_partitions integer DEFAULT NULL,
    p_sub_mode text DEFAULT 'all', p_sub_from text DEFAULT '', p_skip_window boolean DEFAULT false,
    p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001', p_conflate boolean DEFAULT NULL,
    OUT meta jsonb, OUT blobs bytea[], OUT states jsonb)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    v_sub    record := queen._subscription(p_sub_mode, p_sub_from);
    v_now    timestamptz := queen._clock();
    v_queue  record;
    v_policy boolean;
    v_claim  record;
BEGIN
    SELECT q.id, q.delayed_processing AS delay, q.window_buffer AS wait,
           q.min_pop_wait_time AS min_wait,
           (SELECT m.conflation FROM queen.consumer_groups_metadata m
            WHERE m.queue_id = q.id AND m.consumer_group = p_group LIMIT 1) AS policy
    INTO v_queue
    FROM queen.queues q WHERE q.tenant_id = p_tenant AND q.name = p_queue;
    v_policy := coalesce(v_queue.policy, queen._conflates(p_group, p_conflate));
    v_claim := queen._claim(
        array_fill(v_queue.id, ARRAY[coalesce(cardinality(p_names), 0)]), p_names, p_group,
        p_budget, p_lease_s, p_worker, p_auto_ack, p_max_partitions, v_sub.mode, v_sub.at,
        p_skip_window, false, v_now, CASE WHEN v_policy THEN ARRAY[v_queue.id] ELSE '{}' END);
    SELECT coalesce(jsonb_agg(
               CASE WHEN n.id IS NULL THEN jsonb_build_object('p', n.name, 's', 'empty')
                    WHEN n.i = ANY (v_claim.o_took) THEN jsonb_build_object(
                        'p', n.name, 'id', n.id, 's', 'took', 'lastOff', n.last_off)
                    WHEN n.until IS NOT NULL THEN jsonb_build_object(
                        'p', n.name, 'id', n.id, 's', 'leased', 'until', queen._iso(n.until),
                        'leftMs', ceil(extract(epoch FROM n.until - v_now) * 1000)::bigint)
                    ELSE jsonb_build_object('p', n.name, 'id', n.id, 's', 'empty') END
               ORDER BY n.i), '[]')
    INTO states
    FROM unnest(v_claim.o_names, v_claim.o_ids, v_claim.o_untils, v_claim.o_lasts) WITH ORDINALITY
         AS n (name, id, until, last_off, i)
    WHERE n.i <= v_claim.o_reached;
    meta := jsonb_build_object(
        'partitions', to_jsonb(v_claim.o_parts), 'seeded', v_queue.policy IS NOT NULL,
        'delay', coalesce(v_queue.delay, 0), 'window', coalesce(v_queue.wait, 0),
        'minWait', coalesce(v_queue.min_wait, 0)) || queen._policy(v_policy, p_conflate);
    blobs := v_claim.o_blobs;
END $$;

-- @
SELECT queen._keep_only(ARRAY[
    '_wire(jsonb, bytea[])',
    'log_pop_v1(text, text, text, integer, integer, text, boolean, text, text, boolean, uuid, boolean)',
    'log_pop_specific_v1(text, text, text, integer, integer, text, boolean, text, text, uuid, boolean)',
    'log_pop_specific_bin_v1(text, text, text, integer, integer, text, boolean, text, text, uuid, boolean)',
    'log_pop_list_v1(text, text, text[], integer, integer, text, boolean, integer, text, text, boolean, uuid, boolean)']);
