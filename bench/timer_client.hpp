#pragma once
#include "base/clock.hpp"
#include "support/http_client.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace queen::bench {

struct TimerToSet {
    std::string queue;
    std::string key; ///< also the transaction id of the message
    std::string partition = "Default";
    std::chrono::milliseconds delay{};
};

/// Sets timers over HTTP, several in a call, each with the same small message.
class TimerClient {
public:
    explicit TimerClient(std::uint16_t port) : http_(port) {}
    void add(const TimerToSet& timer);
    std::int64_t waiting() const noexcept { return waiting_; } ///< added since the last send()
    /// @return when each is due, by the database's clock @throws std::runtime_error unless all are
    /// set
    std::vector<WallTime> send();

private:
    test::HttpClient http_;
    std::string body_;
    std::int64_t waiting_ = 0;
};

} // namespace queen::bench
