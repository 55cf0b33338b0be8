#pragma once
#include "base/result.hpp"
#include "http/message.hpp"

#include <chrono>
#include <string_view>

namespace queen::http {

/// What one Errc is on the wire.
struct ErrorRule {
    int status;
    std::string_view code;               ///< stable word in the answer's `code`
    std::chrono::seconds retry_after{0}; ///< 0: no Retry-After header
};

/// The one map from errors to statuses. 5xx only for faults of ours.
/// @source ERR-1
ErrorRule rule_for(Errc code) noexcept;

/// `{"error","code"}` with the rule's status. `context` ("configure failed") goes before the
/// message of a fault of ours; a missing session is the contract's bare `pool`, its reason in
/// `detail`.
Reply error_reply(const Error& error, std::string_view context = {});

/// For what is wrong inside a body: `bad body: …`, code bad_body unless the error is about a size.
Reply bad_body_reply(const Error& error);

/// An answer that no Errc stands for (routing, features of later versions).
Reply error_reply(int status, std::string_view code, std::string_view text);

/// 200 with a body made by a Writer.
Reply json_reply(std::string body, int status = 200);

/// What a procedure answered, passed on unchanged. One with a non-null `error` is 400 when it names
/// an `invalid` field, 404 when it says "not found", else 500.
Reply procedure_reply(std::string json);

} // namespace queen::http
