// http/front/transfer.cpp - the half of the loop that moves bytes: requests in, answers out.
#include "http/front/codec.hpp"
#include "http/front/loop.hpp"

#include <Poco/Logger.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <string>
#include <utility>

namespace queen::http {
namespace {

using State = Connection::State;

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

/// The peer's FIN or RST is here, whether epoll told us already or not.
bool hung_up(int socket) noexcept {
    pollfd poll{.fd = socket, .events = POLLRDHUP, .revents = 0};
    return ::poll(&poll, 1, 0) > 0 && (poll.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

} // namespace

std::uint32_t Loop::listening_events(const Connection& connection) const noexcept {
    const bool reads = connection.state == State::reading || connection.state == State::lingering;
    return (reads ? EPOLLIN : 0u) | (connection.peer_closed ? 0u : EPOLLRDHUP) |
           (connection.has_output() ? EPOLLOUT : 0u);
}

void Loop::arm(Connection& connection, std::uint32_t events) {
    if (connection.armed == events) {
        return;
    }
    epoll_event event{};
    event.events = connection.armed = events;
    event.data.u64 =
        static_cast<std::uint64_t>(connection.id.generation) << 32 | connection.id.slot;
    static_cast<void>(::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.socket.get(), &event));
}

void Loop::on_event(Connection& connection, std::uint32_t events) {
    if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
        // Reset, or closed on both sides: nobody can be told anything any more.
        close(connection);
        return;
    }
    if ((events & EPOLLRDHUP) != 0 && !connection.peer_closed) {
        connection.peer_closed = true;
        if (connection.state == State::in_flight && connection.on_gone) {
            close(connection);
            return;
        }
    }
    if ((events & EPOLLOUT) != 0) {
        flush(connection);
    }
    bool unwanted = false; // bytes came that it is not their turn yet
    if ((events & EPOLLIN) != 0) {
        if (connection.state == State::reading) {
            on_readable(connection);
        } else if (connection.state == State::lingering) {
            on_drainable(connection);
        } else {
            unwanted = true;
        }
    }
    if (connection.state != State::closed) {
        arm(connection,
            listening_events(connection) | (unwanted ? 0u : connection.armed & EPOLLIN));
    }
}

void Loop::on_readable(Connection& connection) {
    std::size_t total = 0;
    while (connection.state == State::reading && total < kReadsPerTurn) {
        std::span<char> space = connection.reader.body_space();
        const bool in_place = !space.empty();
        if (!in_place) {
            space = scratch_;
        }
        const ssize_t got =
            ::recv(connection.socket.get(), space.data(), space.size(), MSG_DONTWAIT);
        if (got < 0) {
            if (errno == EINTR) {
                continue;
            }
            if (errno != EAGAIN) {
                close(connection);
            }
            return;
        }
        if (got == 0) {
            close(connection); // between requests, or in the middle of one: nothing is owed
            return;
        }
        const auto bytes = static_cast<std::size_t>(got);
        total += bytes;
        step(connection, in_place ? connection.reader.received(bytes)
                                  : connection.reader.feed({space.data(), bytes}));
        if (bytes < space.size()) {
            return; // drained, most likely; if not, epoll says so
        }
    }
}

/// Goes on after bytes were read: waits for more, hands the request over, or refuses it.
void Loop::step(Connection& connection, RequestReader::Outcome outcome) {
    switch (outcome) {
    case RequestReader::Outcome::whole:
        dispatch(connection);
        return;
    case RequestReader::Outcome::refused:
        counters_.bad_requests.fetch_add(1, std::memory_order_relaxed);
        refuse(connection, connection.reader.take_refusal());
        return;
    case RequestReader::Outcome::more:
        break;
    }
    if (connection.reader.take_continue()) {
        connection.out_head = kContinue;
        flush(connection);
        if (connection.state != State::reading) {
            return;
        }
    }
    if (connection.reader.in_body()) {
        start_wait(connection, Wait::body);
    } else if (connection.reader.idle()) {
        start_wait(connection, Wait::idle);
    } else if (connection.wait != Wait::head) {
        start_wait(connection, Wait::head); // runs from the first byte on, whatever trickles in
    }
}

void Loop::dispatch(Connection& connection) {
    Whole whole = connection.reader.take();
    deadlines_.end(connection);
    enter(connection, State::in_flight);
    connection.request = ++requests_;
    connection.close_after = !whole.keep_alive;
    connection.version_1_0 = whole.version_1_0;
    connection.to_head = whole.request.method == "HEAD";
    counters_.requests.fetch_add(1, std::memory_order_relaxed);
    auto exchange =
        std::make_shared<MailedExchange>(mailbox_, connection.id, connection.request, whole.charge);
    connection.exchange = exchange;
    try {
        handler_.handle(std::move(whole.request), std::move(exchange));
    } catch (const std::exception& error) {
        // The exchange goes down with the call unless a route kept it: the client gets its 500.
        Poco::Logger::get("http").error(std::string("a route threw: ") + error.what());
    }
}

void Loop::refuse(Connection& connection, const Refusal& refusal) {
    connection.reader.abandon();
    connection.to_head = false;
    connection.version_1_0 = false;
    answer(connection, refusal_reply(refusal), {});
}

void Loop::deliver(Message& message) {
    budget_.give(message.charge);
    Connection* const owner = find(message.connection);
    const bool waits =
        owner != nullptr && owner->state == State::in_flight && owner->request == message.request;
    Connection* connection = waits ? owner : nullptr;
    switch (message.kind) {
    case Message::Kind::run:
        run_guarded(message.callback);
        break;
    case Message::Kind::watch:
        if (connection != nullptr) {
            connection->on_gone = std::move(message.callback);
            if (connection->peer_closed) {
                close(*connection);
            }
        } else if (owner == nullptr) {
            run_guarded(message.callback);
        } // else another thread's answer was first: nothing left to watch
        break;
    case Message::Kind::dropped:
        if (connection != nullptr) {
            answer(*connection, plain_reply(500, "the request was dropped unanswered"), {});
        }
        break;
    case Message::Kind::answer:
        // A client that waited may have gone in this very moment; what it would have got is better
        // given to the next one than sent into a closed socket (K28).
        if (connection != nullptr && connection->on_gone && hung_up(connection->socket.get())) {
            close(*connection);
            connection = nullptr;
        }
        if (connection == nullptr) {
            run_guarded(message.callback);
        } else {
            answer(*connection, std::move(message.reply), std::move(message.callback));
        }
        break;
    }
}

void Loop::answer(Connection& connection, Reply reply, std::function<void()> undelivered) {
    enter(connection, State::answering);
    connection.exchange.reset();
    connection.on_gone = nullptr;
    connection.undelivered = std::move(undelivered);
    if (reply.status < 200 || reply.status > 599) {
        reply = plain_reply(500, "the route gave no valid status");
    }
    counters_.response(reply.status);
    connection.close_after = connection.close_after || reply.close || stop_deadline_.has_value();
    const AnswerForm form{.to_head = connection.to_head,
                          .close = connection.close_after,
                          .say_keep_alive = connection.version_1_0};
    if (!connection.has_output()) {
        connection.out_head.clear();
        connection.out_sent = 0;
    }
    connection.out_head += build_head(reply, form);
    if (has_body(reply.status) && !connection.to_head) {
        connection.out_body = std::move(reply.body);
    }
    start_wait(connection, Wait::write);
    flush(connection);
    if (connection.state != State::closed && connection.has_output()) {
        arm(connection, listening_events(connection));
    }
}

void Loop::flush(Connection& connection) {
    while (connection.has_output()) {
        const std::size_t head_size = connection.out_head.size();
        const std::size_t head_sent = std::min(connection.out_sent, head_size);
        const std::size_t body_sent = connection.out_sent - head_sent;
        iovec parts[2] = {
            {connection.out_head.data() + head_sent, head_size - head_sent},
            {connection.out_body.data() + body_sent, connection.out_body.size() - body_sent}};
        msghdr message{};
        message.msg_iov = parts;
        message.msg_iovlen = 2;
        const ssize_t sent =
            ::sendmsg(connection.socket.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno == EINTR) {
                continue;
            }
            if (errno != EAGAIN) {
                close(connection);
            }
            return;
        }
        connection.out_sent += static_cast<std::size_t>(sent);
        if (connection.state == State::answering) {
            start_wait(connection, Wait::write); // progress
        }
    }
    release(connection.out_head);
    release(connection.out_body);
    connection.out_sent = 0;
    if (connection.state == State::answering) {
        answered(connection);
    }
}

