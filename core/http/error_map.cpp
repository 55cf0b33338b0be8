#include "http/error_map.hpp"

#include "base/json.hpp"

#include <algorithm>
#include <cctype>
#include <string>

namespace queen::http {
namespace {

using std::chrono::seconds;

Reply body_of(const ErrorRule& rule, std::string_view text, std::string_view detail) {
    Reply reply;
    reply.status = rule.status;
    json::Writer writer(reply.body);
    writer.begin_object().key("error").string(text).key("code").string(rule.code);
    if (!detail.empty()) {
        writer.key("detail").string(detail);
    }
    writer.end_object();
    if (rule.retry_after > seconds{0}) {
        reply.headers.emplace_back("Retry-After", std::to_string(rule.retry_after.count()));
    }
    return reply;
}

bool says_not_found(std::string_view text) {
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return lower.find("not found") != std::string::npos;
}

} // namespace

ErrorRule rule_for(Errc code) noexcept {
    switch (code) {
    case Errc::invalid_argument:
        return {400, "bad_request"};
    case Errc::name_too_long:
        return {413, "name_too_long"};
    case Errc::not_found:
        return {404, "not_found"};
    case Errc::conflict:
        return {409, "conflict"};
    case Errc::unavailable:
        return {500, "unavailable", seconds{1}}; // 500, not 503: the contract's answer to "pool"
    case Errc::timeout:
        return {500, "timeout"};
    case Errc::transient:
        return {503, "retry", seconds{1}};
    case Errc::store_failed:
        return {500, "store_failed"};
    case Errc::corrupt:
        return {500, "corrupt"};
    case Errc::unsupported:
        return {501, "not_implemented"};
    case Errc::overloaded:
        return {503, "overloaded", seconds{1}};
    case Errc::internal:
        return {500, "internal"};
    case Errc::too_large:
        return {413, "too_large"};
    case Errc::shutting_down:
        return {503, "shutting_down", seconds{1}};
    }
    return {500, "internal"}; // a number outside the enum
}

Reply error_reply(const Error& error, std::string_view context) {
    const ErrorRule rule = rule_for(error.code);
    if (error.code == Errc::unavailable) {
        return body_of(rule, "pool", error.message);
    }
    if (context.empty() || rule.status < 500) {
        return body_of(rule, error.message, {});
    }
    return body_of(rule, std::string(context) + ": " + error.message, {});
}

Reply bad_body_reply(const Error& error) {
    ErrorRule rule = rule_for(error.code);
    if (rule.status == 400) {
        rule.code = "bad_body";
    }
    return body_of(rule, "bad body: " + error.message, {});
}

Reply error_reply(int status, std::string_view code, std::string_view text) {
    return body_of({status, code}, text, {});
}

Reply json_reply(std::string body, int status) {
    Reply reply;
    reply.status = status;
    reply.body = std::move(body);
    return reply;
}

Reply procedure_reply(std::string json) {
    const auto document = json::Document::parse(json);
    if (!document) {
        return error_reply({Errc::internal, "the store's answer is not JSON", {}});
    }
    const json::Value error = document->root()["error"];
    int status = 200;
    if (!error.is(json::Kind::missing) && !error.is(json::Kind::null)) {
        if (!document->root()["invalid"].is(json::Kind::missing)) {
            status = 400;
        } else {
            status = says_not_found(error.string()) ? 404 : 500;
        }
    }
    return json_reply(std::move(json), status);
}

} // namespace queen::http
