// plugins/hotlist - candidates from memory: per (tenant, queue, group) a ring of the partitions
// that are believed to have something. Allowed to be wrong in one direction, stale in excess; what
// it lost is found again by the reseed floor.
#pragma once
#include <queen/plugin/candidates.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace queen::hotlist {

struct Options {
    std::size_t shards = 8;                              ///< sub-rings of a ring
    Nanoseconds pad = std::chrono::milliseconds(300);    ///< added to delays and lease ends
    std::uint64_t window_batch = 100;                    ///< messages that end a windowBuffer early
    Nanoseconds reseed = std::chrono::seconds(30);       ///< floor: between two walks of a ring
    Nanoseconds reseed_full = std::chrono::seconds(300); ///< between full walks; 0: every walk
    Nanoseconds reseed_window{0};                        ///< of a windowed walk; 0: derived
    Nanoseconds idle_sweep = std::chrono::seconds(300);  ///< between sweeps; 0: never
    Nanoseconds unserved_trim = std::chrono::seconds(30); ///< no pop for this long; 0: never
    /// Names of a queue that other brokers alone have said; beyond it the queue is walked. As many
    /// as a page of a walk has: what is left out costs a page more, and names of 255 bytes take 3
    /// MB.
    std::size_t hearsay = 10'000;
    std::string trace; ///< queues whose name begins so leave breadcrumbs in the log; empty: none
};

/// Where log lines go. @thread any
using Log = std::function<void(plugin::LogLevel, std::string_view line)>;

/// Hints only: the store alone decides who gets a lease, so a stale entry costs one empty claim.
///
/// A queue is known from the first take() of one of its groups on, and not before: marks, ids and
/// settings told about another are dropped, so that what nobody polls costs nothing here.
///
/// Invariant: only take() makes a queue or a ring, and trims, sweeps and forget() end them.
/// Locks: see core/docs/LOCKS.md; the host is never called while one is held.
/// @source SV-1, HL-1 to HL-22
class HotList final : public plugin::CandidateSource {
public:
    /// `host` is asked to wake pops, to walk partitions and to call tick().
    HotList(Options options, const Clock& clock, plugin::CandidateHost& host, Log log = {});
    ~HotList() override;

    /// One shared lock and atomics. @thread worker, creates nothing, changes nothing but the note
    /// that a consumer came by
    plugin::Readiness peek(const plugin::Scope& scope) override;
    /// Cold: asks for a full walk once, offers what it has by then, else lets the store scan.
    /// @thread worker
    plugin::Selection take(const plugin::Take& take, plugin::Names& out) override;
    /// @thread worker
    void settle(const plugin::Scope& scope, std::unique_ptr<plugin::Cookie> cookie,
                std::span<const plugin::Verdict> verdicts) override;
    /// @thread worker; the host wakes for a mark itself
    void mark(const plugin::Queue& queue, std::string_view group, plugin::Origin origin,
              std::span<const plugin::Mark> marks) override;
    /// @thread worker; wakes
    void released(const plugin::Queue& queue, std::string_view group, const Uuid& partition_id,
                  bool covered) override;
    /// @thread worker
    void learn(const plugin::Queue& queue, std::string_view partition,
               const Uuid& partition_id) override;
    /// @thread worker. What is checked out may settle after it, without effect.
    void forget(std::string_view tenant, std::string_view queue, std::string_view group) override;
    /// Used from the next event on; entries that wait are not looked at anew. @thread worker
    void configured(const plugin::Queue& queue, const plugin::QueueConfig& config) override;
    /// @thread worker; wakes
    bool reseed_page(const plugin::Scope& scope, plugin::Ticket ticket,
                     std::span<const plugin::ReseedRow> rows) override;
    /// @thread worker
    void reseed_done(const plugin::Scope& scope, plugin::Ticket ticket, bool complete) override;
    /// Makes ready what is due, asks for walks, trims and sweeps; wakes. @thread ticker
    SteadyTime tick(SteadyTime now) override;
    /// @thread any
    void stats(plugin::Stats& out) override;
    /// The next ticks have every ring walked, as its floor would have it later. @thread worker
    bool missed() override;

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace queen::hotlist
