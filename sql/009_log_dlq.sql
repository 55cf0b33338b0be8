-- 009_log_dlq.sql: dead letters: reading, removing and replaying them. Filing them is the acks' and
-- the timers' business.
--
-- Order: a letter's place in a list is (failed_at, id), newest first, so that equal stamps have an
-- order too (K41). Nothing here tells one tenant about another's letters: each statement joins the
-- queue.
-- Lock order: log_dlq_move_v1 takes its letter before the partition it appends to, the other way
-- round than a delete of the letter's queue, which reaches the letters last. So it holds the queue
-- row first, FOR KEY SHARE, which such a delete waits for; the letter next; then what a push takes.
-- Several letters are locked by ascending id.
-- Errors: 22023 for an empty destination; those of a push (003) from a move: the letter stays.

-- What is known of the messages at some offsets of a partition: the browser's question.
DO $$
BEGIN
    IF to_regclass('queen.log_dlq_position') IS NULL THEN
        CREATE INDEX log_dlq_position ON queen.log_dlq (partition_id, "offset");
    END IF;
END $$;

-- @
-- Letters by id, in the order of the ids, with the names they go by. From the first letter that
-- brings payloads and error texts over p_bytes together, payloads stay behind (o_available is
-- false) and errors are cut to 1,000 characters; the first letter is always whole.
-- Those that hand it on have its columns, so all four come in one transaction (DM-4). A version
-- before this one had no timer_key.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_proc p
               WHERE p.oid = to_regprocedure('queen._letters(uuid[], bigint)')
                 AND NOT 'timer_key' = ANY (p.proargnames)) THEN
        DROP FUNCTION queen._letters(uuid[], bigint);
        DROP FUNCTION queen.log_dlq_list_v1(uuid, text, text, text, timestamptz, timestamptz,
                                            timestamptz, uuid, integer, integer, bigint);
        DROP FUNCTION queen.log_dlq_find_v1(uuid, uuid);
        DROP FUNCTION queen.log_dlq_newest_v1(uuid, uuid, text);
    END IF;
END $$;
CREATE OR REPLACE FUNCTION queen._letters(p_ids uuid[], p_bytes bigint)
RETURNS TABLE (id uuid, partition_id uuid, queue text, partition text, consumer_group text,
               "offset" bigint, message_id uuid, transaction_id text, trace_id uuid,
               producer_sub text, payload bytea, encrypted boolean, available boolean, error text,
               retry_count integer, created_at timestamptz, failed_at timestamptz, timer_key text)
LANGUAGE sql STABLE AS $$
    SELECT d.id, d.partition_id, q.name::text, coalesce(p.name, d.partition_name, ''),
           d.consumer_group, d."offset", d.message_id, d.transaction_id, d.trace_id, d.producer_sub,
           CASE WHEN d.fits THEN d.payload END, d.encrypted, d.fits,
           CASE WHEN d.fits THEN d.error ELSE left(d.error, 1000) END, d.retry_count,
           d.created_at, d.failed_at, d.timer_key
    FROM (SELECT l.*, w.ord,
                 w.ord = 1 OR sum(coalesce(octet_length(l.payload), 0)::bigint
                                  + coalesce(octet_length(l.error), 0)) OVER (ORDER BY w.ord)
                              <= p_bytes AS fits
          FROM unnest(p_ids) WITH ORDINALITY AS w (id, ord)
          JOIN queen.log_dlq l ON l.id = w.id) d
    JOIN queen.queues q ON q.id = d.queue_id
    LEFT JOIN queen.log_partitions p ON p.id = d.partition_id
    ORDER BY d.ord
$$;

-- A page of a tenant's letters, newest first, and in each row how many match in all; one row
-- without an id when the page is empty. Null filters match everything. p_to is exclusive. A page
-- that goes on behind (p_after_at, p_after_id) has no offset.
--
-- The page is taken before anything is joined or aggregated, from as many index steps as offset and
-- page together have letters, for each queue (F-62); a filter for a group reads past the others, one
-- for a partition past the timers' letters of its queue that were for another.
-- The total is counted, over index entries when there is no filter for a group.
CREATE OR REPLACE FUNCTION queen.log_dlq_list_v1(
    p_tenant uuid, p_queue text, p_group text, p_partition text, p_from timestamptz,
    p_to timestamptz, p_after_at timestamptz, p_after_id uuid, p_limit integer, p_offset integer,
    p_bytes bigint)
