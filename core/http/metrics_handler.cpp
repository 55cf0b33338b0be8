#include "base/json.hpp"
#include "http/error_map.hpp"
#include "http/handlers.hpp"

namespace queen::http {
namespace {

/// Scrapers and proxies must not answer with the figures of some earlier moment.
Reply fresh(Reply reply) {
    reply.headers.emplace_back("Cache-Control", "no-cache");
    return reply;
}

} // namespace

void metrics(const std::shared_ptr<Call>& call) {
    std::string body;
    json::Writer writer(body);
    call->services().metrics(writer);
    call->reply(fresh(json_reply(std::move(body))));
}

void metrics_prometheus(const std::shared_ptr<Call>& call) {
    call->services().prometheus([call](Reply reply) { call->reply(fresh(std::move(reply))); });
}

} // namespace queen::http
