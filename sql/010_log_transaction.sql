-- 010_log_transaction.sql: messages stored, messages settled and timers set, all of it or nothing.
--
-- Isolation: READ COMMITTED, one statement, so its transaction is the caller's. Whatever cannot be
-- done raises and takes everything back, the queues and partitions it made included.
-- Lock order: timers, which go first (TX-2), then that of a push (queue creation keys, queues,
-- log_partitions by id), then log_consumers by (partition, group), all of them before the first is
-- changed, then leaves.
-- Nothing takes partitions after cursors, so a transaction, a push, an ack and another transaction
-- cannot wait for each other in a circle (LK-1, LK-2). One that brings letters locks their queues
-- FOR KEY SHARE between the keys and the partitions, since log_dlq refers to queues.
-- Errors, besides those of 003, 005 and 025:
--   23505  QDUP   a message is in the dedup window already. DETAIL: [{s, i, off}], the segment's
--                 and the frame's place in the call and the offset that has it.
--   QFRM0  QFORM  a segment is not in the form that its queue wants (ENC-5). DETAIL: [{s, encrypted}]
--                 with the segment's place in the call and what the queue wants. Pack it again.
--   QTXN0  QTXN   an ack or a required lease was not honoured. DETAIL: [{n, error}] with the ack's
--                 place in the call, or [{lease}]. error: a refusal of 005, or unresolved, stale,
--                 noop, dlq (a letter that cannot be had).
--   QDLQ0  QDLQ   messages are to become dead letters, which the call has to bring (see 005).
--                 DETAIL: [{partitionId, offsets}]. Run it again with them; what it needs by then
--                 may have become more.

-- Which of these leases are not live, in this tenant. Looks at every cursor, since an index on
-- worker_id would cost each claim and each ack their HOT update: see log_renew_lease_v1.
CREATE OR REPLACE FUNCTION queen._lost_leases(p_tenant uuid, p_leases text[])
RETURNS text[]
LANGUAGE sql STABLE
SET enable_seqscan = on AS $$
    SELECT ARRAY(SELECT unnest(p_leases)
                 EXCEPT SELECT c.worker_id
                 FROM queen.log_consumers c
                 JOIN queen.log_partitions p ON p.id = c.partition_id
                 JOIN queen.queues q ON q.id = p.queue_id AND q.tenant_id = p_tenant
                 WHERE c.worker_id = ANY (p_leases) AND c.lease_expires_at > queen._clock()
                 ORDER BY 1)
$$;

-- @
-- Appends segments as log_push_multi_v1 does, then acks messages by hash as log_ack_by_hash_v1
-- does. The ack arrays go by message; those of one partition, group and lease are one ack.
-- p_leases: leases that have to be live. An ack that names a lease is under that lease. One that
-- names none (null or '') is under the present holder of its cursor, who must be one of p_leases or
-- of the leases that other acks name; without any lease in the call it is lease-less (TX-5).
-- Letters as in log_ack_by_hash_v1, each with its partition; p_last: what is missing of them cannot
-- be had.
-- p_encrypted: by segment, whether its frames are; null is a caller that knows no encryption.
-- p_timer_*: as log_timers_apply_v1 takes them. What it refuses rolls all back; that nothing waits
-- under a key, or that the fire has it, are answers.
-- Result: {pushes: as log_push_multi_v1, acks: [{partitionId, group, queue, partition,
-- leaseReleased, freed, covered, dropped, items: [places], filed: [places]}], timers: [{status, txn,
-- id, at}], now}, acks in (partition, group) order; filed became dead letters; at and now in
-- microseconds since 1970, now as this returns; the last two with timers only.
-- The predecessor goes in the same transaction: two that fit one call would fail it (DM-4).
DROP FUNCTION IF EXISTS queen.log_transaction_v1(
    uuid, text[], text[], integer[], bytea[], bigint[], bytea[], uuid[], bigint[], bigint[],
    timestamptz[], uuid[], text[], text[], bytea[], text[], text[], text[], uuid[], bigint[],
    uuid[], text[], uuid[], text[], bytea[], boolean[], timestamptz[], boolean);
