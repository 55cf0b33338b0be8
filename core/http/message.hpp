// http/message.hpp - what passes between the front and the routes.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace queen::http {

struct Request {
    std::string method;
    std::string path;  ///< as sent, still percent-encoded, without the query
    std::string query; ///< as sent, without '?'; empty when there is none
    std::vector<std::pair<std::string, std::string>> headers;      ///< in order, names as sent
    std::string body;                                              ///< whole and decoded
    std::string_view header(std::string_view name) const noexcept; ///< any case; "" when absent
};

/// The values of a pattern's parameters, by name.
using Parameters = std::vector<std::pair<std::string_view, std::string>>;

struct Reply {
    int status = 200;
    std::string body; ///< ignored for 204: no body, no Content-Length (POP-8)
    std::string content_type = "application/json";
    std::vector<std::pair<std::string, std::string>> headers; ///< beyond the front's own
    bool close = false; ///< end the connection after this answer
};

/// One request in flight. The front keeps the connection; whoever holds the Exchange owes the
/// answer. An Exchange dropped without an answer is answered 500 by the front.
class Exchange {
public:
    virtual ~Exchange() = default;
    /// The answer, once. `undelivered` runs (on the front's thread) when the peer was gone before
    /// all of it was handed to the kernel: whatever the answer carried must be given back. A second
    /// answer is not sent and counts as undelivered. @thread any
    virtual void reply(Reply reply, std::function<void()> undelivered = {}) = 0;
    /// The connection is closed: the peer reset it, or closed its side while it was watched. A peer
    /// that only finished sending may still read, so without a watch it is answered. @thread any
    virtual bool gone() const noexcept = 0;
    /// `on_gone` runs once on the front's thread when the peer goes before the answer; at once when
    /// it already went. It must only hand work on. From here on a peer that finished sending (FIN)
    /// counts as gone: a client that waits for a long poll has no reason to (K28). A later watch
    /// takes the place of an earlier one. @thread any, by the holder of the exchange
    virtual void watch(std::function<void()> on_gone) = 0;
};

/// Called on the front's thread for each whole request; must not block.
class Handler {
public:
    virtual ~Handler() = default;
    virtual void handle(Request request, std::shared_ptr<Exchange> exchange) = 0;
};

} // namespace queen::http
