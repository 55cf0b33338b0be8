// The rows of the table about messages that wait for their time.
#include "settings/timer_options.hpp"

#include <array>

namespace queen::settings {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr std::int64_t kSecond = 1000, kDay = 24 * 60 * 60 * kSecond;

constexpr std::array kTimers{
    Option{"timers.max_payload",
           Type::size,
           "",
           "1MiB",
           kKiB,
           64 * kMiB,
           "",
           "The message of a timer, as it is given and when it is unpacked.",
           {"QUEEN_TIMERS_MAX_PAYLOAD_BYTES"},
           [](Settings& s, Value v) { s.timers.max_payload = v.number; }},
    Option{"timers.max_horizon",
           Type::duration,
           "s",
           "90d",
           kSecond,
           3'650 * kDay,
           "",
           "How far ahead a timer may be set.",
           {"QUEEN_TIMERS_MAX_HORIZON_S"},
           [](Settings& s, Value v) { s.timers.max_horizon = milliseconds(v.number); }},
    Option{"timers.max_ops",
           Type::whole,
           "operations",
           "256",
           1,
           10'000,
           "",
           "Operations on timers in one request or transaction, which has their locks to its end.",
           {"QUEEN_TIMERS_MAX_OPS_PER_CALL"},
           [](Settings& s, Value v) { s.timers.max_ops = v.number; }}};

} // namespace

std::span<const Option> timer_options() {
    return kTimers;
}

} // namespace queen::settings
