// pluginhost/candidate_adapter.hpp - a loaded candidates table as the core's port. What the core
// sees is an ordinary CandidateSource; what the plugin sees is the C table of abi.h; in between
// each answer is checked and each fault turned into the safe one: let the store scan.
//
// Who owns what: the adapter and every selection that is not settled yet own the instance together.
// When a source is dropped by a reload, pops that hold one of its selections settle with it as
// before, and the last of them destroys it.
#pragma once
#include "pluginhost/instance.hpp"

#include <queen/plugin/candidates.hpp>

#include <memory>
#include <string_view>

namespace queen::pluginhost {

/// Most names that any take accepts, whatever its limit says.
inline constexpr std::uint64_t kMostNames = 256;

class CandidateInstance final : public Instance {
public:
    static constexpr const char* kKind = QUEEN_CANDIDATES;
    static constexpr auto read = read_candidates_table;
    /// @thread main
    static tl::expected<std::shared_ptr<CandidateInstance>, std::string> create(Parts parts);
    ~CandidateInstance() override { end(table_.destroy); }

    const queen_candidates& table() const noexcept { return table_; }
    void tick_if_due(SteadyTime now) override { run_tick(table_.tick, now); }
    void stats(plugin::Stats& out) { collect(table_.stats, out); }

private:
    friend class Instance;
    CandidateInstance(Parts parts, const queen_candidates& table)
        : Instance(std::move(parts)), table_(table) {}
    const void* extension(std::string_view id) const noexcept override;

    static void host_wake(const queen_host* host, const queen_queue* queue, const queen_str* group,
                          uint64_t ready) noexcept;
    static void host_reseed(const queen_host* host, const queen_scope* scope, uint64_t ticket,
                            int64_t window) noexcept;
    static const queen_host_candidates kHostCandidates;

    const queen_candidates table_;
};

/// The port. Copies nothing but names and scopes; one call costs two readings of the clock more
/// than the plugin's own.
/// @thread any
/// @source PLG-5, PLG-6, PLG-7
class CandidateAdapter final : public plugin::CandidateSource {
public:
    explicit CandidateAdapter(std::shared_ptr<CandidateInstance> instance);

    plugin::Readiness peek(const plugin::Scope& scope) override;
    plugin::Selection take(const plugin::Take& take, plugin::Names& out) override;
    /// The verdicts go to the instance that made the cookie, which may be older than this one. A
    /// null cookie has nothing to settle.
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
    /// Always true: of a source that does not look by itself each scope is forgotten when a pop
    /// comes to it.
    bool missed() override;

private:
    bool left_alone(const plugin::Scope& scope);
    void broadcast_failed(const plugin::Queue& queue, std::string_view group);

    const std::shared_ptr<CandidateInstance> instance_;
};

} // namespace queen::pluginhost
