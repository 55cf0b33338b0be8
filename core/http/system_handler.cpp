// http/system_handler.cpp - the switches of all brokers, and the statistics.
#include "base/json.hpp"
#include "http/error_map.hpp"
#include "http/handlers.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace queen::http {
namespace {

constexpr std::string_view kNoSpool =
    "push maintenance needs a disk spool, which this version of the broker does not have";
constexpr std::string_view kNoKeys =
    "kv: this version of the broker does not have the key-value store";

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

// There is no key-value store and there are no quotas: the first is off, the others empty.
Reply kv_timers(const SwitchStates& states) {
    Reply reply;
    json::Writer writer(reply.body);
    writer.begin_object().key("kvEnabled").boolean(false);
    writer.key("timersScheduleEnabled").boolean(states.timers_schedule);
    writer.key("timersFireEnabled").boolean(states.timers_fire);
    writer.key("quotaTenants").integer(0).key("quotaAgeMs").null();
    writer.key("quotaHot").boolean(false).end_object();
    return reply;
}

using WantedSwitches = std::vector<std::pair<SwitchKey, bool>>;

// What a body of kv-timers asks for; an answer when it cannot be had. Nothing is set then.
tl::expected<WantedSwitches, Reply> read_kv_timers(const std::string& body) {
    constexpr std::array<std::pair<std::string_view, std::optional<SwitchKey>>, 3> kFields{{
        {"kv", std::nullopt},
        {"timersSchedule", SwitchKey::timers_schedule},
        {"timersFire", SwitchKey::timers_fire},
    }};
    const auto refuse = [](std::string text) {
        return tl::unexpected(error_reply({Errc::invalid_argument, std::move(text), {}}));
    };
    WantedSwitches wanted;
    bool any = false;
    bool keys = false;
    const auto document = json::Document::parse(body);
    for (const auto& [name, key] : kFields) {
        const auto field = document ? document->root()[name] : json::Value();
        if (field.is(json::Kind::missing)) {
            continue;
        }
        const auto enabled = field.boolean();
        if (!enabled) {
            return refuse(std::string(name) + " must be a boolean");
        }
        any = true;
        if (key) {
            wanted.emplace_back(*key, *enabled);
        } else {
            keys = *enabled; // switching off what cannot be on is done already
        }
    }
    if (!any) {
        return refuse("at least one of kv, timersSchedule, timersFire (boolean) is required");
    }
    if (keys) {
        return tl::unexpected(error_reply(501, "not_implemented", kNoKeys));
    }
    return wanted;
}

// One after the other; of two the first holds when the second fails.
void set_from(const std::shared_ptr<Call>& call, const WantedSwitches& wanted, std::size_t at) {
    auto& switches = call->services().switches;
    if (at == wanted.size()) {
        call->reply(kv_timers(switches.known()));
        return;
    }
    switches.set(wanted[at].first, wanted[at].second,
                 [call, wanted, at](const Result<SwitchStates>& set) {
                     call->guard([&] {
                         if (set) {
                             set_from(call, wanted, at + 1);
                         } else {
                             call->reply(error_reply(set.error(), "kv-timers failed"));
                         }
                     });
                 });
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

void get_kv_timers(const std::shared_ptr<Call>& call) {
    call->reply(kv_timers(call->services().switches.known()));
}

void set_kv_timers(const std::shared_ptr<Call>& call) {
    auto wanted = read_kv_timers(call->request().body);
    if (!wanted) {
        call->reply(std::move(wanted).error());
        return;
    }
    set_from(call, *wanted, 0);
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
