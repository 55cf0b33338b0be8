#include "timer_client.hpp"

#include "base/base64.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

#include <stdexcept>

namespace queen::bench {

void TimerClient::add(const TimerToSet& timer) {
    static const std::string payload = to_base64(R"({"order":1234567,"state":"unpaid"})");
    body_ += body_.empty() ? "[" : ",";
    json::Writer out(body_);
    out.begin_object().key("op").string("schedule").key("queue").string(timer.queue);
    out.key("timerKey").string(timer.key).key("partition").string(timer.partition);
    out.key("delayMs").integer(timer.delay.count()).key("txn").string(timer.key);
    out.key("payload").string(payload).end_object();
    ++waiting_;
}

std::vector<WallTime> TimerClient::send() {
    body_ += "]";
    const auto answer = http_.post("/api/v1/timers", body_);
    const auto document = json::Document::parse(answer.body);
    if (answer.status != 200 || !document) {
        throw std::runtime_error("setting timers: " + answer.body);
    }
    std::vector<WallTime> due;
    const auto results = document->root()["results"];
    for (std::size_t i = 0; i < results.size(); ++i) {
        const auto at = parse_time(results.at(i)["deliverAt"].string());
        if (!at) {
            throw std::runtime_error("setting timers: " + answer.body);
        }
        due.push_back(*at);
    }
    if (static_cast<std::int64_t>(due.size()) != waiting_) {
        throw std::runtime_error("setting timers: " + answer.body);
    }
    body_.clear();
    waiting_ = 0;
    return due;
}

} // namespace queen::bench
