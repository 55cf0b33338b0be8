// store/statements.hpp - every statement that the ports on PostgreSQL prepare, in one place: name,
// text, time-out class. Argument types come from the encoder (parameters.hpp), so the texts need no
// casts.
//
// Plans. Each text is one function call, so its own plan is trivial, and whether the server makes a
// custom or a generic plan of it does not matter: plan_cache_mode stays `auto`. It must not be
// forced per session: the setting would reach the statements inside the functions, where a generic
// plan of the candidate scan reads every partition of the database (F-54). A function that needs a
// mode sets it in its own definition.
#pragma once
#include "store/session.hpp"

#include <span>

namespace queen::store {

namespace statements {

extern const Statement kPing;
extern const Statement kPushMulti;
extern const Statement kSegmentAt;
extern const Statement kWindowHashes;
extern const Statement kPopList;
extern const Statement kPopWildcard;
extern const Statement kPopSpecific;
extern const Statement kPopDiscover;
extern const Statement kHasPending;
extern const Statement kPartitionHasPending;
extern const Statement kDiscoverHasPending;
extern const Statement kReleaseUndelivered;
extern const Statement kAckByHash;
extern const Statement kAckLetters;
extern const Statement kAckMulti;
extern const Statement kRenewLease;
extern const Statement kConfigureQueue;
extern const Statement kDeleteQueue;
extern const Statement kQueueDetail;
extern const Statement kQueueDepth;
extern const Statement kQueueSizes;
extern const Statement kListQueues;
extern const Statement kListLabels;
extern const Statement kOverview;
extern const Statement kReseedPage;
extern const Statement kReseedWindowPage;
extern const Statement kRetentionCleanupStep;
extern const Statement kRetentionDue;
extern const Statement kRetentionHistoryStep;
extern const Statement kRetentionMaxWaitStep;
extern const Statement kRetentionPurgeStep;
extern const Statement kRetentionStep;
extern const Statement kRetentionWalkStep;
extern const Statement kTaskClaim;
extern const Statement kTaskRegister;
extern const Statement kTaskRelease;

extern const Statement kAddCounts;
extern const Statement kClusterFigures;
extern const Statement kQueuesEncrypted;
extern const Statement kReadSwitches;
extern const Statement kSetSwitch;
extern const Statement kStatsOverview;
extern const Statement kStatsQueues;
extern const Statement kStatsRefresh;
extern const Statement kStatsRefreshed;
extern const Statement kStatsState;
extern const Statement kStatsTimers;
// Consumer groups.
extern const Statement kDeleteGroup;
extern const Statement kGroupDetail;
extern const Statement kLagging;
extern const Statement kListGroups;
extern const Statement kRepairs;
extern const Statement kSeekGroup;
extern const Statement kSeekPartition;
extern const Statement kSubscribeGroup;
extern const Statement kTransaction;
extern const Statement kTransactionLetters;

// Dead letters.
extern const Statement kDlqDelete;
extern const Statement kDlqFind;
extern const Statement kDlqList;
extern const Statement kDlqMove;
extern const Statement kDlqNewest;
extern const Statement kDlqPurge;

// Messages that are only looked at.
extern const Statement kMessage;
extern const Statement kMessageSegments;
extern const Statement kMessages;

// Timers.
extern const Statement kTimersApply;
extern const Statement kTimersClaim;
extern const Statement kTimersCount;
extern const Statement kTimersDeadLetter;
extern const Statement kTimersDue;
extern const Statement kTimersFail;
extern const Statement kTimersFire;
extern const Statement kTimersList;
extern const Statement kTimersPeek;

/// All of the above. The name is what the server knows, so no two may share one.
std::span<const Statement* const> all();

} // namespace statements
} // namespace queen::store
