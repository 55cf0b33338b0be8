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
                                     "$7, $8, $9, $10, $11, $12, $13)"};

// The first pop of a group seeds its cursors over the whole queue: a time-out of its own.
const Statement kPopWildcard{
    "pop_wildcard",
    "select * from queen.log_pop_wildcard_bin_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    StatementClass::seed};

const Statement kPopSpecific{
    "pop_specific",
    "select * from queen.log_pop_specific_bin_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"};

const Statement kPopDiscover{
    "pop_discover",
    "select * from queen.log_pop_discover_bin_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, "
    "$12)",
    StatementClass::seed};

const Statement kHasPending{"has_pending", "select queen.log_has_pending_v1($1, $2, $3)"};

const Statement kPartitionHasPending{"partition_has_pending",
                                     "select queen.log_partition_has_pending_v1($1, $2, $3, $4)"};

const Statement kDiscoverHasPending{"discover_has_pending",
                                    "select queen.log_discover_has_pending_v1($1, $2, $3, $4)"};

const Statement kReleaseUndelivered{"release_undelivered",
                                    "select queen.log_release_undelivered_v1($1, $2, $3)"};

// A partition id comes from the client, so the procedures of acks are told the tenant. Without
// letters: those that are wanted are asked for.
const Statement kAckByHash{"ack_by_hash",
                           "select queen.log_ack_by_hash_v1($1, $2, $3, $4, $5, $6, $7, '{}')"};

const Statement kAckLetters{"ack_letters",
                            "select queen.log_ack_by_hash_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, "
                            "$10, $11, $12, $13, $14, $15, $16)"};

const Statement kAckMulti{"ack_multi", "select queen.log_ack_multi_v1($1, $2, $3, $4, $5, $6, $7)"};

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

const Statement kQueuesEncrypted{"queues_encrypted",
                                 "select encrypted from queen.queues_encrypted_v1($1, $2)"};

const Statement kReadSwitches{"read_switches", "select * from queen.read_switches_v1()"};

const Statement kSetSwitch{"set_switch", "select queen.set_switch_v1($1, $2)"};

const Statement kStatsOverview{"stats_overview", "select queen.resources_overview_cached_v1($1)"};

const Statement kStatsQueues{"stats_queues", "select queen.list_queues_cached_v1($1)"};

// A step has several queues, and each may have a million partitions.
const Statement kStatsRefresh{"stats_refresh", "select * from queen.refresh_stats_step_v1($1, $2)",
                              StatementClass::maintenance};

const Statement kStatsRefreshed{"stats_refreshed", "select queen.stats_refreshed_v1($1)"};

const Statement kStatsState{"stats_state", "select * from queen.stats_state_v1()"};

// It reads all timers.
const Statement kStatsTimers{"stats_timers", "select queen.refresh_timer_stats_v1()",
                             StatementClass::maintenance};

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
// Whatever moves cursors may move those of a whole queue: a time-out of its own.
const Statement kDeleteGroup{"delete_group", R"sql(
select (r ->> 'deletedPartitions')::int8, (r ->> 'metadataDeleted')::boolean,
       array(select jsonb_array_elements_text(r -> 'queues'))
from queen.log_delete_consumer_group_v1($1, $2, $3, $4) r)sql",
                             StatementClass::maintenance};

const Statement kGroupDetail{"group_detail",
                             "select queen.get_consumer_group_detail_v1($1, $2, $3)"};

const Statement kLagging{"lagging", "select queen.get_lagging_partitions_v1($1, $2, $3)"};

const Statement kListGroups{"list_groups", "select queen.get_consumer_groups_v4($1)"};

const Statement kRepairs{"repairs", "select * from queen.log_hotlist_repairs_v1()"};

const Statement kSeekGroup{"seek_group", R"sql(
select r ->> 'error', (r ->> 'partitionsUpdated')::int8, null::uuid, (r ->> 'waits')::boolean
from queen.log_seek_consumer_group_v1($1, $2, $3, $4, $5) r)sql",
                           StatementClass::maintenance};

const Statement kSeekPartition{"seek_partition", R"sql(
select r ->> 'error', (r ->> 'partitionsUpdated')::int8, (r ->> 'partitionId')::uuid,
       (r ->> 'waits')::boolean
from queen.log_seek_partition_v1($1, $2, $3, $4, $5, $6) r)sql"};

