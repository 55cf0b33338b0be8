#pragma once
#include "http/message.hpp"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace queen::http {

class Call;

/// What a route does once it was matched. Runs on a worker; answers now or later through the call.
/// Nothing here waits for I/O.
using Handle = void (*)(const std::shared_ptr<Call>& call);

/// One line of the API.
struct Route {
    std::string_view method; ///< "GET", or "*": every method
    std::string_view
        pattern; ///< literal segments, `:name` for one, `*name` last for all that follow
    Handle handle = nullptr;  ///< null: not in this version
    std::string_view feature; ///< what a route without `handle` waits for
    bool head = true;         ///< a GET may be asked as HEAD: it changes nothing
};

/// The whole API, one table. Of two patterns that fit a path the earlier wins.
/// @source RT-1
std::span<const Route> all_routes();

/// Finds the route of a request: a comparison of segments, no parsing. @thread any
class RouteTable {
public:
    explicit RouteTable(std::span<const Route> routes);

    struct Match {
        const Route* route = nullptr; ///< null: see `allowed`
        Parameters parameters;
        std::vector<std::string_view> allowed; ///< methods of a known path; empty: unknown path
    };
    /// HEAD finds the GET route when that allows it.
    Match find(std::string_view method, const std::vector<std::string>& segments) const;

private:
    struct Entry {
        const Route* route;
        std::vector<std::string_view> segments;
        bool rest; ///< ends in `*name`
    };
    static bool fits(const Entry& entry, const std::vector<std::string>& segments) noexcept;
    static Parameters parameters_of(const Entry& entry, const std::vector<std::string>& segments);

    std::vector<Entry> entries_;
};

} // namespace queen::http
