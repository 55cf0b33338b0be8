-- 005_log_ack.sql: moving cursors and ending leases.
--
-- An ack locks the cursor row and, for several rows, in (partition, group) order; it may wait for
-- a pop that holds the row, which is short. The row is validated under the lock, so an ack of an
-- expired or lost lease changes nothing (K08). Only the database's clock judges a lease.
-- Lock order: log_consumers only. Queue settings are read without a lock.
-- Expected refusals are values: partition not found, consumer not found, invalid or expired lease,
-- no leased batch, position beyond leased batch, partition not owned by tenant. Raises 22023 for
-- arrays of different length.

-- Writes the outcome of an ack to a cursor row that the caller has locked: the cursor, the end of
-- the lease if p_release, a charge of the retry budget on the head p_charge if that is not null,
-- or with p_reset a fresh budget. A batch that is not complete leaves the attempt count with its
-- first open offset, so that the next delivery goes on counting (K18). Completing the batch or
-- passing the head that was charged gives a fresh budget.
CREATE OR REPLACE FUNCTION queen._settle(
    p_pid uuid, p_group text, p_committed bigint, p_release boolean, p_charge bigint,
    p_reset boolean, p_consumed bigint)
RETURNS void
LANGUAGE sql AS $$
    UPDATE queen.log_consumers c SET
        committed = p_committed,
        total_consumed = c.total_consumed + p_consumed,
        worker_id = CASE WHEN p_release THEN NULL ELSE c.worker_id END,
        lease_expires_at = CASE WHEN p_release THEN NULL ELSE c.lease_expires_at END,
        lease_acquired_at = CASE WHEN p_release THEN NULL ELSE c.lease_acquired_at END,
        batch_end = CASE WHEN p_release THEN NULL ELSE c.batch_end END,
        attempt_offset = CASE WHEN p_committed = c.committed THEN c.attempt_offset
                              WHEN p_committed < c.batch_end THEN p_committed + 1 END,
        attempt_count = CASE WHEN p_committed = c.committed OR p_committed < c.batch_end
                             THEN c.attempt_count ELSE 0 END,
        prior_attempt_offset = NULL,
        prior_attempt_count = 0,
        batch_retry_count = CASE WHEN f.fresh THEN 0 ELSE c.batch_retry_count END
                            + CASE WHEN p_charge IS NULL THEN 0 ELSE 1 END,
        retry_offset = greatest(CASE WHEN f.fresh THEN NULL ELSE c.retry_offset END, p_charge)
    FROM (SELECT k.partition_id, k.consumer_group,
                 p_reset OR coalesce(p_committed >= k.batch_end, false)
                     OR coalesce(p_committed >= k.retry_offset, false) AS fresh
          FROM queen.log_consumers k
          WHERE k.partition_id = p_pid AND k.consumer_group = p_group) f
    WHERE c.partition_id = p_pid AND c.consumer_group = p_group
$$;

-- @
-- Completes positions up to p_upto, or with p_ok false gives the batch back. The lease is checked
-- when p_worker is not empty. Reaching the end of the batch ends the lease and clears retry and
-- attempt counters, as on the hash path; less moves the cursor and keeps the lease (AK-9).
-- Result: {ok, acked, leaseReleased, covered} or {ok: false, acked: 0, error, ...}; acked: how far
-- the cursor moved; covered: this ack ended the lease with its whole batch completed. p_count:
-- messages in the caller's eyes, for total_consumed; 0: as far as the cursor moved.
CREATE OR REPLACE FUNCTION queen.log_ack_at_v1(
    p_pid uuid, p_group text, p_worker text, p_upto bigint, p_ok boolean DEFAULT true,
    p_count bigint DEFAULT 0)
RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    v_row   record;
    v_to    bigint;
    v_error text;
    v_end   boolean;
