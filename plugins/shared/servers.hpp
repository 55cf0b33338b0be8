// shared/servers.hpp - the other brokers that a mesh has heard of, by id.
#pragma once
#include <queen/plugin/types.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace queen::shared {

inline constexpr std::size_t kMostServers = 1024;
inline constexpr std::chrono::hours kForgotten{1}; ///< silence after which an id is no dead broker

/// `last` of a Server is when it was heard of last.
/// Invariant: at most kMostServers ids are kept; the one silent for longest goes first.
template <class Server>
class Servers {
public:
    using Rows = std::map<std::string, Server, std::less<>>;
    using Row = typename Rows::value_type;

    /// The row of an id that was heard of, and whether it is a new one.
    struct Heard {
        Row& row;
        bool added;
    };
    Heard heard(std::string_view id) {
        const auto found = rows_.find(id);
        if (found != rows_.end()) {
            return {*found, false};
        }
        if (rows_.size() >= kMostServers) {
            rows_.erase(
                std::min_element(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) {
                    return a.second.last < b.second.last;
                }));
        }
        return {*rows_.emplace(std::string(id), Server{}).first, true};
    }
    void forget(SteadyTime now) {
        std::erase_if(rows_, [&](const Row& row) { return now - row.second.last > kForgotten; });
    }
    /// Those heard of within the threshold.
    std::size_t alive(SteadyTime now, Nanoseconds threshold) const {
        return static_cast<std::size_t>(
            std::count_if(rows_.begin(), rows_.end(),
                          [&](const Row& row) { return now - row.second.last < threshold; }));
    }
    Rows& rows() noexcept { return rows_; }
    const Rows& rows() const noexcept { return rows_; }

private:
    Rows rows_;
};

} // namespace queen::shared
