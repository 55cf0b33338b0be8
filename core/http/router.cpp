#include "http/router.hpp"

#include "http/error_map.hpp"
#include "http/path.hpp"

namespace queen::http {
namespace {

using Segments = std::vector<std::string>;

Reply wrong_method(const std::vector<std::string_view>& allowed) {
    std::string list;
    for (const std::string_view method : allowed) {
        list.append(list.empty() ? "" : ", ").append(method);
    }
    Reply reply = error_reply(405, "method_not_allowed", "method not allowed; allowed: " + list);
    reply.headers.emplace_back("Allow", std::move(list));
    return reply;
}

Reply not_built(const Route& route) {
    return error_reply(501, "not_implemented",
                       "this version of the broker does not have " + std::string(route.feature));
}

} // namespace

Routes::Routes(Services services)
    : services_(std::move(services)),
      access_(services_.verifier, services_.settings.auth, services_.settings.tenancy),
      table_(all_routes()) {}

void Routes::handle(Request request, std::shared_ptr<Exchange> exchange) {
    auto segments = decode_path(request.path);
    if (!segments) {
        exchange->reply(error_reply(segments.error()));
        return;
    }
    RouteTable::Match match = table_.find(request.method, *segments);
    if (match.route == nullptr) {
        Reply reply = match.allowed.empty() ? error_reply(404, "no_such_route", "Not Found")
                                            : wrong_method(match.allowed);
        if (!access_.asks()) {
            exchange->reply(std::move(reply));
            return;
        }
        services_.workers.post([this, request = std::move(request), exchange = std::move(exchange),
                                segments = *segments, reply = std::move(reply)]() mutable {
            const auto admitted = access_.admit(request, segments, nullptr);
            exchange->reply(admitted ? reply : admitted.error());
        });
        return;
    }
    auto call = std::make_shared<Call>(services_, std::move(request), std::move(exchange),
                                       std::move(match.parameters));
    services_.workers.post([this, call = std::move(call), route = match.route,
                            segments = access_.asks() ? std::move(*segments) : Segments()] {
        call->guard([&] {
            auto admitted = access_.admit(call->request(), segments, route);
            if (!admitted) {
                call->reply(std::move(admitted.error()));
                return;
            }
            call->admit(std::move(*admitted));
            if (auto names = call->check_parameters(); !names) {
                call->reply(error_reply(names.error()));
            } else if (auto query = call->check_query(); !query) {
                call->reply(error_reply(query.error()));
            } else if (route->handle == nullptr) {
                call->reply(not_built(*route));
            } else {
                route->handle(call);
            }
        });
    });
}

} // namespace queen::http