BEGIN
    SELECT c.committed, c.batch_end, c.worker_id, c.lease_expires_at INTO v_row
    FROM queen.log_consumers c
    WHERE c.partition_id = p_pid AND c.consumer_group = p_group
    FOR UPDATE;
    IF NOT FOUND THEN
        v_error := 'consumer not found';
    ELSIF coalesce(p_worker, '') <> ''
          AND (v_row.worker_id IS DISTINCT FROM p_worker
               OR coalesce(v_row.lease_expires_at <= queen._clock(), true)) THEN
        v_error := 'invalid or expired lease';
    ELSIF v_row.batch_end IS NULL THEN
        v_error := 'no leased batch';
    ELSIF p_ok AND p_upto > v_row.batch_end THEN
        v_error := 'position beyond leased batch';
    END IF;
    IF v_error IS NOT NULL THEN
        RETURN jsonb_build_object('ok', false, 'acked', 0, 'error', v_error,
                                  'leaseReleased', false, 'covered', false);
    END IF;

    v_to := CASE WHEN p_ok THEN greatest(p_upto, v_row.committed) ELSE v_row.committed END;
    v_end := NOT p_ok OR v_to >= v_row.batch_end;
    PERFORM queen._settle(p_pid, p_group, v_to, v_end, NULL, false,
                          CASE WHEN p_ok AND p_count > 0 THEN p_count
                               ELSE v_to - v_row.committed END);
    RETURN jsonb_build_object('ok', true, 'acked', v_to - v_row.committed,
                              'leaseReleased', v_end, 'covered', p_ok AND v_end);
END $$;

