// A client that sends exactly the bytes it is told to, and reads answers strictly.
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace queen::test {

struct Answer {
    int status = 0;
    std::string head; ///< status line and fields, with the empty line
    std::string body;

    /// Value of a field, nullopt when absent; throws when it is given twice.
    std::optional<std::string> field(std::string_view name) const {
        std::optional<std::string> value;
        for (std::size_t begin = head.find("\r\n") + 2; begin + 2 < head.size();) {
            const std::size_t end = head.find("\r\n", begin);
            const std::string line = head.substr(begin, end - begin);
            begin = end + 2;
            const std::size_t colon = line.find(':');
            if (colon == name.size() &&
                std::equal(name.begin(), name.end(), line.begin(),
                           [](char a, char b) { return std::tolower(a) == std::tolower(b); })) {
                if (value) {
                    throw std::runtime_error("field given twice: " + line);
                }
                value = line.substr(line.find_first_not_of(' ', colon + 1));
            }
        }
        return value;
    }
};

/// What ended a read that found no answer.
struct Ended : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class RawClient {
public:
    /// @param receive_buffer bytes of SO_RCVBUF, 0: the system's own
    explicit RawClient(std::uint16_t port, int receive_buffer = 0, int family = AF_INET) {
        socket_ = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (receive_buffer != 0) {
            ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
        }
        // A test that would hang fails instead; no test's verdict depends on this time.
        const timeval limit{.tv_sec = 30, .tv_usec = 0};
        ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        const int on = 1;
        ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        int failed = 0;
        if (family == AF_INET) {
            sockaddr_in address{};
            address.sin_family = AF_INET;
            address.sin_port = htons(port);
            address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            failed = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address);
        } else {
            sockaddr_in6 address{};
            address.sin6_family = AF_INET6;
            address.sin6_port = htons(port);
            address.sin6_addr = in6addr_loopback;
            failed = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address);
        }
        if (failed != 0) {
            close();
            throw Ended("cannot connect");
        }
    }
    ~RawClient() { close(); }
    RawClient(RawClient&& other) noexcept
        : socket_(std::exchange(other.socket_, -1)), held_(std::move(other.held_)) {}
    RawClient& operator=(RawClient&&) = delete;

    /// @return false when the peer took no more (it closed or reset)
    bool send(std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent <= 0) {
                return false;
            }
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
        return true;
    }

    /// Reads one answer. `to_head`: the request was HEAD.
    Answer read(bool to_head = false) {
        Answer answer;
        answer.head = take_through("\r\n\r\n");
        if (answer.head.substr(0, 9) != "HTTP/1.1 ") {
            throw Ended("out of step, not a status line: " + answer.head.substr(0, 60));
        }
        answer.status = std::stoi(answer.head.substr(9, 3));
        const auto length = answer.field("Content-Length");
        if (answer.status == 204 || answer.status == 304 || answer.status < 200) {
            if (length) {
                throw Ended("a status without body has a Content-Length");
            }
        } else if (!length) {
            throw Ended("no Content-Length: " + answer.head);
        } else if (!to_head) {
            answer.body = take(std::stoull(*length));
        }
        return answer;
    }

    Answer ask(std::string_view bytes, bool to_head = false) {
        send(bytes);
        return read(to_head);
    }

    /// True when the peer ends the connection in order, with nothing more to read.
    bool ended() {
        char byte = 0;
        return held_.empty() && ::recv(socket_, &byte, 1, 0) == 0;
    }
    /// Some bytes, to show that the reader is alive; "" at the end.
    std::string read_some(std::size_t most) {
        std::string bytes(most, '\0');
        const ssize_t got = ::recv(socket_, bytes.data(), most, 0);
        bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
        return bytes;
    }
    /// All bytes to the end. @throws Ended when it ends in a reset
    std::string read_all() {
        std::string all = std::exchange(held_, {});
        while (true) {
            char bytes[65536];
            const ssize_t got = ::recv(socket_, bytes, sizeof bytes, 0);
            if (got < 0) {
                throw Ended("reset or timed out");
            }
            if (got == 0) {
                return all;
            }
            all.append(bytes, static_cast<std::size_t>(got));
        }
    }

    void finish_sending() { ::shutdown(socket_, SHUT_WR); } ///< FIN
    void reset() {                                          ///< RST
        const linger now{.l_onoff = 1, .l_linger = 0};
        ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        close();
    }
    void close() {
        if (socket_ >= 0) {
            ::close(socket_);
            socket_ = -1;
        }
    }
    int descriptor() const { return socket_; }

private:
    void fill() {
        char bytes[65536];
        const ssize_t got = ::recv(socket_, bytes, sizeof bytes, 0);
        if (got < 0) {
            throw Ended("reset or timed out");
        }
        if (got == 0) {
            throw Ended("closed; held: " + held_.substr(0, 60));
        }
        held_.append(bytes, static_cast<std::size_t>(got));
    }
    std::string take(std::size_t count) {
        while (held_.size() < count) {
            fill();
        }
        std::string part = held_.substr(0, count);
        held_.erase(0, count);
        if (held_.empty()) {
            std::string().swap(held_); // a test weighs a thousand clients
        }
        return part;
    }
    std::string take_through(std::string_view mark) {
        std::size_t from = 0;
        while (true) {
            const std::size_t at = held_.find(mark, from);
            if (at != std::string::npos) {
                return take(at + mark.size());
            }
            from = held_.size() < mark.size() ? 0 : held_.size() - mark.size() + 1;
            fill();
        }
    }

    int socket_ = -1;
    std::string held_;
};

} // namespace queen::test
