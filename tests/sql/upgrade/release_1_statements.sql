-- What the brokers of the first release prepare on each session. They go on calling while a newer
-- broker brings the schema up, so each of these has to work at every moment of that.
PREPARE push_multi(text[], text[], int4[], bytea[], int8[], bytea[], uuid[], uuid[], int8[], int8[],
                   timestamptz[]) AS
select queen.log_push_multi_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);
PREPARE segment_at(uuid, int8) AS
select * from queen.log_segment_at_v1($1, $2);
PREPARE window_hashes(uuid, int8, bool, int8) AS
select * from queen.log_window_hashes_v1($1, $2, $3, $4);
PREPARE pop_list(text, text, text[], int4, int4, text, bool, int4, text, text, bool, uuid) AS
select * from queen.log_pop_list_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);
PREPARE pop_wildcard(text, text, int4, int4, text, bool, int4, text, text, uuid) AS
select * from queen.log_pop_wildcard_bin_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);
PREPARE pop_specific(text, text, text, int4, int4, text, bool, text, text, uuid) AS
select * from queen.log_pop_specific_bin_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);
PREPARE pop_discover(text, text, text, int4, int4, text, bool, int4, text, text, uuid) AS
select * from queen.log_pop_discover_bin_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);
PREPARE has_pending(text, text, uuid) AS
select queen.log_has_pending_v1($1, $2, $3);
PREPARE partition_has_pending(text, text, text, uuid) AS
select queen.log_partition_has_pending_v1($1, $2, $3, $4);
PREPARE discover_has_pending(text, text, text, uuid) AS
select queen.log_discover_has_pending_v1($1, $2, $3, $4);
PREPARE release_undelivered(uuid, text, text) AS
select queen.log_release_undelivered_v1($1, $2, $3);
PREPARE ack_by_hash(uuid, text, text, bytea[], text[], uuid) AS
select case
         when exists (select from queen.log_partitions p join queen.queues q on q.id = p.queue_id
                       where p.id = $1 and q.tenant_id <> $6)
         then '{"ok": false, "acked": 0, "error": "partition not owned by tenant"}'::jsonb
         else queen.log_ack_by_hash_v1($1, $2, $3, $4, $5)
       end;
PREPARE ack_multi(uuid[], text[], int8[], text[], int8[]) AS
select queen.log_ack_multi_v1($1, $2, $3, $4, $5);
PREPARE renew_lease(text, int4) AS
select queen.log_renew_lease_v1($1, $2);
PREPARE configure_queue(text, jsonb, uuid) AS
select queen.configure_queue_v1($1, $2, $3);
PREPARE delete_queue(uuid, text) AS
select queen.delete_queue_v1($1, $2);
PREPARE queue_detail(uuid, text, text, int4) AS
select queen.queue_detail_v1($1, $2, $3, $4);
PREPARE queue_depth(text, text, uuid, text, int4) AS
select queen.log_queue_depth_v1($1, $2, $3, $4, $5);
PREPARE queue_sizes(uuid, text, text, int4) AS
select queen.queue_sizes_v1($1, $2, $3, $4);
PREPARE list_queues(uuid) AS
select queen.list_queues_v1($1);
PREPARE list_labels(uuid, text) AS
select queen.list_labels_v1($1, $2);
PREPARE overview(uuid) AS
select queen.resources_overview_v1($1);
PREPARE reseed_page(text, text, uuid, int4, uuid) AS
select q.id is not null, coalesce(q.delayed_processing, 0), coalesce(q.window_buffer, 0), w.*
from (select) one
left join queen.queues q on q.tenant_id = $5 and q.name = $1
cross join lateral (
    select array_agg(r.name) filter (where r.name is not null),
           array_agg(r.id) filter (where r.name is not null),
           (array_agg(r.id) filter (where r.name is null))[1]
    from queen.log_hotlist_reseed_v1($1, $2, $3, $4, $5) r) w;
PREPARE reseed_window_page(text, text, timestamptz, uuid, int4, int8, uuid, timestamptz) AS
select q.id is not null, coalesce(q.delayed_processing, 0), coalesce(q.window_buffer, 0), w.*
from (select) one
left join queen.queues q on q.tenant_id = $7 and q.name = $1
cross join lateral (
    select array_agg(r.name) filter (where r.name is not null),
           array_agg(r.id) filter (where r.name is not null),
           (array_agg(r.id) filter (where r.name is null))[1],
           (array_agg(r.write) filter (where r.name is null))[1],
           (array_agg(r.cutoff) filter (where r.name is null))[1]
    from queen.log_hotlist_reseed_window_v1($1, $2, $3, $4, $5, $6, $7, $8) r) w;