RETURNS TABLE (total bigint, id uuid, partition_id uuid, queue text, partition text,
               consumer_group text, "offset" bigint, message_id uuid, transaction_id text,
               trace_id uuid, producer_sub text, payload bytea, encrypted boolean,
               available boolean, error text, retry_count integer, created_at timestamptz,
               failed_at timestamptz, timer_key text)
LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
DECLARE
    v_from  timestamptz := coalesce(p_from, '-infinity');
    v_to    timestamptz := coalesce(p_to, 'infinity');
    v_at    timestamptz := v_to;
    v_id    uuid := '00000000-0000-0000-0000-000000000000';
    v_qids  uuid[];
    v_pids  uuid[];
    v_ids   uuid[];
    v_total bigint;
BEGIN
    IF (p_after_at, p_after_id) < (v_at, v_id) THEN
        v_at := p_after_at;
        v_id := p_after_id;
    END IF;
    IF p_queue IS NULL THEN
        v_qids := ARRAY(SELECT q.id FROM queen.queues q WHERE q.tenant_id = p_tenant);
    ELSE
        v_qids := ARRAY(SELECT q.id FROM queen.queues q
                        WHERE q.tenant_id = p_tenant AND q.name = p_queue);
    END IF;

    IF p_partition IS NULL THEN
        v_ids := ARRAY(
            SELECT d.id
            FROM unnest(v_qids) AS u (qid)
            CROSS JOIN LATERAL (
                SELECT l.id, l.failed_at FROM queen.log_dlq l
                WHERE l.queue_id = u.qid AND (l.failed_at, l.id) < (v_at, v_id)
                  AND l.failed_at >= v_from
                  AND (p_group IS NULL OR l.consumer_group = p_group)
                ORDER BY l.failed_at DESC, l.id DESC LIMIT p_limit::bigint + p_offset) d
            ORDER BY d.failed_at DESC, d.id DESC LIMIT p_limit OFFSET p_offset);
        IF p_group IS NULL THEN
            SELECT coalesce(sum(c.n), 0) INTO v_total
            FROM unnest(v_qids) AS u (qid)
            CROSS JOIN LATERAL (
                SELECT count(*) AS n FROM queen.log_dlq l
                WHERE l.queue_id = u.qid AND l.failed_at >= v_from AND l.failed_at < v_to) c;
        ELSE
            SELECT coalesce(sum(c.n), 0) INTO v_total
            FROM unnest(v_qids) AS u (qid)
            CROSS JOIN LATERAL (
                SELECT count(*) AS n FROM queen.log_dlq l
                WHERE l.queue_id = u.qid AND l.failed_at >= v_from AND l.failed_at < v_to
                  AND l.consumer_group = p_group) c;
        END IF;
    ELSE
        v_pids := v_qids || ARRAY(
            SELECT p.id FROM unnest(v_qids) AS u (qid)
            JOIN queen.log_partitions p ON p.queue_id = u.qid AND p.name = p_partition);
        v_ids := ARRAY(
            SELECT d.id
            FROM unnest(v_pids) AS u (pid)
            CROSS JOIN LATERAL (
                SELECT l.id, l.failed_at FROM queen.log_dlq l
                WHERE l.partition_id = u.pid AND l.failed_at <= v_at
                  AND (l.failed_at, l.id) < (v_at, v_id) AND l.failed_at >= v_from
                  AND (l.partition_id <> l.queue_id OR l.partition_name = p_partition)
                  AND (p_group IS NULL OR l.consumer_group = p_group)
                ORDER BY l.failed_at DESC, l.id DESC LIMIT p_limit::bigint + p_offset) d
            ORDER BY d.failed_at DESC, d.id DESC LIMIT p_limit OFFSET p_offset);
        SELECT coalesce(sum(c.n), 0) INTO v_total
        FROM unnest(v_pids) AS u (pid)
        CROSS JOIN LATERAL (
            SELECT count(*) AS n FROM queen.log_dlq l
            WHERE l.partition_id = u.pid AND l.failed_at >= v_from AND l.failed_at < v_to
              AND (l.partition_id <> l.queue_id OR l.partition_name = p_partition)
              AND (p_group IS NULL OR l.consumer_group = p_group)) c;
    END IF;

    RETURN QUERY
    SELECT v_total, x.*
    FROM (SELECT) one
    LEFT JOIN LATERAL queen._letters(v_ids, p_bytes) x ON true;
