#include "model/subscription.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>

namespace queen {
namespace {

constexpr std::array<std::string_view, 4> kFreshSpellings{"new", "new-only", "new_only", "newonly"};

} // namespace

std::string_view Subscription::sql_mode() const noexcept {
    return mode == Mode::fresh ? "new" : "all";
}

std::string Subscription::sql_from() const {
    return from ? format_micros(*from) : std::string();
}

Result<Subscription> parse_subscription(std::string_view mode, std::string_view from,
                                        Subscription::Mode fallback) {
    Subscription subscription{.mode = fallback};
    if (mode == "all") {
        subscription.mode = Subscription::Mode::all;
    } else if (std::ranges::find(kFreshSpellings, mode) != kFreshSpellings.end()) {
        subscription.mode = Subscription::Mode::fresh;
    } else if (!mode.empty()) {
        return fail(Errc::invalid_argument, "subscriptionMode must be \"all\" or \"new\"");
    }
    if (from.empty()) {
        return subscription;
    }
    if (from == "now") {
        subscription.mode = Subscription::Mode::fresh;
        return subscription;
    }
    subscription.from = parse_time(from);
    if (!subscription.from) {
        return fail(Errc::invalid_argument,
                    "subscriptionFrom must be \"now\" or an ISO-8601 time such as "
                    "2026-01-31T09:30:00Z");
    }
    subscription.mode = Subscription::Mode::from;
    return subscription;
}

} // namespace queen
