-- 005_log_ack.sql: moving cursors, ending leases, filing dead letters.
--
-- An ack locks the cursor row and, for several rows, in (partition, group) order; it may wait for
-- a pop that holds the row, which is short. The row is validated under the lock, so an ack of an
-- expired or lost lease changes nothing (K08). Only the database's clock judges a lease.
-- Lock order as in 001: log_consumers, then log_dlq. An ack that brings letters first locks its
-- queue row FOR KEY SHARE, since log_dlq refers to it and whoever deletes the queue locks from the
-- queue downwards. Settings are read without a lock.
-- Expected refusals are values: partition not found, consumer not found, invalid or expired lease,
-- no leased batch, position beyond leased batch, batch was begun, partition not owned by tenant.
-- Raises 22023 for arrays of different length and unknown words.
--
-- Dead letters in two steps. SQL cannot open a segment, so the first call, with letters '{}',
-- changes nothing when dead letters are due and answers with their offsets; the broker reads these
-- messages and calls again. The second call judges everything anew: what it needs may have become
-- more.
--
-- Inside a transaction of one's own: call log_ack_by_hash_v1 for each (partition, group), in that
-- order, after all locks of 1 to 3 of the lock order: that is, lock each queue that gets letters
-- FOR KEY SHARE before any partition. Give p_letter_offsets '{}' at first. Answers to tell apart:
-- ok false, refused; letters not null, nothing was done: roll back, read those messages, run the
-- transaction again with them; else settled, filedItems became dead letters, rejectedItems could
-- not, and noopHashes, staleHashes and unresolvedHashes were not honoured (a completed noop is
-- harmless). After the commit announce when leaseReleased or freed, with covered.
--
-- Signatures grew: the old one goes in the statement that makes the new one, or the calls of
-- brokers that are still running would be ambiguous between the two.

-- Writes the outcome of an ack to a cursor row that the caller has locked: the cursor, the end of
-- the lease if p_release, a charge of the retry budget on the head p_charge if that is not null,
-- or with p_reset a fresh budget. A batch that is not complete leaves the attempt count with its
-- first open offset, so that the next delivery goes on counting (K18). Completing the batch or
-- passing the head that was charged gives a fresh budget. What follows a message that was given up
-- counts its deliveries from one. p_hold: until then nobody gets the
-- partition in this group; needs p_release.
DROP FUNCTION IF EXISTS queen._settle(uuid, text, bigint, boolean, bigint, boolean, bigint);
CREATE OR REPLACE FUNCTION queen._settle(
    p_pid uuid, p_group text, p_committed bigint, p_release boolean, p_charge bigint,
    p_reset boolean, p_consumed bigint, p_hold timestamptz DEFAULT NULL)
RETURNS void
LANGUAGE sql AS $$
    UPDATE queen.log_consumers c SET
        committed = p_committed,
        total_consumed = c.total_consumed + p_consumed,
        worker_id = CASE WHEN p_hold IS NOT NULL THEN ''
                         WHEN p_release THEN NULL ELSE c.worker_id END,
        lease_expires_at = CASE WHEN p_release THEN p_hold ELSE c.lease_expires_at END,
        lease_acquired_at = CASE WHEN p_release THEN NULL ELSE c.lease_acquired_at END,
        batch_end = CASE WHEN p_release THEN NULL ELSE c.batch_end END,
        attempt_offset = CASE WHEN p_committed = c.committed THEN c.attempt_offset
                              WHEN p_reset THEN NULL
                              WHEN p_committed < c.batch_end THEN p_committed + 1 END,
        attempt_count = CASE WHEN p_committed = c.committed THEN c.attempt_count
                             WHEN p_reset THEN 0
                             WHEN p_committed < c.batch_end THEN c.attempt_count ELSE 0 END,
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
-- Result: {ok, acked, leaseReleased, covered, queue, partition} or {ok: false, acked: 0, error,
-- ...}; acked: how far the cursor moved; covered: this ack ended the lease with its whole batch
-- completed. p_count: messages in the caller's eyes, for total_consumed; 0: as far as the cursor
-- moved. p_tenant, when given, must own the partition. p_first, when given, is the first offset of
-- the batch, and refused is what was begun already: the caller can then not tell what it completes
-- from what it repeats (AR-3). Completing the one message of a conflated batch counts as one, and
-- conflated says how many it skipped (CF-2).
DROP FUNCTION IF EXISTS queen.log_ack_at_v1(uuid, text, text, bigint, boolean, bigint);
CREATE OR REPLACE FUNCTION queen.log_ack_at_v1(
    p_pid uuid, p_group text, p_worker text, p_upto bigint, p_ok boolean DEFAULT true,
    p_count bigint DEFAULT 0, p_tenant uuid DEFAULT NULL, p_first bigint DEFAULT NULL)
RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    v_part    record;
    v_row     record;
    v_to      bigint;
    v_error   text;
    v_end     boolean;
    v_skipped bigint := 0;
BEGIN
    SELECT q.tenant_id, q.name AS queue, p.name AS part INTO v_part
    FROM queen.log_partitions p
    JOIN queen.queues q ON q.id = p.queue_id
    WHERE p.id = p_pid;
    IF v_part.tenant_id <> p_tenant THEN
        RETURN jsonb_build_object('ok', false, 'acked', 0,
                                  'error', 'partition not owned by tenant',
                                  'leaseReleased', false, 'covered', false);
    END IF;
    SELECT c.committed, c.batch_end, c.worker_id, c.lease_expires_at, c.lease_conflated
    INTO v_row
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
    ELSIF p_ok AND v_row.committed >= p_first THEN
        v_error := 'batch was begun';
    END IF;
    IF v_error IS NOT NULL THEN
        RETURN jsonb_build_object('ok', false, 'acked', 0, 'error', v_error,
                                  'leaseReleased', false, 'covered', false);
    END IF;

    v_to := CASE WHEN p_ok THEN greatest(p_upto, v_row.committed) ELSE v_row.committed END;
    v_end := NOT p_ok OR v_to >= v_row.batch_end;
    IF v_row.lease_conflated AND p_ok AND v_end THEN
        v_skipped := greatest(v_to - v_row.committed - 1, 0);
    END IF;
    PERFORM queen._settle(p_pid, p_group, v_to, v_end, NULL, false,
                          CASE WHEN p_ok AND p_count > 0 THEN p_count
                               ELSE v_to - v_row.committed - v_skipped END);
    RETURN jsonb_build_object('ok', true, 'acked', v_to - v_row.committed,
                              'leaseReleased', v_end, 'covered', p_ok AND v_end,
                              'queue', v_part.queue, 'partition', v_part.part)
        || CASE WHEN v_skipped > 0 THEN jsonb_build_object('conflated', v_skipped)
                ELSE '{}' END;
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
-- order: {ok: true, results: [...]}. A refused one leaves its neighbours alone. p_firsts as
-- p_first of log_ack_at_v1.
DROP FUNCTION IF EXISTS queen.log_ack_multi_v1(uuid[], text[], bigint[], text[], bigint[]);
CREATE OR REPLACE FUNCTION queen.log_ack_multi_v1(
    p_pids uuid[], p_groups text[], p_ends bigint[], p_workers text[], p_counts bigint[],
    p_tenant uuid DEFAULT NULL, p_firsts bigint[] DEFAULT NULL)
RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    v_n       integer := coalesce(cardinality(p_pids), 0);
    v_results jsonb[] := array_fill(NULL::jsonb, ARRAY[v_n]);
    v_ack     record;
