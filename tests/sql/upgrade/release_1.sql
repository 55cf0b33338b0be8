-- The schema as the first release installed it, with a little of everything in its tables: two
-- queues, three partitions, a group that consumed, a lease that is open. Made by pg_dump; a boot of
-- this version must bring it up to date under load. Never edited: later releases get files of their
-- own.
--
-- PostgreSQL database dump
--


-- Dumped from database version 15.20 (Debian 15.20-0+deb12u1)
-- Dumped by pg_dump version 15.20 (Debian 15.20-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: queen; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA queen;


--
-- Name: SCHEMA queen; Type: COMMENT; Schema: -; Owner: -
--

COMMENT ON SCHEMA queen IS 'queen broker schema, version 1';


--
-- Name: _any_pending(uuid[], text); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._any_pending(p_qids uuid[], p_group text) RETURNS boolean
    LANGUAGE plpgsql STABLE
    AS $$
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


--
-- Name: _append(uuid, integer, integer, bytea, bigint, bytea, uuid, bigint, bigint, timestamp with time zone); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._append(p_pid uuid, p_window integer, p_count integer, p_hashes bytea, p_verified bigint, p_blob bytea, p_vouch_pid uuid DEFAULT NULL::uuid, p_vouch_from bigint DEFAULT NULL::bigint, p_vouch_upto bigint DEFAULT NULL::bigint, p_vouch_at timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS jsonb
    LANGUAGE plpgsql
    AS $$
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
    -- for the row, so the stamp is younger than that of the push before.
    UPDATE queen.log_partitions p SET
        last_offset = p.last_offset + p_count,
        newest_at = greatest(queen._clock(), p.newest_at, v_now),
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


--
-- Name: _claim(uuid[], text[], text, integer, integer, text, boolean, integer, text, timestamp with time zone, boolean, boolean, timestamp with time zone); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._claim(p_qids uuid[], p_names text[], p_group text, p_budget integer, p_lease_s integer, p_worker text, p_auto_ack boolean, p_max_partitions integer, p_mode text, p_at timestamp with time zone, p_skip_window boolean, p_name_queue boolean, p_now timestamp with time zone, OUT o_parts jsonb[], OUT o_blobs bytea[], OUT o_names text[], OUT o_ids uuid[], OUT o_lasts bigint[], OUT o_untils timestamp with time zone[], OUT o_took integer[], OUT o_reached integer) RETURNS record
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_memoize TO 'off'
    AS $$
DECLARE
    c_all       CONSTANT integer := 2147483647;
    v_left      integer := greatest(coalesce(p_budget, 1), 1);
    v_max       integer := CASE WHEN p_max_partitions > 0 THEN p_max_partitions ELSE c_all END;
    v_bytes     bigint := 0;                -- taken
    v_from      integer := 1;               -- the first candidate of this round
    v_next      integer;                    -- and of the next one
    v_least     integer := 1;               -- rows this round locks in any case
    v_seen      integer := 0;               -- places used in o_names and its like
    v_row       record;
    v_committed bigint;
    v_skipped   integer[] := '{}';
    v_claimed   integer;                    -- locked in this round:
    v_places    integer[];
    v_pids      uuid[];
    v_cursors   bigint[];
    v_ripes     timestamptz[];
    v_messages  bigint;                     -- at most so many do they hold
    v_stored    bigint;                     -- and so many bytes
    v_before    integer;
    v_place     integer;
    v_first     bigint;
    v_take      integer;
    v_size      integer;
    v_of_one    bigint;                     -- bytes looked at in one partition
    v_cut       boolean;
    v_n         integer := 0;               -- partitions taken:
    v_ids       uuid[] := '{}';
    v_firsts    bigint[] := '{}';
    v_ends      bigint[] := '{}';
    v_taken     integer[] := '{}';
    v_queues    text[] := '{}';             -- by place
    v_leases    integer[] := '{}';
    v_attempts  integer[];
    v_of        integer[] := '{}';          -- segments taken: the partition each belongs to
    v_bases     bigint[] := '{}';
    v_starts    integer[] := '{}';
    v_takes     integer[] := '{}';
    v_counts    integer[] := '{}';
    v_times     timestamptz[] := '{}';
    v_rows      NO SCROLL CURSOR FOR
        SELECT n.i, n.qid, n.name, p.pid, p.last_offset, p.stored_bytes, p.queue, p.lease, p.ripe,
               p.quiet, l.committed AS locked, c.committed, c.until,
               p.last_offset - greatest(c.committed, p.log_start - 1) AS pending
        FROM (SELECT u.qid, u.name, min(u.i)::integer AS i
              FROM unnest(p_qids, p_names) WITH ORDINALITY AS u (qid, name, i)
              GROUP BY u.qid, u.name HAVING min(u.i) >= v_from
              ORDER BY 3 OFFSET 0) n
        LEFT JOIN LATERAL (
            SELECT p.id AS pid, p.last_offset, p.log_start, p.stored_bytes, q.name AS queue,
                   queen._lease_seconds(p_lease_s, q.lease_time) AS lease,
                   queen._older(p_now, q.delayed_processing) AS ripe,
                   p_skip_window OR p.newest_at IS NULL
                       OR p.newest_at <= queen._older(p_now, q.window_buffer) AS quiet
            FROM queen.log_partitions p
            JOIN queen.queues q ON q.id = p.queue_id
            WHERE p.queue_id = n.qid AND p.name = n.name
            OFFSET 0) p ON true
        LEFT JOIN LATERAL (
            SELECT k.committed, CASE WHEN k.worker_id IS NOT NULL AND k.lease_expires_at >= p_now
                                     THEN k.lease_expires_at END AS until
            FROM queen.log_consumers k
            WHERE k.partition_id = p.pid AND k.consumer_group = p_group
            OFFSET 0) c ON true
        LEFT JOIN LATERAL (
            SELECT k.committed
            FROM queen.log_consumers k
            WHERE k.partition_id = p.pid AND k.consumer_group = p_group
              AND p.quiet AND c.until IS NULL AND c.committed < p.last_offset
              AND (k.worker_id IS NULL OR k.lease_expires_at IS NULL
                   OR k.lease_expires_at < p_now)
              AND k.committed < p.last_offset
            FOR UPDATE SKIP LOCKED) l ON true;
BEGIN
    o_parts := '{}';
    o_blobs := '{}';
    o_names := '{}';
    o_ids := '{}';
    o_lasts := '{}';
    o_untils := '{}';
    o_took := '{}';
    o_reached := c_all;
    LOOP
        v_claimed := 0;
        v_places := '{}';
        v_pids := '{}';
        v_cursors := '{}';
        v_ripes := '{}';
        v_messages := 0;
        v_stored := 0;
        v_next := c_all;
        FOR v_got IN v_rows LOOP
            v_committed := v_got.locked;
            -- Claim first, create only what is missing: an insert on each pop made pops wait for
            -- each other's transactions (F-9). A cursor that this pop may not reach is not created
            -- yet: if it does, that name comes first in the next round.
            IF v_committed IS NULL AND v_got.pid IS NOT NULL AND v_got.committed IS NULL
               AND v_got.quiet THEN
                IF v_claimed > 0
                   AND (v_claimed >= v_max OR v_messages >= v_left
                        OR v_bytes + v_stored >= queen._pop_bytes()) THEN
                    v_next := v_got.i;
                    EXIT;
                END IF;
                IF queen._create_cursor(v_got.qid, v_got.pid, p_group, p_mode, p_at) THEN
                    SELECT k.committed INTO v_committed
                    FROM queen.log_consumers k
                    WHERE k.partition_id = v_got.pid AND k.consumer_group = p_group
                      AND (k.worker_id IS NULL OR k.lease_expires_at IS NULL
                           OR k.lease_expires_at < p_now)
                    FOR UPDATE SKIP LOCKED;
                END IF;
            END IF;
            v_seen := v_seen + 1;
            o_names[v_seen] := v_got.name;
            o_ids[v_seen] := v_got.pid;
            o_lasts[v_seen] := v_got.last_offset;
            o_untils[v_seen] := v_got.until;
            IF v_committed IS NULL THEN
                IF v_got.until IS NULL AND v_got.quiet
                   AND (v_got.committed IS NULL OR v_got.committed < v_got.last_offset) THEN
                    v_skipped := array_append(v_skipped, v_seen);
                END IF;
                CONTINUE;
            END IF;
            v_queues[v_seen] := v_got.queue;
            v_leases[v_seen] := v_got.lease;
            v_claimed := v_claimed + 1;
            v_places[v_claimed] := v_seen;
            v_pids[v_claimed] := v_got.pid;
            v_cursors[v_claimed] := v_committed;
            v_ripes[v_claimed] := v_got.ripe;
            v_messages := v_messages + v_got.pending;
            v_stored := v_stored + v_got.stored_bytes;
            IF v_claimed >= v_least AND (v_claimed >= v_max OR v_messages >= v_left) THEN
                v_next := v_got.i + 1;
                EXIT;
            END IF;
        END LOOP;
        EXIT WHEN v_claimed = 0;

        -- The walk. Where a partition begins: the head probe is one step back, and the test whether
        -- that segment holds the wanted offset stands outside of it, so that a miss cannot walk the
        -- consumed head (CL-5); else the first segment after the gap. From there on offsets have no
        -- gaps (001), so a range of offsets holds the budget, and a deep backlog costs no more than
        -- what is delivered; a hole that should not be there only makes a batch shorter. What the
        -- delay withholds is a suffix, for stamps never go back (CL-6). Places and
        -- blobs are of one snapshot: retention cannot come in between.
        v_place := 0;
        v_before := v_n;
        FOR v_row IN
            SELECT u.place, u.pid, u.committed, s.base_offset, s.end_offset, s.created_at, s.blob
            FROM (SELECT w.place, w.pid, w.committed, w.ripe
                  FROM unnest(v_places, v_pids, v_cursors, v_ripes)
                       AS w (place, pid, committed, ripe)
                  ORDER BY w.place OFFSET 0) u
            CROSS JOIN LATERAL (
                SELECT coalesce(
                    (SELECT h.base_offset
                     FROM (SELECT g.base_offset, g.end_offset
                           FROM queen.log_segments g
                           WHERE g.partition_id = u.pid AND g.base_offset <= u.committed + 1
                           ORDER BY g.base_offset DESC LIMIT 1) h
                     WHERE h.end_offset > u.committed),
                    (SELECT g.base_offset
                     FROM queen.log_segments g
                     WHERE g.partition_id = u.pid AND g.base_offset > u.committed + 1
                     ORDER BY g.base_offset LIMIT 1)) AS base
                OFFSET 0) f
            CROSS JOIN LATERAL (
                SELECT g.base_offset, g.end_offset, g.created_at, g.blob
                FROM queen.log_segments g
                WHERE g.partition_id = u.pid AND g.base_offset >= f.base
                  AND g.base_offset < greatest(f.base, u.committed + 1) + v_left
                  AND g.created_at <= u.ripe
                ORDER BY g.base_offset OFFSET 0) s
        LOOP
            v_first := greatest(v_row.base_offset, v_row.committed + 1);
            IF v_row.place <> v_place THEN
                EXIT WHEN v_max <= 0 OR v_bytes >= queen._pop_bytes();
                ASSERT v_row.place > v_place, 'partitions come in order';
                v_place := v_row.place;
                v_max := v_max - 1;
                v_n := v_n + 1;
                o_took[v_n] := v_place;
                v_ids[v_n] := v_row.pid;
                v_firsts[v_n] := v_first;
                v_ends[v_n] := v_first - 1;
                v_taken[v_n] := 0;
                v_of_one := 0;
                v_cut := false;
            END IF;
            CONTINUE WHEN v_cut;
            v_size := octet_length(v_row.blob);
            v_of_one := v_of_one + v_size;
            v_cut := v_taken[v_n] > 0 AND v_of_one > queen._pop_bytes();
            CONTINUE WHEN v_cut;
            ASSERT v_first > v_ends[v_n], 'segments come in order';
            v_take := least(v_row.end_offset - v_first + 1, v_left);
            v_left := v_left - v_take;
            v_bytes := v_bytes + v_size;
            v_taken[v_n] := v_taken[v_n] + v_take;
            v_ends[v_n] := v_first + v_take - 1;
            v_of := array_append(v_of, v_n);
            v_bases := array_append(v_bases, v_row.base_offset);
            v_starts := array_append(v_starts, (v_first - v_row.base_offset)::integer);
            v_takes := array_append(v_takes, v_take);
            v_counts := array_append(v_counts,
                                     (v_row.end_offset - v_row.base_offset + 1)::integer);
            v_times := array_append(v_times, v_row.created_at);
            o_blobs := array_append(o_blobs, v_row.blob);
            EXIT WHEN v_left <= 0;
        END LOOP;
        IF v_left <= 0 OR v_max <= 0 OR v_bytes >= queen._pop_bytes() THEN
            o_reached := o_took[v_n];
            v_next := c_all;
        END IF;

        -- Seal: retention emptied the partition, so the cursor goes to the offset that was read
        -- above and the partition stops looking pending (CL-8, F-11). Never past segments that
        -- exist, withheld or pushed meanwhile (F-12). Lease and attempts stay as they are.
        IF v_claimed > v_n - v_before THEN
            UPDATE queen.log_consumers k
            SET committed = o_lasts[v_places[array_position(v_pids, k.partition_id)]]
            WHERE k.partition_id = ANY (v_pids) AND k.consumer_group = p_group
              AND NOT k.partition_id = ANY (v_ids)
              AND v_places[array_position(v_pids, k.partition_id)] <= o_reached
              AND k.committed < o_lasts[v_places[array_position(v_pids, k.partition_id)]]
              AND (SELECT g.base_offset FROM queen.log_segments g
                   WHERE g.partition_id = k.partition_id LIMIT 1) IS NULL;
        END IF;
        EXIT WHEN v_next = c_all;
        v_from := v_next;
        v_least := least(v_least * 2, 1024);
    END LOOP;

    -- What was skipped, once more without locks: its holder may have left a lease, or nothing.
    IF cardinality(v_skipped) > 0 THEN
        FOR v_row IN
            SELECT u.place,
                   CASE WHEN k.worker_id IS NOT NULL AND k.lease_expires_at >= p_now
                        THEN k.lease_expires_at
                        WHEN k.committed IS NULL OR k.committed < o_lasts[u.place]
                        THEN p_now + interval '250 ms' END AS until
            FROM unnest(v_skipped) AS u (place)
            LEFT JOIN LATERAL (
                SELECT k.committed, k.worker_id, k.lease_expires_at
                FROM queen.log_consumers k
                WHERE k.partition_id = o_ids[u.place] AND k.consumer_group = p_group
                OFFSET 0) k ON true
        LOOP
            o_untils[v_row.place] := v_row.until;
        END LOOP;
    END IF;
    IF v_n = 0 THEN
        RETURN;
    END IF;

    -- Without a join: the planner may begin a join at the table, with every row of the group.
    IF p_auto_ack THEN
        UPDATE queen.log_consumers k SET
            worker_id = NULL, lease_expires_at = NULL, lease_acquired_at = NULL, batch_end = NULL,
            (committed, total_consumed) = (
                SELECT v_ends[n], k.total_consumed + v_taken[n]
                FROM array_position(v_ids, k.partition_id) n)
        WHERE k.partition_id = ANY (v_ids) AND k.consumer_group = p_group;
        v_attempts := array_fill(1, ARRAY[v_n]);
    ELSE
        WITH leased AS (
            UPDATE queen.log_consumers k SET
                worker_id = p_worker, lease_acquired_at = p_now,
                prior_attempt_offset = k.attempt_offset, prior_attempt_count = k.attempt_count,
                (lease_expires_at, batch_end, attempt_offset, attempt_count) = (
                    SELECT p_now + make_interval(secs => v_leases[o_took[n]]), v_ends[n],
                           v_firsts[n],
                           CASE WHEN k.attempt_offset IS NOT DISTINCT FROM v_firsts[n]
                                THEN k.attempt_count + 1 ELSE 1 END
                    FROM array_position(v_ids, k.partition_id) n)
            WHERE k.partition_id = ANY (v_ids) AND k.consumer_group = p_group
            RETURNING k.partition_id, k.attempt_count)
        SELECT array_agg(l.attempt_count ORDER BY array_position(v_ids, l.partition_id))
        INTO v_attempts FROM leased l;
    END IF;
    SELECT array_agg(t.part ORDER BY t.n) INTO o_parts
    FROM (SELECT s.n,
                 jsonb_build_object(
                     'partition', o_names[o_took[s.n]], 'partitionId', o_ids[o_took[s.n]],
                     'deliveryAttempt', v_attempts[s.n], 'lastOff', o_lasts[o_took[s.n]],
                     'batchEnd', v_ends[s.n],
                     'segments', jsonb_agg(jsonb_build_object(
                         'seq', s.base, 'startOff', s.start, 'take', s.take, 'msgCount', s.count,
                         'createdAt', queen._iso(s.at)) ORDER BY s.base))
                 || CASE WHEN p_auto_ack THEN '{}' ELSE jsonb_build_object(
                        'leaseLeftMs', v_leases[o_took[s.n]] * 1000::bigint) END
                 || CASE WHEN p_name_queue THEN jsonb_build_object(
                        'queue', v_queues[o_took[s.n]]) ELSE '{}' END AS part
          FROM unnest(v_of, v_bases, v_starts, v_takes, v_counts, v_times)
               AS s (n, base, start, take, count, at)
          GROUP BY s.n) t;
END $$;


--
-- Name: _clock(); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._clock() RETURNS timestamp with time zone
    LANGUAGE sql PARALLEL SAFE
    AS $$ SELECT clock_timestamp() $$;


--
-- Name: _create_cursor(uuid, uuid, text, text, timestamp with time zone); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._create_cursor(p_qid uuid, p_pid uuid, p_group text, p_mode text, p_at timestamp with time zone) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
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


--
-- Name: _group_figures(uuid, text, timestamp with time zone); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._group_figures(p_qid uuid, p_group text, p_now timestamp with time zone) RETURNS TABLE(pid uuid, name text, newest_at timestamp with time zone, last_offset bigint, done bigint, backlog bigint, processing bigint, held boolean)
    LANGUAGE sql STABLE
    AS $$
    SELECT p.id, p.name, p.newest_at, p.last_offset, d.done, greatest(p.last_offset - d.done, 0),
           CASE WHEN c.lease_expires_at >= p_now
                THEN least(greatest(c.batch_end - d.done, 0), greatest(p.last_offset - d.done, 0))
                ELSE 0 END,
           coalesce(c.worker_id IS NOT NULL AND c.lease_expires_at >= p_now, false)
    FROM (SELECT min(m.subscription_timestamp) AS at
          FROM queen.consumer_groups_metadata m
          WHERE m.queue_id = p_qid AND m.partition_name = '' AND m.consumer_group = p_group
            AND p_group <> '__QUEUE_MODE__') g
    CROSS JOIN LATERAL (
        SELECT * FROM queen.log_partitions l WHERE l.queue_id = p_qid OFFSET 0) p
    LEFT JOIN LATERAL (
        SELECT * FROM queen.log_consumers l
        WHERE l.partition_id = p.id AND l.consumer_group = p_group OFFSET 0) c ON true
    CROSS JOIN LATERAL (
        SELECT greatest(p.log_start - 1, CASE
            WHEN c.partition_id IS NOT NULL THEN c.committed
            WHEN g.at IS NOT NULL
            THEN queen._offset_before(p.id, g.at, p.log_start, p.last_offset, p.newest_at)
            ELSE -1 END) AS done) d
$$;


--
-- Name: _iso(timestamp with time zone); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._iso(p_at timestamp with time zone) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
    SELECT to_char(p_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;


--
-- Name: _iso_ms(timestamp with time zone); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._iso_ms(p_at timestamp with time zone) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
    SELECT to_char(p_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;


--
-- Name: _keep_only(text[]); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._keep_only(p_signatures text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_keep oid[] := ARRAY(SELECT ('queen.' || s)::regprocedure::oid FROM unnest(p_signatures) s);
    v_old  regprocedure;
BEGIN
    FOR v_old IN
        SELECT p.oid::regprocedure
        FROM pg_proc p
        WHERE p.pronamespace = 'queen'::regnamespace
          AND p.proname IN (SELECT k.proname FROM pg_proc k WHERE k.oid = ANY (v_keep))
          AND NOT p.oid = ANY (v_keep)
    LOOP
        EXECUTE format('DROP FUNCTION %s', v_old);
    END LOOP;
END $$;


--
-- Name: _labels(text); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._labels(p_name text, OUT namespace text, OUT task text) RETURNS record
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT split_part(p_name, '.', 1), split_part(p_name, '.', 2)
$$;


--
-- Name: _lease_seconds(integer, integer); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._lease_seconds(p_asked integer, p_queue integer) RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT coalesce(nullif(greatest(p_asked, 0), 0), nullif(greatest(p_queue, 0), 0), 60)
$$;


--
-- Name: _message_stats(numeric, numeric, numeric); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._message_stats(p_total numeric, p_backlog numeric, p_processing numeric) RETURNS jsonb
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT jsonb_build_object(
        'total', coalesce(p_total, 0),
        'pending', coalesce(p_backlog - p_processing, 0),
        'processing', coalesce(p_processing, 0),
        'completed', coalesce(greatest(p_total - p_backlog, 0), 0),
        'failed', NULL, 'deadLetter', 0)
$$;


--
-- Name: _note_empty_scan(uuid[], text, timestamp with time zone); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._note_empty_scan(p_qids uuid[], p_group text, p_scan_at timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    AS $$
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


--
-- Name: _offset_before(uuid, timestamp with time zone, bigint, bigint, timestamp with time zone); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._offset_before(p_pid uuid, p_at timestamp with time zone, p_log_start bigint, p_last_offset bigint, p_newest timestamp with time zone) RETURNS bigint
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
    IF p_newest < p_at THEN
        RETURN p_last_offset;
    END IF;
    RETURN coalesce((SELECT s.base_offset - 1 FROM queen.log_segments s
                     WHERE s.partition_id = p_pid AND s.base_offset >= p_log_start
                       AND s.created_at >= p_at
                     ORDER BY s.base_offset LIMIT 1), p_last_offset);
END $$;


--
-- Name: _offset_until(uuid, timestamp with time zone, bigint, bigint); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._offset_until(p_pid uuid, p_at timestamp with time zone, p_low bigint, p_high bigint) RETURNS bigint
    LANGUAGE plpgsql STABLE
    AS $$
DECLARE
    v_low  bigint := p_low;
    v_high bigint := p_high;
    v_seg  record;
BEGIN
    WHILE v_low < v_high LOOP
        SELECT s.base_offset, s.end_offset, s.created_at INTO v_seg
        FROM queen.log_segments s
        WHERE s.partition_id = p_pid AND s.base_offset <= v_low + (v_high - v_low + 1) / 2
        ORDER BY s.base_offset DESC LIMIT 1;
        IF NOT FOUND THEN
            RETURN p_low;  -- retention emptied the partition after the caller looked
        ELSIF v_seg.created_at > p_at THEN
            v_high := v_seg.base_offset - 1;
        ELSE
            v_low := least(v_seg.end_offset, v_high);
        END IF;
    END LOOP;
    RETURN v_low;
END $$;


--
-- Name: _older(timestamp with time zone, integer); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._older(p_now timestamp with time zone, p_seconds integer) RETURNS timestamp with time zone
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
    SELECT CASE WHEN p_seconds > 0 THEN p_now - make_interval(secs => p_seconds)
                ELSE 'infinity' END
$$;


--
-- Name: _option_fault(text, jsonb); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._option_fault(p_option text, p_value jsonb) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
DECLARE
    v_opt  record;
    v_text text := p_value #>> '{}';
BEGIN
    SELECT * INTO v_opt FROM queen._queue_options() o WHERE o.option = p_option;
    IF NOT FOUND THEN
        RETURN format('unknown option "%s"; allowed: %s', p_option,
                      (SELECT string_agg(o.option, ', ' ORDER BY o.ord)
                       FROM queen._queue_options() o));
    ELSIF jsonb_typeof(p_value) = 'null' THEN
        RETURN NULL;
    ELSIF v_opt.kind = 'boolean' THEN
        RETURN CASE WHEN jsonb_typeof(p_value) <> 'boolean'
                    THEN format('%s must be a boolean', p_option) END;
    ELSIF v_opt.kind = 'integer' THEN
        IF jsonb_typeof(p_value) <> 'number' OR v_text::numeric <> trunc(v_text::numeric) THEN
            RETURN format('%s must be an integer', p_option);
        ELSIF NOT v_opt.clamped AND v_text::numeric NOT BETWEEN v_opt.low AND v_opt.high THEN
            RETURN format('%s must be between %s and %s', p_option, v_opt.low, v_opt.high);
        END IF;
    ELSIF jsonb_typeof(p_value) <> 'string' THEN
        RETURN format('%s must be a string', p_option);
    ELSIF octet_length(v_text) > v_opt.high THEN
        RETURN format('%s must have at most %s bytes', p_option, v_opt.high);
    ELSIF p_option = 'retentionSinkHold' AND v_text !~ '^[A-Za-z0-9._-]*$' THEN
        RETURN format('%s may hold letters, digits, dot, underscore and hyphen only', p_option);
    END IF;
    RETURN NULL;
END $_$;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: queues; Type: TABLE; Schema: queen; Owner: -
--

CREATE TABLE queen.queues (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    tenant_id uuid DEFAULT '00000000-0000-0000-0000-000000000001'::uuid NOT NULL,
    name character varying(255) NOT NULL,
    namespace character varying(255),
    task character varying(255),
    priority integer DEFAULT 0 NOT NULL,
    lease_time integer DEFAULT 60 NOT NULL,
    retry_limit integer DEFAULT 3 NOT NULL,
    retry_delay integer,
    ttl integer,
    dead_letter_queue boolean DEFAULT true NOT NULL,
    dlq_after_max_retries boolean DEFAULT true NOT NULL,
    delayed_processing integer DEFAULT 0 NOT NULL,
    window_buffer integer DEFAULT 0 NOT NULL,
    retention_seconds integer DEFAULT 0 NOT NULL,
    completed_retention_seconds integer DEFAULT 0 NOT NULL,
    retention_enabled boolean DEFAULT false NOT NULL,
    encryption_enabled boolean DEFAULT false NOT NULL,
    max_wait_time_seconds integer DEFAULT 0 NOT NULL,
    max_queue_size integer DEFAULT 0 NOT NULL,
    min_pop_wait_time integer DEFAULT 0 NOT NULL,
    dedup_window_seconds integer DEFAULT 3600 NOT NULL,
    retention_sink_hold text DEFAULT ''::text NOT NULL,
    retention_sink_hold_max_seconds integer DEFAULT 604800 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT queues_name_check CHECK (((name)::text <> ''::text))
);


--
-- Name: _options_of(queen.queues); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._options_of(p_queue queen.queues) RETURNS jsonb
    LANGUAGE sql STABLE
    AS $$
    SELECT jsonb_build_object(
        'namespace', coalesce(p_queue.namespace, ''), 'task', coalesce(p_queue.task, ''),
        'priority', p_queue.priority, 'leaseTime', p_queue.lease_time,
        'retryLimit', p_queue.retry_limit, 'retryDelay', coalesce(p_queue.retry_delay, 1000),
        'maxSize', p_queue.max_queue_size, 'ttl', coalesce(p_queue.ttl, 3600),
        'deadLetterQueue', p_queue.dead_letter_queue,
        'dlqAfterMaxRetries', p_queue.dlq_after_max_retries,
        'delayedProcessing', p_queue.delayed_processing, 'windowBuffer', p_queue.window_buffer,
        'retentionSeconds', p_queue.retention_seconds,
        'completedRetentionSeconds', p_queue.completed_retention_seconds,
        'retentionEnabled', p_queue.retention_enabled,
        'encryptionEnabled', p_queue.encryption_enabled,
        'maxWaitTimeSeconds', p_queue.max_wait_time_seconds,
        'minPopWaitTime', p_queue.min_pop_wait_time,
        'dedupWindowSeconds', p_queue.dedup_window_seconds,
        'retentionSinkHold', p_queue.retention_sink_hold,
        'retentionSinkHoldMaxSeconds', p_queue.retention_sink_hold_max_seconds)
$$;


--
-- Name: _page_end(bigint, integer, text); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._page_end(p_rows bigint, p_limit integer, p_last text) RETURNS jsonb
    LANGUAGE sql IMMUTABLE
    AS $$ SELECT to_jsonb(CASE WHEN p_rows > p_limit THEN p_last END) $$;


--
-- Name: _partition_figures(uuid[], timestamp with time zone); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._partition_figures(p_qids uuid[], p_now timestamp with time zone) RETURNS TABLE(queue_id uuid, pid uuid, name text, created_at timestamp with time zone, last_write_at timestamp with time zone, newest_at timestamp with time zone, log_start bigint, last_offset bigint, segments bigint, bytes bigint, total bigint, done bigint, backlog bigint, processing bigint, held boolean, consumed bigint)
    LANGUAGE sql STABLE
    AS $$
    SELECT p.queue_id, p.id, p.name, p.created_at, p.last_write_at, p.newest_at, p.log_start,
           p.last_offset, p.segment_count, p.stored_bytes, p.last_offset - p.log_start + 1, d.done,
           greatest(p.last_offset - d.done, 0),
           least(coalesce(k.leased, 0)::bigint, greatest(p.last_offset - d.done, 0)),
           coalesce(k.held, false), coalesce(k.consumed, 0)::bigint
    FROM unnest(p_qids) AS u (qid)
    CROSS JOIN LATERAL (
        SELECT array_agg(m.consumer_group) AS names
        FROM queen.consumer_groups_metadata m
        WHERE m.queue_id = u.qid AND m.partition_name = ''
          AND m.consumer_group <> '__QUEUE_MODE__') g
    CROSS JOIN LATERAL (
        SELECT * FROM queen.log_partitions l WHERE l.queue_id = u.qid OFFSET 0) p
    CROSS JOIN LATERAL (
        SELECT min(c.committed) FILTER (WHERE c.consumer_group <> '__QUEUE_MODE__') AS named,
               min(c.committed) AS lowest,
               count(*) FILTER (WHERE c.consumer_group = ANY (g.names)) AS registered,
               sum(greatest(c.batch_end - greatest(c.committed, p.log_start - 1), 0))
                   FILTER (WHERE c.lease_expires_at >= p_now) AS leased,
               bool_or(c.worker_id IS NOT NULL AND c.lease_expires_at >= p_now) AS held,
               sum(c.total_consumed) AS consumed
        FROM queen.log_consumers c
        WHERE c.partition_id = p.id) k
    CROSS JOIN LATERAL (
        SELECT min(queen._offset_before(p.id, m.subscription_timestamp, p.log_start,
                                        p.last_offset, p.newest_at)) AS seed
        FROM queen.consumer_groups_metadata m
        WHERE k.registered < cardinality(g.names)
          AND m.queue_id = u.qid AND m.partition_name = ''
          AND m.consumer_group <> '__QUEUE_MODE__'
          AND NOT EXISTS (SELECT 1 FROM queen.log_consumers c
                          WHERE c.partition_id = p.id
                            AND c.consumer_group = m.consumer_group)) r
    CROSS JOIN LATERAL (
        SELECT greatest(coalesce(least(k.named, r.seed), k.lowest, -1), p.log_start - 1)
            AS done) d
$$;


--
-- Name: _pop_bytes(); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._pop_bytes() RETURNS bigint
    LANGUAGE sql IMMUTABLE
    AS $$ SELECT 67108864::bigint $$;


--
-- Name: _provision(uuid[], text[], text[]); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._provision(p_tenants uuid[], p_queues text[], p_partitions text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM 1
    FROM unnest(p_tenants, p_queues, p_partitions) AS w (tenant, queue, part)
    WHERE NOT EXISTS (SELECT 1 FROM queen.queues q
                      JOIN queen.log_partitions p ON p.queue_id = q.id AND p.name = w.part
                      WHERE q.tenant_id = w.tenant AND q.name = w.queue);
    IF NOT FOUND THEN
        RETURN;
    END IF;

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


--
-- Name: _push_lock_timeout(); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._push_lock_timeout() RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$ SELECT '5s' $$;


--
-- Name: _queue_lock(uuid, text); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._queue_lock(p_tenant uuid, p_name text) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT hashtextextended(p_tenant::text || '/' || p_name, 41)
$$;


--
-- Name: _queue_options(); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._queue_options() RETURNS TABLE(option text, kind text, fallback jsonb, low bigint, high bigint, clamped boolean, ord integer)
    LANGUAGE sql IMMUTABLE ROWS 21
    AS $$
    VALUES
    ('namespace', 'text', '""'::jsonb, 0::bigint, 255::bigint, false, 1),
    ('task', 'text', '""', 0, 255, false, 2),
    ('priority', 'integer', '0', -2147483648, 2147483647, false, 3),
    ('leaseTime', 'integer', '300', 1, 2147483647, false, 4),
    ('retryLimit', 'integer', '3', 0, 2147483647, false, 5),
    ('retryDelay', 'integer', '1000', 0, 2147483647, false, 6),
    ('maxSize', 'integer', '0', 0, 2147483647, false, 7),
    ('ttl', 'integer', '3600', 0, 2147483647, false, 8),
    ('deadLetterQueue', 'boolean', 'true', NULL, NULL, false, 9),
    ('dlqAfterMaxRetries', 'boolean', 'true', NULL, NULL, false, 10),
    ('delayedProcessing', 'integer', '0', 0, 2147483647, false, 11),
    ('windowBuffer', 'integer', '0', 0, 2147483647, false, 12),
    ('retentionSeconds', 'integer', '0', 0, 2147483647, false, 13),
    ('completedRetentionSeconds', 'integer', '0', 0, 2147483647, false, 14),
    ('retentionEnabled', 'boolean', 'false', NULL, NULL, false, 15),
    ('encryptionEnabled', 'boolean', 'false', NULL, NULL, false, 16),
    ('maxWaitTimeSeconds', 'integer', '0', 0, 2147483647, false, 17),
    ('minPopWaitTime', 'integer', '0', 0, 60000, true, 18),
    ('dedupWindowSeconds', 'integer', '3600', 0, 2147483647, true, 19),
    ('retentionSinkHold', 'text', '""', 0, 64, false, 20),
    ('retentionSinkHoldMaxSeconds', 'integer', '604800', 60, 31536000, false, 21)
$$;


--
-- Name: _register_group(uuid, uuid, text, text, timestamp with time zone); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._register_group(p_tenant uuid, p_qid uuid, p_group text, p_mode text, p_at timestamp with time zone) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
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


--
-- Name: _resolve(uuid, bytea[], bigint, bigint); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._resolve(p_pid uuid, p_hashes bytea[], p_from bigint, p_to bigint) RETURNS TABLE(n integer, pos bigint)
    LANGUAGE plpgsql STABLE
    AS $$
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


--
-- Name: _scan_and_claim(uuid[], text, integer, integer, text, boolean, integer, text, timestamp with time zone, boolean); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._scan_and_claim(p_qids uuid[], p_group text, p_budget integer, p_lease_s integer, p_worker text, p_auto_ack boolean, p_max_partitions integer, p_mode text, p_at timestamp with time zone, p_name_queue boolean, OUT o_parts jsonb[], OUT o_blobs bytea[]) RETURNS record
    LANGUAGE plpgsql
    AS $$
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
                      p_max_partitions, p_mode, p_at, false, p_name_queue, v_now) m;
    IF cardinality(o_parts) = 0 THEN
        PERFORM queen._note_empty_scan(p_qids, p_group, v_now);
    END IF;
END $$;


--
-- Name: _scan_floor(uuid, text, timestamp with time zone); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._scan_floor(p_qid uuid, p_group text, p_now timestamp with time zone) RETURNS timestamp with time zone
    LANGUAGE sql STABLE
    AS $$
    SELECT coalesce((SELECT w.last_empty_scan_at FROM queen.consumer_watermarks w
                     WHERE w.queue_id = p_qid AND w.consumer_group = p_group
                       AND w.last_empty_scan_at <= p_now),
                    'epoch') - interval '2 minutes'
$$;


--
-- Name: _settle(uuid, text, bigint, boolean, bigint, boolean, bigint); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._settle(p_pid uuid, p_group text, p_committed bigint, p_release boolean, p_charge bigint, p_reset boolean, p_consumed bigint) RETURNS void
    LANGUAGE sql
    AS $$
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


--
-- Name: _spread(numeric[]); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._spread(p_values numeric[]) RETURNS jsonb
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT jsonb_build_object(
        'avg', coalesce(trim_scale(round(avg(v), 3)), 0),
        'median', coalesce(trim_scale(round((percentile_cont(0.5)
            WITHIN GROUP (ORDER BY v))::numeric, 3)), 0),
        'min', coalesce(trim_scale(round(min(v), 3)), 0),
        'max', coalesce(trim_scale(round(max(v), 3)), 0))
    FROM unnest(p_values) AS u (v)
$$;


--
-- Name: _storage(regclass, text[]); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._storage(p_table regclass, p_options text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_toast oid := (SELECT c.reltoastrelid FROM pg_class c WHERE c.oid = p_table);
    v_has   text[] := (SELECT coalesce(c.reloptions, '{}') FROM pg_class c WHERE c.oid = p_table)
        || coalesce((SELECT array_agg('toast.' || o)
                     FROM pg_class c, unnest(c.reloptions) o WHERE c.oid = v_toast), '{}');
BEGIN
    IF NOT p_options <@ v_has THEN
        EXECUTE format('ALTER TABLE %s SET (%s)', p_table, array_to_string(p_options, ', '));
    END IF;
END $$;


--
-- Name: _subscription(text, text, boolean); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._subscription(p_mode text, p_from text, p_conflate boolean, OUT mode text, OUT at timestamp with time zone) RETURNS record
    LANGUAGE plpgsql
    AS $$
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


--
-- Name: _wire(jsonb, bytea[]); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._wire(p_meta jsonb, p_blobs bytea[]) RETURNS jsonb
    LANGUAGE sql IMMUTABLE
    AS $$
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


--
-- Name: _write_lag(); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen._write_lag() RETURNS interval
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT interval '2 minutes' $$;


--
-- Name: configure_queue_v1(text, jsonb, uuid); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.configure_queue_v1(p_name text, p_options jsonb, p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001'::uuid) RETURNS jsonb
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_given  jsonb := coalesce(nullif(p_options, 'null'), '{}');
    v_mode   text;
    v_faults record;
    v_queue  queen.queues;
    v_new    boolean;
    v_is     jsonb;   -- options as they are, for merge
    v_opt    jsonb;   -- options as they will be
BEGIN
    IF coalesce(p_name, '') = '' THEN
        RETURN jsonb_build_object('error', 'queue is required', 'invalid', '["queue"]'::jsonb);
    ELSIF jsonb_typeof(v_given) <> 'object' THEN
        RETURN jsonb_build_object('error', 'options must be an object',
                                  'invalid', '["options"]'::jsonb);
    END IF;
    v_mode := coalesce(v_given ->> 'mode', 'replace');
    IF v_mode NOT IN ('merge', 'replace') THEN
        RETURN jsonb_build_object(
            'error', format('mode must be "merge" or "replace", got "%s"', v_mode),
            'invalid', '["mode"]'::jsonb);
    END IF;
    v_given := v_given - 'mode';
    SELECT string_agg(f.fault, '; ' ORDER BY f.option) AS error,
           jsonb_agg(f.option ORDER BY f.option) AS invalid
    INTO v_faults
    FROM (SELECT g.key AS option, queen._option_fault(g.key, g.value) AS fault
          FROM jsonb_each(v_given) g) f
    WHERE f.fault IS NOT NULL;
    IF v_faults.error IS NOT NULL THEN
        RETURN jsonb_build_object('error', v_faults.error, 'invalid', v_faults.invalid);
    END IF;

    PERFORM pg_advisory_xact_lock(queen._queue_lock(p_tenant, p_name));
    INSERT INTO queen.queues (tenant_id, name)
    SELECT p_tenant, p_name
    WHERE NOT EXISTS (SELECT 1 FROM queen.queues q
                      WHERE q.tenant_id = p_tenant AND q.name = p_name)
    ON CONFLICT (tenant_id, name) DO NOTHING;
    v_new := FOUND;
    SELECT * INTO v_queue FROM queen.queues q
    WHERE q.tenant_id = p_tenant AND q.name = p_name
    FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'QVANISHED: queue % was deleted', p_name USING ERRCODE = '40001';
    END IF;

    v_is := CASE WHEN v_mode = 'merge' AND NOT v_new THEN queen._options_of(v_queue) ELSE '{}' END;
    SELECT jsonb_object_agg(o.option, CASE
               WHEN o.kind = 'integer'
               THEN to_jsonb(greatest(o.low, least(o.high, n.value::numeric)))
               ELSE n.json END)
    INTO v_opt
    FROM queen._queue_options() o
    CROSS JOIN LATERAL (
        SELECT CASE WHEN v_given ? o.option
                    THEN coalesce(nullif(v_given -> o.option, 'null'), o.fallback)
                    ELSE coalesce(v_is -> o.option, o.fallback) END AS json) j
    CROSS JOIN LATERAL (SELECT j.json AS json, j.json #>> '{}' AS value) n;

    UPDATE queen.queues q SET
        namespace = v_opt ->> 'namespace',
        task = v_opt ->> 'task',
        priority = (v_opt ->> 'priority')::numeric,
        lease_time = (v_opt ->> 'leaseTime')::numeric,
        retry_limit = (v_opt ->> 'retryLimit')::numeric,
        -- Null stays "nobody has set it" until a value is given.
        retry_delay = CASE WHEN v_given -> 'retryDelay' <> 'null'
                           THEN (v_opt ->> 'retryDelay')::numeric
                           WHEN v_mode = 'merge' AND NOT v_given ? 'retryDelay'
                           THEN q.retry_delay END,
        ttl = CASE WHEN v_given -> 'ttl' <> 'null' THEN (v_opt ->> 'ttl')::numeric
                   WHEN v_mode = 'merge' AND NOT v_given ? 'ttl' THEN q.ttl END,
        max_queue_size = (v_opt ->> 'maxSize')::numeric,
        dead_letter_queue = (v_opt ->> 'deadLetterQueue')::boolean,
        dlq_after_max_retries = (v_opt ->> 'dlqAfterMaxRetries')::boolean,
        delayed_processing = (v_opt ->> 'delayedProcessing')::numeric,
        window_buffer = (v_opt ->> 'windowBuffer')::numeric,
        retention_seconds = (v_opt ->> 'retentionSeconds')::numeric,
        completed_retention_seconds = (v_opt ->> 'completedRetentionSeconds')::numeric,
        retention_enabled = (v_opt ->> 'retentionEnabled')::boolean,
        encryption_enabled = (v_opt ->> 'encryptionEnabled')::boolean,
        max_wait_time_seconds = (v_opt ->> 'maxWaitTimeSeconds')::numeric,
        min_pop_wait_time = (v_opt ->> 'minPopWaitTime')::numeric,
        dedup_window_seconds = (v_opt ->> 'dedupWindowSeconds')::numeric,
        retention_sink_hold = v_opt ->> 'retentionSinkHold',
        retention_sink_hold_max_seconds = (v_opt ->> 'retentionSinkHoldMaxSeconds')::numeric
    WHERE q.id = v_queue.id
    RETURNING * INTO v_queue;
    v_opt := queen._options_of(v_queue);
    RETURN jsonb_build_object(
        'configured', true, 'queueId', v_queue.id, 'partitionId', NULL, 'queue', v_queue.name,
        'namespace', v_opt -> 'namespace', 'task', v_opt -> 'task', 'storage', 'segments',
        'options', v_opt - 'namespace' - 'task');
END $$;


--
-- Name: delete_queue_v1(uuid, text); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.delete_queue_v1(p_tenant uuid, p_name text) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_qid  uuid;
    v_pids uuid[];
BEGIN
    PERFORM pg_advisory_xact_lock(queen._queue_lock(p_tenant, p_name));
    SELECT q.id INTO v_qid FROM queen.queues q
    WHERE q.tenant_id = p_tenant AND q.name = p_name
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
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


--
-- Name: list_labels_v1(uuid, text); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.list_labels_v1(p_tenant uuid, p_label text) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    v_now    timestamptz := queen._clock();
    v_labels text[];
    v_qids   uuid[];
    v_rows   jsonb;
BEGIN
    IF p_label NOT IN ('namespace', 'task') THEN
        RAISE EXCEPTION 'unknown label "%"; allowed: namespace, task', p_label
            USING ERRCODE = '22023';
    END IF;
    v_labels := ARRAY(SELECT DISTINCT CASE p_label WHEN 'task' THEN q.task ELSE q.namespace END
                      FROM queen.queues q WHERE q.tenant_id = p_tenant
                        AND CASE p_label WHEN 'task' THEN q.task ELSE q.namespace END <> ''
                      ORDER BY 1);
    v_qids := ARRAY(SELECT q.id FROM queen.queues q WHERE q.tenant_id = p_tenant
                      AND CASE p_label WHEN 'task' THEN q.task ELSE q.namespace END
                          = ANY (v_labels[:10000]));
    WITH figures AS (
        SELECT f.queue_id, count(*) AS partitions, sum(f.total) AS total,
               sum(f.backlog - f.processing) AS pending
        FROM queen._partition_figures(v_qids, v_now) f
        GROUP BY f.queue_id),
    labels AS (
        SELECT CASE p_label WHEN 'task' THEN q.task ELSE q.namespace END AS label,
               count(*) AS queues, coalesce(sum(f.partitions), 0) AS partitions,
               coalesce(sum(f.total), 0) AS total, coalesce(sum(f.pending), 0) AS pending
        FROM queen.queues q
        LEFT JOIN figures f ON f.queue_id = q.id
        WHERE q.id = ANY (v_qids)
        GROUP BY 1)
    SELECT jsonb_agg(jsonb_build_object(
               p_label, l.label, 'queues', l.queues, 'partitions', l.partitions,
               'messages', jsonb_build_object('total', l.total, 'pending', l.pending))
               ORDER BY l.label)
    INTO v_rows
    FROM labels l;
    RETURN jsonb_build_object(p_label || 's', coalesce(v_rows, '[]'),
                              p_label || 'Count', cardinality(v_labels));
END $$;


--
-- Name: list_queues_v1(uuid); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.list_queues_v1(p_tenant uuid) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    v_now  timestamptz := queen._clock();
    v_qids uuid[] := ARRAY(SELECT q.id FROM queen.queues q WHERE q.tenant_id = p_tenant
                           ORDER BY q.created_at DESC, q.name LIMIT 10000);
    v_rows jsonb;
BEGIN
    WITH figures AS (
        SELECT f.queue_id, count(*) AS partitions, sum(f.bytes) AS bytes,
               sum(f.segments) AS segments, sum(f.total) AS total, sum(f.backlog) AS backlog,
               sum(f.processing) AS processing
        FROM queen._partition_figures(v_qids, v_now) f
        GROUP BY f.queue_id)
    SELECT jsonb_agg(jsonb_build_object(
               'id', q.id, 'name', q.name, 'queue', q.name,
               'namespace', coalesce(q.namespace, ''), 'task', coalesce(q.task, ''),
               'storage', 'segments', 'createdAt', queen._iso_ms(q.created_at),
               'partitions', coalesce(f.partitions, 0), 'retainedBytes', coalesce(f.bytes, 0),
               'messages', queen._message_stats(f.total, f.backlog, f.processing) - 'failed',
               'segments', jsonb_build_object('segments', coalesce(f.segments, 0),
                                              'messages', coalesce(f.total, 0)),
               'options', queen._options_of(q) - 'namespace' - 'task')
               ORDER BY q.created_at DESC, q.name)
    INTO v_rows
    FROM queen.queues q
    LEFT JOIN figures f ON f.queue_id = q.id
    WHERE q.id = ANY (v_qids);
    RETURN jsonb_build_object(
        'queues', coalesce(v_rows, '[]'),
        'queueCount', (SELECT count(*) FROM queen.queues q WHERE q.tenant_id = p_tenant),
        'kvRows', 0, 'kvBytes', 0, 'timerRows', 0, 'timerBytes', 0);
END $$;


--
-- Name: log_ack_at_v1(uuid, text, text, bigint, boolean, bigint); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.log_ack_at_v1(p_pid uuid, p_group text, p_worker text, p_upto bigint, p_ok boolean DEFAULT true, p_count bigint DEFAULT 0) RETURNS jsonb
    LANGUAGE plpgsql
    AS $$
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


--
-- Name: log_ack_by_hash_v1(uuid, text, text, bytea[], text[], uuid); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.log_ack_by_hash_v1(p_pid uuid, p_group text, p_worker text, p_hashes bytea[], p_statuses text[], p_tenant uuid DEFAULT NULL::uuid) RETURNS jsonb
    LANGUAGE plpgsql
    AS $$
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


--
-- Name: log_ack_multi_v1(uuid[], text[], bigint[], text[], bigint[]); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.log_ack_multi_v1(p_pids uuid[], p_groups text[], p_ends bigint[], p_workers text[], p_counts bigint[]) RETURNS jsonb
    LANGUAGE plpgsql
    AS $$
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


--
-- Name: log_ack_v1(text, text, text, text, bigint, boolean, bigint, uuid); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.log_ack_v1(p_queue text, p_partition text, p_group text, p_worker text, p_upto bigint, p_ok boolean DEFAULT true, p_acked_count bigint DEFAULT 0, p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001'::uuid) RETURNS jsonb
    LANGUAGE plpgsql
    AS $$
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


--
-- Name: log_discover_has_pending_v1(text, text, text, uuid); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.log_discover_has_pending_v1(p_namespace text, p_task text, p_group text, p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001'::uuid) RETURNS boolean
    LANGUAGE plpgsql STABLE
    AS $$
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


--
-- Name: log_has_pending_v1(text, text, uuid); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.log_has_pending_v1(p_queue text, p_group text, p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001'::uuid) RETURNS boolean
    LANGUAGE plpgsql STABLE
    AS $$
DECLARE
    v_qid uuid := (SELECT q.id FROM queen.queues q
                   WHERE q.tenant_id = p_tenant AND q.name = p_queue);
BEGIN
    RETURN v_qid IS NULL OR queen._any_pending(ARRAY[v_qid], p_group);
END $$;


--
-- Name: log_hotlist_reseed_v1(text, text, uuid, integer, uuid); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.log_hotlist_reseed_v1(p_queue text, p_group text, p_after uuid, p_limit integer, p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001'::uuid) RETURNS TABLE(id uuid, name text)
    LANGUAGE plpgsql STABLE
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_sort TO 'off'
    SET enable_incremental_sort TO 'off'
    SET max_parallel_workers_per_gather TO '0'
    AS $$
DECLARE
    v_qid   uuid := (SELECT q.id FROM queen.queues q
                     WHERE q.tenant_id = p_tenant AND q.name = p_queue);
    v_limit integer := greatest(p_limit, 1);
    v_after uuid := coalesce(p_after, '00000000-0000-0000-0000-000000000000');
BEGIN
    -- One partition more than the page looks at tells whether there is another page.
    RETURN QUERY
    SELECT CASE WHEN s.ord <= v_limit THEN s.pid ELSE s.before END,
           CASE WHEN s.ord <= v_limit THEN s.pname END
    FROM (SELECT l.pid, l.pname, l.last_offset,
                 row_number() OVER (ORDER BY l.qid, l.pid) AS ord,
                 lag(l.pid) OVER (ORDER BY l.qid, l.pid) AS before
          FROM (SELECT p.queue_id AS qid, p.id AS pid, p.name AS pname, p.last_offset
                FROM queen.log_partitions p
                WHERE (p.queue_id, p.id) > (v_qid, v_after) AND p.queue_id <= v_qid
                ORDER BY p.queue_id, p.id
                LIMIT v_limit::bigint + 1) l) s
    WHERE s.ord > v_limit
       OR s.last_offset > coalesce((SELECT c.committed FROM queen.log_consumers c
                                    WHERE c.partition_id = s.pid AND c.consumer_group = p_group),
                                   -2);
END $$;


--
-- Name: log_hotlist_reseed_window_v1(text, text, timestamp with time zone, uuid, integer, bigint, uuid, timestamp with time zone); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.log_hotlist_reseed_window_v1(p_queue text, p_group text, p_after_write timestamp with time zone, p_after uuid, p_limit integer, p_window_ms bigint, p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001'::uuid, p_cutoff timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS TABLE(id uuid, name text, write timestamp with time zone, cutoff timestamp with time zone)
    LANGUAGE plpgsql STABLE
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_sort TO 'off'
    SET enable_incremental_sort TO 'off'
    SET max_parallel_workers_per_gather TO '0'
    AS $$
DECLARE
    v_qid    uuid := (SELECT q.id FROM queen.queues q
                      WHERE q.tenant_id = p_tenant AND q.name = p_queue);
    v_limit  integer := greatest(p_limit, 1);
    v_cutoff timestamptz := coalesce(p_cutoff, CASE WHEN p_window_ms > 0
        THEN queen._clock() - p_window_ms * interval '1 ms' - queen._write_lag()
        ELSE '-infinity' END);
    v_write  timestamptz := coalesce(p_after_write, '-infinity');
    v_after  uuid := coalesce(p_after, '00000000-0000-0000-0000-000000000000');
BEGIN
    IF v_write < v_cutoff THEN
        v_write := v_cutoff;
        v_after := '00000000-0000-0000-0000-000000000000';
    END IF;
    RETURN QUERY
    SELECT CASE WHEN s.ord <= v_limit THEN s.pid ELSE s.before END,
           CASE WHEN s.ord <= v_limit THEN s.pname END,
           CASE WHEN s.ord <= v_limit THEN s.at ELSE s.before_at END, v_cutoff
    FROM (SELECT l.pid, l.pname, l.at, l.last_offset,
                 row_number() OVER (ORDER BY l.qid, l.at, l.pid) AS ord,
                 lag(l.pid) OVER (ORDER BY l.qid, l.at, l.pid) AS before,
                 lag(l.at) OVER (ORDER BY l.qid, l.at, l.pid) AS before_at
          FROM (SELECT p.queue_id AS qid, p.id AS pid, p.name AS pname, p.last_write_at AS at,
                       p.last_offset
                FROM queen.log_partitions p
                WHERE (p.queue_id, p.last_write_at, p.id) > (v_qid, v_write, v_after)
                  AND p.queue_id <= v_qid
                ORDER BY p.queue_id, p.last_write_at, p.id
                LIMIT v_limit::bigint + 1) l) s
    WHERE s.ord > v_limit
       OR s.last_offset > coalesce((SELECT c.committed FROM queen.log_consumers c
                                    WHERE c.partition_id = s.pid AND c.consumer_group = p_group),
                                   -2);
END $$;


--
-- Name: log_partition_has_pending_v1(text, text, text, uuid); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.log_partition_has_pending_v1(p_queue text, p_partition text, p_group text, p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001'::uuid) RETURNS boolean
    LANGUAGE sql
    AS $$
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


--
-- Name: log_pop_discover_bin_v1(text, text, text, integer, integer, text, boolean, integer, text, text, uuid, boolean); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.log_pop_discover_bin_v1(p_namespace text, p_task text, p_group text, p_budget integer, p_lease_s integer, p_worker text, p_auto_ack boolean DEFAULT false, p_max_partitions integer DEFAULT NULL::integer, p_sub_mode text DEFAULT 'all'::text, p_sub_from text DEFAULT ''::text, p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001'::uuid, p_conflate boolean DEFAULT false, OUT meta jsonb, OUT blobs bytea[]) RETURNS record
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_ns     text := coalesce(p_namespace, '');
    v_task   text := coalesce(p_task, '');
    v_sub    record := queen._subscription(p_sub_mode, p_sub_from, p_conflate);
    v_qid    uuid;
    v_ready  uuid[] := '{}';
    v_seeded boolean := true;
    v_parts  jsonb[] := '{}';
BEGIN
    IF v_ns = '' AND v_task = '' THEN
        RAISE EXCEPTION 'namespace or task is required' USING ERRCODE = '22023';
    END IF;
    blobs := '{}';
    FOR v_try IN 1..2 LOOP
        SELECT m.subscription_mode AS mode, m.subscription_timestamp AS at INTO v_sub
        FROM queen.consumer_groups_metadata m
        WHERE m.tenant_id = p_tenant AND m.consumer_group = p_group AND m.queue_id IS NULL
          AND m.partition_name = '' AND m.namespace = v_ns AND m.task = v_task;
        EXIT WHEN FOUND;
        v_seeded := v_try = 1 AND pg_try_advisory_xact_lock(hashtextextended(
            p_tenant || '/' || v_ns || '/' || v_task || '/' || p_group, 45));
        EXIT WHEN NOT v_seeded;
        v_sub := queen._subscription(p_sub_mode, p_sub_from, p_conflate);
        INSERT INTO queen.consumer_groups_metadata
            (tenant_id, consumer_group, namespace, task, subscription_mode,
             subscription_timestamp)
        VALUES (p_tenant, p_group, v_ns, v_task,
                CASE WHEN p_group = '__QUEUE_MODE__' THEN 'all' ELSE v_sub.mode END,
                CASE WHEN p_group = '__QUEUE_MODE__' THEN 'epoch' ELSE v_sub.at END)
        ON CONFLICT DO NOTHING;
    END LOOP;
    IF v_seeded THEN
        FOR v_qid IN
            SELECT q.id FROM queen.queues q
            WHERE q.tenant_id = p_tenant AND (v_ns = '' OR q.namespace = v_ns)
              AND (v_task = '' OR q.task = v_task)
            ORDER BY q.name
        LOOP
            IF queen._register_group(p_tenant, v_qid, p_group, v_sub.mode, v_sub.at) THEN
                v_ready := array_append(v_ready, v_qid);
            ELSE
                v_seeded := false;
            END IF;
        END LOOP;
        SELECT s.o_parts, s.o_blobs INTO v_parts, blobs
        FROM queen._scan_and_claim(v_ready, p_group, p_budget, p_lease_s, p_worker, p_auto_ack,
                                   p_max_partitions, v_sub.mode, v_sub.at, true) s;
    END IF;
    meta := jsonb_build_object('partitions', to_jsonb(v_parts), 'seeded', v_seeded,
                               'delay', 0, 'window', 0);
END $$;


--
-- Name: log_pop_discover_wire_v1(text, text, text, integer, integer, text, boolean, integer, text, text, uuid, boolean); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.log_pop_discover_wire_v1(p_namespace text, p_task text, p_group text, p_budget integer, p_lease_s integer, p_worker text, p_auto_ack boolean DEFAULT false, p_max_partitions integer DEFAULT NULL::integer, p_sub_mode text DEFAULT 'all'::text, p_sub_from text DEFAULT ''::text, p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001'::uuid, p_conflate boolean DEFAULT false) RETURNS jsonb
    LANGUAGE sql
    AS $$
    SELECT queen._wire(b.meta, b.blobs)
    FROM queen.log_pop_discover_bin_v1(p_namespace, p_task, p_group, p_budget, p_lease_s, p_worker,
                                       p_auto_ack, p_max_partitions, p_sub_mode, p_sub_from,
                                       p_tenant, p_conflate) b
$$;


--
-- Name: log_pop_list_v1(text, text, text[], integer, integer, text, boolean, integer, text, text, boolean, uuid, boolean); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.log_pop_list_v1(p_queue text, p_group text, p_names text[], p_budget integer, p_lease_s integer, p_worker text, p_auto_ack boolean DEFAULT false, p_max_partitions integer DEFAULT NULL::integer, p_sub_mode text DEFAULT 'all'::text, p_sub_from text DEFAULT ''::text, p_skip_window boolean DEFAULT false, p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001'::uuid, p_conflate boolean DEFAULT false, OUT meta jsonb, OUT blobs bytea[], OUT states jsonb) RETURNS record
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
DECLARE
    v_sub   record := queen._subscription(p_sub_mode, p_sub_from, p_conflate);
    v_now   timestamptz := queen._clock();
    v_queue record;
    v_claim record;
BEGIN
    SELECT q.id, q.delayed_processing AS delay, q.window_buffer AS wait,
           EXISTS (SELECT 1 FROM queen.consumer_groups_metadata m
                   WHERE m.queue_id = q.id AND m.consumer_group = p_group) AS seeded
    INTO v_queue
    FROM queen.queues q WHERE q.tenant_id = p_tenant AND q.name = p_queue;
    v_claim := queen._claim(
        array_fill(v_queue.id, ARRAY[coalesce(cardinality(p_names), 0)]), p_names, p_group,
        p_budget, p_lease_s, p_worker, p_auto_ack, p_max_partitions, v_sub.mode, v_sub.at,
        p_skip_window, false, v_now);
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
        'partitions', to_jsonb(v_claim.o_parts), 'seeded', coalesce(v_queue.seeded, false),
        'delay', coalesce(v_queue.delay, 0), 'window', coalesce(v_queue.wait, 0));
    blobs := v_claim.o_blobs;
END $$;


--
-- Name: log_pop_specific_bin_v1(text, text, text, integer, integer, text, boolean, text, text, uuid, boolean); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.log_pop_specific_bin_v1(p_queue text, p_partition text, p_group text, p_budget integer, p_lease_s integer, p_worker text, p_auto_ack boolean DEFAULT false, p_sub_mode text DEFAULT 'all'::text, p_sub_from text DEFAULT ''::text, p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001'::uuid, p_conflate boolean DEFAULT false, OUT meta jsonb, OUT blobs bytea[]) RETURNS record
    LANGUAGE plpgsql
    AS $$
BEGIN
    SELECT l.meta, l.blobs INTO meta, blobs
    FROM queen.log_pop_list_v1(p_queue, p_group, ARRAY[p_partition], p_budget, p_lease_s, p_worker,
                               p_auto_ack, 1, p_sub_mode, p_sub_from, false, p_tenant,
                               p_conflate) l;
END $$;


--
-- Name: log_pop_specific_v1(text, text, text, integer, integer, text, boolean, text, text, uuid, boolean); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.log_pop_specific_v1(p_queue text, p_partition text, p_group text, p_budget integer, p_lease_s integer, p_worker text, p_auto_ack boolean DEFAULT false, p_sub_mode text DEFAULT 'all'::text, p_sub_from text DEFAULT ''::text, p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001'::uuid, p_conflate boolean DEFAULT false) RETURNS jsonb
    LANGUAGE plpgsql
    AS $$
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


--
-- Name: log_pop_v1(text, text, text, integer, integer, text, boolean, text, text, boolean, uuid, boolean); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.log_pop_v1(p_queue text, p_partition text, p_group text, p_budget integer, p_lease_s integer, p_worker text, p_auto_ack boolean DEFAULT false, p_sub_mode text DEFAULT 'all'::text, p_sub_from text DEFAULT ''::text, p_skip_window boolean DEFAULT false, p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001'::uuid, p_conflate boolean DEFAULT false) RETURNS TABLE(r_base bigint, r_start_idx integer, r_take integer, r_msg_count integer, r_created_at timestamp with time zone, r_blob bytea)
    LANGUAGE plpgsql
    AS $$
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


--
-- Name: log_pop_wildcard_bin_v1(text, text, integer, integer, text, boolean, integer, text, text, uuid, boolean); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.log_pop_wildcard_bin_v1(p_queue text, p_group text, p_budget integer, p_lease_s integer, p_worker text, p_auto_ack boolean DEFAULT false, p_max_partitions integer DEFAULT NULL::integer, p_sub_mode text DEFAULT 'all'::text, p_sub_from text DEFAULT ''::text, p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001'::uuid, p_conflate boolean DEFAULT false, OUT meta jsonb, OUT blobs bytea[]) RETURNS record
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_sub    record := queen._subscription(p_sub_mode, p_sub_from, p_conflate);
    v_queue  record;
    v_seeded boolean := false;
    v_parts  jsonb[] := '{}';
BEGIN
    blobs := '{}';
    FOR v_try IN 1..2 LOOP
        SELECT q.id, q.delayed_processing, q.window_buffer INTO v_queue
        FROM queen.queues q WHERE q.tenant_id = p_tenant AND q.name = p_queue;
        EXIT WHEN FOUND OR v_try = 2
            OR NOT pg_try_advisory_xact_lock(queen._queue_lock(p_tenant, p_queue));
        INSERT INTO queen.queues (tenant_id, name, namespace, task)
        SELECT p_tenant, p_queue, l.namespace, l.task FROM queen._labels(p_queue) l
        ON CONFLICT (tenant_id, name) DO NOTHING;
    END LOOP;
    IF v_queue.id IS NOT NULL THEN
        v_seeded := queen._register_group(p_tenant, v_queue.id, p_group, v_sub.mode, v_sub.at);
    END IF;
    IF v_seeded THEN
        SELECT s.o_parts, s.o_blobs INTO v_parts, blobs
        FROM queen._scan_and_claim(ARRAY[v_queue.id], p_group, p_budget, p_lease_s, p_worker,
                                   p_auto_ack, p_max_partitions, v_sub.mode, v_sub.at, false) s;
    END IF;
    meta := jsonb_build_object(
        'partitions', to_jsonb(v_parts), 'seeded', v_seeded,
        'delay', coalesce(v_queue.delayed_processing, 0),
        'window', coalesce(v_queue.window_buffer, 0));
END $$;


--
-- Name: log_pop_wildcard_wire_v1(text, text, integer, integer, text, boolean, integer, text, text, uuid, boolean); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.log_pop_wildcard_wire_v1(p_queue text, p_group text, p_budget integer, p_lease_s integer, p_worker text, p_auto_ack boolean DEFAULT false, p_max_partitions integer DEFAULT NULL::integer, p_sub_mode text DEFAULT 'all'::text, p_sub_from text DEFAULT ''::text, p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001'::uuid, p_conflate boolean DEFAULT false) RETURNS jsonb
    LANGUAGE sql
    AS $$
    SELECT queen._wire(b.meta, b.blobs)
    FROM queen.log_pop_wildcard_bin_v1(p_queue, p_group, p_budget, p_lease_s, p_worker, p_auto_ack,
                                       p_max_partitions, p_sub_mode, p_sub_from, p_tenant,
                                       p_conflate) b
$$;


--
-- Name: log_push_multi_v1(text[], text[], integer[], bytea[], bigint[], bytea[], uuid[], uuid[], bigint[], bigint[], timestamp with time zone[]); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.log_push_multi_v1(p_queues text[], p_partitions text[], p_counts integer[], p_hashes bytea[], p_verified bigint[], p_blobs bytea[], p_tenants uuid[] DEFAULT NULL::uuid[], p_vouch_pids uuid[] DEFAULT NULL::uuid[], p_vouch_from bigint[] DEFAULT NULL::bigint[], p_vouch_upto bigint[] DEFAULT NULL::bigint[], p_vouch_at timestamp with time zone[] DEFAULT NULL::timestamp with time zone[]) RETURNS jsonb
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_n       integer := coalesce(cardinality(p_queues), 0);
    v_tenants uuid[] := coalesce(p_tenants,
        array_fill('00000000-0000-0000-0000-000000000001'::uuid, ARRAY[v_n]));
    v_results jsonb[] := array_fill(NULL::jsonb, ARRAY[v_n]);
    v_done    integer := 0;
    v_seg     record;
BEGIN
    IF coalesce(cardinality(p_partitions), 0) <> v_n OR coalesce(cardinality(p_counts), 0) <> v_n
       OR coalesce(cardinality(p_hashes), 0) <> v_n OR coalesce(cardinality(p_verified), 0) <> v_n
       OR coalesce(cardinality(p_blobs), 0) <> v_n OR cardinality(v_tenants) <> v_n
       OR coalesce(cardinality(p_vouch_pids), v_n) <> v_n
       OR cardinality(p_vouch_from) IS DISTINCT FROM cardinality(p_vouch_pids)
       OR cardinality(p_vouch_upto) IS DISTINCT FROM cardinality(p_vouch_pids)
       OR cardinality(p_vouch_at) IS DISTINCT FROM cardinality(p_vouch_pids) THEN
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
    PERFORM 1 FROM queen.log_partitions l
    WHERE l.id IN (SELECT p.id
                   FROM unnest(v_tenants, p_queues, p_partitions) AS w (tenant, queue, part)
                   JOIN queen.queues q ON q.tenant_id = w.tenant AND q.name = w.queue
                   JOIN queen.log_partitions p ON p.queue_id = q.id AND p.name = w.part)
    ORDER BY l.id
    FOR NO KEY UPDATE;

    FOR v_seg IN
        SELECT w.ord::integer AS ord, p.id AS pid, q.dedup_window_seconds AS win
        FROM unnest(v_tenants, p_queues, p_partitions) WITH ORDINALITY
             AS w (tenant, queue, part, ord)
        JOIN queen.queues q ON q.tenant_id = w.tenant AND q.name = w.queue
        JOIN queen.log_partitions p ON p.queue_id = q.id AND p.name = w.part
        ORDER BY p.id, w.ord
    LOOP
        v_results[v_seg.ord] := queen.log_push_one_v1(
            p_queues[v_seg.ord], p_partitions[v_seg.ord], p_counts[v_seg.ord],
            p_hashes[v_seg.ord], p_verified[v_seg.ord], p_blobs[v_seg.ord],
            v_seg.pid, v_seg.win, v_tenants[v_seg.ord],
            p_vouch_pids[v_seg.ord], p_vouch_from[v_seg.ord], p_vouch_upto[v_seg.ord],
            p_vouch_at[v_seg.ord]);
        v_done := v_done + 1;
    END LOOP;
    IF v_done <> v_n THEN
        RAISE EXCEPTION 'QVANISHED: % of % partitions were deleted', v_n - v_done, v_n
            USING ERRCODE = '40001';
    END IF;
    RETURN to_jsonb(v_results);
END $$;


--
-- Name: log_push_one_v1(text, text, integer, bytea, bigint, bytea, uuid, integer, uuid, uuid, bigint, bigint, timestamp with time zone); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.log_push_one_v1(p_queue text, p_partition text, p_count integer, p_hashes bytea, p_verified bigint, p_blob bytea, p_pid uuid DEFAULT NULL::uuid, p_window integer DEFAULT NULL::integer, p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001'::uuid, p_vouch_pid uuid DEFAULT NULL::uuid, p_vouch_from bigint DEFAULT NULL::bigint, p_vouch_upto bigint DEFAULT NULL::bigint, p_vouch_at timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS jsonb
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_pid    uuid := p_pid;
    v_window integer := p_window;
BEGIN
    IF v_pid IS NULL OR v_window IS NULL THEN
        IF coalesce(p_queue, '') = '' OR coalesce(p_partition, '') = '' THEN
            RAISE EXCEPTION 'QPUSH: empty queue or partition name' USING ERRCODE = '22023';
        END IF;
        PERFORM queen._provision(ARRAY[p_tenant], ARRAY[p_queue], ARRAY[p_partition]);
        SELECT p.id, q.dedup_window_seconds INTO v_pid, v_window
        FROM queen.queues q
        JOIN queen.log_partitions p ON p.queue_id = q.id AND p.name = p_partition
        WHERE q.tenant_id = p_tenant AND q.name = p_queue;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'QVANISHED: partition % of queue % was deleted', p_partition, p_queue
                USING ERRCODE = '40001';
        END IF;
    END IF;
    RETURN queen._append(v_pid, v_window, p_count, p_hashes, p_verified, p_blob,
                         p_vouch_pid, p_vouch_from, p_vouch_upto, p_vouch_at);
END $$;


--
-- Name: log_queue_depth_v1(text, text, uuid, text, integer); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.log_queue_depth_v1(p_queue text, p_group text DEFAULT NULL::text, p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001'::uuid, p_after text DEFAULT NULL::text, p_limit integer DEFAULT 10000) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    v_now   timestamptz := queen._clock();
    v_queue record;
    v_qids  uuid[];
    v_is    record;
BEGIN
    SELECT q.id, v_now - make_interval(secs => q.delayed_processing) AS visible,
           q.delayed_processing > 0 AS delays,
           CASE WHEN q.window_buffer > 0
                THEN v_now - make_interval(secs => q.window_buffer) END AS quiet
    INTO v_queue
    FROM queen.queues q WHERE q.tenant_id = p_tenant AND q.name = p_queue;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    v_qids := ARRAY[v_queue.id];
    WITH figures AS MATERIALIZED (
        SELECT f.name, f.backlog - f.processing AS pending, f.processing, CASE
            WHEN f.held OR f.backlog = 0 OR f.newest_at > v_queue.quiet THEN 0
            WHEN NOT v_queue.delays OR f.newest_at <= v_queue.visible THEN f.backlog
            ELSE queen._offset_until(f.pid, v_queue.visible, f.done, f.last_offset) - f.done
            END AS ready
        FROM (SELECT g.pid, g.name, g.newest_at, g.last_offset, g.done, g.backlog, g.processing,
                     g.held
              FROM queen._group_figures(v_queue.id, p_group, v_now) g
              WHERE p_group IS NOT NULL
              UNION ALL
              SELECT w.pid, w.name, w.newest_at, w.last_offset, w.done, w.backlog, w.processing,
                     w.held
              FROM queen._partition_figures(v_qids, v_now) w
              WHERE p_group IS NULL) f),
    page AS (
        SELECT f.*, row_number() OVER (ORDER BY f.name) AS place
        FROM (SELECT * FROM figures WHERE p_after IS NULL OR figures.name > p_after
              ORDER BY figures.name LIMIT p_limit + 1) f)
    SELECT t.*, l.*
    INTO v_is
    FROM (SELECT count(*) AS partitions, coalesce(sum(f.pending), 0) AS pending,
                 coalesce(sum(f.processing), 0) AS processing, coalesce(sum(f.ready), 0) AS ready,
                 count(*) FILTER (WHERE f.pending > 0) AS partitions_pending,
                 count(*) FILTER (WHERE f.ready > 0) AS partitions_ready
          FROM figures f) t
    CROSS JOIN (SELECT coalesce(jsonb_agg(jsonb_build_object(
                           'partition', d.name, 'pending', d.pending,
                           'processing', d.processing, 'ready', d.ready)
                           ORDER BY d.place) FILTER (WHERE d.place <= p_limit), '[]') AS parts,
                       count(*) AS rows, max(d.name) FILTER (WHERE d.place = p_limit) AS last
                FROM page d) l;
    RETURN jsonb_build_object(
        'queue', p_queue, 'group', p_group, 'pending', v_is.pending,
        'processing', v_is.processing, 'ready', v_is.ready,
        'partitionsPending', v_is.partitions_pending, 'partitionsReady', v_is.partitions_ready,
        'conflation', false, 'effectivePending', v_is.pending, 'effectiveReady', v_is.ready,
        'partitionCount', v_is.partitions, 'partitions', v_is.parts,
        'next', queen._page_end(v_is.rows, p_limit, v_is.last));
END $$;


--
-- Name: log_release_undelivered_v1(uuid, text, text); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.log_release_undelivered_v1(p_pid uuid, p_group text, p_worker text) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE queen.log_consumers c SET
        worker_id = NULL, lease_expires_at = NULL, lease_acquired_at = NULL, batch_end = NULL,
        attempt_offset = c.prior_attempt_offset, attempt_count = c.prior_attempt_count,
        prior_attempt_offset = NULL, prior_attempt_count = 0
    WHERE c.partition_id = p_pid AND c.consumer_group = p_group
      AND c.worker_id = p_worker AND c.lease_expires_at > queen._clock();
    RETURN FOUND;
END $$;


--
-- Name: log_renew_lease_v1(text, integer, uuid[]); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.log_renew_lease_v1(p_worker text, p_seconds integer, p_pids uuid[] DEFAULT NULL::uuid[]) RETURNS jsonb
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_now    timestamptz := queen._clock();
    v_result jsonb;
BEGIN
    PERFORM 1 FROM queen.log_consumers c
    WHERE c.worker_id = p_worker AND p_worker <> '' AND c.lease_expires_at > v_now
      AND (p_pids IS NULL OR c.partition_id = ANY (p_pids))
    ORDER BY c.partition_id, c.consumer_group
    FOR UPDATE;
    WITH renewed AS (
        UPDATE queen.log_consumers c SET lease_expires_at = greatest(
            c.lease_expires_at,
            v_now + make_interval(secs => greatest(coalesce(p_seconds, 1), 1)))
        WHERE c.worker_id = p_worker AND p_worker <> '' AND c.lease_expires_at > v_now
          AND (p_pids IS NULL OR c.partition_id = ANY (p_pids))
        RETURNING c.lease_expires_at)
    SELECT jsonb_build_object('renewed', count(*),
                              'expiresAt', queen._iso(min(r.lease_expires_at)))
    INTO v_result
    FROM renewed r;
    RETURN v_result;
END $$;


--
-- Name: log_segment_at_v1(uuid, bigint); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.log_segment_at_v1(p_pid uuid, p_offset bigint) RETURNS TABLE(base_offset bigint, end_offset bigint, created_at timestamp with time zone, blob bytea)
    LANGUAGE sql STABLE
    AS $$
    SELECT s.base_offset, s.end_offset, s.created_at, s.blob
    FROM (SELECT * FROM queen.log_segments l
          WHERE l.partition_id = p_pid AND l.base_offset <= p_offset
          ORDER BY l.base_offset DESC LIMIT 1) s
    WHERE s.end_offset >= p_offset
$$;


--
-- Name: log_unnest_hashes(bytea); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.log_unnest_hashes(p_hashes bytea) RETURNS TABLE(idx integer, h bytea)
    LANGUAGE sql IMMUTABLE ROWS 100 PARALLEL SAFE
    AS $$
    SELECT i, substring(p_hashes FROM i * 16 + 1 FOR 16)
    FROM generate_series(0, octet_length(p_hashes) / 16 - 1) AS i
$$;


--
-- Name: log_window_hashes_v1(uuid, bigint, boolean, bigint); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.log_window_hashes_v1(p_pid uuid, p_edge bigint, p_downwards boolean, p_bytes bigint) RETURNS TABLE(base_offset bigint, end_offset bigint, created_at timestamp with time zone, hashes bytea)
    LANGUAGE plpgsql STABLE
    AS $$
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


--
-- Name: queue_detail_v1(uuid, text, text, integer); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.queue_detail_v1(p_tenant uuid, p_name text, p_after text DEFAULT NULL::text, p_limit integer DEFAULT 10000) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    v_now   timestamptz := queen._clock();
    v_queue queen.queues;
    v_qids  uuid[];
    v_is    record;
BEGIN
    SELECT * INTO v_queue FROM queen.queues q WHERE q.tenant_id = p_tenant AND q.name = p_name;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    v_qids := ARRAY[v_queue.id];
    WITH figures AS MATERIALIZED (SELECT * FROM queen._partition_figures(v_qids, v_now)),
    page AS (
        SELECT f.*, row_number() OVER (ORDER BY f.name) AS place
        FROM (SELECT * FROM figures WHERE p_after IS NULL OR figures.name > p_after
              ORDER BY figures.name LIMIT p_limit + 1) f),
    listed AS (
        SELECT f.name, f.place, queen._message_stats(f.total, f.backlog, f.processing) AS stats,
               jsonb_build_object(
                   'id', f.pid, 'name', f.name, 'createdAt', queen._iso_ms(f.created_at),
                   'oldestMessage', queen._iso_ms(o.created_at),
                   'newestMessage', CASE WHEN f.segments > 0 THEN queen._iso_ms(f.newest_at) END,
                   'lastActivity', queen._iso_ms(f.last_write_at), 'retainedBytes', f.bytes,
                   'cursor', jsonb_build_object('totalConsumed', f.consumed,
                                                'batchesConsumed', 0)) AS part
        FROM page f
        LEFT JOIN LATERAL (
            SELECT s.created_at FROM queen.log_segments s
            WHERE s.partition_id = f.pid AND s.base_offset = f.log_start OFFSET 0) o ON true
        WHERE f.place <= p_limit)
    SELECT t.*, l.*, (SELECT count(*) FROM page) AS rows
    INTO v_is
    FROM (SELECT count(*) AS partitions, sum(f.total) AS total, sum(f.backlog) AS backlog,
                 sum(f.processing) AS processing, coalesce(sum(f.segments), 0) AS segments,
                 coalesce(sum(f.bytes), 0) AS bytes
          FROM figures f) t
    CROSS JOIN (SELECT coalesce(jsonb_agg(
                           d.part || jsonb_build_object('stats', d.stats, 'messages', d.stats)
                           ORDER BY d.place), '[]') AS parts,
                       max(d.name) FILTER (WHERE d.place = p_limit) AS last
                FROM listed d) l;
    RETURN jsonb_build_object(
        'id', v_queue.id, 'name', v_queue.name, 'namespace', coalesce(v_queue.namespace, ''),
        'task', coalesce(v_queue.task, ''), 'createdAt', queen._iso_ms(v_queue.created_at),
        'partitions', v_is.parts, 'partitionCount', v_is.partitions,
        'next', queen._page_end(v_is.rows, p_limit, v_is.last),
        'totals', queen._message_stats(v_is.total, v_is.backlog, v_is.processing),
        'retainedBytes', v_is.bytes,
        'segments', jsonb_build_object('segments', v_is.segments,
                                       'messages', coalesce(v_is.total, 0)),
        'options', queen._options_of(v_queue) - 'namespace' - 'task');
END $$;


--
-- Name: queue_sizes_v1(uuid, text, text, integer); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.queue_sizes_v1(p_tenant uuid, p_name text, p_after text DEFAULT NULL::text, p_limit integer DEFAULT 10000) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    v_qid uuid;
    v_all record;
    v_is  record;
BEGIN
    SELECT q.id INTO v_qid FROM queen.queues q WHERE q.tenant_id = p_tenant AND q.name = p_name;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT count(*) AS partitions, coalesce(sum(p.stored_bytes), 0) AS bytes INTO v_all
    FROM queen.log_partitions p WHERE p.queue_id = v_qid;
    SELECT coalesce(jsonb_object_agg(d.name, d.stored_bytes) FILTER (WHERE d.place <= p_limit),
                    '{}') AS sizes,
           count(*) AS rows, max(d.name) FILTER (WHERE d.place = p_limit) AS last
    INTO v_is
    FROM (SELECT p.name, p.stored_bytes, row_number() OVER (ORDER BY p.name) AS place
          FROM queen.log_partitions p
          WHERE p.queue_id = v_qid AND (p_after IS NULL OR p.name > p_after)
          ORDER BY p.name LIMIT p_limit + 1) d;
    RETURN jsonb_build_object(
        'queue', p_name, 'partitions', v_is.sizes, 'partitionCount', v_all.partitions,
        'retainedBytes', v_all.bytes, 'next', queen._page_end(v_is.rows, p_limit, v_is.last));
END $$;


--
-- Name: resources_overview_v1(uuid); Type: FUNCTION; Schema: queen; Owner: -
--

CREATE FUNCTION queen.resources_overview_v1(p_tenant uuid) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    v_now   timestamptz := queen._clock();
    v_since timestamptz := v_now - interval '5 minutes';
    v_qids  uuid[] := ARRAY(SELECT q.id FROM queen.queues q WHERE q.tenant_id = p_tenant);
    v_names record;
    v_is    record;
BEGIN
    SELECT count(DISTINCT nullif(q.namespace, '')) AS namespaces,
           count(DISTINCT nullif(q.task, '')) AS tasks
    INTO v_names
    FROM queen.queues q WHERE q.tenant_id = p_tenant;
    SELECT count(*) AS partitions, sum(f.total) AS total, sum(f.backlog) AS backlog,
           sum(f.processing) AS processing, queen._spread(array_agg(f.age)) AS ages,
           queen._spread(array_agg(f.backlog) FILTER (WHERE f.backlog > 0)) AS offsets,
           coalesce(sum(f.ingested), 0) AS ingested
    INTO v_is
    FROM (SELECT w.total, w.backlog, w.processing,
                 CASE WHEN w.backlog > 0 THEN greatest(0, extract(epoch FROM v_now - (
                     SELECT s.created_at FROM queen.log_segments s
                     WHERE s.partition_id = w.pid AND s.base_offset <= w.done + 1
                     ORDER BY s.base_offset DESC LIMIT 1))) END AS age,
                 CASE WHEN w.newest_at >= v_since
                      THEN w.last_offset - queen._offset_until(
                          w.pid, v_since, w.log_start - 1, w.last_offset) END AS ingested
          FROM queen._partition_figures(v_qids, v_now) w) f;
    RETURN jsonb_build_object(
        'queues', cardinality(v_qids), 'partitions', v_is.partitions,
        'namespaces', v_names.namespaces, 'tasks', v_names.tasks,
        'messages', queen._message_stats(v_is.total, v_is.backlog, v_is.processing),
        'lag', jsonb_build_object('time', v_is.ages, 'offset', v_is.offsets),
        'throughput', jsonb_build_object(
            'ingestedPerSecond', trim_scale(round(v_is.ingested / 300, 3)), 'processedPerSecond', NULL),
        'timestamp', queen._iso_ms(v_now), 'statsAge', 0);
END $$;


--
-- Name: consumer_groups_metadata; Type: TABLE; Schema: queen; Owner: -
--

CREATE TABLE queen.consumer_groups_metadata (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    tenant_id uuid DEFAULT '00000000-0000-0000-0000-000000000001'::uuid NOT NULL,
    consumer_group text NOT NULL,
    queue_id uuid,
    partition_name text DEFAULT ''::text NOT NULL,
    namespace text DEFAULT ''::text NOT NULL,
    task text DEFAULT ''::text NOT NULL,
    subscription_mode text NOT NULL,
    subscription_timestamp timestamp with time zone NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);


--
-- Name: consumer_watermarks; Type: TABLE; Schema: queen; Owner: -
--

CREATE TABLE queen.consumer_watermarks (
    queue_id uuid NOT NULL,
    consumer_group character varying(255) DEFAULT '__QUEUE_MODE__'::character varying NOT NULL,
    last_empty_scan_at timestamp with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);


--
-- Name: log_consumers; Type: TABLE; Schema: queen; Owner: -
--

CREATE TABLE queen.log_consumers (
    partition_id uuid NOT NULL,
    consumer_group text DEFAULT '__QUEUE_MODE__'::text NOT NULL,
    committed bigint DEFAULT '-1'::integer NOT NULL,
    batch_end bigint,
    worker_id text,
    lease_expires_at timestamp with time zone,
    lease_acquired_at timestamp with time zone,
    batch_retry_count integer DEFAULT 0 NOT NULL,
    retry_offset bigint,
    attempt_offset bigint,
    attempt_count integer DEFAULT 0 NOT NULL,
    prior_attempt_offset bigint,
    prior_attempt_count integer DEFAULT 0 NOT NULL,
    total_consumed bigint DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='500', autovacuum_vacuum_cost_delay='0', vacuum_truncate='false');


--
-- Name: log_partitions; Type: TABLE; Schema: queen; Owner: -
--

CREATE TABLE queen.log_partitions (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    queue_id uuid NOT NULL,
    name text DEFAULT 'Default'::text NOT NULL,
    last_offset bigint DEFAULT '-1'::integer NOT NULL,
    log_start bigint DEFAULT 0 NOT NULL,
    txns_start bigint DEFAULT 0 NOT NULL,
    segment_count bigint DEFAULT 0 NOT NULL,
    stored_bytes bigint DEFAULT 0 NOT NULL,
    newest_at timestamp with time zone,
    last_write_at timestamp with time zone DEFAULT now() NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT log_partitions_name_check CHECK ((name <> ''::text))
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='500', autovacuum_vacuum_cost_delay='0', vacuum_truncate='false');


--
-- Name: log_segments; Type: TABLE; Schema: queen; Owner: -
--

CREATE TABLE queen.log_segments (
    partition_id uuid NOT NULL,
    base_offset bigint NOT NULL,
    end_offset bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    blob bytea NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.1', autovacuum_vacuum_insert_scale_factor='0.3', autovacuum_vacuum_cost_limit='4000', autovacuum_vacuum_cost_delay='0', vacuum_truncate='false', toast.autovacuum_vacuum_scale_factor='0.1', toast.autovacuum_vacuum_insert_scale_factor='0.3', toast.autovacuum_vacuum_cost_limit='4000', toast.autovacuum_vacuum_cost_delay='0', toast.vacuum_truncate='false');
ALTER TABLE ONLY queen.log_segments ALTER COLUMN blob SET STORAGE EXTERNAL;


--
-- Name: log_txns; Type: TABLE; Schema: queen; Owner: -
--

CREATE TABLE queen.log_txns (
    partition_id uuid NOT NULL,
    base_offset bigint NOT NULL,
    end_offset bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    hashes bytea NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.1', autovacuum_vacuum_insert_scale_factor='0.3', autovacuum_vacuum_cost_delay='0', vacuum_truncate='false', toast.autovacuum_vacuum_scale_factor='0.1', toast.autovacuum_vacuum_insert_scale_factor='0.3', toast.autovacuum_vacuum_cost_delay='0', toast.vacuum_truncate='false');
ALTER TABLE ONLY queen.log_txns ALTER COLUMN hashes SET STORAGE EXTERNAL;


--
-- Data for Name: consumer_groups_metadata; Type: TABLE DATA; Schema: queen; Owner: -
--

INSERT INTO queen.consumer_groups_metadata VALUES ('00aef533-eb1f-4a1c-8302-291138f7a8ff', '00000000-0000-0000-0000-000000000001', 'billing', 'db1c62db-540f-4f4b-9301-d3ae489d256d', '', '', '', 'all', '1970-01-01 00:00:00+00', '2026-11-30 01:19:14.793844+00');


--
-- Data for Name: consumer_watermarks; Type: TABLE DATA; Schema: queen; Owner: -
--

INSERT INTO queen.consumer_watermarks VALUES ('db1c62db-540f-4f4b-9301-d3ae489d256d', 'billing', '1970-01-01 00:00:00+00', '1970-01-01 00:00:00+00');


--
-- Data for Name: log_consumers; Type: TABLE DATA; Schema: queen; Owner: -
--

INSERT INTO queen.log_consumers VALUES ('d95985f5-c35e-4cca-aabe-056ec2fe5afb', 'billing', -1, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, 0, 0, '2026-11-30 01:19:14.793844+00');
INSERT INTO queen.log_consumers VALUES ('357ff118-0340-43dd-afb8-49aa3833e9c0', 'billing', 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, 0, 1, '2026-11-30 01:19:14.793844+00');
INSERT INTO queen.log_consumers VALUES ('d95985f5-c35e-4cca-aabe-056ec2fe5afb', 'audit', -1, 0, '01a22a08-e17a-7152-b5d4-0837970db95c', '2026-11-30 02:19:14.811134+00', '2026-11-30 01:19:14.811134+00', 0, NULL, 0, 1, NULL, 0, 0, '2026-11-30 01:19:14.810819+00');


--
-- Data for Name: log_partitions; Type: TABLE DATA; Schema: queen; Owner: -
--

INSERT INTO queen.log_partitions VALUES ('9bd33d0b-6ea2-4db2-98ab-9899c0b66baa', '8a526183-8657-482a-8653-b431e258297d', 'Default', 0, 0, 0, 1, 41, '2026-11-30 01:19:14.784564+00', '2026-11-30 01:19:14.782019+00', '2026-11-30 01:19:14.779539+00');
INSERT INTO queen.log_partitions VALUES ('d95985f5-c35e-4cca-aabe-056ec2fe5afb', 'db1c62db-540f-4f4b-9301-d3ae489d256d', 'b', 0, 0, 0, 1, 41, '2026-11-30 01:19:14.78469+00', '2026-11-30 01:19:14.782196+00', '2026-11-30 01:19:14.779539+00');
INSERT INTO queen.log_partitions VALUES ('357ff118-0340-43dd-afb8-49aa3833e9c0', 'db1c62db-540f-4f4b-9301-d3ae489d256d', 'a', 2, 0, 0, 2, 109, '2026-11-30 01:19:14.823304+00', '2026-11-30 01:19:14.782184+00', '2026-11-30 01:19:14.779539+00');


--
-- Data for Name: log_segments; Type: TABLE DATA; Schema: queen; Owner: -
--

INSERT INTO queen.log_segments VALUES ('357ff118-0340-43dd-afb8-49aa3833e9c0', 0, 1, '2026-11-30 01:19:14.783842+00', '\x28b52ffd2040dd010034031c0000000001a22a08e15b7340ad26e085ee071861020061317b226e223a317dae855c523c5eac78020061327b226e223a327d010018877a02');
INSERT INTO queen.log_segments VALUES ('9bd33d0b-6ea2-4db2-98ab-9899c0b66baa', 0, 0, '2026-11-30 01:19:14.784564+00', '\x28b52ffd20200101001c0000000001a22a08e15b7340b07fa2e761cf870002006d312268656c6c6f22');
INSERT INTO queen.log_segments VALUES ('d95985f5-c35e-4cca-aabe-056ec2fe5afb', 0, 0, '2026-11-30 01:19:14.78469+00', '\x28b52ffd20200101001c0000000001a22a08e15b7340afceead9479e83a3020062317b226e223a337d');
INSERT INTO queen.log_segments VALUES ('357ff118-0340-43dd-afb8-49aa3833e9c0', 2, 2, '2026-11-30 01:19:14.823304+00', '\x28b52ffd20200101001c0000000001a22a08e185730f8e4560a1b400cdd7020061337b226e223a347d');


--
-- Data for Name: log_txns; Type: TABLE DATA; Schema: queen; Owner: -
--

INSERT INTO queen.log_txns VALUES ('357ff118-0340-43dd-afb8-49aa3833e9c0', 0, 1, '2026-11-30 01:19:14.783842+00', '\xa4ccefc60d0b91fbb8fd8403c5ec973ca2191bf73123fa258891ff7232894238');
INSERT INTO queen.log_txns VALUES ('9bd33d0b-6ea2-4db2-98ab-9899c0b66baa', 0, 0, '2026-11-30 01:19:14.784564+00', '\x9a6b019f95a49a9af4edaab5e5c1529d');
INSERT INTO queen.log_txns VALUES ('d95985f5-c35e-4cca-aabe-056ec2fe5afb', 0, 0, '2026-11-30 01:19:14.78469+00', '\xd0f8e90671ac306907ebb745a9af4972');
INSERT INTO queen.log_txns VALUES ('357ff118-0340-43dd-afb8-49aa3833e9c0', 2, 2, '2026-11-30 01:19:14.823304+00', '\x32a0863afd7c16068445596319e8f87a');


--
-- Data for Name: queues; Type: TABLE DATA; Schema: queen; Owner: -
--

INSERT INTO queen.queues VALUES ('db1c62db-540f-4f4b-9301-d3ae489d256d', '00000000-0000-0000-0000-000000000001', 'orders', 'shop', 'ship', 0, 30, 2, NULL, NULL, true, true, 0, 0, 0, 0, false, false, 0, 0, 0, 600, '', 604800, '2026-11-30 01:19:14.762578+00');
INSERT INTO queen.queues VALUES ('8a526183-8657-482a-8653-b431e258297d', '00000000-0000-0000-0000-000000000001', 'mail.send', 'mail', 'send', 0, 60, 3, NULL, NULL, true, true, 0, 0, 0, 0, false, false, 0, 0, 0, 3600, '', 604800, '2026-11-30 01:19:14.779539+00');


--
-- Name: consumer_groups_metadata consumer_groups_metadata_pkey; Type: CONSTRAINT; Schema: queen; Owner: -
--

ALTER TABLE ONLY queen.consumer_groups_metadata
    ADD CONSTRAINT consumer_groups_metadata_pkey PRIMARY KEY (id);


--
-- Name: consumer_groups_metadata consumer_groups_metadata_tenant_id_consumer_group_queue_id__key; Type: CONSTRAINT; Schema: queen; Owner: -
--

ALTER TABLE ONLY queen.consumer_groups_metadata
    ADD CONSTRAINT consumer_groups_metadata_tenant_id_consumer_group_queue_id__key UNIQUE NULLS NOT DISTINCT (tenant_id, consumer_group, queue_id, partition_name, namespace, task);


--
-- Name: consumer_watermarks consumer_watermarks_pkey; Type: CONSTRAINT; Schema: queen; Owner: -
--

ALTER TABLE ONLY queen.consumer_watermarks
    ADD CONSTRAINT consumer_watermarks_pkey PRIMARY KEY (queue_id, consumer_group);


--
-- Name: log_consumers log_consumers_pkey; Type: CONSTRAINT; Schema: queen; Owner: -
--

ALTER TABLE ONLY queen.log_consumers
    ADD CONSTRAINT log_consumers_pkey PRIMARY KEY (partition_id, consumer_group);


--
-- Name: log_partitions log_partitions_pkey; Type: CONSTRAINT; Schema: queen; Owner: -
--

ALTER TABLE ONLY queen.log_partitions
    ADD CONSTRAINT log_partitions_pkey PRIMARY KEY (id);


--
-- Name: log_partitions log_partitions_queue_id_name_key; Type: CONSTRAINT; Schema: queen; Owner: -
--

ALTER TABLE ONLY queen.log_partitions
    ADD CONSTRAINT log_partitions_queue_id_name_key UNIQUE (queue_id, name);


--
-- Name: log_segments log_segments_pkey; Type: CONSTRAINT; Schema: queen; Owner: -
--

ALTER TABLE ONLY queen.log_segments
    ADD CONSTRAINT log_segments_pkey PRIMARY KEY (partition_id, base_offset);


--
-- Name: log_txns log_txns_pkey; Type: CONSTRAINT; Schema: queen; Owner: -
--

ALTER TABLE ONLY queen.log_txns
    ADD CONSTRAINT log_txns_pkey PRIMARY KEY (partition_id, base_offset);


--
-- Name: queues queues_pkey; Type: CONSTRAINT; Schema: queen; Owner: -
--

ALTER TABLE ONLY queen.queues
    ADD CONSTRAINT queues_pkey PRIMARY KEY (id);


--
-- Name: queues queues_tenant_id_name_key; Type: CONSTRAINT; Schema: queen; Owner: -
--

ALTER TABLE ONLY queen.queues
    ADD CONSTRAINT queues_tenant_id_name_key UNIQUE (tenant_id, name);


--
-- Name: consumer_groups_metadata_queue; Type: INDEX; Schema: queen; Owner: -
--

CREATE INDEX consumer_groups_metadata_queue ON queen.consumer_groups_metadata USING btree (queue_id, consumer_group);


--
-- Name: log_partitions_walked; Type: INDEX; Schema: queen; Owner: -
--

CREATE INDEX log_partitions_walked ON queen.log_partitions USING btree (queue_id, id);


--
-- Name: log_partitions_written; Type: INDEX; Schema: queen; Owner: -
--

CREATE INDEX log_partitions_written ON queen.log_partitions USING btree (queue_id, last_write_at, id);


--
-- Name: consumer_groups_metadata consumer_groups_metadata_queue_id_fkey; Type: FK CONSTRAINT; Schema: queen; Owner: -
--

ALTER TABLE ONLY queen.consumer_groups_metadata
    ADD CONSTRAINT consumer_groups_metadata_queue_id_fkey FOREIGN KEY (queue_id) REFERENCES queen.queues(id) ON DELETE CASCADE;


--
-- Name: consumer_watermarks consumer_watermarks_queue_id_fkey; Type: FK CONSTRAINT; Schema: queen; Owner: -
--

ALTER TABLE ONLY queen.consumer_watermarks
    ADD CONSTRAINT consumer_watermarks_queue_id_fkey FOREIGN KEY (queue_id) REFERENCES queen.queues(id) ON DELETE CASCADE;


--
-- Name: log_consumers log_consumers_partition_id_fkey; Type: FK CONSTRAINT; Schema: queen; Owner: -
--

ALTER TABLE ONLY queen.log_consumers
    ADD CONSTRAINT log_consumers_partition_id_fkey FOREIGN KEY (partition_id) REFERENCES queen.log_partitions(id) ON DELETE CASCADE;


--
-- Name: log_partitions log_partitions_queue_id_fkey; Type: FK CONSTRAINT; Schema: queen; Owner: -
--

ALTER TABLE ONLY queen.log_partitions
    ADD CONSTRAINT log_partitions_queue_id_fkey FOREIGN KEY (queue_id) REFERENCES queen.queues(id) ON DELETE CASCADE;


--
-- Name: log_segments log_segments_partition_id_fkey; Type: FK CONSTRAINT; Schema: queen; Owner: -
--

ALTER TABLE ONLY queen.log_segments
    ADD CONSTRAINT log_segments_partition_id_fkey FOREIGN KEY (partition_id) REFERENCES queen.log_partitions(id) ON DELETE CASCADE;


--
-- PostgreSQL database dump complete
--


