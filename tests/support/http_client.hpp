#pragma once
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace queen::test {

/// The peer closed or reset the connection before a whole response came.
struct HttpClosed : std::runtime_error {
    using std::runtime_error::runtime_error;
};
/// Nothing came in time; or what came is no HTTP/1.1 response.
struct HttpFailure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct HttpResponse {
    int status = 0;
    std::string reason;
    std::vector<std::pair<std::string, std::string>> headers; ///< in order, as sent
    std::string body;                                         ///< chunks already joined
    /// Value of the first header of that name in any case; "" when there is none.
    std::string header(std::string_view name) const;
    std::size_t count(std::string_view name) const;
};

using Headers = std::vector<std::pair<std::string, std::string>>;

/// One blocking connection to 127.0.0.1 that sends exactly the bytes it is told to, so that a test
/// can be as rude as it likes. Bytes after a response are kept for the next read().
class HttpClient {
public:
    explicit HttpClient(std::uint16_t port,
                        std::chrono::milliseconds timeout = std::chrono::seconds(30));
    ~HttpClient();
    HttpClient(const HttpClient&) = delete;
    HttpClient& operator=(const HttpClient&) = delete;
    HttpClient(HttpClient&& other) noexcept;

    /// @throws HttpClosed when the peer has closed
    void send(std::string_view bytes);
    /// The next response. @param head it answers a HEAD: no body whatever its headers say
    HttpResponse read(bool head = false);
    /// Sends a request with Host and, for a body, Content-Type (JSON) and Content-Length.
    void start(std::string_view method, std::string_view target, std::string_view body = {},
               const Headers& headers = {});
    HttpResponse request(std::string_view method, std::string_view target,
                         std::string_view body = {}, const Headers& headers = {});
    HttpResponse get(std::string_view target) { return request("GET", target); }
    HttpResponse post(std::string_view target, std::string_view body) {
        return request("POST", target, body);
    }

    void half_close(); ///< FIN: nothing more is sent, answers are still read
    void reset();      ///< RST, by SO_LINGER 0
    void close();
    /// Waits for the peer's end. @return false when data or nothing came within the time-out
    bool closed_by_peer();
    /// Whether bytes of a response have come or come within `time`; takes none of them.
    bool readable(std::chrono::milliseconds time);
    int descriptor() const noexcept { return fd_; }

private:
    bool fill(); ///< false: the peer closed
    std::string line();
    std::string exactly(std::size_t size);

    int fd_ = -1;
    std::chrono::milliseconds timeout_;
    std::string buffer_;
};

} // namespace queen::test
