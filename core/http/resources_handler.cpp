#include "base/json.hpp"
#include "http/configure_reader.hpp"
#include "http/error_map.hpp"
#include "http/handlers.hpp"

namespace queen::http {
namespace {

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

} // namespace

void configure(const std::shared_ptr<Call>& call) {
    auto read = read_configuration(call->tenant(), call->request().body,
                                   call->services().settings.configure_merges);
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
    call->services().admin.list_queues(
        std::string(call->tenant()), [call](Result<std::string> list) {
            call->guard([&] {
                call->reply(list ? procedure_reply(std::move(*list))
                                 : error_reply(list.error(), "list failed"));
            });
        });
}

void queue_detail(const std::shared_ptr<Call>& call) {
    call->services().admin.queue_detail(
        std::string(call->tenant()), std::string(call->parameter("queue")),
        [call](Result<std::optional<std::string>> detail) {
            call->guard([&] {
                if (!detail) {
                    call->reply(error_reply(detail.error(), "queue detail failed"));
                } else if (!*detail) {
                    call->reply(error_reply({Errc::not_found, "Queue not found", {}}));
                } else {
                    call->reply(procedure_reply(std::move(**detail)));
                }
            });
        });
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
