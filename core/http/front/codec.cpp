#include "http/front/codec.hpp"

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/json.hpp"

#include <Poco/DateTimeFormat.h>
#include <Poco/DateTimeFormatter.h>
#include <Poco/Exception.h>
#include <Poco/MemoryStream.h>
#include <Poco/Net/HTTPRequest.h>
#include <Poco/Net/HTTPResponse.h>
#include <Poco/Timestamp.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

namespace queen::http {
namespace {

/// The Date field, made anew once a second.
const std::string& date_field() {
    thread_local std::int64_t second = 0;
    thread_local std::string text;
    const auto now = std::chrono::floor<std::chrono::seconds>(SystemClock::wall());
    if (const std::int64_t wanted = now.time_since_epoch().count();
        wanted != second || text.empty()) {
        second = wanted;
        text = Poco::DateTimeFormatter::format(Poco::Timestamp::fromEpochTime(wanted),
                                               Poco::DateTimeFormat::HTTP_FORMAT);
    }
    return text;
}

bool owned_by_front(std::string_view name) noexcept {
    constexpr std::array<std::string_view, 6> kOwned = {
        "Content-Length", "Content-Type", "Connection", "Date", "Transfer-Encoding", "Keep-Alive"};
    return std::any_of(kOwned.begin(), kOwned.end(),
                       [&](std::string_view owned) { return same_word(name, owned); });
}

std::string harmless(std::string_view value) {
    std::string text(value);
    std::replace_if(
        text.begin(), text.end(), [](char byte) { return !text_byte(byte); }, ' ');
    return text;
}

bool usable_name(std::string_view name) noexcept {
    const std::string line = std::string(name) + ":";
    return *split_field(line).problem == '\0';
}

} // namespace

Result<Request> parse_head(std::string_view bytes, const Head& head) {
    const std::string_view method = bytes.substr(head.begin, head.method_bytes);
    const std::string_view target = bytes.substr(head.target_begin, head.target_bytes);
    try {
        Poco::MemoryInputStream in(bytes.data() + head.begin,
                                   static_cast<std::streamsize>(head.end - head.begin));
        Poco::Net::HTTPRequest parsed;
        parsed.setFieldLimit(0); // the gate counted
        parsed.read(in);
        if (parsed.getMethod() != method || parsed.getURI() != target) {
            return fail(Errc::invalid_argument, "the head of the request can be read in two ways");
        }
        Request request;
        request.method = parsed.getMethod();
        const std::string_view local = target == "*" ? target : origin_form(target).value_or("/");
        const std::size_t mark = std::min(local.find('?'), local.size());
        request.path = mark == 0 ? "/" : std::string(local.substr(0, mark));
        request.query = std::string(local.substr(std::min(mark + 1, local.size())));
        // Fields come from the bytes the gate judged: Poco decodes encoded words in values
        // (`=?UTF-8?Q?=0D=0A?=`), after which a value may hold anything, line ends included.
        request.headers.reserve(parsed.size());
        for (std::size_t at = head.fields_begin; at < head.end - 2;) {
            const std::size_t end = bytes.find("\r\n", at);
            const Field field = split_field(bytes.substr(at, end - at));
            request.headers.emplace_back(field.name, field.value);
            at = end + 2;
        }
        if (request.headers.size() != parsed.size()) {
            return fail(Errc::invalid_argument, "the head of the request can be read in two ways");
        }
        return request;
    } catch (const Poco::Exception& error) {
        return fail(Errc::invalid_argument,
                    "the head of the request does not parse: " + error.displayText());
    }
}

bool has_body(int status) noexcept {
    return status >= 200 && status != 204 && status != 304;
}

std::string build_head(const Reply& reply, const AnswerForm& form) {
    using Poco::Net::HTTPMessage;
    using Poco::Net::HTTPResponse;
    HTTPResponse response(HTTPMessage::HTTP_1_1,
                          static_cast<HTTPResponse::HTTPStatus>(reply.status));
    std::size_t room = 256 + reply.content_type.size();
    if (has_body(reply.status)) {
        response.set(HTTPMessage::CONTENT_TYPE, harmless(reply.content_type));
        response.setContentLength64(static_cast<Poco::Int64>(reply.body.size()));
    }
    response.set(HTTPResponse::DATE, date_field());
    if (form.close) {
        response.set(HTTPMessage::CONNECTION, HTTPMessage::CONNECTION_CLOSE);
    } else if (form.say_keep_alive) {
        response.set(HTTPMessage::CONNECTION, HTTPMessage::CONNECTION_KEEP_ALIVE);
    }
    for (const auto& [name, value] : reply.headers) {
        if (!owned_by_front(name) && usable_name(name)) {
            response.add(name, harmless(value));
            room += name.size() + value.size() + 4;
        }
    }
    std::string head(room, '\0');
    Poco::MemoryOutputStream out(head.data(), static_cast<std::streamsize>(head.size()));
    response.write(out);
    QUEEN_ASSERT(out.good(), "the head of an answer outgrew its estimate");
    head.resize(static_cast<std::size_t>(out.charsWritten()));
    return head;
}

std::string_view refusal_code(int status) noexcept {
    switch (status) {
    case 408:
        return "request_timeout";
    case 413:
        return "too_large";
    case 414:
        return "uri_too_long";
    case 417:
        return "expectation_failed";
    case 431:
        return "head_too_large";
    case 503:
        return "overloaded";
    case 505:
        return "http_version";
    default:
        return status < 500 ? "bad_request" : "internal";
    }
}

Reply plain_reply(int status, std::string_view text, std::string_view code) {
    Reply reply;
    reply.status = status;
    json::Writer writer(reply.body);
    writer.begin_object().key("error").string(text);
    writer.key("code").string(code.empty() ? refusal_code(status) : code).end_object();
    return reply;
}

Reply refusal_reply(const Refusal& refusal) {
    Reply reply = plain_reply(refusal.status, refusal.text, refusal.code);
    if (refusal.retry_later) {
        reply.headers.emplace_back("Retry-After", "1");
    }
    reply.close = true;
    return reply;
}

} // namespace queen::http
