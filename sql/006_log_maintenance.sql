-- 006_log_maintenance.sql: removing what is not wanted any more.
--
-- Lock order of the delete as in 001: creation key, queue, partitions by id, cursors, leaves.

-- Removes a queue with its partitions, segments, sidecar rows, cursors, subscriptions and
-- watermarks. False when there is none. In-flight pushes are waited for; pushes that waited here
-- find their partition gone and fail (40001), pops skip what is locked.
CREATE OR REPLACE FUNCTION queen.delete_queue_v1(p_tenant uuid, p_name text) RETURNS boolean
LANGUAGE plpgsql AS $$
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

-- @
SELECT queen._keep_only(ARRAY['delete_queue_v1(uuid, text)']);
