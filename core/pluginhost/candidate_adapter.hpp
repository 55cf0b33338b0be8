// pluginhost/candidate_adapter.hpp - a loaded candidates table as the core's port. What the core
// sees is an ordinary CandidateSource; what the plugin sees is the C table of abi.h; in between
// each answer is checked and each fault turned into the safe one: let the store scan.
//
// Who owns what: the adapter and every selection that is not settled yet own the instance together.
// When a source is dropped by a reload, pops that hold one of its selections settle with it as
// before, and the last of them destroys it.
#pragma once
#include "base/result.hpp"
#include "pluginhost/guard.hpp"
#include "pluginhost/host_services.hpp"
#include "pluginhost/library.hpp"
#include "pluginhost/options.hpp"

#include <queen/plugin/abi.h>
#include <queen/plugin/candidates.hpp>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

namespace queen::pluginhost {

/// Most names that any take accepts, whatever its limit says.
inline constexpr std::uint64_t kMostNames = 256;
/// Bytes of a partition's name (the broker's limit on every name).
inline constexpr std::size_t kMostNameBytes = 255;

/// One living instance of a plugin: its table, its `self`, its options and its view of the host.
/// Invariant: `self_` is valid from create() on; destroy() is called exactly once, last.
class CandidateInstance {
public:
    struct Refusal {
        std::string option; ///< "" when none is at fault
        std::string message;
    };
    /// @thread main
    static tl::expected<std::shared_ptr<CandidateInstance>, Refusal>
    create(std::string name, std::shared_ptr<const Library> library, OptionValues options,
           GuardLimits limits, HostServices services);
    CandidateInstance(const CandidateInstance&) = delete;
    CandidateInstance& operator=(const CandidateInstance&) = delete;
    ~CandidateInstance();

    const std::string& name() const noexcept { return name_; }
    const Library& library() const noexcept { return *library_; }
    const queen_candidates& table() const noexcept { return table_; }
    void* self() const noexcept { return self_; }
    Guard& guard() noexcept { return guard_; }
    const Clock& clock() const noexcept { return *services_.clock; }

    /// When the instance wants its next tick; max() for never. The plugin pulls it forward.
    SteadyTime tick_due() const noexcept;
    /// Calls tick() if it is due. @thread ticker
    void tick_if_due(SteadyTime now);

private:
    CandidateInstance(std::string name, std::shared_ptr<const Library> library,
                      OptionValues options, GuardLimits limits, HostServices services);
    void pull_tick(SteadyTime when) noexcept;

    static CandidateInstance& of(const queen_host* host) noexcept;
    template <class Body>
    static void serve(const queen_host* host, Body&& body) noexcept;
    static int64_t host_now(const queen_host* host) noexcept;
    static void host_log(const queen_host* host, int32_t level, queen_str text) noexcept;
    static int32_t host_option_int(const queen_host* host, const char* name, int64_t* out) noexcept;
    static int32_t host_option_str(const queen_host* host, const char* name,
                                   queen_str* out) noexcept;
    static const void* host_extension(const queen_host* host, const char* id) noexcept;
    static void host_wake(const queen_host* host, const queen_queue* queue, const queen_str* group,
                          uint64_t ready) noexcept;
    static void host_reseed(const queen_host* host, const queen_scope* scope, uint64_t ticket,
                            int64_t window) noexcept;
    static void host_tick_at(const queen_host* host, int64_t when) noexcept;
    static const queen_host_candidates kHostCandidates;

    const std::string name_;
    const std::shared_ptr<const Library> library_;
    const OptionValues options_;
    const HostServices services_;
    Guard guard_;
    queen_host host_{};
    queen_candidates table_{};
    void* self_ = nullptr;
    std::atomic<std::int64_t> tick_due_{INT64_MAX};
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

private:
    bool left_alone(const plugin::Scope& scope);
    void broadcast_failed(const plugin::Queue& queue, std::string_view group);

    const std::shared_ptr<CandidateInstance> instance_;
};

} // namespace queen::pluginhost
