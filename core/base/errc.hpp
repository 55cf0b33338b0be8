#pragma once

namespace queen {

/// What went wrong, as the core sees it. Numbers are explicit and only ever added to. The HTTP
/// status of each stands in http/error_map.cpp, the SQLSTATE that leads to it in
/// store/sqlstate.cpp.
enum class Errc {
    invalid_argument = 1, ///< the caller's input; `message` names field and limit
    name_too_long = 2,    ///< a name over its byte limit
    not_found = 3,        ///< the thing named does not exist
    conflict = 4,         ///< a unique key or a state forbids it
    unavailable = 5,      ///< the store cannot be reached, or no session became free in time
    timeout = 6,          ///< a statement ran over its time and was cancelled
    transient = 7,        ///< the store refused for now (serialization, deadlock, shutdown)
    store_failed = 8,     ///< the store refused for good; `sqlstate` tells why
    corrupt = 9,          ///< stored bytes do not parse
    unsupported = 10,     ///< known, and not offered by this version
    overloaded = 11,      ///< a stated limit is reached
    internal = 12,        ///< a broken promise inside the broker
    too_large = 13,       ///< over a stated size limit
    shutting_down = 14,   ///< the broker stops
};

} // namespace queen
