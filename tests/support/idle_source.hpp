#pragma once
#include <queen/plugin/candidates.hpp>

#include <memory>
#include <span>

namespace queen::test {

/// A candidate source that offers nothing: what a test wants to hear of it, it adds.
struct IdleSource : plugin::CandidateSource {
    plugin::Readiness peek(const plugin::Scope&) override { return {}; }
    plugin::Selection take(const plugin::Take&, plugin::Names&) override { return {}; }
    void settle(const plugin::Scope&, std::unique_ptr<plugin::Cookie>,
                std::span<const plugin::Verdict>) override {}
};

} // namespace queen::test
