#pragma once
#include "app/child_process.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace queen::test {

struct BrokerOptions {
    std::string config;                     ///< YAML text; "" starts without a file
    std::string data_directory;             ///< given as --data unless ""
    std::vector<std::string> arguments{};   ///< after ours
    std::vector<std::string> environment{}; ///< NAME=value, beside PATH, TMPDIR and the sanitizers'
    std::string program{};                  ///< "" is the built queend
    int port = 0;                           ///< 0: any free one
    std::chrono::seconds start_time{60};
};

/// A broker that ran to its end by itself.
struct BrokerExit {
    int status = 0;     ///< exit status; 128 + n when signal n ended it
    std::string output; ///< stdout and stderr as they came
};

/// The built `queend` as a child process. It gets SIGTERM when the test's thread dies, and is ended
/// with the object, together with an embedded PostgreSQL it may have left behind.
/// Invariant: output_ holds what it has printed so far.
/// Locks: mutex_ is a leaf.
class BrokerProcess {
public:
    /// Returns once the ready line is out. Throws std::runtime_error, with the output, when the
    /// broker ends before that or takes too long.
    explicit BrokerProcess(BrokerOptions options);
    ~BrokerProcess();
    BrokerProcess(const BrokerProcess&) = delete;
    BrokerProcess& operator=(const BrokerProcess&) = delete;

    /// For a start that must fail: waits until it has ended. Throws when it is still there at the
    /// end of start_time.
    static BrokerExit run_to_end(BrokerOptions options);

    std::uint16_t port() const noexcept { return port_; }
    pid_t pid() const noexcept { return process_->pid(); }
    void signal(int number) const noexcept { process_->signal(number); }
    /// @return exit status as in BrokerExit; nullopt when it still runs after `time`
    std::optional<int> wait(std::chrono::milliseconds time);
    int stop();   ///< SIGTERM and wait() a minute; throws when that does not end it
    void kill9(); ///< and waits until it is gone
    std::string output() const;
    /// Waits until the output holds `text`. @return false when it does not within `time`
    bool printed(std::string_view text, std::chrono::milliseconds time);

private:
    struct Unready {};
    BrokerProcess(BrokerOptions options, Unready);
    void read_output();
    bool await(std::chrono::milliseconds time, const std::string& text);
    void end() noexcept;

    BrokerOptions options_;
    std::string config_file_;
    std::optional<app::Process> process_;
    std::uint16_t port_ = 0;

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::string output_;
    bool finished_ = false; ///< the pipe is closed: nothing more comes
    app::UniqueFd pipe_;
    std::thread reader_;
};

} // namespace queen::test
