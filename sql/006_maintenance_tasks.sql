-- 006_maintenance_tasks.sql: whose turn it is to do a task that one broker at a time does for all.
--
-- A turn is a lease of the task's row. It is due when next_due_at is over, and free when it was
-- given back or its lease ran out; fence rises with each turn, so whoever gives back a turn that is
-- somebody else's by now changes nothing (MA-1). next_due_at moves as a turn is given back: moved
-- as it is taken, a holder that dies would cost a whole period as well (MA-2).
-- Lock order: a row of maintenance_leases, in a transaction of its own. Errors: none of its own.

-- Makes a task known. Whoever starts last says how often; a shorter period holds at once. enabled
-- is the operator's and stays as it is.
CREATE OR REPLACE FUNCTION queen.task_register_v1(p_task text, p_period_ms bigint) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO queen.maintenance_leases AS l (task, period_ms, next_due_at)
    VALUES (p_task, p_period_ms, queen._clock())
    ON CONFLICT (task) DO UPDATE SET
        period_ms = EXCLUDED.period_ms,
        next_due_at = least(l.next_due_at,
                            queen._clock() + EXCLUDED.period_ms * interval '1 ms')
    WHERE l.period_ms <> EXCLUDED.period_ms
$$;

-- @
-- Takes a turn: its fence and since when it was due, or no row.
CREATE OR REPLACE FUNCTION queen.task_claim_v1(p_task text, p_holder text, p_lease_ms bigint)
RETURNS TABLE (fence bigint, late_ms bigint)
LANGUAGE sql AS $$
    UPDATE queen.maintenance_leases l SET
        lease_until = queen._clock() + p_lease_ms * interval '1 ms',
        holder = p_holder, fence = l.fence + 1, last_start_at = queen._clock()
    WHERE l.task = p_task AND l.enabled AND l.next_due_at <= queen._clock()
      AND (l.lease_until IS NULL OR l.lease_until <= queen._clock())
    RETURNING l.fence,
              (extract(epoch FROM queen._clock() - l.next_due_at) * 1000)::bigint
$$;

-- @
-- Gives a turn back; false when it is somebody else's by now. A task that was cut short is due at
-- once, here or elsewhere.
CREATE OR REPLACE FUNCTION queen.task_release_v1(
    p_task text, p_fence bigint, p_complete boolean DEFAULT true)
RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE queen.maintenance_leases l SET
        next_due_at = CASE WHEN p_complete
                           THEN greatest(l.next_due_at + l.period_ms * interval '1 ms',
                                         queen._clock())
                           ELSE l.next_due_at END,
        lease_until = NULL, holder = NULL, last_end_at = queen._clock(), runs = l.runs + 1,
        last_duration_ms = extract(epoch FROM queen._clock() - l.last_start_at) * 1000
    WHERE l.task = p_task AND l.fence = p_fence AND l.holder IS NOT NULL;
    RETURN FOUND;
END $$;

-- @
SELECT queen._keep_only(ARRAY['task_register_v1(text, bigint)', 'task_claim_v1(text, text, bigint)',
                              'task_release_v1(text, bigint, boolean)']);
