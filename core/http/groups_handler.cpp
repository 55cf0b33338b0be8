// Consumer groups: lists, details, and what moves them.
#include "base/json.hpp"
#include "base/text.hpp"
#include "broker/groups.hpp"
#include "http/error_map.hpp"
#include "http/groups_reader.hpp"
#include "http/handlers.hpp"
#include "http/request_names.hpp"
#include "model/names.hpp"

#include <limits>
#include <optional>

namespace queen::http {
namespace {

constexpr std::string_view kMissing = "Consumer group not found";

constexpr std::int32_t kDefaultLag = 3'600; // s
constexpr std::int32_t kMostLagging = 10'000;

// Everywhere else an empty group is queue mode. Here it would be what is left of a path whose name
// was forgotten, and a delete of it would take the cursors of everybody who names no group.
bool names_group(const std::shared_ptr<Call>& call) {
    constexpr std::string_view kBefore = "/consumer-groups/";
    const std::string& path = call->request().path;
    const std::size_t at = path.find(kBefore) + kBefore.size();
    if (at < path.size() && path[at] != '/') {
        return true;
    }
    call->reply(error_reply({Errc::invalid_argument,
                             "the path names no consumer group; that of requests without one is " +
                                 std::string(kQueueModeGroup),
                             {}}));
    return false;
}

// The contract's shape of what did not move anything.
Reply unmoved(const Error& error) {
    const ErrorRule rule = rule_for(error.code);
    Reply reply;
    reply.status = rule.status;
    json::Writer(reply.body)
        .begin_object()
        .key("success")
        .boolean(false)
        .key("error")
        .string(error.message)
        .key("code")
        .string(rule.code)
        .end_object();
    return reply;
}

Reply refused(const GroupBodyError& refusal) {
    return refusal.unreadable ? bad_body_reply(refusal.error) : unmoved(refusal.error);
}

void write_time(json::Writer& writer, const std::optional<WallTime>& time) {
    if (time) {
        writer.string(format_micros(*time));
    } else {
        writer.null();
    }
}

std::string render_seek(const Seek& seek, const SeekOutcome& outcome) {
    std::string body;
    json::Writer writer(body);
    writer.begin_object();
    writer.key("success").boolean(true);
    writer.key("consumerGroup").string(seek.group);
    writer.key("queueName").string(seek.queue);
    writer.key("partitionName");
    if (seek.partition) {
        writer.string(*seek.partition);
    } else {
        writer.null();
    }
    writer.key("seekToEnd").boolean(!seek.to);
    writer.key("targetTimestamp");
    write_time(writer, seek.to);
    writer.key("partitionsUpdated").integer(outcome.moved);
    writer.key("updated").boolean(true);
    writer.end_object();
    return body;
}

std::string render_removed(std::string_view group, const std::optional<std::string>& queue,
                           const RemovedGroup& removed) {
    std::string body;
    json::Writer writer(body);
    writer.begin_object();
    writer.key("success").boolean(true);
    writer.key("consumerGroup").string(group);
    if (queue) {
        writer.key("queueName").string(*queue);
    }
    writer.key("deletedPartitions").integer(removed.cursors);
    writer.key("metadataDeleted").boolean(removed.subscription);
    writer.key("queues").begin_array();
    for (const std::string& name : removed.queues) {
        writer.string(name);
    }
    writer.end_array().end_object();
    return body;
}

// A whole number of the query between its bounds; answers the call when it is none.
std::optional<std::int32_t> number(const std::shared_ptr<Call>& call, std::string_view name,
                                   std::int32_t fallback, std::int32_t least, std::int32_t most) {
    const std::string allowed =
        "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
    const auto value = call->query().integer(name, allowed);
    if (!value) {
        call->reply(error_reply(value.error()));
        return std::nullopt;
    }
    const std::int32_t chosen = value->value_or(fallback);
    if (chosen < least || chosen > most) {
        call->reply(error_reply(not_allowed(name, allowed, std::to_string(chosen))));
        return std::nullopt;
    }
    return chosen;
}

void seek(const std::shared_ptr<Call>& call, std::optional<std::string> partition) {
    if (!names_group(call)) {
        return;
    }
    const auto target = read_seek(call->request().body, partition.has_value());
    if (!target) {
        call->reply(refused(target.error()));
        return;
    }
    Seek wanted{.tenant = std::string(call->tenant()),
                .queue = std::string(call->parameter("queue")),
                .group = std::string(call->parameter("group")),
                .partition = std::move(partition),
                .to = target->to};
    call->services().groups.seek(wanted, [call, wanted](const Result<SeekOutcome>& outcome) {
        call->guard([&] {
            if (outcome) {
                call->reply(json_reply(render_seek(wanted, *outcome)));
            } else if (outcome.error().code == Errc::not_found) {
                call->reply(unmoved(outcome.error()));
            } else {
                call->reply(error_reply(outcome.error(), "seek failed"));
            }
        });
    });
}

void remove(const std::shared_ptr<Call>& call, std::optional<std::string> queue) {
    if (!names_group(call)) {
        return;
    }
    const auto metadata = call->query().boolean("deleteMetadata");
    if (!metadata) {
        call->reply(error_reply(metadata.error()));
        return;
    }
    const std::string group(call->parameter("group"));
    call->services().groups.remove(
        std::string(call->tenant()), group, queue, metadata->value_or(true),
        [call, group, queue](const Result<RemovedGroup>& removed) {
            call->guard([&] {
                call->reply(removed ? json_reply(render_removed(group, queue, *removed))
                                    : error_reply(removed.error(), "delete failed"));
            });
        });
}

} // namespace

void list_groups(const std::shared_ptr<Call>& call) {
    call->services().groups.list(std::string(call->tenant()),
                                 call->figures("list failed", kMissing));
}

void lagging_groups(const std::shared_ptr<Call>& call) {
    const auto seconds =
        number(call, "minLagSeconds", kDefaultLag, 0, std::numeric_limits<std::int32_t>::max());
    const auto limit = seconds ? number(call, "limit", kMostLagging, 1, kMostLagging)
                               : std::optional<std::int32_t>();
    if (limit) {
        call->services().groups.lagging(std::string(call->tenant()), std::chrono::seconds(*seconds),
                                        *limit, call->figures("list failed", kMissing));
    }
}

void group_detail(const std::shared_ptr<Call>& call) {
    if (!names_group(call)) {
        return;
    }
    const auto text = call->query().text("queue");
    if (!text) {
        call->reply(error_reply(text.error()));
        return;
    }
    std::optional<std::string> queue;
    if (*text) {
        auto name = read_queue(**text);
        if (!name) {
            call->reply(error_reply(name.error()));
            return;
        }
        queue = std::move(*name);
    }
    call->services().groups.detail(std::string(call->tenant()),
                                   std::string(call->parameter("group")), queue,
                                   call->figures("group detail failed", kMissing));
}

void delete_group(const std::shared_ptr<Call>& call) {
    remove(call, std::nullopt);
}

void delete_group_in_queue(const std::shared_ptr<Call>& call) {
    remove(call, std::string(call->parameter("queue")));
}

void seek_group(const std::shared_ptr<Call>& call) {
    seek(call, std::nullopt);
}

void seek_partition(const std::shared_ptr<Call>& call) {
    seek(call, std::string(call->parameter("partition")));
}

// 200 also when nobody knows the group: zero records were changed.
void subscribe_group(const std::shared_ptr<Call>& call) {
    if (!names_group(call)) {
        return;
    }
    const auto from = read_subscription(call->request().body);
    if (!from) {
        call->reply(refused(from.error()));
        return;
    }
    const std::string group(call->parameter("group"));
    if (group == kQueueModeGroup) {
        call->reply(unmoved({Errc::invalid_argument,
                             "queue mode has no subscription: it begins at the start",
                             {}}));
        return;
    }
    call->services().groups.subscribe(
        std::string(call->tenant()), group, *from,
        [call, group, from = *from](const Result<std::int64_t>& updated) {
            call->guard([&] {
                if (!updated) {
                    call->reply(error_reply(updated.error(), "subscription failed"));
                    return;
                }
                std::string body;
                json::Writer writer(body);
                writer.begin_object().key("success").boolean(true);
                writer.key("consumerGroup").string(group);
                writer.key("newTimestamp");
                write_time(writer, from);
                writer.key("rowsUpdated").integer(*updated).end_object();
                call->reply(json_reply(std::move(body)));
            });
        });
}

} // namespace queen::http
