#include "support/http_client.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <system_error>

namespace queen::test {

namespace {

bool same_name(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
        return std::tolower(x) == std::tolower(y);
    });
}

std::size_t number(std::string_view text, int base) {
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc() || end != text.data() + text.size()) {
        throw HttpFailure("no length: '" + std::string(text) + "'");
    }
    return value;
}

[[noreturn]] void throw_errno(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

} // namespace

std::string HttpResponse::header(std::string_view name) const {
    const auto found = std::find_if(headers.begin(), headers.end(), [&](const auto& header) {
        return same_name(header.first, name);
    });
    return found != headers.end() ? found->second : "";
}

std::size_t HttpResponse::count(std::string_view name) const {
    return static_cast<std::size_t>(
        std::count_if(headers.begin(), headers.end(),
                      [&](const auto& header) { return same_name(header.first, name); }));
}

HttpClient::HttpClient(std::uint16_t port, std::chrono::milliseconds timeout)
    : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), timeout_(timeout) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd_ < 0 || connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
        const int reason = errno;
        close();
        errno = reason;
        throw_errno("connect to 127.0.0.1");
    }
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

HttpClient::HttpClient(HttpClient&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), timeout_(other.timeout_),
      buffer_(std::move(other.buffer_)) {}

HttpClient::~HttpClient() {
    close();
}

void HttpClient::send(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t put = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (put >= 0) {
            bytes.remove_prefix(static_cast<std::size_t>(put));
        } else if (errno == EPIPE || errno == ECONNRESET) {
            throw HttpClosed("the peer closed while a request was sent");
        } else if (errno != EINTR) {
            throw_errno("send");
        }
    }
}

bool HttpClient::readable(std::chrono::milliseconds time) {
    struct pollfd watched {
        fd_, POLLIN, 0
    };
    return !buffer_.empty() || poll(&watched, 1, static_cast<int>(time.count())) > 0;
}

bool HttpClient::fill() {
    struct pollfd watched {
        fd_, POLLIN, 0
    };
    int ready = 0;
    do {
        ready = poll(&watched, 1, static_cast<int>(timeout_.count()));
    } while (ready < 0 && errno == EINTR);
    if (ready == 0) {
        throw HttpFailure("nothing came within " + std::to_string(timeout_.count()) + " ms");
    }
    std::array<char, 16'384> piece{};
    const ssize_t got = recv(fd_, piece.data(), piece.size(), 0);
    if (got > 0) {
        buffer_.append(piece.data(), static_cast<std::size_t>(got));
        return true;
    }
    if (got < 0 && errno != ECONNRESET) {
        throw_errno("recv");
    }
    return false;
}

std::string HttpClient::line() {
    std::size_t end = 0;
    while ((end = buffer_.find("\r\n")) == std::string::npos) {
        if (!fill()) {
            throw HttpClosed("the peer closed inside a response's head, after '" + buffer_ + "'");
        }
    }
    std::string text = buffer_.substr(0, end);
    buffer_.erase(0, end + 2);
    return text;
}

std::string HttpClient::exactly(std::size_t size) {
    while (buffer_.size() < size) {
        if (!fill()) {
            throw HttpClosed("the peer closed after " + std::to_string(buffer_.size()) + " of " +
                             std::to_string(size) + " bytes");
        }
    }
    std::string bytes = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return bytes;
}

HttpResponse HttpClient::read(bool head) {
    HttpResponse response;
    const std::string status = line();
    if (!status.starts_with("HTTP/1.") || status.size() < 12) {
        throw HttpFailure("no status line: '" + status + "'");
    }
    response.status = static_cast<int>(number(std::string_view(status).substr(9, 3), 10));
    response.reason = status.size() > 13 ? status.substr(13) : "";
    for (std::string field = line(); !field.empty(); field = line()) {
        const std::size_t colon = field.find(':');
        if (colon == std::string::npos) {
            throw HttpFailure("no header: '" + field + "'");
        }
        const std::size_t value = field.find_first_not_of(" \t", colon + 1);
        response.headers.emplace_back(field.substr(0, colon),
                                      value != std::string::npos ? field.substr(value) : "");
    }
    if (head || response.status < 200 || response.status == 204 || response.status == 304) {
        return response;
    }
    if (same_name(response.header("Transfer-Encoding"), "chunked")) {
        while (const std::size_t size = number(line(), 16)) {
            response.body += exactly(size);
            line();
        }
        while (!line().empty()) { // trailers
        }
    } else if (response.count("Content-Length") != 0) {
        response.body = exactly(number(response.header("Content-Length"), 10));
    } else {
        while (fill()) {
        }
        response.body = std::exchange(buffer_, {});
    }
    return response;
}

void HttpClient::start(std::string_view method, std::string_view target, std::string_view body,
                       const Headers& headers) {
    std::string request;
    request.append(method).append(" ").append(target).append(" HTTP/1.1\r\nHost: 127.0.0.1\r\n");
    if (!body.empty() || method == "POST" || method == "PUT") {
        request +=
            "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
            "\r\n";
    }
    for (const auto& [name, value] : headers) {
        request.append(name).append(": ").append(value).append("\r\n");
    }
    request.append("\r\n").append(body);
    send(request);
}

HttpResponse HttpClient::request(std::string_view method, std::string_view target,
                                 std::string_view body, const Headers& headers) {
    start(method, target, body, headers);
    return read(method == "HEAD");
}

void HttpClient::half_close() {
    shutdown(fd_, SHUT_WR);
}

void HttpClient::reset() {
    const linger now{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
}

void HttpClient::close() {
    if (fd_ >= 0) {
        ::close(std::exchange(fd_, -1));
    }
}

bool HttpClient::closed_by_peer() {
    return buffer_.empty() && readable(timeout_) && !fill();
}

} // namespace queen::test
