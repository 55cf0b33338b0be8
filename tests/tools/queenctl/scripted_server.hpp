#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace queen::ctl::testing {

/// One request as it arrived.
struct Seen {
    std::string method, target, body;
    std::uint16_t client_port = 0;     ///< tells connections apart
    std::string authorization, tenant; ///< fields of that name
};

/// What the server does with a request.
struct Reaction {
    int status = 200;
    std::string body;
    std::vector<std::pair<std::string, std::string>> headers;
    bool drop = false; ///< close the connection without an answer
    bool cut = false;  ///< announce more than the body and close after it
};
Reaction drop_connection();
Reaction cut_answer(std::string body);

/// A server on a port of its own that answers as the test says and remembers what it was asked.
/// `answer` is called for one request after the other.
class ScriptedServer {
public:
    explicit ScriptedServer(std::function<Reaction(const Seen&)> answer);
    ~ScriptedServer();
    ScriptedServer(const ScriptedServer&) = delete;
    ScriptedServer& operator=(const ScriptedServer&) = delete;

    std::string url() const;
    std::vector<Seen> seen() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Answers each reaction once, in order, then repeats the last.
std::function<Reaction(const Seen&)> in_order(std::vector<Reaction> reactions);

/// A push answer that says `status` for each message of the request.
Reaction all_messages(const Seen& seen, const std::string& status = "queued");

} // namespace queen::ctl::testing
