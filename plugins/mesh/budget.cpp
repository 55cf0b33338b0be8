#include "budget.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <chrono>

namespace queen::mesh {

std::shared_ptr<Budget> Budgets::of(const std::string& owner, SteadyTime now) {
    if (all_.size() >= look_at_) {
        std::erase_if(all_, [&](const auto& entry) {
            fill(*entry.second, now);
            return entry.second.use_count() == 1 && full(*entry.second);
        });
        look_at_ = std::max(kFewest, 2 * all_.size());
    }
    auto& budget = all_[owner];
    if (budget == nullptr) {
        budget = std::make_shared<Budget>();
        budget->hints = static_cast<double>(options_.hints_per_second);
        budget->bytes = static_cast<double>(options_.bytes_per_second);
        budget->filled = now;
    }
    return budget;
}

void Budgets::fill(Budget& budget, SteadyTime now) const {
    const double seconds = std::chrono::duration<double>(now - budget.filled).count();
    const auto more = [&](double& allowance, std::size_t rate) {
        const auto most = static_cast<double>(rate);
        allowance = std::min(most, allowance + seconds * most);
    };
    budget.filled = now;
    more(budget.hints, options_.hints_per_second);
    more(budget.bytes, options_.bytes_per_second);
}

bool Budgets::full(const Budget& budget) const noexcept {
    return budget.hints >= static_cast<double>(options_.hints_per_second) &&
           budget.bytes >= static_cast<double>(options_.bytes_per_second);
}

SteadyTime Budgets::pay(Budget& budget, std::size_t hints, std::size_t bytes,
                        SteadyTime now) const {
    fill(budget, now);
    budget.hints -= static_cast<double>(hints);
    budget.bytes -= static_cast<double>(bytes);
    const double seconds =
        std::max({0.0, -budget.hints / static_cast<double>(options_.hints_per_second),
                  -budget.bytes / static_cast<double>(options_.bytes_per_second)});
    return now +
           std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(seconds));
}

std::string owner_at(const std::string& host) {
    in6_addr address{};
    const std::string numeric = host.substr(0, host.find('%')); // without the interface
    if (inet_pton(AF_INET6, numeric.c_str(), &address) != 1) {
        return "at " + host;
    }
    constexpr std::size_t kNetwork = 8; // bytes
    std::fill(address.s6_addr + kNetwork, address.s6_addr + sizeof address.s6_addr, 0);
    std::array<char, INET6_ADDRSTRLEN> text{};
    inet_ntop(AF_INET6, &address, text.data(), text.size());
    return "in " + std::string(text.data());
}

} // namespace queen::mesh