END $$;

-- One letter of a tenant; no row when there is none of that id.
CREATE OR REPLACE FUNCTION queen.log_dlq_find_v1(p_tenant uuid, p_id uuid)
RETURNS TABLE (id uuid, partition_id uuid, queue text, partition text, consumer_group text,
               "offset" bigint, message_id uuid, transaction_id text, trace_id uuid,
               producer_sub text, payload bytea, encrypted boolean, available boolean, error text,
               retry_count integer, created_at timestamptz, failed_at timestamptz, timer_key text)
LANGUAGE sql STABLE AS $$
    SELECT x.*
    FROM queen.log_dlq d
    JOIN queen.queues q ON q.id = d.queue_id AND q.tenant_id = p_tenant
    CROSS JOIN LATERAL queen._letters(ARRAY[d.id], 0) x
    WHERE d.id = p_id
$$;

-- The newest letter of a message, whichever group gave it up.
CREATE OR REPLACE FUNCTION queen.log_dlq_newest_v1(p_tenant uuid, p_pid uuid, p_txn text)
RETURNS TABLE (id uuid, partition_id uuid, queue text, partition text, consumer_group text,
               "offset" bigint, message_id uuid, transaction_id text, trace_id uuid,
               producer_sub text, payload bytea, encrypted boolean, available boolean, error text,
               retry_count integer, created_at timestamptz, failed_at timestamptz, timer_key text)
LANGUAGE sql STABLE AS $$
    SELECT x.*
    FROM (SELECT l.id FROM queen.log_dlq l
          JOIN queen.queues q ON q.id = l.queue_id AND q.tenant_id = p_tenant
          WHERE l.partition_id = p_pid AND l.transaction_id = p_txn
          ORDER BY l.failed_at DESC, l.id DESC LIMIT 1) d
    CROSS JOIN LATERAL queen._letters(ARRAY[d.id], 0) x
$$;

-- @
-- Removes the letters of one message, those of all groups. @return how many
CREATE OR REPLACE FUNCTION queen.delete_message_v1(p_tenant uuid, p_pid uuid, p_txn text)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_ids  uuid[];
    v_gone bigint;
BEGIN
    v_ids := ARRAY(SELECT l.id FROM queen.log_dlq l
                   WHERE l.partition_id = p_pid AND l.transaction_id = p_txn
                     AND EXISTS (SELECT 1 FROM queen.queues q
                                 WHERE q.id = l.queue_id AND q.tenant_id = p_tenant)
                   ORDER BY l.id FOR UPDATE);
    DELETE FROM queen.log_dlq l WHERE l.id = ANY (v_ids);
    GET DIAGNOSTICS v_gone = ROW_COUNT;
    RETURN v_gone;
END $$;

-- @
-- Removes the letters of a queue, of one group or, with null, of all. @return how many
CREATE OR REPLACE FUNCTION queen.purge_dlq_v1(
    p_tenant uuid, p_queue text, p_group text DEFAULT NULL)
RETURNS bigint
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    v_qid  uuid := (SELECT q.id FROM queen.queues q
                    WHERE q.tenant_id = p_tenant AND q.name = p_queue);
    v_gone bigint;
