// http/system_handler.cpp - the switches of all brokers, and the statistics.
#include "base/json.hpp"
#include "http/error_map.hpp"
#include "http/handlers.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace queen::http {
namespace {

constexpr std::string_view kNoSpool =
    "push maintenance needs a disk spool, which this version of the broker does not have";

// The one field of a switch's body; answers the call when it is not there.
std::optional<bool> read_enabled(const std::shared_ptr<Call>& call) {
    const auto document = json::Document::parse(call->request().body);
    const auto enabled = document ? document->root()["enabled"].boolean() : std::nullopt;
    if (!enabled) {
        call->reply(error_reply({Errc::invalid_argument, "enabled (boolean) is required", {}}));
    }
    return enabled;
}

// There is no spool, so it is empty and healthy.
json::Writer& write_buffer(json::Writer& writer) {
    return writer.key("bufferedMessages").integer(0).key("bufferHealthy").boolean(true);
}

Reply pop_maintenance(bool paused, std::string_view message) {
    Reply reply;
    json::Writer(reply.body)
        .begin_object()
        .key("popMaintenanceMode")
        .boolean(paused)
        .key("message")
        .string(message)
        .end_object();
    return reply;
}

} // namespace

void get_maintenance(const std::shared_ptr<Call>& call) {
    const SwitchStates states = call->services().switches.known();
    std::string body;
    json::Writer writer(body);
    writer.begin_object().key("maintenanceMode").boolean(false);
    writer.key("popMaintenanceMode").boolean(states.pop_maintenance);
    write_buffer(writer).key("bufferStats").begin_object();
    for (const char* name : {"pendingCount", "failedCount"}) {
        writer.key(name).integer(0);
    }
    writer.key("dbHealthy").boolean(true).end_object().end_object();
    call->reply(json_reply(std::move(body)));
}

// Switching off what cannot be on is done already; switching on would promise a spool.
void set_maintenance(const std::shared_ptr<Call>& call) {
    const auto enabled = read_enabled(call);
    if (!enabled) {
        return;
    }
    if (*enabled) {
        call->reply(error_reply(501, "not_implemented", kNoSpool));
        return;
    }
    std::string body;
    json::Writer writer(body);
    writer.begin_object().key("maintenanceMode").boolean(false);
    write_buffer(writer).key("message").string(
        "Maintenance mode DISABLED. Background processor will drain buffer to DB.");
    writer.end_object();
    call->reply(json_reply(std::move(body)));
}

void get_pop_maintenance(const std::shared_ptr<Call>& call) {
    const bool paused = call->services().switches.pops_paused();
    call->reply(pop_maintenance(paused, paused ? "Pop maintenance mode is ENABLED."
                                               : "Pop maintenance mode is DISABLED."));
}

void set_pop_maintenance(const std::shared_ptr<Call>& call) {
    const auto enabled = read_enabled(call);
    if (!enabled) {
        return;
    }
    call->services().switches.pause_pops(
        *enabled, [call, enabled = *enabled](const Result<SwitchStates>& set) {
            call->guard([&] {
                call->reply(!set ? error_reply(set.error(), "pop maintenance failed")
                                 : pop_maintenance(
                                       enabled, enabled ? "Pop maintenance mode ENABLED. All POPs "
                                                          "will return empty."
                                                        : "Pop maintenance mode DISABLED. Normal "
                                                          "POP operations resumed."));
            });
        });
}

void shared_state(const std::shared_ptr<Call>& call) {
    const SwitchStates states = call->services().switches.known();
    Reply reply;
    json::Writer(reply.body)
        .begin_object()
        .key("enabled")
        .boolean(false)
        .key("reason")
        .string("brokers share their state through the database")
        .key("maintenance_mode")
        .boolean(false)
        .key("pop_maintenance_mode")
        .boolean(states.pop_maintenance)
        .end_object();
    call->reply(std::move(reply));
}

void refresh_statistics(const std::shared_ptr<Call>& call) {
    call->services().statistics.refresh([call](const Result<broker::Refreshed>& outcome) {
        call->guard([&] {
            if (!outcome) {
                call->reply(error_reply(outcome.error(), "stats refresh failed"));
                return;
            }
            Reply reply;
            json::Writer(reply.body)
                .begin_object()
                .key("success")
                .boolean(true)
                .key("refreshed")
                .boolean(outcome->refreshed)
                .key("queues")
                .integer(outcome->queues)
                .key("partitions")
                .integer(outcome->partitions)
                .key("written")
                .integer(outcome->written)
                .key("tookMs")
                .integer(outcome->took.count())
                .end_object();
            call->reply(std::move(reply));
        });
    });
}

} // namespace queen::http