const Statement kSubscribeGroup{"subscribe_group",
                                "select queen.update_consumer_group_subscription_v1($1, $2, $3)"};

const Statement kTransaction{
    "transaction",
    "select t -> 'pushes', t -> 'acks', t - 'pushes' - 'acks' from queen.log_transaction_v1($1, "
    "$2, $3, $4, $5, $6, "
    "$7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, p_encrypted => $19, p_timer_kinds => "
    "$20, p_timer_queues => $21, p_timer_keys => $22, p_timer_txns => $23, p_timer_partitions => "
    "$24, p_timer_delays => $25, p_timer_ids => $26, p_timer_payloads => $27, p_timer_zstd => $28, "
    "p_timer_encrypted => $29, p_timer_producer => $30) t"};

const Statement kTransactionLetters{
    "transaction_letters",
    "select t -> 'pushes', t -> 'acks', t - 'pushes' - 'acks' from queen.log_transaction_v1($1, "
    "$2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, "
    "$22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, "
    "$40) t"};
const Statement kDlqDelete{"dlq_delete", "select queen.delete_message_v1($1, $2, $3)"};

const Statement kDlqFind{"dlq_find", "select * from queen.log_dlq_find_v1($1, $2)"};

const Statement kDlqList{
    "dlq_list",
    "select * from queen.log_dlq_list_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"};

const Statement kDlqMove{"dlq_move", "select queen.log_dlq_move_v1($1, $2, $3, $4, $5, $6, $7)"};

const Statement kDlqNewest{"dlq_newest", "select * from queen.log_dlq_newest_v1($1, $2, $3)"};

const Statement kDlqPurge{"dlq_purge", "select queen.purge_dlq_v1($1, $2, $3)",
                          StatementClass::maintenance};

const Statement kMessage{"message", "select * from queen.log_message_v1($1, $2, $3)"};

const Statement kMessageSegments{"message_segments", "select * from queen.log_segments_v1($1, $2)"};

const Statement kMessages{
    "messages", "select queen.log_messages_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"};

const Statement kTimersApply{
    "timers_apply",
    "select * from queen.log_timers_apply_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"};

const Statement kTimersClaim{"timers_claim",
                             "select * from queen.log_timers_claim_v1($1, $2, $3, $4, $5)"};

const Statement kTimersCount{"timers_count", "select queen.log_timers_count_v1($1, $2, $3)"};

const Statement kTimersDeadLetter{"timers_dead_letter",
                                  "select queen.log_timers_dlq_v1($1, $2, $3, $4)"};

const Statement kTimersDue{"timers_due", "select * from queen.log_timers_due_v1($1, $2)"};

const Statement kTimersFail{
    "timers_fail", "select * from queen.log_timers_fail_v1($1, $2, $3, $4, $5, $6, $7, $8)"};

const Statement kTimersFire{
    "timers_fire", "select * from queen.log_timers_fire_v1($1, $2, $3, $4, $5, $6, $7, $8, $9)"};

const Statement kTimersList{"timers_list",
                            "select * from queen.log_timers_list_v1($1, $2, $3, $4)"};

const Statement kTimersPeek{"timers_peek", "select * from queen.log_timers_peek_v1($1, $2, $3)"};

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
        &kAckLetters,
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
        &kQueuesEncrypted,
        &kReadSwitches,
        &kSetSwitch,
        &kStatsOverview,
        &kStatsQueues,
        &kStatsRefresh,
        &kStatsRefreshed,
        &kStatsState,
        &kStatsTimers,
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
        &kDeleteGroup,
        &kGroupDetail,
        &kLagging,
        &kListGroups,
        &kRepairs,
        &kSeekGroup,
        &kSeekPartition,
        &kSubscribeGroup,
        &kTransaction,
        &kTransactionLetters,
        &kDlqDelete,
        &kDlqFind,
        &kDlqList,
        &kDlqMove,
        &kDlqNewest,
        &kDlqPurge,
        &kMessage,
        &kMessageSegments,
        &kMessages,
        &kTimersApply,
        &kTimersClaim,
        &kTimersCount,
        &kTimersDeadLetter,
        &kTimersDue,
        &kTimersFail,
        &kTimersFire,
        &kTimersList,
        &kTimersPeek,
    };
    return list;
}

} // namespace queen::store::statements