DROP FUNCTION IF EXISTS queen.log_transaction_v1(
    uuid, text[], text[], integer[], bytea[], bigint[], bytea[], uuid[], bigint[], bigint[],
    timestamptz[], uuid[], text[], text[], bytea[], text[], text[], text[], uuid[], bigint[],
    uuid[], text[], uuid[], text[], bytea[], boolean[], timestamptz[], boolean, boolean[]);
CREATE OR REPLACE FUNCTION queen.log_transaction_v1(
    p_tenant uuid,
    p_queues text[], p_partitions text[], p_counts integer[], p_hashes bytea[],
    p_verified bigint[], p_blobs bytea[],
    p_vouch_pids uuid[], p_vouch_from bigint[], p_vouch_upto bigint[], p_vouch_at timestamptz[],
    p_ack_pids uuid[], p_ack_groups text[], p_ack_workers text[], p_ack_hashes bytea[],
    p_ack_statuses text[], p_ack_errors text[], p_leases text[],
    p_letter_pids uuid[] DEFAULT '{}', p_letter_offsets bigint[] DEFAULT '{}',
    p_letter_ids uuid[] DEFAULT '{}', p_letter_txns text[] DEFAULT '{}',
    p_letter_traces uuid[] DEFAULT '{}', p_letter_producers text[] DEFAULT '{}',
    p_letter_payloads bytea[] DEFAULT '{}', p_letter_encrypted boolean[] DEFAULT '{}',
    p_letter_times timestamptz[] DEFAULT '{}', p_last boolean DEFAULT false,
    p_encrypted boolean[] DEFAULT NULL,
    p_timer_kinds text[] DEFAULT '{}', p_timer_queues text[] DEFAULT '{}',
    p_timer_keys text[] DEFAULT '{}', p_timer_txns text[] DEFAULT '{}',
    p_timer_partitions text[] DEFAULT '{}', p_timer_delays bigint[] DEFAULT '{}',
    p_timer_ids uuid[] DEFAULT '{}', p_timer_payloads bytea[] DEFAULT '{}',
    p_timer_zstd boolean[] DEFAULT '{}', p_timer_encrypted boolean[] DEFAULT '{}',
    p_timer_producer text DEFAULT NULL)
RETURNS jsonb
LANGUAGE plpgsql
-- A plan made while the tables are small stays when they have grown. Joins are left alone: those
-- over hashes need theirs.
SET enable_seqscan = off AS $$
DECLARE
    v_n       integer := coalesce(cardinality(p_ack_pids), 0);
    v_pushes  jsonb := '[]';
    v_acks    jsonb[] := '{}';
    v_timers  jsonb;
    v_leases  text[];
    v_workers text[];
    v_lost    text[];
    v_wrong   jsonb;
    v_wanted  jsonb := '[]';
    v_ack     record;
    v_letters record;
    v_answer  jsonb;
