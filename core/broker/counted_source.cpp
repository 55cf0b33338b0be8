#include "broker/counted_source.hpp"

namespace queen::broker {
namespace {

SourceCounters::Claim claim_of(plugin::VerdictKind kind) noexcept {
    switch (kind) {
    case plugin::VerdictKind::took_leased:
    case plugin::VerdictKind::took_acked:
        return SourceCounters::took;
    case plugin::VerdictKind::empty:
        return SourceCounters::empty;
    case plugin::VerdictKind::leased:
        return SourceCounters::leased;
    case plugin::VerdictKind::requeue:
        return SourceCounters::requeue;
    }
    return SourceCounters::requeue;
}

/// Counts what is offered to the pop behind it.
class CountedNames final : public plugin::Names {
public:
    explicit CountedNames(plugin::Names& names) : names_(names) {}
    bool add(std::string_view partition, std::uint64_t token) override {
        ++count_;
        return names_.add(partition, token);
    }
    std::uint64_t count() const noexcept { return count_; }

private:
    plugin::Names& names_;
    std::uint64_t count_ = 0;
};

} // namespace

std::string_view to_string(plugin::ReadyState state) noexcept {
    switch (state) {
    case plugin::ReadyState::nothing:
        return "nothing";
    case plugin::ReadyState::ready:
        return "ready";
    case plugin::ReadyState::cold:
        return "cold";
    case plugin::ReadyState::ask_store:
        return "ask_store";
    }
    return "";
}

std::string_view to_string(plugin::Pick pick) noexcept {
    switch (pick) {
    case plugin::Pick::none:
        return "none";
    case plugin::Pick::names:
        return "names";
    case plugin::Pick::scan:
        return "scan";
    }
    return "";
}

std::string_view to_string(SourceCounters::Claim claim) noexcept {
    switch (claim) {
    case SourceCounters::took:
        return "took";
    case SourceCounters::empty:
        return "empty";
    case SourceCounters::leased:
        return "leased";
    case SourceCounters::requeue:
        return "requeue";
    }
    return "";
}

plugin::Readiness CountedSource::peek(const plugin::Scope& scope) {
    auto readiness = source_->peek(scope);
    if (const auto state = static_cast<std::size_t>(readiness.state); state < kReadyStates) {
        counters_.peeks[state].add(); // a source's answer is not trusted to be of its enumeration
    }
    return readiness;
}

plugin::Selection CountedSource::take(const plugin::Take& take, plugin::Names& out) {
    CountedNames counted(out);
    auto selection = source_->take(take, counted);
    if (const auto pick = static_cast<std::size_t>(selection.pick); pick < kPicks) {
        counters_.takes[pick].add();
    }
    counters_.names.add(counted.count());
    return selection;
}

void CountedSource::settle(const plugin::Scope& scope, std::unique_ptr<plugin::Cookie> cookie,
                           std::span<const plugin::Verdict> verdicts) {
    for (const auto& verdict : verdicts) {
        counters_.claims[claim_of(verdict.kind)].add();
    }
    source_->settle(scope, std::move(cookie), verdicts);
}

} // namespace queen::broker