BEGIN
    IF coalesce(cardinality(p_groups), 0) <> v_n OR coalesce(cardinality(p_ends), 0) <> v_n
       OR coalesce(cardinality(p_workers), 0) <> v_n
       OR coalesce(cardinality(p_counts), 0) <> v_n
       OR coalesce(cardinality(p_firsts), v_n) <> v_n THEN
        RAISE EXCEPTION 'QMULTI: arrays of different length' USING ERRCODE = '22023';
    END IF;
    FOR v_ack IN
        SELECT u.*
        FROM unnest(p_pids, p_groups, p_ends, p_workers, p_counts, p_firsts) WITH ORDINALITY
             AS u (pid, grp, upto, worker, count, first, ord)
        ORDER BY u.pid, u.grp, u.ord
    LOOP
        v_results[v_ack.ord::integer] := queen.log_ack_at_v1(
            v_ack.pid, v_ack.grp, v_ack.worker, v_ack.upto, true, v_ack.count, p_tenant,
            v_ack.first);
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
--
-- Signals are settled in order, each as the head it becomes when those before it are out of the
-- way. What has to come back ends it: a retry, free of charge (AK-6); a failed one whose budget
-- lasts, charged once (AK-7). What is given up is passed: dlq, and failed when the budget is spent,
-- as a dead letter if the queue wants them, else failed is dropped. After that, a message that
-- nobody named ends it too, unless a completed one lies above it. Passing a message gives what
-- follows a fresh budget. Any signal ends the lease. With the queue's retry_delay set, a charge
-- keeps the partition from the group for that long.
--
-- Letters, arrays side by side, one element a message: offset, message id, transaction id, trace id
-- (zeros: none), producer ('': none), payload as stored, whether it is encrypted, time of its
-- segment. p_letter_offsets null is a caller that has none, and so is p_last: the first position
-- whose letter is missing stays, and ends it (brokers of the first release call so). Otherwise
-- missing letters are asked for, and nothing is changed: the answer has their offsets as letters.
-- p_errors: what consumers said of each hash, '' for nothing; none at all is '{}' or null (DQ-3).
--
-- Of a conflated batch only its last offset was delivered: hashes are looked for there alone, since
-- what it skipped may bear the same. A newer head than the one that was charged has a fresh budget.
--
-- Result: {ok, acked, off (the head, null without one), dlq (a dead letter was filed, or should
-- have been), dropped, leaseReleased, freed (a retry delay ended early), covered, conflated
-- (messages skipped, when there are any), queue, partition,
-- letters, filed (offsets), filedItems, rejectedItems (places in p_hashes, from 0), noopHashes,
-- staleHashes, unresolvedHashes} with hashes in hex; ok false comes with error. p_tenant, when
-- given, must own the partition. repeated: the lease is not the caller's any more, and everything it
-- completes was completed before; nothing was done.
DROP FUNCTION IF EXISTS queen.log_ack_by_hash_v1(uuid, text, text, bytea[], text[], uuid);
CREATE OR REPLACE FUNCTION queen.log_ack_by_hash_v1(
    p_pid uuid, p_group text, p_worker text, p_hashes bytea[], p_statuses text[],
    p_tenant uuid DEFAULT NULL, p_errors text[] DEFAULT NULL,
    p_letter_offsets bigint[] DEFAULT NULL, p_letter_ids uuid[] DEFAULT NULL,
    p_letter_txns text[] DEFAULT NULL, p_letter_traces uuid[] DEFAULT NULL,
    p_letter_producers text[] DEFAULT NULL, p_letter_payloads bytea[] DEFAULT NULL,
    p_letter_encrypted boolean[] DEFAULT NULL, p_letter_times timestamptz[] DEFAULT NULL,
    p_last boolean DEFAULT false)
RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    v_n          integer := coalesce(cardinality(p_letter_offsets), 0);
    v_last       boolean := p_last OR p_letter_offsets IS NULL;
    v_result     jsonb := jsonb_build_object(
        'ok', false, 'acked', 0, 'off', NULL, 'dlq', false, 'dropped', false,
        'leaseReleased', false, 'freed', false, 'covered', false, 'letters', NULL,
        'filed', '[]'::jsonb, 'filedItems', '[]'::jsonb, 'rejectedItems', '[]'::jsonb,
        'noopHashes', '[]'::jsonb, 'staleHashes', '[]'::jsonb, 'unresolvedHashes', '[]'::jsonb);
    v_part       record;
    v_row        record;
    v_now        timestamptz;
    v_held       boolean;           -- a live lease bounds the span
    v_waiting    boolean;           -- a retry delay keeps the partition
    v_alone      boolean;           -- of the batch only the end was delivered
    v_skipped    bigint := 0;
    v_positions  bigint[];
    v_rest       bytea[];
    v_completed  bigint;
    v_to         bigint;
    v_signal     record;
    v_head       bigint;            -- the lowest signal
    v_passed     boolean := false;  -- one was given up
    v_stopped    boolean := false;  -- one has to come back
    v_spent      integer;           -- of the budget of the signal at hand
    v_charge     bigint;
    v_hold       timestamptz;
    v_dropped    boolean := false;
    v_filed      bigint[] := '{}';
    v_retries    integer[] := '{}';
    v_missing    boolean := false;  -- a letter that can still be brought
    v_rejected   bigint;            -- the position whose letter cannot
    v_release    boolean;
    v_covered    boolean := false;
    v_lists      record;
