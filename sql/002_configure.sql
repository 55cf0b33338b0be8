-- 002_configure.sql: settings of a queue.
--
-- Lock order: the queue's creation key, then its row. The row is locked FOR NO KEY UPDATE: pops
-- check foreign keys against it and must not wait (LK-3). Mistakes of the caller are answers, not
-- exceptions: {error, invalid: [option names]}.

-- The options of configure with their column, type, default and bounds, in the order in which they
-- are echoed. clamped: out of bounds is brought to the bound, as the contract has it, not refused.
CREATE OR REPLACE FUNCTION queen._queue_options()
RETURNS TABLE (option text, kind text, fallback jsonb, low bigint, high bigint, clamped boolean,
               ord integer)
LANGUAGE sql IMMUTABLE ROWS 21 AS $$
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

-- @
-- The settings of a queue as options, labels included; every option has a value.
CREATE OR REPLACE FUNCTION queen._options_of(p_queue queen.queues) RETURNS jsonb
LANGUAGE sql STABLE AS $$
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

-- @
-- The options that are kept and shown while nothing acts on them (OPT-3, and
-- core/docs/decisions/0006-stored-options.md).
CREATE OR REPLACE FUNCTION queen._stored_only() RETURNS text[]
LANGUAGE sql IMMUTABLE AS $$
    SELECT ARRAY['maxSize', 'priority', 'retentionSinkHold', 'retentionSinkHoldMaxSeconds']
$$;

-- @
-- What is wrong with one given value, null when nothing is. A JSON null asks for the default.
CREATE OR REPLACE FUNCTION queen._option_fault(p_option text, p_value jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
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
END $$;

-- @
-- Creates a queue or sets its options; creates no partition. Options that are absent go back to
-- their default, or with "mode": "merge" keep their value; null is the default in either mode
-- (K36). Labels are options too. An option nobody knows is refused by name (K37).
-- Result: {configured, queueId, partitionId: null, queue, namespace, task, storage, options,
-- storedOnly}. options tells maxSize under its other name as well, maxQueueSize; storedOnly, which of
-- the given options nothing acts on, is there when there are some.
CREATE OR REPLACE FUNCTION queen.configure_queue_v1(
    p_name text, p_options jsonb,
    p_tenant uuid DEFAULT '00000000-0000-0000-0000-000000000001')
RETURNS jsonb
LANGUAGE plpgsql AS $$
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
        'options', (v_opt - 'namespace' - 'task')
                   || jsonb_build_object('maxQueueSize', v_opt -> 'maxSize'))
        || coalesce((SELECT jsonb_build_object('storedOnly', jsonb_agg(s.option ORDER BY s.option))
                     FROM unnest(queen._stored_only()) AS s (option)
                     WHERE v_given -> s.option <> 'null'
                     HAVING count(*) > 0), '{}');
END $$;

-- @
-- Whether the payloads of each queue are to be encrypted, in the order of the names; not those of a
-- queue that does not exist.
CREATE OR REPLACE FUNCTION queen.queues_encrypted_v1(p_tenant uuid, p_queues text[])
RETURNS TABLE (encrypted boolean)
LANGUAGE sql STABLE ROWS 10 AS $$
    SELECT coalesce(q.encryption_enabled, false)
    FROM unnest(p_queues) WITH ORDINALITY AS n (name, at)
    LEFT JOIN queen.queues q ON q.tenant_id = p_tenant AND q.name = n.name
    ORDER BY n.at
$$;

-- @
SELECT queen._keep_only(ARRAY[
    '_queue_options()', '_options_of(queen.queues)', '_stored_only()',
    '_option_fault(text, jsonb)',
    'configure_queue_v1(text, jsonb, uuid)', 'queues_encrypted_v1(uuid, text[])']);
