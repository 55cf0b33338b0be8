#include "base/json.hpp"
#include "http/configure_reader.hpp"
#include "http/error_map.hpp"
#include "http/handlers.hpp"
#include "http/request_names.hpp"

#include <optional>

namespace queen::http {
namespace {

constexpr std::string_view kMissing = "Queue not found";

Reply refused(const ConfigurationError& refusal) {
    if (refusal.unreadable) {
        return bad_body_reply(refusal.error);
    }
    const ErrorRule rule = rule_for(refusal.error.code);
    Reply reply;
    reply.status = rule.status;
    json::Writer writer(reply.body);
    writer.begin_object();
    writer.key("error").string(refusal.error.message);
    writer.key("code").string(rule.code);
    if (!refusal.option.empty()) {
        writer.key("invalid").string(refusal.option);
    }
    writer.end_object();
    return reply;
}

std::string render_deleted(std::string_view queue, bool existed) {
    std::string body;
    json::Writer writer(body);
    writer.begin_object();
    writer.key("deleted").boolean(existed);
    writer.key("existed").boolean(existed);
    writer.key("queue").string(queue);
    if (!existed) {
        writer.key("message").string("Queue not found, nothing was deleted");
    }
    writer.end_object();
    return body;
}

constexpr std::int32_t kMostListed = PartitionPage{}.limit;

// Which partitions an answer lists; answers the call when that cannot be read.
std::optional<PartitionPage> page_of(const std::shared_ptr<Call>& call) {
    const std::string allowed = "a whole number from 1 to " + std::to_string(kMostListed);
    const auto limit = call->query().integer("limit", allowed);
    const auto after = call->query().text("after");
    PartitionPage page;
    if (!limit || !after) {
        call->reply(error_reply(!limit ? limit.error() : after.error()));
        return std::nullopt;
    }
    page.limit = limit->value_or(kMostListed);
    if (page.limit < 1 || page.limit > kMostListed) {
        call->reply(error_reply(not_allowed("limit", allowed, std::to_string(page.limit))));
        return std::nullopt;
    }
    if (*after && !(*after)->empty()) {
        auto name = read_label("after", **after);
        if (!name) {
            call->reply(error_reply(name.error()));
            return std::nullopt;
        }
        page.after = std::move(*name);
    }
    return page;
}

// No group at all is the queue as a whole; an empty one is queue mode, as everywhere.
Result<std::optional<std::string>> read_depth_group(const Call& call) {
    const auto text = call.query().text("group");
    if (!text) {
        return fail(text.error());
    }
    if (!*text) {
        return std::optional<std::string>{};
    }
    auto group = read_group(**text);
    if (!group) {
        return fail(group.error());
    }
    if (auto fit = check_fit(call.tenant(), call.parameter("queue"), *group, {}); !fit) {
        return fail(fit.error());
    }
    return std::optional(std::move(*group));
}

// Whether figures are wanted as of the last refresh of the statistics, not counted now; answers the
// call when that cannot be read.
std::optional<bool> wants_cached(const std::shared_ptr<Call>& call) {
    const auto stats = call->query().text("stats");
    if (!stats) {
        call->reply(error_reply(stats.error()));
        return std::nullopt;
    }
    if (*stats && **stats != "live" && **stats != "cached") {
        call->reply(error_reply(not_allowed("stats", "live or cached", **stats)));
        return std::nullopt;
    }
    return *stats && **stats == "cached";
}

} // namespace

void configure(const std::shared_ptr<Call>& call) {
    auto read = read_configuration(call->tenant(), call->request().body,
                                   call->services().settings.configure_merges,
                                   call->services().cipher != nullptr);
    if (!read) {
        call->reply(refused(read.error()));
        return;
    }
    call->services().admin.configure(
        std::string(call->tenant()), std::move(read->queue), std::move(read->options_json),
        [call](Result<std::string> answer) {
            call->guard([&] {
                call->reply(answer ? procedure_reply(std::move(*answer))
                                   : error_reply(answer.error(), "configure failed"));
            });
        });
}

void list_queues(const std::shared_ptr<Call>& call) {
    const std::string tenant(call->tenant());
    if (const auto cached = wants_cached(call)) {
        if (*cached) {
            call->services().statistics.queues(tenant, call->figures("list failed", kMissing));
        } else {
            call->services().admin.list_queues(tenant, call->figures("list failed", kMissing));
        }
    }
}

void list_namespaces(const std::shared_ptr<Call>& call) {
    call->services().admin.list_labels(std::string(call->tenant()), Label::name_space,
                                       call->figures("list failed", kMissing));
}

void list_tasks(const std::shared_ptr<Call>& call) {
    call->services().admin.list_labels(std::string(call->tenant()), Label::task,
                                       call->figures("list failed", kMissing));
}

void overview(const std::shared_ptr<Call>& call) {
    const std::string tenant(call->tenant());
    if (const auto cached = wants_cached(call)) {
        if (*cached) {
            call->services().statistics.overview(tenant,
                                                 call->figures("overview failed", kMissing));
        } else {
            call->services().admin.overview(tenant, call->figures("overview failed", kMissing));
        }
    }
}

void queue_detail(const std::shared_ptr<Call>& call) {
    if (const auto page = page_of(call)) {
        call->services().admin.queue_detail(std::string(call->tenant()),
                                            std::string(call->parameter("queue")), *page,
                                            call->figures("queue detail failed", kMissing));
    }
}

void queue_sizes(const std::shared_ptr<Call>& call) {
    if (const auto page = page_of(call)) {
        call->services().admin.queue_sizes(std::string(call->tenant()),
                                           std::string(call->parameter("queue")), *page,
                                           call->figures("sizes failed", kMissing));
    }
}

void queue_depth(const std::shared_ptr<Call>& call) {
    const auto group = read_depth_group(*call);
    if (!group) {
        call->reply(error_reply(group.error()));
    } else if (const auto page = page_of(call)) {
        call->services().admin.queue_depth(std::string(call->tenant()),
                                           std::string(call->parameter("queue")), *group, *page,
                                           call->figures("depth failed", kMissing));
    }
}

// 200 whether or not there was such a queue: clients delete before they create.
void delete_queue(const std::shared_ptr<Call>& call) {
    const std::string queue(call->parameter("queue"));
    call->services().admin.delete_queue(
        std::string(call->tenant()), queue, [call, queue](const Result<bool>& existed) {
            call->guard([&] {
                call->reply(existed ? json_reply(render_deleted(queue, *existed))
                                    : error_reply(existed.error(), "delete failed"));
            });
        });
}

} // namespace queen::http