-- @
-- The same by names.
CREATE OR REPLACE FUNCTION queen.log_ack_v1(
    p_queue text, p_partition text, p_group text, p_worker text, p_upto bigint,
    p_ok boolean DEFAULT true, p_acked_count bigint DEFAULT 0,
    p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001')
RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    v_pid uuid := (SELECT p.id FROM queen.queues q
                   JOIN queen.log_partitions p ON p.queue_id = q.id AND p.name = p_partition
                   WHERE q.tenant_id = p_tenant AND q.name = p_queue);
BEGIN
    IF v_pid IS NULL THEN
        RETURN jsonb_build_object('ok', false, 'acked', 0, 'error', 'partition not found',
                                  'leaseReleased', false, 'covered', false);
    END IF;
    RETURN queen.log_ack_at_v1(v_pid, p_group, p_worker, p_upto, p_ok, p_acked_count);
END $$;

-- @
-- Many positional acks in one transaction, executed in (partition, group) order, answered in input
-- order: {ok: true, results: [...]}. A refused one leaves its neighbours alone.
CREATE OR REPLACE FUNCTION queen.log_ack_multi_v1(
    p_pids uuid[], p_groups text[], p_ends bigint[], p_workers text[], p_counts bigint[])
RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    v_n       integer := coalesce(cardinality(p_pids), 0);
    v_results jsonb[] := array_fill(NULL::jsonb, ARRAY[v_n]);
    v_ack     record;
BEGIN
    IF coalesce(cardinality(p_groups), 0) <> v_n OR coalesce(cardinality(p_ends), 0) <> v_n
       OR coalesce(cardinality(p_workers), 0) <> v_n
       OR coalesce(cardinality(p_counts), 0) <> v_n THEN
        RAISE EXCEPTION 'QMULTI: arrays of different length' USING ERRCODE = '22023';
    END IF;
    FOR v_ack IN
        SELECT u.*
        FROM unnest(p_pids, p_groups, p_ends, p_workers, p_counts) WITH ORDINALITY
             AS u (pid, grp, upto, worker, count, ord)
        ORDER BY u.pid, u.grp, u.ord
    LOOP
        v_results[v_ack.ord::integer] := queen.log_ack_at_v1(
            v_ack.pid, v_ack.grp, v_ack.worker, v_ack.upto, true, v_ack.count);
    END LOOP;
    RETURN jsonb_build_object('ok', true, 'results', to_jsonb(v_results));
END $$;

-- @
-- Where in a partition these hashes sit between two offsets, both inclusive. A hash that was given
-- several times takes its positions in ascending order, the last one for whatever is left over.
CREATE OR REPLACE FUNCTION queen._resolve(
    p_pid uuid, p_hashes bytea[], p_from bigint, p_to bigint)
RETURNS TABLE (n integer, pos bigint)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_base bigint := coalesce((SELECT t.base_offset FROM queen.log_txns t
                               WHERE t.partition_id = p_pid AND t.base_offset <= p_from
                               ORDER BY t.base_offset DESC LIMIT 1), p_from);
BEGIN
    RETURN QUERY
    WITH wanted AS (
        SELECT u.ord::integer AS ord, u.hash,
               row_number() OVER (PARTITION BY u.hash ORDER BY u.ord) AS rank
        FROM unnest(p_hashes) WITH ORDINALITY AS u (hash, ord)),
    found AS (
        SELECT h.h AS hash, t.base_offset + h.idx AS pos,
               row_number() OVER (PARTITION BY h.h ORDER BY t.base_offset + h.idx) AS rank,
               count(*) OVER (PARTITION BY h.h) AS ranks
        -- Concatenation reads a large value once; OFFSET 0 keeps it to itself.
        FROM (SELECT s.base_offset, s.hashes || ''::bytea AS hashes
              FROM queen.log_txns s
              WHERE s.partition_id = p_pid AND s.base_offset BETWEEN v_base AND p_to
              OFFSET 0) t
        CROSS JOIN LATERAL queen.log_unnest_hashes(t.hashes) h
        WHERE t.base_offset + h.idx BETWEEN p_from AND p_to
          AND h.h IN (SELECT w.hash FROM wanted w))
    SELECT w.ord, f.pos
    FROM wanted w
    JOIN found f ON f.hash = w.hash AND f.rank = least(w.rank, f.ranks);
END $$;

-- @
-- Acks messages by the hashes of their transaction ids. Statuses: completed, failed, retry, dlq.
-- A hash is looked for in the leased span, or without a lease anywhere above the cursor (AK-2);
-- what is not there is reported: below the cursor noop, elsewhere stale, nowhere unresolved
-- (AK-5, F-35). The cursor goes to the highest completed position (AK-3), never past the lowest
-- signal, the head (AK-4, F-36); at one position dlq beats failed beats retry.
-- Head retry: lease released (AK-6). Head failed: one charge of the budget and released while the
-- budget lasts; then a dead letter if the queue wants them, else the message is dropped (AK-7).
-- A dead letter is asked for by dlq: true with off; the lease ends and the head stays (AK-8).
-- Result: {ok, acked, off (the head, null without one), dlq, dropped, leaseReleased, covered,
-- queue, partition, noopHashes, staleHashes, unresolvedHashes} with hashes in hex; ok false comes
-- with error. p_tenant, when given, must own the partition.
CREATE OR REPLACE FUNCTION queen.log_ack_by_hash_v1(
    p_pid uuid, p_group text, p_worker text, p_hashes bytea[], p_statuses text[],
    p_tenant uuid DEFAULT NULL)
RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    v_result     jsonb := jsonb_build_object(
        'ok', false, 'acked', 0, 'off', NULL, 'dlq', false, 'dropped', false,
        'leaseReleased', false, 'covered', false, 'noopHashes', '[]'::jsonb,
        'staleHashes', '[]'::jsonb, 'unresolvedHashes', '[]'::jsonb);
    v_part       record;
    v_row        record;
    v_held       boolean;      -- a live lease bounds the span
    v_positions  bigint[];
    v_rest       bytea[];
    v_head       bigint;
    v_head_word  text;
    v_completed  bigint;
    v_to         bigint;
    v_release    boolean := false;
    v_charge     bigint;
    v_dropped    boolean := false;
    v_lists      record;
BEGIN
    IF coalesce(cardinality(p_hashes), 0) <> coalesce(cardinality(p_statuses), 0) THEN
        RAISE EXCEPTION 'QMULTI: arrays of different length' USING ERRCODE = '22023';
    END IF;
    IF EXISTS (SELECT 1 FROM unnest(p_statuses) s
               WHERE s IS NULL OR s NOT IN ('completed', 'failed', 'retry', 'dlq')) THEN
        RAISE EXCEPTION 'unknown ack status; allowed: completed, failed, retry, dlq'
            USING ERRCODE = '22023';
    END IF;
    SELECT q.tenant_id, q.name AS queue, p.name AS part, p.txns_start, q.retry_limit,
           q.dead_letter_queue OR q.dlq_after_max_retries AS dead_letters
    INTO v_part
    FROM queen.log_partitions p
    JOIN queen.queues q ON q.id = p.queue_id
    WHERE p.id = p_pid;
    IF NOT FOUND THEN
        RETURN v_result || jsonb_build_object('error', 'partition not found');
    ELSIF v_part.tenant_id <> p_tenant THEN
        RETURN v_result || jsonb_build_object('error', 'partition not owned by tenant');
    END IF;
    v_result := v_result || jsonb_build_object('queue', v_part.queue, 'partition', v_part.part);
    SELECT c.committed, c.batch_end, c.worker_id, c.lease_expires_at,
           c.batch_retry_count, c.retry_offset
    INTO v_row
    FROM queen.log_consumers c
    WHERE c.partition_id = p_pid AND c.consumer_group = p_group
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN v_result || jsonb_build_object('error', 'consumer not found');
    END IF;
    v_held := v_row.batch_end IS NOT NULL AND v_row.worker_id IS NOT NULL
              AND coalesce(v_row.lease_expires_at > queen._clock(), false);
    IF coalesce(p_worker, '') <> ''
       AND NOT (v_held AND v_row.worker_id = p_worker) THEN
        RETURN v_result || jsonb_build_object('error', 'invalid or expired lease');
    END IF;

    SELECT array_agg(r.pos ORDER BY u.ord) INTO v_positions
    FROM generate_subscripts(p_hashes, 1) AS u (ord)
    LEFT JOIN queen._resolve(
        p_pid, p_hashes, greatest(v_row.committed + 1, v_part.txns_start),
        CASE WHEN v_held THEN v_row.batch_end ELSE 9223372036854775807 END) r ON r.n = u.ord;

    SELECT a.pos, a.word INTO v_head, v_head_word
    FROM unnest(v_positions, p_statuses) AS a (pos, word)
    WHERE a.pos IS NOT NULL AND a.word <> 'completed'
    ORDER BY a.pos, array_position(ARRAY['dlq', 'failed', 'retry'], a.word)
    LIMIT 1;
    SELECT max(a.pos) INTO v_completed
    FROM unnest(v_positions, p_statuses) AS a (pos, word) WHERE a.word = 'completed';
    v_to := greatest(v_row.committed, least(v_completed, v_head - 1));
    IF v_completed IS NULL THEN
        v_to := v_row.committed;
    END IF;

    IF v_head IS NOT NULL THEN
        v_release := true;
        v_result := v_result || jsonb_build_object('off', v_head);
        -- The budget counts once per call, and starts anew when this call passes the charged head.
        IF v_head_word = 'failed'
           AND (CASE WHEN v_to >= v_row.retry_offset THEN 0 ELSE v_row.batch_retry_count END)
               < v_part.retry_limit THEN
            v_charge := v_head;
        ELSIF v_head_word = 'dlq' OR (v_head_word = 'failed' AND v_part.dead_letters) THEN
            v_result := v_result || jsonb_build_object('dlq', true);
        ELSIF v_head_word = 'failed' THEN
            v_to := v_head;
            v_dropped := true;
            v_result := v_result || jsonb_build_object('dropped', true);
        END IF;
    ELSIF v_row.batch_end IS NOT NULL AND v_to >= v_row.batch_end THEN
        v_release := true;
        v_result := v_result || jsonb_build_object('covered', v_held);
    END IF;
    IF v_release OR v_to > v_row.committed THEN
        PERFORM queen._settle(p_pid, p_group, v_to, v_release, v_charge, v_dropped,
                              v_to - v_row.committed);
    END IF;

    -- What was not in the span is classified by a second look, which is rare.
    IF array_position(v_positions, NULL) IS NOT NULL THEN
        v_rest := ARRAY(SELECT a.hash FROM unnest(p_hashes, v_positions) WITH ORDINALITY
                             AS a (hash, pos, ord) WHERE a.pos IS NULL ORDER BY a.ord);
        SELECT coalesce(jsonb_agg(encode(h.hash, 'hex') ORDER BY h.ord)
                            FILTER (WHERE r.pos <= v_row.committed), '[]') AS noop,
               coalesce(jsonb_agg(encode(h.hash, 'hex') ORDER BY h.ord)
                            FILTER (WHERE r.pos > v_row.committed), '[]') AS stale,
               coalesce(jsonb_agg(encode(h.hash, 'hex') ORDER BY h.ord)
                            FILTER (WHERE r.pos IS NULL), '[]') AS unresolved
        INTO v_lists
        FROM unnest(v_rest) WITH ORDINALITY AS h (hash, ord)
        LEFT JOIN queen._resolve(p_pid, v_rest, v_part.txns_start, 9223372036854775807) r
          ON r.n = h.ord;
        v_result := v_result || jsonb_build_object(
            'noopHashes', v_lists.noop, 'staleHashes', v_lists.stale,
            'unresolvedHashes', v_lists.unresolved);
    END IF;
    RETURN v_result || jsonb_build_object(
        'ok', true, 'acked', v_to - v_row.committed,
        'leaseReleased', v_release AND v_row.worker_id IS NOT NULL);
END $$;

-- @
-- Extends every live lease of a worker to now + p_seconds, at least one second; never shortens one.
-- Result: {renewed, expiresAt (the earliest, null without one)}. p_pids names the partitions, when
-- the caller knows them; without it all cursors are read, since an index on worker_id would cost
-- each claim and each ack their HOT update. Leases of other tenants than p_tenant are left as they
-- are, as if nobody knew them (TEN-3); null is a caller of the first release, which has one tenant.
DROP FUNCTION IF EXISTS queen.log_renew_lease_v1(text, integer, uuid[]);
CREATE OR REPLACE FUNCTION queen.log_renew_lease_v1(
    p_worker text, p_seconds integer, p_pids uuid[] DEFAULT NULL, p_tenant uuid DEFAULT NULL)
RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    v_now    timestamptz := queen._clock();
    v_result jsonb;
BEGIN
    PERFORM 1 FROM queen.log_consumers c
    WHERE c.worker_id = p_worker AND p_worker <> '' AND c.lease_expires_at > v_now
      AND (p_pids IS NULL OR c.partition_id = ANY (p_pids))
      AND (p_tenant IS NULL OR EXISTS (
              SELECT FROM queen.log_partitions p JOIN queen.queues q ON q.id = p.queue_id
              WHERE p.id = c.partition_id AND q.tenant_id = p_tenant))
    ORDER BY c.partition_id, c.consumer_group
    FOR UPDATE;
    WITH renewed AS (
        UPDATE queen.log_consumers c SET lease_expires_at = greatest(
            c.lease_expires_at,
            v_now + make_interval(secs => greatest(coalesce(p_seconds, 1), 1)))
        WHERE c.worker_id = p_worker AND p_worker <> '' AND c.lease_expires_at > v_now
          AND (p_pids IS NULL OR c.partition_id = ANY (p_pids))
          AND (p_tenant IS NULL OR EXISTS (
                  SELECT FROM queen.log_partitions p JOIN queen.queues q ON q.id = p.queue_id
                  WHERE p.id = c.partition_id AND q.tenant_id = p_tenant))
        RETURNING c.lease_expires_at)
    SELECT jsonb_build_object('renewed', count(*),
                              'expiresAt', queen._iso(min(r.lease_expires_at)))
    INTO v_result
    FROM renewed r;
    RETURN v_result;
END $$;

-- @
-- Hands a leased batch back as if it had never been delivered: for an answer that could not be
-- written. Ends the lease and restores the attempt fields. False when the worker no longer holds a
-- live lease.
CREATE OR REPLACE FUNCTION queen.log_release_undelivered_v1(
    p_pid uuid, p_group text, p_worker text)
RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE queen.log_consumers c SET
        worker_id = NULL, lease_expires_at = NULL, lease_acquired_at = NULL, batch_end = NULL,
        attempt_offset = c.prior_attempt_offset, attempt_count = c.prior_attempt_count,
        prior_attempt_offset = NULL, prior_attempt_count = 0
    WHERE c.partition_id = p_pid AND c.consumer_group = p_group
      AND c.worker_id = p_worker AND c.lease_expires_at > queen._clock();
    RETURN FOUND;
END $$;

-- @
SELECT queen._keep_only(ARRAY[
    '_settle(uuid, text, bigint, boolean, bigint, boolean, bigint)',
    '_resolve(uuid, bytea[], bigint, bigint)',
    'log_ack_at_v1(uuid, text, text, bigint, boolean, bigint)',
    'log_ack_v1(text, text, text, text, bigint, boolean, bigint, uuid)',
    'log_ack_multi_v1(uuid[], text[], bigint[], text[], bigint[])',
    'log_ack_by_hash_v1(uuid, text, text, bytea[], text[], uuid)',
    'log_renew_lease_v1(text, integer, uuid[], uuid)',
    'log_release_undelivered_v1(uuid, text, text)']);
