#pragma once
#include "broker/sources.hpp"
#include "ports/store.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace queen::broker {

/// What a source picked for one round of a pop, until its verdicts are known. The drop guard: a
/// selection that dies unsettled settles as requeue, so that no slot of a source leaks (SV-4).
class HeldSelection {
public:
    /// Asks `source`; keeps it alive until the settle.
    HeldSelection(SourcePtr source, const plugin::Take& take);
    ~HeldSelection();
    HeldSelection(const HeldSelection&) = delete;
    HeldSelection& operator=(const HeldSelection&) = delete;

    plugin::Pick pick() const noexcept { return selection_.pick; }
    const std::vector<std::string>& names() const noexcept { return names_; }
    /// The windowBuffer that every name has waited for in memory; nullopt: the store has to.
    std::optional<Nanoseconds> window_held() const noexcept {
        return selection_.holds_window ? std::optional(selection_.window) : std::nullopt;
    }

    /// Gives the verdicts of a claim back, once. `asked`: when the store was; times left count from
    /// there, so that a slow statement does not make a lease look longer than it is.
    void settle(const PopResult& result, bool auto_ack, SteadyTime asked);

private:
    class Collector;
    void settle_with(std::span<const plugin::Verdict> verdicts);

    SourcePtr source_;
    std::string key_, tenant_, queue_, group_;
    std::vector<std::string> names_;
    std::vector<std::uint64_t> tokens_;
    plugin::Selection selection_;
    bool settled_ = false;
};

} // namespace queen::broker
