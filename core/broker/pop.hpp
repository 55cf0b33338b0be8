#pragma once
#include "base/workers.hpp"
#include "broker/announce.hpp"
#include "broker/parking.hpp"
#include "broker/pop_size.hpp"
#include "broker/queue_configs.hpp"
#include "broker/sources.hpp"
#include "metrics/activity.hpp"
#include "model/subscription.hpp"
#include "ports/store.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace queen::broker {

struct PopRequest {
    enum class Shape { wildcard, pinned, discovery } shape = Shape::wildcard;
    std::string tenant;
    std::string queue;     ///< wildcard and pinned
    std::string partition; ///< pinned
    std::string ns, task;  ///< discovery
    std::string group;     ///< kQueueModeGroup for those who name none
    std::int32_t batch = 200;
    std::int32_t partitions = 1;
    bool auto_ack = false;
    bool wait = false;
    std::chrono::milliseconds timeout{30'000}; ///< of a waiting pop, already capped
    std::int32_t lease_seconds = 0;            ///< 0: the queue's
    Subscription subscription;
    std::optional<bool> conflation;     ///< nullopt: whatever the group has
    std::optional<Autopilot> autopilot; ///< what of batch and partitions is left to the broker
};

/// What a pop delivers. No partitions: nothing (204, or 200 when there is something to say of
/// conflation).
struct PopBatch {
    std::string lease_id; ///< empty with autoAck
    std::vector<PoppedPartition> partitions;
    bool conflates = false;        ///< the group takes the newest of each partition alone (CF-1)
    bool conflict = false;         ///< and the pop wanted something else
    std::optional<PopSize> chosen; ///< with autopilot: what the pop went by
    bool paused = false;           ///< nothing, because pops are paused
};

/// A pop that may wait. Whoever asked keeps it, weakly, to call abandon() when the client goes.
class PopCall {
public:
    virtual ~PopCall() = default;
    /// The client is gone: a parked pop leaves its place and passes on a wake it was given.
    /// @thread any, any number of times
    virtual void abandon() = 0;
};

/// The pop path: in-memory look, store, park (seeds of rules SV-*, LP-*).
class Pop {
public:
    struct Options {
        std::chrono::milliseconds wait{30'000};          ///< for a session
        std::chrono::milliseconds probe_interval{1'000}; ///< non-waiting pops of a quiet source
        bool pending_gate = true;
        std::size_t parked = 0;         ///< most parked pops; 0: no limit
        std::function<bool()> paused{}; ///< pops are answered with nothing while it says so
        std::shared_ptr<metrics::Activity> activity{}; ///< what is counted into; null: its own
    };
    Pop(Store& store, const Sources& sources, Announcer& announcer, Parking& parking,
        Workers& workers, Ticker& ticker, const Clock& clock, Options options);
    ~Pop();
    /// @thread worker. `done` runs once on a worker unless the call is abandoned first.
    /// @errors unavailable, timeout, store_failed (only without `wait`); overloaded when too many
    /// park
    std::shared_ptr<PopCall> pop(PopRequest request, Done<PopBatch> done);
    /// Hands a leased batch back whose answer could not be delivered (rule GB-1).
    void undelivered(const PopRequest& request, const PopBatch& batch);
    /// Every parked pop looks once more and is answered; later ones do not park. @thread any
    void close();
    /// Settings of a queue as they are from now on: waiting pops go by them at their next look.
    void configured(std::string_view tenant, std::string_view queue, const QueueSettings& settings);
    /// What pops remember of the settings of queues. @thread any
    QueueConfigs& configs() noexcept;
    /// A queue is gone: what was learnt about it is dropped.
    void forget(std::string_view tenant, std::string_view queue);
    /// Whether the group is known there is open again: its next pop makes first contact.
    void forget(std::string_view tenant, std::string_view queue, std::string_view group);

private:
    friend class PopWork;
    class Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace queen::broker
