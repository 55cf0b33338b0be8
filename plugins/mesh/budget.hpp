// mesh/budget.hpp - what peers may send in a second. A budget belongs to who sends, not to a
// connection, so that nobody gets a fresh one by dialling again: to a server id that was proven
// with the secret, else to the address, of IPv6 its first 64 bits, since one machine has all of the
// rest.
#pragma once
#include "options.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace queen::mesh {

/// Holds one second's worth at most; below zero its owner has to wait.
struct Budget {
    double hints = 0, bytes = 0;
    SteadyTime filled;
};

/// Invariant: budgets that nobody uses are kept until they are full again, and are then as good as
/// new ones.
class Budgets {
public:
    explicit Budgets(const Options& options) : options_(options) {}

    std::shared_ptr<Budget> of(const std::string& owner, SteadyTime now);
    /// @return when the owner may send again; `now` when at once
    SteadyTime pay(Budget& budget, std::size_t hints, std::size_t bytes, SteadyTime now) const;
    std::size_t size() const noexcept { return all_.size(); }

private:
    void fill(Budget& budget, SteadyTime now) const;
    bool full(const Budget& budget) const noexcept;

    static constexpr std::size_t kFewest = 64; ///< are kept without a look
    const Options& options_;
    std::map<std::string, std::shared_ptr<Budget>, std::less<>> all_;
    std::size_t look_at_ = kFewest;
};

/// Who owns the budget of a connection whose id is not proven. @param host a number
std::string owner_at(const std::string& host);

} // namespace queen::mesh
