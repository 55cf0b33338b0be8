#include "base/json.hpp"
#include "base/text.hpp"
#include "broker/page_cursor.hpp"
#include "http/error_map.hpp"
#include "http/handlers.hpp"
#include "http/page_reader.hpp"
#include "http/replay_writer.hpp"
#include "http/request_names.hpp"

#include <array>
#include <optional>

namespace queen::http {
namespace {

constexpr std::int32_t kDefaultLetters = 100;

Result<LetterQuery> read_list(const Call& call) {
    auto page = read_page(call.query(), kDefaultLetters);
    if (!page) {
        return fail(page.error());
    }
    LetterQuery query;
    query.tenant = call.tenant();
    for (const auto& [name, filter] :
         {std::pair{"queue", &query.queue}, std::pair{"consumerGroup", &query.group},
          std::pair{"partition", &query.partition}}) {
        auto read = read_filter(call.query(), name);
        if (!read) {
            return fail(read.error());
        }
        *filter = std::move(*read);
    }
    query.from = page->from;
    query.to = page->to;
    query.limit = page->limit;
    query.offset = page->offset;
    if (page->after) {
        query.after = broker::read_letter_cursor(*page->after);
        if (!query.after) {
            return fail(not_allowed("after", "the next of an earlier page", *page->after));
        }
    }
    return query;
}

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kSpace = " \t\r\n";
    const std::size_t begin = text.find_first_not_of(kSpace);
    return begin == std::string_view::npos
               ? std::string_view()
               : text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// {queue?, partition?}; an empty body is {}.
Result<broker::ReplayTarget> read_target(std::string_view tenant, std::string_view body) {
    broker::ReplayTarget target;
    if (trimmed(body).empty()) {
        return target;
    }
    const auto document = json::Document::parse(body);
    if (!document) {
        return fail(Errc::invalid_argument, "bad body: " + document.error().message);
    }
    const json::Value root = document->root();
    if (!root.is(json::Kind::object)) {
        return fail(Errc::invalid_argument,
                    "bad body: an object with queue and partition, both optional");
    }
    for (const auto& [name, field] :
         {std::pair{std::string_view("queue"), &target.queue},
          std::pair{std::string_view("partition"), &target.partition}}) {
        const json::Value value = root[name];
        if (value.is(json::Kind::missing) || value.is(json::Kind::null)) {
            continue;
        }
        const std::string_view text = trimmed(value.string());
        if (text.empty()) {
            return fail(Errc::invalid_argument,
                        std::string(name) + " must be a name that is not empty");
        }
        auto read = name == "queue" ? read_queue(text) : read_partition(text);
        if (!read) {
            return fail(read.error());
        }
        *field = std::move(*read);
    }
    if (auto fit = check_fit(tenant, target.queue.value_or(""), {}, target.partition.value_or(""));
        !fit) {
        return fail(fit.error());
    }
    return target;
}

// A refusal in the form these routes have.
Reply unsuccessful(const Error& error, std::string_view message = {}) {
    const ErrorRule rule = rule_for(error.code);
    Reply reply;
    reply.status = rule.status;
    json::Writer writer(reply.body);
    writer.begin_object();
    writer.key("success").boolean(false);
    writer.key("error").string(error.message);
    writer.key("code").string(rule.code);
    if (!message.empty()) {
        writer.key("message").string(message);
    }
    writer.end_object();
    return reply;
}

} // namespace

void list_letters(const std::shared_ptr<Call>& call) {
    auto query = read_list(*call);
    if (!query) {
        call->reply(error_reply(query.error()));
        return;
    }
    call->services().letters.list(
        std::move(*query), [call](Result<std::optional<std::string>> body) {
            call->guard([&] {
                call->reply(body ? json_reply(std::move(**body))
                                 : error_reply(body.error(), "list failed"));
            });
        });
}

void purge_letters(const std::shared_ptr<Call>& call) {
    const auto queue = read_filter(call->query(), "queue");
    const auto group = read_filter(call->query(), "consumerGroup");
    if (!queue || !group) {
        call->reply(unsuccessful(!queue ? queue.error() : group.error()));
        return;
    }
    if (!*queue) {
        call->reply(unsuccessful({Errc::invalid_argument, "queue is required", {}},
                                 "name the queue whose dead letters are to be removed"));
        return;
    }
    call->services().letters.purge(
        std::string(call->tenant()), **queue, *group,
        [call, queue = **queue, group = *group](const Result<std::int64_t>& gone) {
            call->guard([&] {
                if (!gone) {
                    call->reply(error_reply(gone.error(), "purge failed"));
                    return;
                }
                Reply reply;
                json::Writer writer(reply.body);
                writer.begin_object();
                writer.key("success").boolean(true);
                writer.key("deleted").integer(*gone);
                writer.key("queue").string(queue);
                writer.key("consumerGroup");
                if (group) {
                    writer.string(*group);
                } else {
                    writer.null();
                }
                writer.end_object();
                call->reply(std::move(reply));
            });
        });
}

void replay_letter(const std::shared_ptr<Call>& call) {
    const auto id = read_id("id", call->parameter("id"));
    auto target = read_target(call->tenant(), call->request().body);
    if (!id || !target) {
        call->reply(unsuccessful(!id ? id.error() : target.error()));
        return;
    }
    call->services().letters.replay(
        std::string(call->tenant()), *id, std::move(*target),
        [call, id = *id](const broker::Replay& replay) {
            call->guard([&] {
                const std::array address{
                    std::pair<std::string_view, std::string>{"dlqId", to_string(id)}};
                call->reply(render_replay(replay, address));
            });
        });
}

} // namespace queen::http
