// plugins/hotlist - candidates from memory: per (tenant, queue, group) a ring of the partitions
// that are believed to have something. Allowed to be wrong in one direction, stale in excess; what
// it lost is found again by the reseed floor.
#pragma once
#include <queen/plugin/candidates.hpp>

#include <cstddef>
#include <cstdint>
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
    std::string trace; ///< queues whose name begins so leave breadcrumbs in the log; empty: none
};

/// Hints only: the store alone decides who gets a lease, so a stale entry costs one empty claim.
///
/// `host` is asked to wake pops, to walk partitions and to call tick(); it must be given.
class HotList final : public plugin::CandidateSource {
public:
    HotList(Options options, const Clock& clock, plugin::CandidateHost& host);
    ~HotList() override;

    plugin::Readiness peek(const plugin::Scope& scope) override;
    plugin::Selection take(const plugin::Take& take, plugin::Names& out) override;
    void settle(const plugin::Scope& scope, std::unique_ptr<plugin::Cookie> cookie,
                std::span<const plugin::Verdict> verdicts) override;
    void mark(const plugin::Queue& queue, std::string_view group, plugin::Origin origin,
              std::span<const plugin::Mark> marks) override;
    void released(const plugin::Queue& queue, std::string_view group, const Uuid& partition_id,
                  bool covered) override;
    void learn(const plugin::Queue& queue, std::string_view partition,
               const Uuid& partition_id) override;
    void forget(std::string_view tenant, std::string_view queue, std::string_view group) override;
    void configured(const plugin::Queue& queue, const plugin::QueueConfig& config) override;
    bool reseed_page(const plugin::Scope& scope, plugin::Ticket ticket,
                     std::span<const plugin::ReseedRow> rows) override;
    void reseed_done(const plugin::Scope& scope, plugin::Ticket ticket, bool complete) override;
    SteadyTime tick(SteadyTime now) override;
    void stats(plugin::Stats& out) override;

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace queen::hotlist
