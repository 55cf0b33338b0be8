// http/front/codec.hpp - heads in and out, by Poco over memory: 2 µs a request and its answer.
// The only file of the front that knows Poco's HTTP classes. They never meet a socket, so their
// session's habits (blocking reads, closing the descriptor while unwinding) cannot matter.
#pragma once
#include "base/result.hpp"
#include "http/front/gate.hpp"
#include "http/message.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace queen::http {

/// Parses a head that the gate let pass; `bytes` begins where the gate's scan began.
/// Fields are in order, names and values as sent.
/// @errors invalid_argument when parser and gate do not agree on method, target and number of
/// fields: better no answer of ours than a request of somebody else's
/// @source FRM-1
Result<Request> parse_head(std::string_view bytes, const Head& head);

/// How an answer goes out, beyond what the route said.
struct AnswerForm {
    bool to_head = false;        ///< the request was HEAD: the head of the GET, no body
    bool close = false;          ///< the connection ends after it
    bool say_keep_alive = false; ///< an HTTP/1.0 client that asked to stay
};

/// Status line and fields of an answer, up to the empty line. 204 and 304 have neither length nor
/// type, everything else has the exact length of its body.
/// Fields the front owns (Content-Length, Connection, Date, Transfer-Encoding) are dropped from the
/// route's own, and control bytes in their values become blanks: no route can break the framing.
/// @source POP-8 K26
std::string build_head(const Reply& reply, const AnswerForm& form);

/// True when an answer of this status has a body.
bool has_body(int status) noexcept;

/// The stable word of a status that the front gives by itself: `too_large` for 413.
std::string_view refusal_code(int status) noexcept;

/// `{"error","code"}`; an empty code is the one of the status.
Reply plain_reply(int status, std::string_view text, std::string_view code = {});

/// The answer to a refused request; it closes the connection.
Reply refusal_reply(const Refusal& refusal);

} // namespace queen::http
