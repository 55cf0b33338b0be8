#pragma once
#include <type_traits>
#include <utility>

namespace queen {

/// Runs something when its scope is left, by an exception too. What it runs must not throw.
template <typename Run>
class OnExit {
public:
    static_assert(std::is_nothrow_invocable_v<Run>);
    explicit OnExit(Run run) : run_(std::move(run)) {}
    ~OnExit() { run_(); }
    OnExit(const OnExit&) = delete;
    OnExit& operator=(const OnExit&) = delete;

private:
    Run run_;
};

} // namespace queen