BEGIN
    IF coalesce(cardinality(p_hashes), 0) <> coalesce(cardinality(p_statuses), 0)
       OR coalesce(nullif(cardinality(p_errors), 0), cardinality(p_hashes))
          <> cardinality(p_hashes)
       OR v_n > 0 AND (
           cardinality(p_letter_ids) IS DISTINCT FROM v_n
           OR cardinality(p_letter_txns) IS DISTINCT FROM v_n
           OR cardinality(p_letter_traces) IS DISTINCT FROM v_n
           OR cardinality(p_letter_producers) IS DISTINCT FROM v_n
           OR cardinality(p_letter_payloads) IS DISTINCT FROM v_n
           OR cardinality(p_letter_encrypted) IS DISTINCT FROM v_n
           OR cardinality(p_letter_times) IS DISTINCT FROM v_n) THEN
        RAISE EXCEPTION 'QMULTI: arrays of different length' USING ERRCODE = '22023';
    END IF;
    IF EXISTS (SELECT 1 FROM unnest(p_statuses) s
               WHERE s IS NULL OR s NOT IN ('completed', 'failed', 'retry', 'dlq')) THEN
        RAISE EXCEPTION 'unknown ack status; allowed: completed, failed, retry, dlq'
            USING ERRCODE = '22023';
    END IF;
    IF v_n > 0 THEN
        PERFORM 1 FROM queen.queues q
        WHERE q.id = (SELECT p.queue_id FROM queen.log_partitions p WHERE p.id = p_pid)
        FOR KEY SHARE;
    END IF;
    SELECT q.id AS queue_id, q.tenant_id, q.name AS queue, p.name AS part, p.txns_start,
           q.retry_limit, q.retry_delay,
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
           c.batch_retry_count, c.retry_offset, c.lease_conflated
    INTO v_row
    FROM queen.log_consumers c
    WHERE c.partition_id = p_pid AND c.consumer_group = p_group
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN v_result || jsonb_build_object('error', 'consumer not found');
    END IF;
    v_now := queen._clock();
    v_held := v_row.batch_end IS NOT NULL AND v_row.worker_id IS NOT NULL
              AND coalesce(v_row.lease_expires_at > v_now, false);
    IF coalesce(p_worker, '') <> ''
       AND NOT (v_held AND v_row.worker_id = p_worker) THEN
        -- Clients send an ack again whose answer they lost, and it ended the lease: what it
        -- completed is completed. The look stays near the cursor, no pop gives more than that.
        IF cardinality(p_hashes) > 0 AND v_row.committed >= 0 AND NOT EXISTS (
               SELECT 1 FROM unnest(p_statuses) s WHERE s <> 'completed')
           AND NOT EXISTS (
               SELECT 1 FROM generate_subscripts(p_hashes, 1) AS u (ord)
               LEFT JOIN queen._resolve(
                   p_pid, p_hashes, greatest(v_row.committed - 9999, v_part.txns_start),
                   v_row.committed) r ON r.n = u.ord
               WHERE r.n IS NULL) THEN
            RETURN v_result || jsonb_build_object(
                'ok', true, 'repeated', true,
                'noopHashes', (SELECT jsonb_agg(encode(h, 'hex')) FROM unnest(p_hashes) h));
        END IF;
        RETURN v_result || jsonb_build_object('error', 'invalid or expired lease');
    END IF;

    v_alone := v_held AND v_row.lease_conflated;
    SELECT array_agg(r.pos ORDER BY u.ord) INTO v_positions
    FROM generate_subscripts(p_hashes, 1) AS u (ord)
    LEFT JOIN queen._resolve(
        p_pid, p_hashes, CASE WHEN v_alone THEN v_row.batch_end
                              ELSE greatest(v_row.committed + 1, v_part.txns_start) END,
        CASE WHEN v_held THEN v_row.batch_end ELSE 9223372036854775807 END) r ON r.n = u.ord;
    SELECT max(a.pos) INTO v_completed
    FROM unnest(v_positions, p_statuses) AS a (pos, word) WHERE a.word = 'completed';

    v_to := v_row.committed;
    v_completed := greatest(v_completed, v_to);
    FOR v_signal IN
        SELECT n.pos, n.rank, l.pos IS NOT NULL AS letter
        FROM (SELECT a.pos, min(array_position(ARRAY['dlq', 'failed', 'retry'], a.word)) AS rank
              FROM unnest(v_positions, p_statuses) AS a (pos, word)
              WHERE a.pos IS NOT NULL AND a.word <> 'completed'
              GROUP BY a.pos) n
        LEFT JOIN unnest(p_letter_offsets) AS l (pos) ON l.pos = n.pos
        ORDER BY n.pos
    LOOP
        v_head := coalesce(v_head, v_signal.pos);
        v_to := greatest(v_to, least(v_completed, v_signal.pos - 1));
        -- The budget counts once per call, and starts anew when this call passes what was charged.
        v_spent := CASE WHEN v_passed OR v_to >= v_row.retry_offset
                             OR v_alone AND v_signal.pos > v_row.retry_offset
                        THEN 0 ELSE v_row.batch_retry_count END;
        v_stopped := true;
        EXIT WHEN v_signal.rank = 3 OR v_passed AND v_to < v_signal.pos - 1;
        IF v_signal.rank = 2 AND v_spent < v_part.retry_limit THEN
            v_charge := v_signal.pos;
            EXIT;
        ELSIF v_signal.rank = 1 OR v_part.dead_letters THEN
            IF v_last AND NOT v_signal.letter THEN
                v_rejected := v_signal.pos;
                EXIT;
            END IF;
            v_missing := v_missing OR NOT v_signal.letter;
            v_filed := array_append(v_filed, v_signal.pos);
            v_retries := array_append(v_retries, v_spent);
        ELSE
            v_dropped := true;
        END IF;
        v_stopped := false;
        v_passed := true;
        v_to := v_signal.pos;
    END LOOP;
    IF NOT v_stopped THEN
        v_to := greatest(v_to, v_completed);
    END IF;
    IF v_missing THEN
        RETURN v_result || jsonb_build_object(
            'ok', true, 'off', v_head, 'dlq', true, 'letters', to_jsonb(v_filed));
    END IF;

    v_waiting := coalesce(v_row.worker_id = '' AND v_row.lease_expires_at > v_now, false)
                 AND v_row.batch_end IS NULL;
    IF v_waiting THEN
        -- Ends with the head it was for; whatever else is acked meanwhile does not hasten that.
        v_release := v_charge IS NOT NULL OR coalesce(v_to >= v_row.retry_offset, false);
    ELSIF v_head IS NOT NULL THEN
        v_release := true;
    ELSE
        v_release := coalesce(v_to >= v_row.batch_end, false);
        v_covered := v_release AND v_held;
    END IF;
    IF v_alone AND v_to >= v_row.batch_end THEN
        v_skipped := greatest(v_to - v_row.committed - 1, 0);
    END IF;
    IF v_charge IS NOT NULL AND v_part.retry_delay > 0 THEN
        v_hold := v_now + v_part.retry_delay * interval '1 ms';
    END IF;
    IF v_release OR v_to > v_row.committed THEN
        PERFORM queen._settle(p_pid, p_group, v_to, v_release, v_charge,
                              v_passed OR v_alone AND coalesce(v_head > v_row.retry_offset, false),
                              v_to - v_row.committed - v_skipped, v_hold);
    END IF;
    IF v_skipped > 0 THEN
        v_result := v_result || jsonb_build_object('conflated', v_skipped);
    END IF;
    IF cardinality(v_filed) > 0 THEN
        INSERT INTO queen.log_dlq
            (queue_id, partition_id, consumer_group, "offset", message_id, transaction_id,
             trace_id, producer_sub, payload, encrypted, error, retry_count, created_at, failed_at)
        SELECT v_part.queue_id, p_pid, p_group, f.pos, l.id, l.txn,
               nullif(l.trace, '00000000-0000-0000-0000-000000000000'), nullif(l.producer, ''),
               l.payload, l.encrypted, coalesce(o.error, h.error, 'Retries exhausted'), f.retries,
               l.at, v_now
        FROM unnest(v_filed, v_retries) AS f (pos, retries)
        JOIN unnest(p_letter_offsets, p_letter_ids, p_letter_txns, p_letter_traces,
                    p_letter_producers, p_letter_payloads, p_letter_encrypted, p_letter_times)
             AS l (pos, id, txn, trace, producer, payload, encrypted, at) ON l.pos = f.pos
        LEFT JOIN (
            SELECT DISTINCT ON (a.pos) a.pos, a.error
            FROM unnest(v_positions, p_statuses, p_errors) WITH ORDINALITY
                 AS a (pos, word, error, ord)
            WHERE a.word <> 'completed' AND a.error <> ''
            ORDER BY a.pos, a.ord) o ON o.pos = f.pos
        LEFT JOIN (
            SELECT a.error
            FROM unnest(v_positions, p_statuses, p_errors) WITH ORDINALITY
                 AS a (pos, word, error, ord)
            WHERE a.word <> 'completed' AND a.error <> ''
            ORDER BY a.pos IS DISTINCT FROM v_head, a.ord LIMIT 1) h ON true
        ORDER BY f.pos;
    END IF;
    IF cardinality(v_filed) > 0 OR v_rejected IS NOT NULL THEN
        SELECT coalesce(jsonb_agg(a.ord - 1 ORDER BY a.ord)
                            FILTER (WHERE a.pos IS DISTINCT FROM v_rejected), '[]') AS filed,
               coalesce(jsonb_agg(a.ord - 1 ORDER BY a.ord)
                            FILTER (WHERE a.pos = v_rejected), '[]') AS rejected
        INTO v_lists
        FROM unnest(v_positions, p_statuses) WITH ORDINALITY AS a (pos, word, ord)
        JOIN unnest(array_append(v_filed, v_rejected)) AS f (pos) ON f.pos = a.pos
        WHERE a.word IN ('dlq', 'failed');
        v_result := v_result || jsonb_build_object(
            'dlq', true, 'filed', to_jsonb(v_filed), 'filedItems', v_lists.filed,
            'rejectedItems', v_lists.rejected);
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
        'ok', true, 'acked', v_to - v_row.committed, 'off', v_head, 'dropped', v_dropped,
        'covered', v_covered, 'freed', v_waiting AND v_release AND v_hold IS NULL,
        'leaseReleased', v_release AND coalesce(v_row.worker_id, '') <> '');
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
      AND c.worker_id = p_worker AND p_worker <> '' AND c.lease_expires_at > queen._clock();
    RETURN FOUND;
END $$;

-- @
SELECT queen._keep_only(ARRAY[
    '_settle(uuid, text, bigint, boolean, bigint, boolean, bigint, timestamptz)',
    '_resolve(uuid, bytea[], bigint, bigint)',
    'log_ack_at_v1(uuid, text, text, bigint, boolean, bigint, uuid, bigint)',
    'log_ack_v1(text, text, text, text, bigint, boolean, bigint, uuid)',
    'log_ack_multi_v1(uuid[], text[], bigint[], text[], bigint[], uuid, bigint[])',
    'log_ack_by_hash_v1(uuid, text, text, bytea[], text[], uuid, text[], bigint[], uuid[], text[], uuid[], text[], bytea[], boolean[], timestamptz[], boolean)',
    'log_renew_lease_v1(text, integer, uuid[], uuid)',
    'log_release_undelivered_v1(uuid, text, text)']);
