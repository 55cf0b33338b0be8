#include "base/json.hpp"
#include "http/error_map.hpp"
#include "http/handlers.hpp"

namespace queen::http {
namespace {

constexpr std::string_view kEngine = "queen-broker"; // free text to clients

} // namespace

void health(const std::shared_ptr<Call>& call) {
    call->services().admin.ping([call](const Result<void>& ping) {
        call->guard([&] {
            std::string body;
            json::Writer writer(body);
            writer.begin_object();
            writer.key("status").string(ping ? "healthy" : "unhealthy");
            writer.key("database").string(ping ? "connected" : "disconnected");
            writer.key("engine").string(kEngine);
            writer.key("version").string(call->services().version);
            writer.end_object();
            call->reply(json_reply(std::move(body), ping ? 200 : 503));
        });
    });
}

void status(const std::shared_ptr<Call>& call) {
    std::string body;
    json::Writer writer(body);
    writer.begin_object().key("status").string("ok").key("engine").string(kEngine);
    writer.key("version").string(call->services().version).key("plugins");
    call->services().plugins(writer);
    const auto& fired = call->services().timers_fired;
    writer.key("timers").begin_object();
    writer.key("firing").boolean(fired && fired());
    writer.end_object();
    writer.end_object();
    call->reply(json_reply(std::move(body)));
}

void candidates(const std::shared_ptr<Call>& call) {
    std::string body;
    json::Writer writer(body);
    call->services().candidates(writer);
    call->reply(json_reply(std::move(body)));
}

void mesh(const std::shared_ptr<Call>& call) {
    std::string body;
    json::Writer writer(body);
    call->services().mesh(writer);
    call->reply(json_reply(std::move(body)));
}

} // namespace queen::http