BEGIN
    WITH mine AS MATERIALIZED (
        SELECT l.id FROM queen.log_dlq l
        WHERE l.queue_id = v_qid AND (p_group IS NULL OR l.consumer_group = p_group)
        ORDER BY l.id FOR UPDATE)
    DELETE FROM queen.log_dlq l USING mine WHERE l.id = mine.id;
    GET DIAGNOSTICS v_gone = ROW_COUNT;
    RETURN v_gone;
END $$;

-- @
-- Puts a letter back into a queue and removes it, both or neither (DQ-4): appends p_blob, one frame
-- whose hash is p_hashes, to the destination, which is made if need be, like a push. The frame's
-- transaction id is 'dlq:' and the letter's, so whatever was replayed once is a duplicate later,
-- and the original's own id, in the dedup window or not, is no obstacle (K45).
-- Result: {result: moved, consumerGroup, queue, partition, partitionId, offset}; {result:
-- duplicate, ...} with the offset of what is there, and the letter stays; {result: gone} when there
-- is no such letter, or somebody else moved it first: he holds it until he is done; {result:
-- refused, encrypted, ...} when the destination wants the frame in the other form, which encrypted
-- says, and the letter stays (ENC-5).
-- p_encrypted: whether the frame is; null: as the letter is stored.
-- The predecessor goes in the same transaction: two that fit one call would fail it (DM-4).
DROP FUNCTION IF EXISTS queen.log_dlq_move_v1(uuid, uuid, text, text, bytea, bytea);
CREATE OR REPLACE FUNCTION queen.log_dlq_move_v1(
    p_tenant uuid, p_id uuid, p_queue text, p_partition text, p_hashes bytea, p_blob bytea,
    p_encrypted boolean DEFAULT NULL)
RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    v_group  text;
    v_sealed boolean;
    v_pushed jsonb;
BEGIN
    IF coalesce(p_queue, '') = '' OR coalesce(p_partition, '') = '' THEN
        RAISE EXCEPTION 'QDLQ: empty queue or partition name' USING ERRCODE = '22023';
    END IF;
    PERFORM set_config('lock_timeout', queen._push_lock_timeout(), true);
    PERFORM 1 FROM queen.queues q
    WHERE q.tenant_id = p_tenant
      AND q.id = (SELECT l.queue_id FROM queen.log_dlq l WHERE l.id = p_id)
    FOR KEY SHARE;
    IF NOT FOUND THEN
        RETURN jsonb_build_object('result', 'gone');
    END IF;
    SELECT l.consumer_group, l.encrypted INTO v_group, v_sealed
    FROM queen.log_dlq l WHERE l.id = p_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN jsonb_build_object('result', 'gone');
    END IF;
    v_pushed := queen.log_push_one_v1(p_queue, p_partition, 1, p_hashes, -1, p_blob,
                                      p_tenant => p_tenant,
                                      p_encrypted => coalesce(p_encrypted, v_sealed));
    IF v_pushed ->> 'status' = 'queued' THEN
        DELETE FROM queen.log_dlq l WHERE l.id = p_id;
    END IF;
    RETURN jsonb_build_object(
        'result', CASE v_pushed ->> 'status' WHEN 'queued' THEN 'moved'
                                             WHEN 'duplicate' THEN 'duplicate'
                                             ELSE 'refused' END,
        'consumerGroup', v_group, 'queue', p_queue, 'partition', p_partition,
        'partitionId', v_pushed -> 'partitionId',
        'offset', coalesce(v_pushed -> 'baseOffset', v_pushed #> '{dups,0,off}'),
        'encrypted', v_pushed -> 'encrypted');
END $$;

-- @
SELECT queen._keep_only(ARRAY[
    '_letters(uuid[], bigint)',
    'log_dlq_list_v1(uuid, text, text, text, timestamptz, timestamptz, timestamptz, uuid, integer, '
        || 'integer, bigint)',
    'log_dlq_find_v1(uuid, uuid)', 'log_dlq_newest_v1(uuid, uuid, text)',
    'delete_message_v1(uuid, uuid, text)', 'purge_dlq_v1(uuid, text, text)',
    'log_dlq_move_v1(uuid, uuid, text, text, bytea, bytea, boolean)']);
