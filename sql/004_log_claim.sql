-- 004_log_claim.sql: who may take which offsets: where a group begins, and the claim.
--
-- There is one claim, queen._claim. Pops differ in who picks the candidates: those that name
-- partitions are in 004_log_pop.sql, those that scan for them in 004_log_pop_scan.sql.
--
-- No pop ever waits for another transaction (LK-3). A cursor row that is locked is skipped; a row
-- that must be created is created only under a lock got without waiting; a row that a foreign key
-- check would wait for is locked first, with SKIP LOCKED. What is skipped comes back in the next
-- pop. Who creates what under which lock:
--   queue row             its creation key (001)
--   marker, cursors of all partitions, watermark row       group key, exclusive
--   one cursor            group key, shared, and the cursor's own key
-- Lock order as in 001. Assumes READ COMMITTED. Raises 22023 for an unknown subscription mode,
-- 22007 and 22008 for an unreadable time.

-- What a pop says about where a new group begins. Modes: all, new, timestamp; at: their time.
CREATE OR REPLACE FUNCTION queen._subscription(
    p_mode text, p_from text, OUT mode text, OUT at timestamptz)
LANGUAGE plpgsql AS $$
BEGIN
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
-- Whether a group that is not registered conflates: as the pop wants it. Queue mode never does.
CREATE OR REPLACE FUNCTION queen._conflates(p_group text, p_asked boolean) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT p_group <> '__QUEUE_MODE__' AND coalesce(p_asked, false)
$$;

-- @
-- What the meta of a pop says about conflation (CF-1): p_is holds for the group, p_asked is what
-- this pop wants, null when it does not say.
CREATE OR REPLACE FUNCTION queen._policy(p_is boolean, p_asked boolean) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN p_is THEN '{"conflation": true}' ELSE '{}' END::jsonb
        || CASE WHEN p_asked <> p_is THEN '{"conflationConflict": true}' ELSE '{}' END::jsonb
$$;

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
-- Registers a group with a queue and seeds its cursor in every partition, once (CL-4). Returns
-- whether the group conflates, as whoever registered it wanted; null when somebody else is at it, or
-- the queue is being deleted: then the caller leaves the queue alone this time. Queue mode always
-- begins at the start.
CREATE OR REPLACE FUNCTION queen._register_group(
    p_tenant uuid, p_qid uuid, p_group text, p_mode text, p_at timestamptz, p_conflate boolean)
RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_mode text := CASE WHEN p_group = '__QUEUE_MODE__' THEN 'all' ELSE p_mode END;
    v_at   timestamptz := CASE WHEN p_group = '__QUEUE_MODE__' THEN 'epoch' ELSE p_at END;
    v_is   boolean;
BEGIN
    -- The marker is looked for again under the lock: its last holder may have committed one.
    FOR v_try IN 1..2 LOOP
        SELECT m.conflation INTO v_is FROM queen.consumer_groups_metadata m
        WHERE m.queue_id = p_qid AND m.consumer_group = p_group;
        IF FOUND THEN
            RETURN v_is;
        END IF;
        IF v_try = 1 AND NOT pg_try_advisory_xact_lock(
               hashtextextended(p_qid || '/' || p_group, 43)) THEN
            RETURN NULL;
        END IF;
    END LOOP;
    PERFORM 1 FROM queen.queues q WHERE q.id = p_qid FOR KEY SHARE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;

    v_is := queen._conflates(p_group, p_conflate);
    INSERT INTO queen.consumer_groups_metadata
        (tenant_id, consumer_group, queue_id, subscription_mode, subscription_timestamp,
         conflation)
    VALUES (p_tenant, p_group, p_qid, v_mode, v_at, v_is)
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
    RETURN v_is;
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
-- The lease a pop gives: what it asks for, else the queue's, else a minute (POP-2).
CREATE OR REPLACE FUNCTION queen._lease_seconds(p_asked integer, p_queue integer) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(nullif(greatest(p_asked, 0), 0), nullif(greatest(p_queue, 0), 0), 60)
$$;

