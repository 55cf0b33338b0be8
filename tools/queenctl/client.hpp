#pragma once
#include "base/result.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace queen::ctl {

struct Answer {
    int status = 0;
    std::string body;
    std::chrono::seconds retry_after{0}; ///< as the broker asked, 0 when it did not
};

using Query = std::vector<std::pair<std::string, std::string>>;

/// One kept-alive connection to a broker. Sends each request once: whether a lost answer may be
/// asked for again is the command's business.
/// @thread one
class Client {
public:
    /// @param url http://host:port, with a path when a proxy stands before the broker
    /// @errors invalid_argument
    static Result<Client> open(const std::string& url, std::chrono::milliseconds timeout);
    Client(Client&&) noexcept;
    Client& operator=(Client&&) noexcept;
    ~Client();

    /// A field that every request bears.
    void bear(std::string name, std::string value);
    /// @param path begins with a slash, its segments are encoded (see segment())
    /// @param extra time to wait for the answer on top of the usual, for long polls
    /// @errors unavailable: no connection, or it broke before the whole answer was there
    Result<Answer> call(const std::string& method, const std::string& path, const Query& query,
                        const std::string& body = {}, std::chrono::milliseconds extra = {});

private:
    struct Impl;
    explicit Client(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

/// A name as a segment of a path: "/" and the encoded name.
std::string segment(const std::string& name);

/// One sentence about an answer that is no success: its `error` when it has one.
std::string refusal(const Answer& answer);

} // namespace queen::ctl
