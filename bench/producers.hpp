#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace queen::bench {

/// Connections that push one message after the other, each as soon as the last one is answered,
/// until the object ends. Each has partitions of its own, 8 of them in turn.
/// Locks: mutex_ is a leaf.
class Producers {
public:
    Producers(std::uint16_t port, const std::string& queue, std::int64_t connections);
    ~Producers();
    Producers(const Producers&) = delete;
    Producers& operator=(const Producers&) = delete;

    /// Pushes answered so far. @throws std::runtime_error when one failed
    std::int64_t pushed() const;

private:
    void produce(std::uint16_t port, const std::string& queue, std::int64_t number);

    std::atomic<bool> stop_{false};
    std::atomic<std::int64_t> pushed_{0};
    mutable std::mutex mutex_;
    std::string failure_;
    std::vector<std::thread> threads_;
};

} // namespace queen::bench
