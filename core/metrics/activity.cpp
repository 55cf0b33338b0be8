#include "metrics/activity.hpp"

namespace queen::metrics {

std::string_view to_string(TimerRefused why) noexcept {
    switch (why) {
    case TimerRefused::shape:
        return "shape";
    case TimerRefused::payload_too_large:
        return "payload_too_large";
    case TimerRefused::horizon:
        return "horizon";
    case TimerRefused::unavailable:
        return "unavailable";
    case TimerRefused::disabled:
        return "disabled";
    }
    return "";
}

} // namespace queen::metrics