BEGIN
    IF coalesce(cardinality(p_ack_groups), 0) <> v_n OR coalesce(cardinality(p_ack_workers), 0) <> v_n
       OR coalesce(cardinality(p_ack_hashes), 0) <> v_n
       OR coalesce(cardinality(p_ack_statuses), 0) <> v_n
       OR coalesce(cardinality(p_ack_errors), 0) <> v_n
       OR cardinality(p_letter_pids) <> cardinality(p_letter_offsets) THEN
        RAISE EXCEPTION 'QMULTI: arrays of different length' USING ERRCODE = '22023';
    END IF;
    PERFORM set_config('lock_timeout', queen._push_lock_timeout(), true);

    IF cardinality(p_timer_kinds) > 0 THEN -- before all other locks (LK-1)
        SELECT jsonb_agg(jsonb_build_object(
                   'status', t.status, 'txn', t.txn, 'id', t.message_id,
                   'at', (extract(epoch FROM t.deliver_at) * 1000000)::bigint) ORDER BY t.n)
        INTO v_timers
        FROM queen.log_timers_apply_v1(
                 p_tenant, p_timer_kinds, p_timer_queues, p_timer_keys, p_timer_txns,
                 p_timer_partitions, p_timer_delays, p_timer_ids, p_timer_payloads, p_timer_zstd,
                 p_timer_encrypted, p_timer_producer)
             WITH ORDINALITY AS t (status, txn, message_id, deliver_at, left_us, n);
    END IF;

    IF cardinality(p_letter_pids) > 0 THEN
        IF cardinality(p_queues) > 0 THEN -- its keys come before the queues, so it comes first
            PERFORM queen._provision(array_fill(p_tenant, ARRAY[cardinality(p_queues)]),
                                     p_queues, p_partitions);
        END IF;
        PERFORM 1 FROM queen.queues q
        WHERE q.tenant_id = p_tenant
          AND q.id IN (SELECT p.queue_id FROM queen.log_partitions p WHERE p.id = ANY (p_letter_pids))
        ORDER BY q.tenant_id, q.name
        FOR KEY SHARE;
    END IF;

    IF cardinality(p_queues) > 0 THEN
        v_pushes := queen.log_push_multi_v1(
            p_queues, p_partitions, p_counts, p_hashes, p_verified, p_blobs,
            array_fill(p_tenant, ARRAY[cardinality(p_queues)]),
            p_vouch_pids, p_vouch_from, p_vouch_upto, p_vouch_at, p_encrypted);
        IF v_pushes @> '[{"status": "form"}]' THEN -- first: such a segment was not compared
            SELECT jsonb_agg(jsonb_build_object('s', p.n - 1, 'encrypted', p.result -> 'encrypted')
                             ORDER BY p.n)
            INTO v_wrong
            FROM jsonb_array_elements(v_pushes) WITH ORDINALITY AS p (result, n)
            WHERE p.result ->> 'status' = 'form';
            RAISE EXCEPTION 'QFORM: % segments are not as their queues want them',
                jsonb_array_length(v_wrong) USING ERRCODE = 'QFRM0', DETAIL = v_wrong::text;
        END IF;
        IF v_pushes @> '[{"status": "duplicate"}]' THEN
            SELECT jsonb_agg(jsonb_build_object('s', p.n - 1, 'i', d -> 'i', 'off', d -> 'off')
                             ORDER BY p.n, d -> 'i')
            INTO v_wrong
            FROM jsonb_array_elements(v_pushes) WITH ORDINALITY AS p (result, n)
            CROSS JOIN LATERAL jsonb_array_elements(p.result -> 'dups') d
            WHERE p.result ->> 'status' = 'duplicate';
            RAISE EXCEPTION 'QDUP: % pushed before', jsonb_array_length(v_wrong)
                USING ERRCODE = '23505', DETAIL = v_wrong::text;
        END IF;
    END IF;

    -- All cursors in order; the locks of the acks below find them held. A partition of another
    -- tenant is not touched. One look-up each, here and below: a join would read whole tables for
    -- as long as it was planned while they were small.
    FOR v_ack IN
        SELECT DISTINCT a.pid, a.grp FROM unnest(p_ack_pids, p_ack_groups) AS a (pid, grp)
        ORDER BY 1, 2
    LOOP
        PERFORM 1 FROM queen.log_consumers c
        WHERE c.partition_id = v_ack.pid AND c.consumer_group = v_ack.grp
          AND p_tenant = (SELECT q.tenant_id FROM queen.queues q
                          WHERE q.id = (SELECT p.queue_id FROM queen.log_partitions p
                                        WHERE p.id = v_ack.pid))
        FOR UPDATE OF c;
    END LOOP;

    v_leases := array_remove(array_remove(p_ack_workers, ''), NULL) || p_leases;
    SELECT array_agg(CASE WHEN a.worker <> '' THEN a.worker
                          WHEN cardinality(v_leases) > 0 THEN c.worker_id END ORDER BY a.n),
           jsonb_agg(jsonb_build_object('n', a.n - 1, 'error', 'invalid or expired lease')
                     ORDER BY a.n)
               FILTER (WHERE coalesce(a.worker, '') = '' AND cardinality(v_leases) > 0
                       AND c.partition_id IS NOT NULL
                       AND NOT coalesce(c.worker_id = ANY (v_leases)
                                        AND c.lease_expires_at > queen._clock(), false))
    INTO v_workers, v_wrong
    FROM unnest(p_ack_pids, p_ack_groups, p_ack_workers) WITH ORDINALITY AS a (pid, grp, worker, n)
    LEFT JOIN LATERAL (SELECT k.partition_id, k.worker_id, k.lease_expires_at
                       FROM queen.log_consumers k
                       WHERE k.partition_id = a.pid AND k.consumer_group = a.grp
                       OFFSET 0) c ON true;
    IF v_wrong IS NOT NULL THEN
        RAISE EXCEPTION 'QTXN: % acks refused', jsonb_array_length(v_wrong)
            USING ERRCODE = 'QTXN0', DETAIL = v_wrong::text;
    END IF;

    -- A required lease is mostly that of an ack. One that is not is looked for; its cursor is not
    -- locked: a lease may run out at any moment anyhow.
    v_lost := ARRAY(
        SELECT unnest(p_leases)
        EXCEPT SELECT c.worker_id
        FROM unnest(p_ack_pids, p_ack_groups) AS a (pid, grp)
        CROSS JOIN LATERAL (SELECT k.worker_id
                            FROM queen.log_consumers k
                            WHERE k.partition_id = a.pid AND k.consumer_group = a.grp
                              AND k.lease_expires_at > queen._clock()
                            OFFSET 0) c);
    IF cardinality(v_lost) > 0 THEN
        v_lost := queen._lost_leases(p_tenant, v_lost);
        IF cardinality(v_lost) > 0 THEN
            RAISE EXCEPTION 'QTXN: % required leases are not live', cardinality(v_lost)
                USING ERRCODE = 'QTXN0', DETAIL = (
                    SELECT jsonb_agg(jsonb_build_object('lease', l)) FROM unnest(v_lost) l)::text;
        END IF;
    END IF;

    FOR v_ack IN
        SELECT a.pid, a.grp, coalesce(a.worker, '') AS worker,
               array_agg(a.n::integer - 1 ORDER BY a.n) AS items,
               array_agg(a.hash ORDER BY a.n) AS hashes,
               array_agg(a.status ORDER BY a.n) AS statuses,
               array_agg(coalesce(a.error, '') ORDER BY a.n) AS errors
        FROM unnest(p_ack_pids, p_ack_groups, v_workers, p_ack_hashes, p_ack_statuses,
                    p_ack_errors)
             WITH ORDINALITY AS a (pid, grp, worker, hash, status, error, n)
        GROUP BY 1, 2, 3
        ORDER BY 1, 2, 3
    LOOP
        SELECT coalesce(array_agg(l.pos), '{}') AS offsets, array_agg(l.id) AS ids,
               array_agg(l.txn) AS txns, array_agg(l.trace) AS traces,
               array_agg(l.producer) AS producers, array_agg(l.payload) AS payloads,
               array_agg(l.encrypted) AS encrypted, array_agg(l.at) AS times
        INTO v_letters
        FROM unnest(p_letter_pids, p_letter_offsets, p_letter_ids, p_letter_txns, p_letter_traces,
                    p_letter_producers, p_letter_payloads, p_letter_encrypted, p_letter_times)
             AS l (pid, pos, id, txn, trace, producer, payload, encrypted, at)
        WHERE l.pid = v_ack.pid;
        v_answer := queen.log_ack_by_hash_v1(
            v_ack.pid, v_ack.grp, v_ack.worker, v_ack.hashes, v_ack.statuses, p_tenant,
            v_ack.errors, v_letters.offsets, v_letters.ids, v_letters.txns, v_letters.traces,
            v_letters.producers, v_letters.payloads, v_letters.encrypted, v_letters.times, p_last);
        SELECT jsonb_agg(jsonb_build_object('n', i.n, 'error', e.error) ORDER BY i.n)
        INTO v_wrong
        FROM unnest(v_ack.items, v_ack.hashes, v_ack.statuses) WITH ORDINALITY
             AS i (n, hash, status, place)
        CROSS JOIN LATERAL (SELECT CASE
            WHEN NOT (v_answer -> 'ok')::boolean THEN v_answer ->> 'error'
            -- Somebody else settled it: what goes with this ack must not happen a second time.
            WHEN v_answer ? 'repeated' THEN 'invalid or expired lease'
            WHEN v_answer -> 'unresolvedHashes' ? encode(i.hash, 'hex') THEN 'unresolved'
            WHEN v_answer -> 'staleHashes' ? encode(i.hash, 'hex') THEN 'stale'
            WHEN i.status <> 'completed'
                 AND v_answer -> 'noopHashes' ? encode(i.hash, 'hex') THEN 'noop'
            WHEN v_answer -> 'rejectedItems' @> to_jsonb(i.place - 1) THEN 'dlq'
            END AS error) e
        WHERE e.error IS NOT NULL;
        IF v_wrong IS NOT NULL THEN
            RAISE EXCEPTION 'QTXN: % acks refused', jsonb_array_length(v_wrong)
                USING ERRCODE = 'QTXN0', DETAIL = v_wrong::text;
        END IF;
        IF v_answer -> 'letters' <> 'null' THEN
            v_wanted := v_wanted || jsonb_build_object('partitionId', v_ack.pid,
                                                       'offsets', v_answer -> 'letters');
        END IF;
        v_acks := v_acks || jsonb_build_object(
            'partitionId', v_ack.pid, 'group', v_ack.grp, 'queue', v_answer -> 'queue',
            'partition', v_answer -> 'partition', 'leaseReleased', v_answer -> 'leaseReleased',
            'freed', v_answer -> 'freed', 'covered', v_answer -> 'covered',
            'dropped', v_answer -> 'dropped', 'items', to_jsonb(v_ack.items),
            'filed', (SELECT coalesce(jsonb_agg(v_ack.items[f::integer + 1]), '[]')
                      FROM jsonb_array_elements(v_answer -> 'filedItems') f));
    END LOOP;
    IF v_wanted <> '[]' THEN
        RAISE EXCEPTION 'QDLQ: % acks want dead letters', jsonb_array_length(v_wanted)
            USING ERRCODE = 'QDLQ0', DETAIL = v_wanted::text;
    END IF;
    RETURN jsonb_build_object('pushes', v_pushes, 'acks', to_jsonb(v_acks))
        || CASE WHEN v_timers IS NULL THEN '{}'
                ELSE jsonb_build_object(
                    'timers', v_timers,
                    'now', (extract(epoch FROM queen._clock()) * 1000000)::bigint) END;
END $$;

-- @
SELECT queen._keep_only(ARRAY[
    '_lost_leases(uuid, text[])',
    'log_transaction_v1(uuid, text[], text[], integer[], bytea[], bigint[], bytea[], uuid[], '
        || 'bigint[], bigint[], timestamptz[], uuid[], text[], text[], bytea[], text[], text[], '
        || 'text[], uuid[], bigint[], uuid[], text[], uuid[], text[], bytea[], boolean[], '
        || 'timestamptz[], boolean, boolean[], text[], text[], text[], text[], text[], bigint[], '
        || 'uuid[], bytea[], boolean[], boolean[], text)']);
