#pragma once
#include "base/counter.hpp"
#include "broker/sources.hpp"

#include <queen/plugin/candidates.hpp>

#include <array>
#include <cstdint>
#include <string_view>

namespace queen::broker {

inline constexpr std::size_t kReadyStates = 4;
inline constexpr std::size_t kPicks = 3;
inline constexpr std::size_t kVerdicts = 4;

/// What a source was asked, what it answered and what became of it.
struct SourceCounters {
    enum Claim { took = 0, empty, leased, requeue };

    std::array<Counter, kReadyStates> peeks; ///< by plugin::ReadyState
    std::array<Counter, kPicks> takes;       ///< by plugin::Pick
    std::array<Counter, kVerdicts> claims;   ///< by Claim
    Counter names;                           ///< offered
    Counter marks;                           ///< partitions
};
std::string_view to_string(plugin::ReadyState state) noexcept;
std::string_view to_string(plugin::Pick pick) noexcept;
std::string_view to_string(SourceCounters::Claim claim) noexcept;

/// A candidate source that is counted: every call goes through unchanged.
/// @thread as the source's
class CountedSource final : public plugin::CandidateSource {
public:
    explicit CountedSource(SourcePtr source) : source_(std::move(source)) {}
    const SourceCounters& counters() const noexcept { return counters_; }

    plugin::Readiness peek(const plugin::Scope& scope) override;
    plugin::Selection take(const plugin::Take& take, plugin::Names& out) override;
    void settle(const plugin::Scope& scope, std::unique_ptr<plugin::Cookie> cookie,
                std::span<const plugin::Verdict> verdicts) override;
    void mark(const plugin::Queue& queue, std::string_view group, plugin::Origin origin,
              std::span<const plugin::Mark> marks) override {
        counters_.marks.add(marks.size());
        source_->mark(queue, group, origin, marks);
    }
    void released(const plugin::Queue& queue, std::string_view group, const Uuid& partition_id,
                  bool covered) override {
        source_->released(queue, group, partition_id, covered);
    }
    void learn(const plugin::Queue& queue, std::string_view partition,
               const Uuid& partition_id) override {
        source_->learn(queue, partition, partition_id);
    }
    void forget(std::string_view tenant, std::string_view queue, std::string_view group) override {
        source_->forget(tenant, queue, group);
    }
    void configured(const plugin::Queue& queue, const plugin::QueueConfig& config) override {
        source_->configured(queue, config);
    }
    bool reseed_page(const plugin::Scope& scope, plugin::Ticket ticket,
                     std::span<const plugin::ReseedRow> rows) override {
        return source_->reseed_page(scope, ticket, rows);
    }
    void reseed_done(const plugin::Scope& scope, plugin::Ticket ticket, bool complete) override {
        source_->reseed_done(scope, ticket, complete);
    }
    SteadyTime tick(SteadyTime now) override { return source_->tick(now); }
    void stats(plugin::Stats& out) override { source_->stats(out); }
    bool missed() override { return source_->missed(); }

private:
    const SourcePtr source_;
    SourceCounters counters_;
};

} // namespace queen::broker
