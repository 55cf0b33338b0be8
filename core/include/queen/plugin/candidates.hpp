// queen/plugin/candidates.hpp - what a candidate source implements. No ABI in sight, so a source is
// tested like any other class; entry.hpp turns it into the C table of abi.h. The same class is the
// core's port: the plugin host turns a loaded table back into it.
#pragma once
#include <queen/plugin/common.hpp>
#include <queen/plugin/types.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace queen::plugin {

/// A queue as plugins see it. `key` is tenant 0x1f name, byte for byte the wake gate's key.
struct Queue {
    std::string_view key;
    std::string_view tenant;
    std::string_view name;
};

struct Scope {
    Queue queue;
    std::string_view group;
};

enum class ReadyState {
    nothing,  ///< nothing pending: the pop parks without a statement
    ready,    ///< take() has something to offer
    cold,     ///< knows nothing yet: take() answers Pick::scan
    ask_store ///< cannot tell: the host probes the store, once per scope
};

struct Readiness {
    ReadyState state = ReadyState::nothing;
    std::uint64_t partitions = 0;            ///< estimate, biased low
    std::uint64_t messages = 0;              ///< estimate, biased low
    SteadyTime next_due = SteadyTime::max(); ///< when something may become ready
};

struct Take {
    Scope scope;
    std::uint32_t round = 0;      ///< 0 first; at most 4 rounds in one pop
    std::uint32_t partitions = 1; ///< most partitions the pop claims
    std::uint64_t messages = 1;   ///< most messages the pop delivers
    std::uint64_t limit = 16;     ///< most names that are accepted
};

/// Where take() puts its names.
class Names {
public:
    virtual ~Names() = default;
    /// @return false when there is no room for another name: stop. A name offered twice, or beyond
    /// the limit of the take, is ignored and counted as a fault.
    virtual bool add(std::string_view partition, std::uint64_t token) = 0;
};

enum class Pick { none, names, scan };

/// What a source remembers between take() and settle(). Returned exactly once.
struct Cookie {
    virtual ~Cookie() = default;
};

struct Selection {
    Pick pick = Pick::none;
    bool holds_window = false; ///< the source debounced windowBuffer for these names itself
    Nanoseconds window{0};     ///< with holds_window: the windowBuffer it held for
    std::unique_ptr<Cookie> cookie;
};

enum class VerdictKind { took_leased = 1, took_acked, empty, leased, requeue };

struct Verdict {
    std::uint64_t token = 0; ///< as offered; 0 for partitions the store found itself
    std::string_view partition;
    Uuid partition_id;
    VerdictKind kind = VerdictKind::requeue;
    bool drained = false; ///< the claim reached the partition's end
    std::uint64_t frames = 0;
    SteadyTime until{}; ///< end of the lease for took_leased and leased
};

enum class Origin { push = 1, transaction, peer, timer };

struct Mark {
    std::string_view partition;
    Uuid partition_id;
    std::uint64_t frames = 1;
};

struct QueueConfig {
    Nanoseconds delay{0};  ///< delayedProcessing
    Nanoseconds window{0}; ///< windowBuffer
    SteadyTime read_at{};  ///< when the store was asked
};

struct ReseedRow {
    std::string_view partition;
    Uuid partition_id;
};

using Ticket = std::uint64_t;

/// What a source may ask of the broker. Every call returns at once.
/// @thread any, with no lock of the plugin's held: the broker may call back from inside
class CandidateHost {
public:
    virtual ~CandidateHost() = default;
    /// Wakes pops parked on the queue. An empty group means every group. `ready`: how many
    /// partitions they may find.
    virtual void wake(const Queue& queue, std::string_view group, std::uint64_t ready) = 0;
    /// Walks the scope's partitions on a worker: configured(), reseed_page() per page, then
    /// reseed_done() exactly once. A page covers up to 10,000 partitions and names those that may
    /// have something, perhaps none: more than one page says that the queue is large. `window`:
    /// only partitions written that long ago or later; zero for all.
    virtual void reseed(const Scope& scope, Ticket ticket, Nanoseconds window) = 0;
    /// Pulls the next tick() forward to `when`.
    virtual void tick_at(SteadyTime when) = 0;
};

/// Where a pop's candidate partitions come from. Hints only: the store alone decides who gets a
/// lease, so a stale entry costs one empty claim. Thread tags and memory rules stand in abi.h.
class CandidateSource {
public:
    virtual ~CandidateSource() = default;
    /// @thread worker, concurrent with itself. Creates nothing, changes nothing.
    virtual Readiness peek(const Scope& scope) = 0;
    /// @thread worker. `out` takes at most `take.limit` names.
    virtual Selection take(const Take& take, Names& out) = 0;
    /// @thread worker, exactly once per take() that left a cookie or names. A name without a
    /// verdict was not evaluated and counts as requeue: a pop that died settles with no verdicts.
    virtual void settle(const Scope& scope, std::unique_ptr<Cookie> cookie,
                        std::span<const Verdict> verdicts) = 0;
    /// @thread worker, after the commit. An empty group means every group.
    virtual void mark(const Queue&, std::string_view /*group*/, Origin, std::span<const Mark>) {}
    /// @thread worker. A lease ended; covered: its whole batch was completed.
    virtual void released(const Queue&, std::string_view /*group*/, const Uuid& /*partition_id*/,
                          bool /*covered*/) {}
    /// @thread worker
    virtual void learn(const Queue&, std::string_view /*partition*/, const Uuid& /*partition_id*/) {
    }
    /// @thread worker. Empty queue or group: any.
    virtual void forget(std::string_view /*tenant*/, std::string_view /*queue*/,
                        std::string_view /*group*/) {}
    /// @thread worker
    virtual void configured(const Queue&, const QueueConfig&) {}
    /// @thread worker. @return false to end the walk.
    virtual bool reseed_page(const Scope&, Ticket, std::span<const ReseedRow>) { return false; }
    /// @thread worker, exactly once per reseed() asked for.
    virtual void reseed_done(const Scope&, Ticket, bool /*complete*/) {}
    /// @thread ticker. @return when it wants to be called next; max() for never.
    virtual SteadyTime tick(SteadyTime /*now*/) { return SteadyTime::max(); }
    /// @thread any
    virtual void stats(Stats&) {}
    /// Marks of other brokers may have been lost, for no scope in particular: look again, soon,
    /// wherever "nothing" was answered. @thread worker. @return false to begin anew instead: what
    /// is known is then forgotten, scope by scope as pops come to them
    virtual bool missed() { return false; }
};

} // namespace queen::plugin
