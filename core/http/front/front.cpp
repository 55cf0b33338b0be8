// http/front/front.cpp - the front as others see it: binds, owns the thread, stops it.
#include "http/front.hpp"

#include "http/front/listener.hpp"
#include "http/front/loop.hpp"

#include <pthread.h>
#include <signal.h>

#include <memory>
#include <thread>
#include <utility>

namespace queen::http {
namespace {

/// @thread start and stop: the owner's
class EpollFront final : public Front {
public:
    EpollFront(std::unique_ptr<Loop> loop, std::uint16_t port)
        : loop_(std::move(loop)), port_(port) {}
    ~EpollFront() override { stop(std::chrono::milliseconds(0)); }

    void start() override {
        if (thread_.joinable() || stopped_) {
            return;
        }
        // Signals are for the main thread: the new one inherits a mask that blocks them all.
        sigset_t all;
        sigset_t before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        thread_ = std::thread([this] { loop_->run(); });
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        pthread_setname_np(thread_.native_handle(), "queen-front");
    }

    std::uint16_t port() const noexcept override { return port_; }

    void stop(std::chrono::milliseconds grace) override {
        stopped_ = true;
        if (thread_.joinable()) {
            loop_->request_stop(grace);
            thread_.join();
        }
    }

    FrontStatistics statistics() const override {
        const Counters& counters = loop_->counters();
        const auto value = [](const std::atomic<std::uint64_t>& counter) {
            return counter.load(std::memory_order_relaxed);
        };
        const auto level = [&](Connection::State state) {
            return value(counters.by_state[static_cast<std::size_t>(state)]);
        };
        FrontStatistics out{.accepted = value(counters.accepted),
                            .open = value(counters.open),
                            .refused = value(counters.refused),
                            .requests = value(counters.requests),
                            .bad_requests = value(counters.bad_requests),
                            .timed_out = value(counters.timed_out),
                            .reading = level(Connection::State::reading),
                            .in_flight = level(Connection::State::in_flight),
                            .answering = level(Connection::State::answering),
                            .lingering = level(Connection::State::lingering),
                            .body_bytes = value(counters.body_bytes),
                            .responses = {},
                            .lag = counters.lag.snapshot()};
        for (std::size_t i = 0; i < counters.responses.size(); ++i) {
            if (const auto count = value(counters.responses[i]); count > 0) {
                out.responses.emplace_back(Counters::kLeastStatus + static_cast<int>(i), count);
            }
        }
        return out;
    }

private:
    std::unique_ptr<Loop> loop_;
    std::uint16_t port_;
    std::thread thread_;
    bool stopped_ = false;
};

} // namespace

Result<std::unique_ptr<Front>> Front::listen(const std::string& address, std::uint16_t port,
                                             Limits limits, Handler& handler, const Clock& clock) {
    const std::size_t descriptors = raise_descriptor_limit();
    auto listeners = open_listeners(address, port);
    if (!listeners) {
        return fail(std::move(listeners.error()));
    }
    const std::uint16_t real_port = listeners->port;
    auto loop = std::make_unique<Loop>(limits, std::move(*listeners), descriptors, handler, clock);
    if (auto ready = loop->prepare(); !ready) {
        return fail(std::move(ready.error()));
    }
    return std::make_unique<EpollFront>(std::move(loop), real_port);
}

} // namespace queen::http