/// All of the answer is with the kernel.
void Loop::answered(Connection& connection) {
    connection.undelivered = nullptr;
    if (connection.close_after || stop_deadline_) {
        linger(connection);
        return;
    }
    enter(connection, State::reading);
    step(connection, connection.reader.next());
    if (connection.state == State::reading) {
        arm(connection, listening_events(connection));
    }
}

void Loop::linger(Connection& connection) {
    ::shutdown(connection.socket.get(), SHUT_WR);
    enter(connection, State::lingering);
    connection.reader.abandon();
    ++lingering_;
    connection.linger_until = now_ + kLingerTime;
    connection.linger_left = std::max(kLingerBytes, 4 * limits_.body_bytes);
    start_wait(connection, Wait::linger);
    arm(connection, listening_events(connection));
}

void Loop::on_drainable(Connection& connection) {
    std::size_t total = 0;
    while (total < kReadsPerTurn) {
        const ssize_t got =
            ::recv(connection.socket.get(), scratch_.data(), scratch_.size(), MSG_DONTWAIT);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0 && errno == EAGAIN) {
            break;
        }
        const auto bytes = static_cast<std::size_t>(std::max<ssize_t>(got, 0));
        if (got <= 0 || bytes >= connection.linger_left || now_ >= connection.linger_until) {
            close(connection);
            return;
        }
        connection.linger_left -= bytes;
        total += bytes;
    }
    if (total != 0) {
        start_wait(connection, Wait::linger);
    }
}

} // namespace queen::http
