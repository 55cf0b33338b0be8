#include "metrics/families.hpp"

#include <array>

namespace queen::metrics {
namespace {

constexpr std::array kAll{
    &kUptime,
    &kResidentMemory,
    &kCpu,
    &kPushRequests,
    &kPushMessages,
    &kPushDuplicates,
    &kPushFailed,
    &kPopRequests,
    &kPopMessages,
    &kPopEmpty,
    &kPopFailed,
    &kPopLag,
    &kAckRequests,
    &kAckMessages,
    &kAckRefused,
    &kQueuePushRequests,
    &kQueuePushMessages,
    &kQueuePopMessages,
    &kQueuePopEmpty,
    &kQueueAcks,
    &kQueuePopLag,
    &kQueueParked,
    &kQueueMetricsAge,
    &kQueuesTracked,
    &kParkedByQueue,
    &kParked,
    &kWakes,
    &kParkRefused,
    &kPopTargeted,
    &kPopWildcard,
    &kProbes,
    &kFirstContacts,
    &kGivenBack,
    &kPeeks,
    &kTakes,
    &kNames,
    &kClaims,
    &kMarks,
    &kFiguresDropped,
    &kWalks,
    &kWalksNow,
    &kWalkPages,
    &kWalkPartitions,
    &kFaults,
    &kPaused,
    &kPoolSize,
    &kPoolIdle,
    &kPoolActive,
    &kOutage,
    &kConnects,
    &kTimeouts,
    &kInflight,
    &kWaiting,
    &kWait,
    &kUnrun,
    &kTasks,
    &kStatements,
    &kStatementSeconds,
    &kStatementDuration,
    &kStoreErrors,
    &kConnections,
    &kConnectionEvents,
    &kHttpRequests,
    &kHttpRefused,
    &kHttpResponses,
    &kBodies,
    &kLoopLagAverage,
    &kLoopLag,
};

} // namespace

std::span<const Family* const> all_families() {
    return kAll;
}

} // namespace queen::metrics