-- @
-- The time that lies p_seconds back, for delay and window; without one everything is older.
CREATE OR REPLACE FUNCTION queen._older(p_now timestamptz, p_seconds integer) RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN p_seconds > 0 THEN p_now - make_interval(secs => p_seconds)
                ELSE 'infinity' END
$$;

-- @
-- The claim: takes from the partitions (p_qids[i], p_names[i]) in their order, until p_budget
-- messages, p_max_partitions partitions or _pop_bytes() are had, as leases or, with p_auto_ack, by
-- moving the cursors at once. A name given twice counts once (CL-13).
--   o_parts    what was taken: the partition objects of the pops' meta; o_blobs in their order
--   o_names, o_ids, o_lasts, o_untils   what was looked at, in order: name; id, null for a name
--              nobody knows; last offset; the end of the lease that keeps it from us
--   o_took     the places among these that were taken
--   o_reached  the last place that counts; those after it get no verdict
-- Who counts and was neither taken nor is leased is empty: no data, or held back by delay or window
-- (CL-6, CL-7). Leased is also, for a quarter of a second, what was skipped because its row is
-- locked while data is pending, or cannot be created without waiting (CL-12, F-5).
-- p_conflated are the queues whose group conflates (CF-2): of each of their partitions the newest
-- visible message is taken, alone, and the lease covers all from the cursor to it.
--
-- Sets instead of a loop of claims (CL-11). One statement looks and locks, one walks segments and
-- brings their blobs, one writes, one tells. Another round follows only when the first promised
-- more than there was: the delay withholds, retention deleted, blobs are too many bytes, or a
-- cursor is to be created that this pop might not reach.
--
-- Locks. A plpgsql cursor fetches one row at a time, and a row is locked when it is fetched: names
-- behind the last useful one are neither locked nor looked up, and no more rows are locked than
-- partitions are wanted, or than promise the budget. A locked row that turns out withheld or empty
-- stays locked until the pop ends, with neither lease nor attempt; others see it leased for a
-- moment. A round after the first locks at least twice as many rows as the one before, whatever the
-- budget, so that many withheld partitions cost few rounds; of these and of what too many bytes
-- kept out, whatever this pop does not reach gets no verdict.
--
-- Order (CL-14). The last offset is read before locks and segments, so what lies beyond it was
-- announced after the candidate was picked.
--
-- Plans. Every step goes from the candidates by primary key or unique name, as nested loops, which
-- keep the order of their outer side. The settings say so because a kept plan may be older than its
-- tables are large (F-54), and because without them the server plans anew at each call with few
-- names, which costs more than the call: 0.75 ms instead of 0.28 for one name.
--
-- Cost of a list pop and of the loop over candidates that the claim was: microseconds of server
-- CPU, least of four runs of 60 to 400 warm calls each, over 20,000 partitions with 100 messages
-- pending in one segment (2026-11-29, PostgreSQL 15.20, 2 cores busy with other work):
--     names   partitions taken   set   loop
--         1          1           219    353
--        16          1           224    270
--        16         10           605    720
--        64          1           229    384
--        64         10           621    901
--       256          1           362   1651
--       256         10           881   2363
--       256        100          5133   7898
-- Names with nothing to take are dearer, 219 for 160 with 16 of them and 1920 for 1315 with 256:
-- each is one fetch of the cursor, where the loop read all names at once. Pops with work save that.
CREATE OR REPLACE FUNCTION queen._claim(
    p_qids uuid[], p_names text[], p_group text, p_budget integer, p_lease_s integer,
    p_worker text, p_auto_ack boolean, p_max_partitions integer, p_mode text, p_at timestamptz,
    p_skip_window boolean, p_name_queue boolean, p_now timestamptz, p_conflated uuid[],
    OUT o_parts jsonb[], OUT o_blobs bytea[], OUT o_names text[], OUT o_ids uuid[],
    OUT o_lasts bigint[], OUT o_untils timestamptz[], OUT o_took integer[], OUT o_reached integer)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_memoize = off
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
    v_tails     bigint[];
    v_newest    boolean[];
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
    v_alone     boolean[] := '{}';          -- with its newest message only
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
               p.quiet, l.committed AS locked, c.committed, c.until, n.newest,
               CASE WHEN n.newest THEN 1
                    ELSE p.last_offset - greatest(c.committed, p.log_start - 1) END AS pending
        FROM (SELECT u.qid, u.name, min(u.i)::integer AS i, u.qid = ANY (p_conflated) AS newest
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
        v_tails := '{}';
        v_newest := '{}';
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
            v_tails[v_claimed] := v_got.last_offset;
            v_newest[v_claimed] := v_got.newest;
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
        -- The newest message alone is the last of the last visible segment: one step back from the
        -- end, or from where a search by halves finds the edge of what the delay withholds.
        v_place := 0;
        v_before := v_n;
        FOR v_row IN
            SELECT u.place, u.pid, u.committed, u.newest, s.base_offset, s.end_offset,
                   s.created_at, s.blob
            FROM (SELECT w.place, w.pid, w.committed, w.ripe, w.tail, w.newest
                  FROM unnest(v_places, v_pids, v_cursors, v_ripes, v_tails, v_newest)
                       AS w (place, pid, committed, ripe, tail, newest)
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
                (SELECT g.base_offset, g.end_offset, g.created_at, g.blob
                 FROM queen.log_segments g
                 WHERE NOT u.newest AND g.partition_id = u.pid AND g.base_offset >= f.base
                   AND g.base_offset < greatest(f.base, u.committed + 1) + v_left
                   AND g.created_at <= u.ripe
                 ORDER BY g.base_offset)
                UNION ALL
                (SELECT g.base_offset, g.end_offset, g.created_at, g.blob
                 FROM queen.log_segments g
                 WHERE u.newest AND g.partition_id = u.pid AND g.base_offset >= f.base
                   AND g.base_offset <= CASE
                       WHEN u.ripe = 'infinity' THEN 9223372036854775807
                       ELSE queen._offset_until(u.pid, u.ripe, f.base - 1, u.tail) END
                   AND g.created_at <= u.ripe
                 ORDER BY g.base_offset DESC LIMIT 1)
                OFFSET 0) s
        LOOP
            v_first := CASE WHEN v_row.newest THEN v_row.end_offset
                            ELSE greatest(v_row.base_offset, v_row.committed + 1) END;
            IF v_row.place <> v_place THEN
                EXIT WHEN v_max <= 0 OR v_bytes >= queen._pop_bytes();
                ASSERT v_row.place > v_place, 'partitions come in order';
                v_place := v_row.place;
                v_max := v_max - 1;
                v_n := v_n + 1;
                o_took[v_n] := v_place;
                v_ids[v_n] := v_row.pid;
                v_alone[v_n] := v_row.newest;
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
                (lease_expires_at, batch_end, lease_conflated, attempt_offset, attempt_count) = (
                    SELECT p_now + make_interval(secs => v_leases[o_took[n]]), v_ends[n],
                           v_alone[n], v_firsts[n],
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

-- @
-- Of the loop that the claim was.
DROP FUNCTION IF EXISTS queen._claim_many, queen._leased;

-- @
SELECT queen._keep_only(ARRAY[
    '_conflates(text, boolean)', '_policy(boolean, boolean)',
    '_offset_before(uuid, timestamptz, bigint, bigint, timestamptz)',
    '_create_cursor(uuid, uuid, text, text, timestamptz)',
    '_pop_bytes()',
    '_lease_seconds(integer, integer)',
    '_older(timestamptz, integer)']);
-- _subscription, _register_group and _claim stand in the list of 004_log_pop_scan.sql, after the
-- last function that calls them: until it is replaced, running brokers need the older ones.
