#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace queen {

/// One option of POST /configure, as the contract names it.
struct QueueOption {
    enum class Type { integer, boolean, text };
    std::string_view name; ///< "leaseTime"
    Type type;
    std::string_view unit; ///< "s", "ms", ""
    std::int64_t fallback; ///< integers and booleans (0 or 1)
    std::int64_t min, max; ///< inclusive; bytes of a text
    std::string_view doc;  ///< one line
    bool clamps = false;   ///< a value outside is moved to the nearest bound; else it is refused
};

/// All options except namespace and task, in the order in which they are echoed.
std::span<const QueueOption> queue_options();
const QueueOption* find_queue_option(std::string_view name);

} // namespace queen
