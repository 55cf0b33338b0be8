#include "broker/message_status.hpp"

#include "model/names.hpp"

namespace queen::broker {
namespace {

bool holds(const GroupPosition& group, Offset offset) {
    return group.leased_to && group.committed < offset && offset <= *group.leased_to;
}

} // namespace

Standing standing_of(const MessagePlace& place, Offset offset, bool dead) {
    Standing standing;
    bool held = false;
    bool queue_mode_done = false;
    for (const GroupPosition& group : place.groups) {
        const bool done = offset <= group.committed;
        if (holds(group, offset)) {
            held = true;
            if (group.lease_expires_at && (!standing.lease_expires_at ||
                                           *group.lease_expires_at < *standing.lease_expires_at)) {
                standing.lease_expires_at = group.lease_expires_at;
            }
        }
        if (group.name == kQueueModeGroup) {
            queue_mode_done = done;
            standing.queue_mode = done                   ? MessageStatus::completed
                                  : holds(group, offset) ? MessageStatus::processing
                                                         : MessageStatus::pending;
        } else {
            ++standing.named_groups;
            standing.consumed_by += done ? 1 : 0;
        }
    }
    const bool completed =
        standing.named_groups > 0 ? standing.consumed_by == standing.named_groups : queue_mode_done;
    standing.status = dead        ? MessageStatus::dead_letter
                      : completed ? MessageStatus::completed
                      : held      ? MessageStatus::processing
                                  : MessageStatus::pending;
    return standing;
}

std::optional<MessageStatus> parse_message_status(std::string_view word) noexcept {
    for (const auto status : {MessageStatus::pending, MessageStatus::processing,
                              MessageStatus::completed, MessageStatus::dead_letter}) {
        if (word_of(status) == word) {
            return status;
        }
    }
    return std::nullopt;
}

void ConsumerMode::add(const MessagePlace& place) {
    for (const GroupPosition& group : place.groups) {
        if (group.name == kQueueModeGroup) {
            queue_mode = true;
        } else {
            groups.insert(group.name);
        }
    }
}

std::string_view ConsumerMode::type() const noexcept {
    return groups.empty() ? (queue_mode ? "queue" : "none") : (queue_mode ? "hybrid" : "bus");
}

} // namespace queen::broker
