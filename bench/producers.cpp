#include "producers.hpp"

#include "support/api.hpp"

#include <stdexcept>

namespace queen::bench {

Producers::Producers(std::uint16_t port, const std::string& queue, std::int64_t connections) {
    for (std::int64_t i = 0; i < connections; ++i) {
        threads_.emplace_back([this, port, queue, i] {
            try {
                produce(port, queue, i);
            } catch (const std::exception& e) {
                const std::lock_guard lock(mutex_);
                failure_ = e.what();
            }
        });
    }
}

Producers::~Producers() {
    stop_ = true;
    for (auto& thread : threads_) {
        thread.join();
    }
}

std::int64_t Producers::pushed() const {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) {
        throw std::runtime_error("push: " + failure_);
    }
    return pushed_;
}

void Producers::produce(std::uint16_t port, const std::string& queue, std::int64_t number) {
    constexpr std::int64_t kPartitions = 8;
    test::Api api(port);
    for (std::int64_t sent = 0; !stop_; ++sent) {
        const auto partition =
            "p" + std::to_string(number) + "-" + std::to_string(sent % kPartitions);
        const auto answer = api.http.post(
            "/api/v1/push", R"({"items":[{"queue":")" + queue + R"(","partition":")" + partition +
                                R"(","payload":{"order":1234567,"state":"paid"}}]})");
        if (answer.status != 201) {
            throw std::runtime_error(answer.body);
        }
        ++pushed_;
    }
}

} // namespace queen::bench
