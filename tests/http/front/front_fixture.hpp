// A front with a handler whose answers the test decides, and signals for what it saw.
#pragma once
#include "http/front.hpp"
#include "http/front/raw_client.hpp"
#include "support/manual_clock.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace queen::test {

/// Things that happened, in order; waiting for one needs no sleep.
template <class T>
class Events {
public:
    void put(T event) {
        {
            const std::lock_guard lock(mutex_);
            events_.push_back(std::move(event));
        }
        changed_.notify_all();
    }
    /// The next one; throws after half a minute, so that a test fails instead of hanging.
    T get() {
        std::unique_lock lock(mutex_);
        if (!changed_.wait_for(lock, std::chrono::seconds(30), [&] { return !events_.empty(); })) {
            throw std::runtime_error("nothing happened");
        }
        T event = std::move(events_.front());
        events_.pop_front();
        return event;
    }
    std::size_t size() {
        const std::lock_guard lock(mutex_);
        return events_.size();
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<T> events_;
};

struct Held {
    http::Request request;
    std::shared_ptr<http::Exchange> exchange;
};

/// By path: /echo answers with what it got, /empty 204, /big?N with N bytes, /hold and /park keep
/// the exchange (/park watches it), /drop drops it, /throw throws, /close answers and closes.
class TestHandler final : public http::Handler {
public:
    void handle(http::Request request, std::shared_ptr<http::Exchange> exchange) override {
        const std::string path = request.path;
        ++count;
        if (path == "/hold") {
            held.put({std::move(request), std::move(exchange)});
        } else if (path == "/park") {
            exchange->watch([this, query = request.query] { gone.put(query); });
            held.put({std::move(request), std::move(exchange)});
        } else if (path == "/empty") {
            exchange->reply({.status = 204, .body = "never sent"});
        } else if (path == "/big") {
            exchange->reply({.body = std::string(std::stoul(request.query), 'x')},
                            [this] { undelivered.put("/big"); });
        } else if (path == "/throw") {
            throw std::runtime_error("a route's mistake");
        } else if (path == "/close") {
            exchange->reply({.body = "{}", .close = true});
        } else if (path != "/drop") {
            exchange->reply(
                {.body = request.method + " " + path + "?" + request.query + "\n" + request.body,
                 .content_type = "text/plain"});
        }
    }

    std::atomic<std::size_t> count{0};
    Events<Held> held;
    Events<std::string> gone;
    Events<std::string> undelivered;
};

class FrontTest : public ::testing::Test {
protected:
    void SetUp() override { start({}); }
    /// Call again to replace the front by one with other limits.
    void start(http::Limits limits) {
        front_.reset();
        auto front = http::Front::listen("127.0.0.1", 0, limits, handler_, clock_);
        ASSERT_TRUE(front.has_value()) << front.error().message;
        front_ = std::move(*front);
        front_->start();
    }
    void TearDown() override { front_.reset(); }

    std::uint16_t port() const { return front_->port(); }
    RawClient connect(int receive_buffer = 0) { return RawClient(port(), receive_buffer); }
    /// Returns after the front's thread took a whole turn that began after this call: its answer to
    /// a fresh client proves one, the second question begins after the turn's time limits.
    void one_turn() {
        RawClient client = connect();
        client.ask(get("/echo"));
        client.ask(get("/echo"));
    }
    static std::string get(const std::string& target, const std::string& fields = "") {
        return "GET " + target + " HTTP/1.1\r\nHost: broker\r\n" + fields + "\r\n";
    }
    static std::string post(const std::string& target, const std::string& body,
                            const std::string& fields = "") {
        return "POST " + target +
               " HTTP/1.1\r\nHost: broker\r\nContent-Length: " + std::to_string(body.size()) +
               "\r\n" + fields + "\r\n" + body;
    }

    ManualClock clock_;
    TestHandler handler_;
    std::unique_ptr<http::Front> front_;
};

} // namespace queen::test
