#include "base/json.hpp"
#include "base/text.hpp"
#include "http/error_map.hpp"
#include "http/handlers.hpp"
#include "http/pop_reader.hpp"

#include <algorithm>

namespace queen::http {
namespace {

constexpr std::int64_t kDefaultSeconds = 60;

// A body that is missing or not JSON means the default, by contract; a `seconds` that is there and
// unusable is refused: a shorter lease than the client believes in costs it the batch.
Result<std::chrono::seconds> read_seconds(std::string_view body) {
    const auto document = json::Document::parse(body);
    if (!document) {
        return std::chrono::seconds{kDefaultSeconds};
    }
    const json::Value value = document->root()["seconds"];
    if (value.is(json::Kind::missing) || value.is(json::Kind::null)) {
        return std::chrono::seconds{kDefaultSeconds};
    }
    const auto seconds = value.integer();
    if (!seconds || *seconds > kMaxLeaseSeconds) {
        return fail(Errc::invalid_argument,
                    "seconds must be a whole number from 1 to " + std::to_string(kMaxLeaseSeconds));
    }
    return std::chrono::seconds{std::max<std::int64_t>(*seconds, 1)};
}

std::string render(std::string_view lease_id, const RenewOutcome& outcome) {
    std::string body;
    json::Writer writer(body);
    writer.begin_object();
    writer.key("leaseId").string(lease_id);
    writer.key("success").boolean(outcome.renewed > 0);
    writer.key("renewed").integer(outcome.renewed);
    for (const std::string_view name : {"newExpiresAt", "expiresAt", "lease_expires_at"}) {
        writer.key(name);
        if (outcome.expires_at) {
            writer.string(format_micros(*outcome.expires_at));
        } else {
            writer.null();
        }
    }
    writer.end_object();
    return body;
}

} // namespace

void extend_lease(const std::shared_ptr<Call>& call) {
    const auto seconds = read_seconds(call->request().body);
    if (!seconds) {
        call->reply(error_reply(seconds.error()));
        return;
    }
    const auto lease = parse_uuid(call->parameter("leaseId"));
    if (!lease) { // never minted by a pop: unknown, like an expired one
        call->reply(json_reply(render(call->parameter("leaseId"), {})));
        return;
    }
    call->services().acks.extend(
        std::string(call->tenant()), to_string(*lease), *seconds,
        [call](const Result<RenewOutcome>& outcome) {
            call->guard([&] {
                call->reply(outcome ? json_reply(render(call->parameter("leaseId"), *outcome))
                                    : error_reply(outcome.error(), "renew failed"));
            });
        });
}

} // namespace queen::http
