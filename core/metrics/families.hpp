// metrics/families.hpp - every family that /metrics/prometheus serves, in the order of the page. A
// test holds docs/metrics.md against this list. What plugins name themselves is not in it
// (page.hpp).
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace queen::metrics {

enum class Kind : std::uint8_t { counter, gauge, histogram };

struct Family {
    std::string_view name;
    Kind kind = Kind::gauge;
    std::string_view labels; ///< their names, blanks between
    std::string_view help;   ///< one line, ASCII without backslash
};

// clang-format off
inline constexpr Family kUptime{"queen_uptime_seconds", Kind::gauge, "",
    "Seconds since this broker started."};
inline constexpr Family kResidentMemory{"queen_process_resident_memory_bytes", Kind::gauge, "",
    "Resident memory of the broker's process, without an embedded database."};
inline constexpr Family kCpu{"queen_process_cpu_seconds_total", Kind::counter, "mode",
    "CPU time of the broker's process, without an embedded database."};

// What clients asked for and got, since the start.
inline constexpr Family kPushRequests{"queen_process_push_requests_total", Kind::counter, "",
    "Push requests with at least one item."};
inline constexpr Family kPushMessages{"queen_process_push_messages_total", Kind::counter, "",
    "Messages stored by pushes."};
inline constexpr Family kPushDuplicates{"queen_process_push_duplicates_total", Kind::counter, "",
    "Pushed items that were known already and not stored again."};
inline constexpr Family kPushFailed{"queen_process_push_failed_total", Kind::counter, "",
    "Pushed items that were answered with an error."};
inline constexpr Family kPopRequests{"queen_process_pop_requests_total", Kind::counter, "",
    "Pops that reached the broker."};
inline constexpr Family kPopMessages{"queen_process_pop_messages_total", Kind::counter, "",
    "Messages delivered by pops."};
inline constexpr Family kPopEmpty{"queen_process_pop_empty_total", Kind::counter, "",
    "Pops answered with nothing."};
inline constexpr Family kPopFailed{"queen_process_pop_failed_total", Kind::counter, "",
    "Pops answered with an error."};
inline constexpr Family kPopLag{"queen_process_pop_lag_seconds", Kind::histogram, "",
    "From storing a message to delivering it, per message, redeliveries included."};
inline constexpr Family kAckRequests{"queen_process_ack_requests_total", Kind::counter, "",
    "Ack requests with at least one item."};
inline constexpr Family kAckMessages{"queen_process_ack_messages_total", Kind::counter, "",
    "Messages settled by acks, whatever their status."};
inline constexpr Family kAckRefused{"queen_process_ack_refused_total", Kind::counter, "",
    "Items of acks that were not settled."};
inline constexpr Family kAckDeadLetters{"queen_process_ack_dead_letters_total", Kind::counter, "",
    "Items of acks that became dead letters."};
inline constexpr Family kTransactions{"queen_process_transactions_total", Kind::counter, "result",
    "Transactions, by how they ended. Their messages count as those of pushes and acks."};

// The last full minute, by queue.
inline constexpr Family kQueuePushRequests{"queen_queue_push_requests_per_minute", Kind::gauge, "queue",
    "Push requests to the queue in the last full minute."};
inline constexpr Family kQueuePushMessages{"queen_queue_push_messages_per_minute", Kind::gauge, "queue",
    "Messages stored in the last full minute."};
inline constexpr Family kQueuePopMessages{"queen_queue_pop_messages_per_minute", Kind::gauge, "queue",
    "Messages delivered in the last full minute."};
inline constexpr Family kQueuePopEmpty{"queen_queue_pop_empty_per_minute", Kind::gauge, "queue",
    "Pops of the queue answered with nothing in the last full minute."};
inline constexpr Family kQueueAcks{"queen_queue_ack_per_minute", Kind::gauge, "queue result",
    "Messages in acks of the last full minute, by how they were settled."};
inline constexpr Family kQueuePopLag{"queen_queue_pop_lag_milliseconds", Kind::gauge, "queue stat",
    "From storing to delivering, over the messages delivered in the last full minute."};
inline constexpr Family kQueueParked{"queen_queue_parked_consumers", Kind::gauge, "queue",
    "Pops parked on the queue at the end of the last full minute."};
inline constexpr Family kQueueMetricsAge{"queen_queue_metrics_age_seconds", Kind::gauge, "",
    "Seconds since the last full minute ended."};
inline constexpr Family kQueuesTracked{"queen_queue_metrics_tracked", Kind::gauge, "",
    "Queues with a line of their own in the minute figures; the rest is summed up as __other__."};

// All brokers, since the beginning, and all queues, as of the last refresh of the statistics.
inline constexpr Family kClusterPushRequests{"queen_cluster_push_requests_total", Kind::counter, "scope",
    "Push requests to all brokers since the beginning."};
inline constexpr Family kClusterPushMessages{"queen_cluster_push_messages_total", Kind::counter, "scope",
    "Messages stored by pushes to all brokers since the beginning."};
inline constexpr Family kClusterPopRequests{"queen_cluster_pop_requests_total", Kind::counter, "scope",
    "Pops that reached any broker since the beginning."};
inline constexpr Family kClusterPopMessages{"queen_cluster_pop_messages_total", Kind::counter, "scope",
    "Messages delivered by all brokers since the beginning."};
inline constexpr Family kClusterAckRequests{"queen_cluster_ack_requests_total", Kind::counter, "scope",
    "Ack requests to all brokers since the beginning."};
inline constexpr Family kClusterAckMessages{"queen_cluster_ack_messages_total", Kind::counter, "scope",
    "Messages settled by acks to all brokers since the beginning."};
inline constexpr Family kClusterAcks{"queen_cluster_ack_total", Kind::counter, "scope result",
    "Messages in acks to all brokers since the beginning, by how they were settled."};
inline constexpr Family kClusterTransactions{"queen_cluster_transactions_total", Kind::counter, "scope",
    "Transactions that all brokers committed since the beginning."};
inline constexpr Family kClusterDeadLetters{"queen_cluster_dlq_total", Kind::counter, "scope",
    "Messages that became dead letters in acks and transactions of all brokers since the beginning."};
inline constexpr Family kClusterDbErrors{"queen_cluster_db_errors_total", Kind::counter, "scope",
    "Statements of all brokers that failed since the beginning."};
inline constexpr Family kDeadLetters{"queen_dlq_depth", Kind::gauge, "scope",
    "Dead letters of all queues."};
inline constexpr Family kDeadLettersByQueue{"queen_dlq_depth_by_queue", Kind::gauge, "queue",
    "Dead letters of the queue."};
inline constexpr Family kGroupLag{"queen_group_lag_messages", Kind::gauge, "queue group",
    "Messages that the consumer group is not done with, those under a lease included."};
inline constexpr Family kGroupAge{"queen_group_lag_seconds", Kind::gauge, "queue group",
    "For how long the oldest of them has been stored; 0 without any."};
inline constexpr Family kStatisticsAge{"queen_statistics_age_seconds", Kind::gauge, "",
    "For how long the statistics have stood that dead letters and lags are of."};
inline constexpr Family kPopMaintenance{"queen_pop_maintenance_mode_enabled", Kind::gauge, "",
    "1 while this broker answers pops with nothing because that is switched on."};

// Timers.
inline constexpr Family kTimersRefused{"queen_timers_schedule_rejected_total", Kind::counter, "reason",
    "Requests to set timers that were refused, by why."};

// Waiting pops.
inline constexpr Family kParkedByQueue{"queen_parked_long_polls", Kind::gauge, "queue",
    "Pops parked on the queue now; discovery pops belong to none."};
inline constexpr Family kParked{"queen_parked_pops", Kind::gauge, "",
    "All pops that are parked now."};
inline constexpr Family kWakes{"queen_wakes_total", Kind::counter, "cause",
    "Parked pops that were resumed, by what resumed them."};
inline constexpr Family kParkRefused{"queen_park_refused_total", Kind::counter, "",
    "Pops that did not park because something happened while they looked."};

// The ack registry.
inline constexpr Family kAckRegistryEntries{"queen_ack_registry_entries", Kind::gauge, "",
    "Leased batches that the ack registry remembers."};
inline constexpr Family kAckRegistryBytes{"queen_ack_registry_bytes", Kind::gauge, "",
    "Memory of the ack registry."};
inline constexpr Family kAckRegistryHits{"queen_ack_registry_hits_total", Kind::counter, "",
    "Acks of whole batches that the registry knew."};
inline constexpr Family kAckRegistryMisses{"queen_ack_registry_misses_total", Kind::counter, "",
    "Acks of completed messages of a lease that were no batch the registry knew."};
inline constexpr Family kAckRegistryRefused{"queen_ack_registry_refused_total", Kind::counter, "",
    "Acks of whole batches that the store refused by position."};
inline constexpr Family kAckRegistryEvictions{"queen_ack_registry_evictions_total", Kind::counter, "",
    "Batches that the ack registry gave up for want of room."};

// The dedup cache.
inline constexpr Family kDedupBytes{"queen_dedup_bytes", Kind::gauge, "",
    "Memory of the dedup cache, what hydrations have reserved included."};
inline constexpr Family kDedupPartitions{"queen_dedup_partitions", Kind::gauge, "",
    "Partitions whose dedup window the cache holds or reads."};
inline constexpr Family kDedupHashes{"queen_dedup_hashes", Kind::gauge, "",
    "Hashes of message ids that the dedup cache holds."};
inline constexpr Family kDedupVouched{"queen_dedup_vouched_total", Kind::counter, "",
    "Pushed segments that were sent with a vouch, so that the database compares less."};
inline constexpr Family kDedupSuspects{"queen_dedup_suspects_total", Kind::counter, "",
    "Pushed segments that were sent without a vouch because the cache found one of their hashes."};
inline constexpr Family kDedupDisbelieved{"queen_dedup_disbelieved_total", Kind::counter, "",
    "Vouches that the database did not take; it compared the whole window."};
inline constexpr Family kDedupHydrations{"queen_dedup_hydrations_total", Kind::counter, "",
    "Partitions whose dedup window the cache began to read."};
inline constexpr Family kDedupTopups{"queen_dedup_topups_total", Kind::counter, "",
    "Pages read of what other brokers pushed to a partition that the cache holds."};
inline constexpr Family kDedupSuppressed{"queen_dedup_suppressed_total", Kind::counter, "",
    "Hydrations refused for want of room or because one was refused or failed lately."};
inline constexpr Family kDedupEvictions{"queen_dedup_evictions_total", Kind::counter, "",
    "Partitions that the dedup cache gave up for want of room."};
inline constexpr Family kDedupSurprises{"queen_dedup_surprises_total", Kind::counter, "",
    "Partitions that the dedup cache gave up because something contradicted what it knew."};

// The pop path.
inline constexpr Family kPopTargeted{"queen_pop_targeted_total", Kind::counter, "",
    "Claims that named their partitions."};
inline constexpr Family kPopWildcard{"queen_pop_wildcard_total", Kind::counter, "",
    "Claims for which the database looked for partitions."};
inline constexpr Family kProbes{"queen_pop_probes_total", Kind::counter, "pending",
    "Questions to the database whether a scope has anything pending, by the answer."};
inline constexpr Family kFirstContacts{"queen_pop_first_contacts_total", Kind::counter, "",
    "Looks by a group that this broker did not know to be registered."};
inline constexpr Family kFillWaits{"queen_pop_fill_wait_total", Kind::counter, "",
    "Times a pop waited for a fuller batch, because its queue has a minPopWaitTime."};
inline constexpr Family kFillWaitMicros{"queen_pop_fill_wait_microseconds_total", Kind::counter, "",
    "How long those waits took together."};
inline constexpr Family kGivenBack{"queen_pop_given_back_total", Kind::counter, "",
    "Leased partitions given back because their answer was not delivered."};

// Candidate sources.
inline constexpr Family kPeeks{"queen_candidates_peeks_total", Kind::counter, "source state",
    "Looks at a candidate source, by what it said."};
inline constexpr Family kTakes{"queen_candidates_takes_total", Kind::counter, "source pick",
    "Questions to a candidate source for partitions, by what it gave."};
inline constexpr Family kNames{"queen_candidates_names_total", Kind::counter, "source",
    "Partitions that a candidate source offered."};
inline constexpr Family kClaims{"queen_candidates_claims_total", Kind::counter, "source verdict",
    "Verdicts given back to a candidate source."};
inline constexpr Family kMarks{"queen_candidates_marks_total", Kind::counter, "source",
    "Marks given to a candidate source: partitions that got messages."};
inline constexpr Family kFiguresDropped{"queen_candidates_figures_dropped", Kind::gauge, "source",
    "Figures of a candidate source that do not fit this page and were left out."};

// Other brokers.
inline constexpr Family kHintsPublished{"queen_peer_hints_published_total", Kind::counter, "kind",
    "Hints to other brokers that were given to a mesh."};
inline constexpr Family kHintsHeard{"queen_peer_hints_heard_total", Kind::counter, "kind",
    "Hints of other brokers."};
inline constexpr Family kHintsRefused{"queen_peer_hints_refused_total", Kind::counter, "reason",
    "Hints of other brokers that were left out."};
inline constexpr Family kHintsFannedOut{"queen_peer_hints_fanned_out_total", Kind::counter, "",
    "Hints of other brokers that named no tenant and were taken for every tenant with such a queue."};
inline constexpr Family kHintsWaiting{"queen_peer_hints_waiting", Kind::gauge, "",
    "Hints of other brokers that wait for a worker now."};
inline constexpr Family kHintsMissed{"queen_peer_hints_missed_total", Kind::counter, "",
    "Times that a mesh may have lost hints of other brokers: a link was made, or something was dropped."};
inline constexpr Family kHintConfigReads{"queen_peer_hints_settings_read_total", Kind::counter, "result",
    "Settings of queues that were read because another broker changed them."};
inline constexpr Family kMeshFiguresDropped{"queen_mesh_figures_dropped", Kind::gauge, "plugin",
    "Figures of a mesh that do not fit this page and were left out."};

// Walks and plugins.
inline constexpr Family kWalks{"queen_reseed_walks_total", Kind::counter, "end",
    "Walks over a queue's partitions that candidate sources asked for, by how they ended."};
inline constexpr Family kWalksNow{"queen_reseed_walks", Kind::gauge, "state",
    "Walks that are under way or wait for others to end."};
inline constexpr Family kWalkPages{"queen_reseed_pages_total", Kind::counter, "",
    "Pages that the database answered for walks."};
inline constexpr Family kWalkPartitions{"queen_reseed_partitions_total", Kind::counter, "",
    "Partitions that walks named to candidate sources."};
inline constexpr Family kForgotten{"queen_reseed_forgotten_total", Kind::counter, "",
    "Queues that a candidate source was told to forget, since many of their partitions are gone."};
inline constexpr Family kFaults{"queen_plugin_faults_total", Kind::counter, "plugin kind",
    "What a plugin did wrong."};
inline constexpr Family kPaused{"queen_plugin_paused", Kind::gauge, "plugin",
    "1 while a plugin is left alone because it was slow."};

// Maintenance.
inline constexpr Family kTurns{"queen_maintenance_turns_total", Kind::counter, "task result",
    "Turns that this broker took at a task of all brokers, by how they ended."};
inline constexpr Family kTurnDuration{"queen_maintenance_turn_duration_seconds", Kind::histogram, "task",
    "How long turns took."};
inline constexpr Family kTurnLate{"queen_maintenance_late_seconds", Kind::gauge, "task",
    "How long a task had been due when this broker took its last turn."};
inline constexpr Family kTurnHeld{"queen_maintenance_held", Kind::gauge, "task",
    "1 while this broker has a turn at the task."};
inline constexpr Family kRemovedSegments{"queen_retention_segments_total", Kind::counter, "type",
    "Stored segments that retention removed."};
inline constexpr Family kRemovedMessages{"queen_retention_messages_total", Kind::counter, "type",
    "Messages that retention removed."};
inline constexpr Family kRemovedBytes{"queen_retention_bytes_total", Kind::counter, "type",
    "Bytes of messages that retention removed, as they were stored."};
inline constexpr Family kRemovedHashRows{"queen_retention_hash_rows_total", Kind::counter, "",
    "Rows of message hashes that retention removed."};
inline constexpr Family kRemovedPartitions{"queen_retention_partitions_total", Kind::counter, "",
    "Unused partitions that were removed."};
inline constexpr Family kRemovedRecords{"queen_retention_records_total", Kind::counter, "",
    "Records of retention that were removed for their age."};
inline constexpr Family kRetentionSteps{"queen_retention_steps_total", Kind::counter, "result",
    "Steps of retention, a transaction each."};
inline constexpr Family kRetentionStepDuration{"queen_retention_step_duration_seconds", Kind::histogram, "",
    "How long steps over a partition took, the wait for a session included."};
inline constexpr Family kRetentionDue{"queen_retention_due", Kind::gauge, "work",
    "Partitions that the last turn found due, at most as many as it looks at."};
inline constexpr Family kRetentionBackedOff{"queen_retention_backed_off_total", Kind::counter, "",
    "Partitions that were due and left alone, since lately they lost nothing."};
inline constexpr Family kRetentionRepaired{"queen_retention_repaired_total", Kind::counter, "",
    "Partitions whose times of oldest rows were set right."};

inline constexpr Family kTimersDue{"queen_timers_due", Kind::gauge, "",
    "Timers that were due when this broker last looked, counted up to a cap."};
inline constexpr Family kTimersDueCapped{"queen_timers_due_capped", Kind::gauge, "",
    "1: more were due than were counted."};
inline constexpr Family kTimersOldestLate{"queen_timers_oldest_late_seconds", Kind::gauge, "",
    "How late the oldest of them was."};
inline constexpr Family kTimersFired{"queen_timers_fired_total", Kind::counter, "result",
    "Timers fired, found in the log already, or taken back by others in the meantime."};
inline constexpr Family kTimersFireFailures{"queen_timers_fire_failures_total", Kind::counter, "class",
    "Calls of the fire that failed, by whose fault it was."};
inline constexpr Family kTimersDeadLetters{"queen_timers_dlq_total", Kind::counter, "",
    "Timers that became dead letters."};
inline constexpr Family kTimersPoisoned{"queen_timers_poisoned_total", Kind::counter, "",
    "Attempts that were counted of timers which fail by themselves."};
inline constexpr Family kTimersFireLag{"queen_timers_fire_lag_seconds", Kind::gauge, "tenant quantile",
    "From due to stored, since the start; the upper bound of the quantile's bucket."};
inline constexpr Family kTimersLagDropped{"queen_timers_fire_lag_tenants_dropped_total", Kind::counter, "",
    "Timers fired of tenants that are too many to have a lag of their own."};
inline constexpr Family kSweeperFiguresDropped{"queen_sweeper_figures_dropped", Kind::gauge, "",
    "Figures of the driver of timers that do not fit this page and were left out."};

// Database.
inline constexpr Family kPoolSize{"queen_db_pool_size", Kind::gauge, "",
    "Database sessions."};
inline constexpr Family kPoolIdle{"queen_db_pool_idle", Kind::gauge, "",
    "Database sessions that run nothing."};
inline constexpr Family kPoolActive{"queen_db_pool_active", Kind::gauge, "",
    "Database sessions that run a statement."};
inline constexpr Family kOutage{"queen_db_outage", Kind::gauge, "",
    "1 since a connect to the database failed and until one succeeds."};
inline constexpr Family kConnects{"queen_db_connects_total", Kind::counter, "kind",
    "Links to the database that were opened, for the first time and anew."};
inline constexpr Family kTimeouts{"queen_db_timeouts_total", Kind::counter, "",
    "Statements cancelled because they ran over their time."};
inline constexpr Family kInflight{"queen_admission_inflight", Kind::gauge, "lane",
    "Statements that run now."};
inline constexpr Family kWaiting{"queen_admission_waiting", Kind::gauge, "lane",
    "Statements that wait for a session now."};
inline constexpr Family kWait{"queen_admission_wait_seconds", Kind::histogram, "lane",
    "How long statements waited for a session, those that never got one left out."};
inline constexpr Family kUnrun{"queen_admission_unrun_total", Kind::counter, "lane reason",
    "Statements that never ran: no session in time, or the database away."};
inline constexpr Family kTasks{"queen_worker_tasks_waiting", Kind::gauge, "",
    "Tasks that wait for a worker now."};
inline constexpr Family kStatements{"queen_store_statements_total", Kind::counter, "statement",
    "Statements sent."};
inline constexpr Family kStatementSeconds{"queen_store_statement_seconds_total", Kind::counter, "statement",
    "Time spent in statements, from sending to the whole answer."};
inline constexpr Family kStatementDuration{"queen_store_statement_duration_seconds", Kind::histogram, "statement",
    "How long statements took, from sending to the whole answer."};
inline constexpr Family kStoreErrors{"queen_store_errors_total", Kind::counter, "class",
    "Statements that failed, by the first two characters of the SQLSTATE; none: no answer came."};

// Network.
inline constexpr Family kConnections{"queen_connections", Kind::gauge, "state",
    "Connections, by what they are doing."};
inline constexpr Family kConnectionEvents{"queen_connections_total", Kind::counter, "event",
    "Connections that were accepted, refused at the limit, or ended by a limit of time."};
inline constexpr Family kHttpRequests{"queen_http_requests_total", Kind::counter, "",
    "Whole requests handed to the routes."};
inline constexpr Family kHttpRefused{"queen_http_bad_requests_total", Kind::counter, "",
    "Requests turned away before a route saw them."};
inline constexpr Family kHttpResponses{"queen_http_responses_total", Kind::counter, "code",
    "Answers, by status."};
inline constexpr Family kBodies{"queen_http_bodies_in_flight_bytes", Kind::gauge, "",
    "Request bodies that are being received or worked on."};
inline constexpr Family kLoopLagAverage{"queen_event_loop_lag_avg_milliseconds", Kind::gauge, "",
    "How long answers waited for the network thread, mean of the last 10 seconds."};
inline constexpr Family kLoopLag{"queen_event_loop_lag_seconds", Kind::histogram, "",
    "How long answers waited for the network thread, the first of each batch."};
// clang-format on

std::span<const Family* const> all_families();

} // namespace queen::metrics
