#include "store/statements.hpp"

#include <array>

namespace queen::store::statements {

const Statement kPing{"ping", "select 1"};

const Statement kPushMulti{
    "push_multi", "select queen.log_push_multi_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, "
                  "$11, $12)"};

const Statement kSegmentAt{"segment_at", "select * from queen.log_segment_at_v1($1, $2)"};

const Statement kWindowHashes{"window_hashes",
                              "select * from queen.log_window_hashes_v1($1, $2, $3, $4)"};

const Statement kPopList{"pop_list", "select * from queen.log_pop_list_v1($1, $2, $3, $4, $5, $6, "
                                     "$7, $8, $9, $10, $11, $12)"};

// The first pop of a group seeds its cursors over the whole queue: a time-out of its own.
const Statement kPopWildcard{
    "pop_wildcard",
    "select * from queen.log_pop_wildcard_bin_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    StatementClass::seed};

const Statement kPopSpecific{
    "pop_specific",
    "select * from queen.log_pop_specific_bin_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"};

const Statement kPopDiscover{
    "pop_discover",
    "select * from queen.log_pop_discover_bin_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    StatementClass::seed};

const Statement kHasPending{"has_pending", "select queen.log_has_pending_v1($1, $2, $3)"};

const Statement kPartitionHasPending{"partition_has_pending",
                                     "select queen.log_partition_has_pending_v1($1, $2, $3, $4)"};

const Statement kDiscoverHasPending{"discover_has_pending",
                                    "select queen.log_discover_has_pending_v1($1, $2, $3, $4)"};

const Statement kReleaseUndelivered{"release_undelivered",
                                    "select queen.log_release_undelivered_v1($1, $2, $3)"};

// A partition id comes from the client, so the tenant is checked in the same statement. A partition
// that is gone answers as the procedure says; only one that belongs to somebody else is refused.
const Statement kAckByHash{"ack_by_hash", R"sql(
select case
         when exists (select from queen.log_partitions p join queen.queues q on q.id = p.queue_id
                       where p.id = $1 and q.tenant_id <> $6)
         then '{"ok": false, "acked": 0, "error": "partition not owned by tenant"}'::jsonb
         else queen.log_ack_by_hash_v1($1, $2, $3, $4, $5)
       end)sql"};

const Statement kAckMulti{"ack_multi", "select queen.log_ack_multi_v1($1, $2, $3, $4, $5)"};

const Statement kRenewLease{"renew_lease", "select queen.log_renew_lease_v1($1, $2, null, $3)"};

const Statement kConfigureQueue{"configure_queue", "select queen.configure_queue_v1($1, $2, $3)"};

const Statement kDeleteQueue{"delete_queue", "select queen.delete_queue_v1($1, $2)",
                             StatementClass::maintenance};

const Statement kQueueDetail{"queue_detail", "select queen.queue_detail_v1($1, $2, $3, $4)"};

const Statement kQueueDepth{"queue_depth", "select queen.log_queue_depth_v1($1, $2, $3, $4, $5)"};

const Statement kQueueSizes{"queue_sizes", "select queen.queue_sizes_v1($1, $2, $3, $4)"};

const Statement kListQueues{"list_queues", "select queen.list_queues_v1($1)"};

const Statement kListLabels{"list_labels", "select queen.list_labels_v1($1, $2)"};

const Statement kOverview{"overview", "select queen.resources_overview_v1($1)"};

// A page as arrays, beside the settings of the queue, so that a page costs one round trip and each
// partition its name and id. The row without a name is where the next page goes on.
const Statement kReseedPage{"reseed_page", R"sql(
select q.id is not null, coalesce(q.delayed_processing, 0), coalesce(q.window_buffer, 0), q.id,
       coalesce(q.partitions_deleted, 0), w.*
from (select) one
left join queen.queues q on q.tenant_id = $5 and q.name = $1
cross join lateral (
    select array_agg(r.name) filter (where r.name is not null),
           array_agg(r.id) filter (where r.name is not null),
           (array_agg(r.id) filter (where r.name is null))[1]
    from queen.log_hotlist_reseed_v1($1, $2, $3, $4, $5) r) w)sql"};

const Statement kReseedWindowPage{"reseed_window_page", R"sql(
select q.id is not null, coalesce(q.delayed_processing, 0), coalesce(q.window_buffer, 0), q.id,
       coalesce(q.partitions_deleted, 0), w.*
from (select) one
left join queen.queues q on q.tenant_id = $7 and q.name = $1
cross join lateral (
    select array_agg(r.name) filter (where r.name is not null),
           array_agg(r.id) filter (where r.name is not null),
           (array_agg(r.id) filter (where r.name is null))[1],
           (array_agg(r.write) filter (where r.name is null))[1],
           (array_agg(r.cutoff) filter (where r.name is null))[1]
    from queen.log_hotlist_reseed_window_v1($1, $2, $3, $4, $5, $6, $7, $8) r) w)sql"};

const Statement kAddCounts{"add_counts", "select queen.add_counts_v1($1, $2, $3, $4)"};

const Statement kClusterFigures{"cluster_figures", "select queen.cluster_figures_v1($1)"};

const Statement kReadSwitches{"read_switches", "select * from queen.read_switches_v1()"};

const Statement kSetSwitch{"set_switch", "select queen.set_switch_v1($1, $2)"};

const Statement kStatsOverview{"stats_overview", "select queen.resources_overview_cached_v1($1)"};

const Statement kStatsQueues{"stats_queues", "select queen.list_queues_cached_v1($1)"};

// A step has several queues, and each may have a million partitions.
const Statement kStatsRefresh{"stats_refresh", "select * from queen.refresh_stats_step_v1($1, $2)",
                              StatementClass::maintenance};

const Statement kStatsRefreshed{"stats_refreshed", "select queen.stats_refreshed_v1($1)"};

const Statement kStatsState{"stats_state", "select * from queen.stats_state_v1()"};

const Statement kRetentionCleanupStep{
    "retention_cleanup_step",
    "select * from queen.log_partition_cleanup_step_v1(queen._clock() - $1 * interval '1 s', $2, "
    "$3, $4)"};

const Statement kRetentionDue{"retention_due",
                              "select * from queen.log_due_v1($1, $2, $3, $4, $5)"};

const Statement kRetentionHistoryStep{
    "retention_history_step",
    "select * from queen.log_history_purge_step_v1(queen._clock() - $1 * interval '1 s', $2)"};

const Statement kRetentionMaxWaitStep{"retention_max_wait_step",
                                      "select deleted, messages, bytes, done from "
                                      "queen.log_evict_max_wait_step_v1($1, $2, $3)"};

const Statement kRetentionPurgeStep{
    "retention_purge_step", "select deleted, done from queen.log_txns_purge_step_v1($1, $2, $3)"};

const Statement kRetentionStep{
    "retention_step", "select deleted, messages, bytes, done, consumed_deleted, consumed_messages, "
                      "consumed_bytes from queen.log_retention_step_v1($1, $2, $3, $4)"};

const Statement kRetentionWalkStep{"retention_walk_step",
                                   "select * from queen.log_watermark_walk_step_v1($1, $2)"};

const Statement kTaskClaim{"task_claim", "select * from queen.task_claim_v1($1, $2, $3)"};

const Statement kTaskRegister{"task_register", "select queen.task_register_v1($1, $2)"};

const Statement kTaskRelease{"task_release", "select queen.task_release_v1($1, $2, $3)"};

std::span<const Statement* const> all() {
    static const std::array list{
        &kPing,
        &kPushMulti,
        &kSegmentAt,
        &kWindowHashes,
        &kPopList,
        &kPopWildcard,
        &kPopSpecific,
        &kPopDiscover,
        &kHasPending,
        &kPartitionHasPending,
        &kDiscoverHasPending,
        &kReleaseUndelivered,
        &kAckByHash,
        &kAckMulti,
        &kRenewLease,
        &kConfigureQueue,
        &kDeleteQueue,
        &kQueueDetail,
        &kQueueDepth,
        &kQueueSizes,
        &kListQueues,
        &kListLabels,
        &kOverview,
        &kReseedPage,
        &kReseedWindowPage,
        &kAddCounts,
        &kClusterFigures,
        &kReadSwitches,
        &kSetSwitch,
        &kStatsOverview,
        &kStatsQueues,
        &kStatsRefresh,
        &kStatsRefreshed,
        &kStatsState,
        &kRetentionCleanupStep,
        &kRetentionDue,
        &kRetentionHistoryStep,
        &kRetentionMaxWaitStep,
        &kRetentionPurgeStep,
        &kRetentionStep,
        &kRetentionWalkStep,
        &kTaskClaim,
        &kTaskRegister,
        &kTaskRelease,
    };
    return list;
}

} // namespace queen::store::statements
