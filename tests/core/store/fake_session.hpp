#pragma once
#include "store/session.hpp"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace queen::store::test {

/// Something that is opened once and for all waiters.
class Gate {
public:
    void open() {
        const std::lock_guard lock(mutex_);
        open_ = true;
        opened_.notify_all();
    }
    void wait() {
        std::unique_lock lock(mutex_);
        opened_.wait(lock, [this] { return open_; });
    }

private:
    std::mutex mutex_;
    std::condition_variable opened_;
    bool open_ = false;
};

/// What all fake sessions of a test talk to.
struct FakeDatabase {
    std::atomic<bool> up{true};
    std::atomic<int> connects{0};   ///< attempts
    std::atomic<int> generation{0}; ///< raised by a restart: older links are dead
};

/// A session without a server. Links opened before the last restart are found dead by check().
class FakeSession final : public Session {
public:
    explicit FakeSession(FakeDatabase& database) : database_(database) {}

    Result<void> connect() override {
        ++database_.connects;
        if (!database_.up) {
            return fail(Errc::unavailable, "no answer from the fake");
        }
        generation_ = database_.generation;
        open_ = true;
        return {};
    }
    bool open() const noexcept override { return open_; }
    bool check() override {
        open_ = open_ && database_.up && generation_ == database_.generation;
        return open_;
    }
    Result<Rows> run(const Statement&, const Parameters&) override { return Rows{}; }
    void quarantine() noexcept override { open_ = false; }
    void interrupt() noexcept override { interrupted_.open(); }

    /// Blocks until interrupt().
    void await_interrupt() { interrupted_.wait(); }

private:
    FakeDatabase& database_;
    int generation_ = -1;
    bool open_ = false;
    Gate interrupted_;
};

inline std::function<std::unique_ptr<Session>()> fake_sessions(FakeDatabase& database) {
    return [&database] { return std::make_unique<FakeSession>(database); };
}

/// Words in the order in which they were said.
class Journal {
public:
    void say(std::string word) {
        const std::lock_guard lock(mutex_);
        words_.push_back(std::move(word));
    }
    std::vector<std::string> words() const {
        const std::lock_guard lock(mutex_);
        return words_;
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::string> words_;
};

} // namespace queen::store::test
