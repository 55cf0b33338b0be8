// http/front/connection.hpp - one client, as the front's thread sees it.
#pragma once
#include "http/front/deadlines.hpp"
#include "http/front/listener.hpp"
#include "http/front/mailbox.hpp"
#include "http/front/reader.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace queen::http {

/// States, one at a time; there is never more than one request out:
///
///   reading ---whole request--> in_flight --answer--> answering --all sent--> reading
///      |                            |                     |
///      +--refused: answering        +--peer gone: closed  +--last answer sent--> lingering
///
/// `lingering` has shut its sending side and throws away what still comes, until the peer closes or
/// a bound is reached: closing with unread bytes would reset the connection, and a reset takes the
/// answer away from the client before it read it (K22).
struct Connection : DeadlineEntry {
    enum class State : std::uint8_t { reading, in_flight, answering, lingering, closed };

    Connection(Descriptor descriptor, ConnectionId place, const Limits& limits,
               const HeadLimits& head_limits, BodyBudget& budget)
        : socket(std::move(descriptor)), id(place), reader(limits, head_limits, budget) {}

    Descriptor socket;
    ConnectionId id;
    State state = State::reading;
    bool peer_closed = false; ///< its FIN came; bytes before it may still be unread
    bool refused = false;     ///< over the limit of connections: not counted as open
    bool close_after = false; ///< the answer in work is the last
    bool to_head = false;     ///< the request in work is a HEAD
    bool version_1_0 = false; ///< of the request in work
    std::uint32_t armed = 0;  ///< epoll events asked for

    RequestReader reader;

    // The request in flight.
    std::uint64_t request = 0;
    std::weak_ptr<MailedExchange> exchange; ///< weak: its holder dropping it is an event
    std::function<void()> on_gone;

    // The answer in work: head (and an interim answer before it), then body.
    std::string out_head, out_body;
    std::size_t out_sent = 0; ///< of both together
    std::function<void()> undelivered;

    // Lingering.
    SteadyTime linger_until{};
    std::size_t linger_left = 0; ///< bytes

    bool has_output() const noexcept { return out_sent < out_head.size() + out_body.size(); }
};

} // namespace queen::http
