#include "support/broker_process.hpp"

#include "app/data_directory.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <system_error>

namespace queen::test {

using namespace std::chrono_literals;

namespace {

constexpr std::string_view kReady = "queend ready on http://";

std::string write_config(const std::string& text) {
    const char* folder = std::getenv("TMPDIR");
    std::string path = std::string(folder != nullptr ? folder : "/tmp") + "/queend-XXXXXX.yaml";
    const int file = mkostemps(path.data(), 5, O_CLOEXEC);
    const bool written =
        file >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    if (file >= 0) {
        close(file);
    }
    if (!written) {
        throw std::system_error(errno, std::generic_category(), "cannot write " + path);
    }
    return path;
}

std::vector<std::string> environment(const BrokerOptions& options) {
    std::vector<std::string> result;
    for (const char* name :
         {"TMPDIR", "HOME", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS"}) {
        if (const char* value = std::getenv(name); value != nullptr) {
            result.push_back(std::string(name) + "=" + value);
        }
    }
    result.insert(result.end(), options.environment.begin(), options.environment.end());
    return result;
}

int exit_status(int status) {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

} // namespace

BrokerProcess::BrokerProcess(BrokerOptions options, Unready) : options_(std::move(options)) {
    if (!options_.data_directory.empty()) { // the broker works in /
        options_.data_directory = std::filesystem::weakly_canonical(options_.data_directory);
    }
    app::Command command;
    command.arguments.push_back(options_.program.empty() ? QUEEN_BIN_DIR "/queend"
                                                         : options_.program);
    if (!options_.config.empty()) {
        config_file_ = write_config(options_.config);
        command.arguments.insert(command.arguments.end(), {"--config", config_file_});
    }
    command.arguments.insert(command.arguments.end(), {"--port", std::to_string(options_.port)});
    if (!options_.data_directory.empty()) {
        command.arguments.insert(command.arguments.end(), {"--data", options_.data_directory});
    }
    command.arguments.insert(command.arguments.end(), options_.arguments.begin(),
                             options_.arguments.end());
    command.environment = environment(options_);
    command.death_signal = SIGTERM; // so that it can take its PostgreSQL along

    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
        throw std::system_error(errno, std::generic_category(), "pipe");
    }
    pipe_ = app::UniqueFd(ends[0]);
    app::UniqueFd write_end(ends[1]);
    command.output = write_end.get();
    const auto pid = app::spawn(command);
    write_end = app::UniqueFd();
    if (!pid) {
        throw std::runtime_error(pid.error().message);
    }
    auto process = app::Process::open(*pid, true);
    if (!process) {
        throw std::runtime_error(process.error().message);
    }
    process_.emplace(std::move(*process));
    reader_ = std::thread([this] { read_output(); });
}

BrokerProcess::BrokerProcess(BrokerOptions options) : BrokerProcess(std::move(options), Unready{}) {
    // From here the destructor runs even when this body throws: the other constructor is done.
    if (!await(options_.start_time, std::string(kReady))) {
        throw std::runtime_error("the broker did not become ready; it printed:\n" + output());
    }
    const std::string text = output();
    const std::size_t line = text.find(kReady);
    const std::size_t colon = text.find(':', line + kReady.size());
    std::from_chars(text.data() + colon + 1, text.data() + text.size(), port_);
    if (port_ == 0) {
        throw std::runtime_error("the ready line names no port:\n" + text);
    }
}

BrokerProcess::~BrokerProcess() {
    end();
    if (reader_.joinable()) {
        reader_.join();
    }
    if (!config_file_.empty()) {
        unlink(config_file_.c_str());
    }
}

/// Ends the broker, and the database it left when it was killed.
void BrokerProcess::end() noexcept {
    if (!process_->wait(0ms)) {
        process_->signal(SIGTERM);
        if (!process_->wait(60s)) {
            process_->signal(SIGKILL);
            process_->wait(10s);
        }
    }
    const std::string cluster = options_.data_directory + "/postgres";
    const auto file = app::read_postmaster_file(cluster);
    const auto account = app::database_account();
    if (file && account &&
        app::cluster_liveness(cluster, file->pid, *account) == app::Liveness::postmaster) {
        if (auto orphan = app::Process::open(file->pid, false)) {
            orphan->signal(SIGQUIT);
            orphan->wait(10s);
        }
    }
}

BrokerExit BrokerProcess::run_to_end(BrokerOptions options) {
    BrokerProcess broker(std::move(options), Unready{});
    const auto status = broker.wait(broker.options_.start_time);
    if (!status) {
        throw std::runtime_error("the broker runs on; it printed:\n" + broker.output());
    }
    broker.reader_.join();
    return {*status, broker.output()};
}

std::optional<int> BrokerProcess::wait(std::chrono::milliseconds time) {
    if (!process_->wait(time)) {
        return std::nullopt;
    }
    return exit_status(process_->status().value_or(0));
}

int BrokerProcess::stop() {
    signal(SIGTERM);
    const auto status = wait(60s);
    if (!status) {
        throw std::runtime_error("the broker does not stop; it printed:\n" + output());
    }
    return *status;
}

void BrokerProcess::kill9() {
    signal(SIGKILL);
    process_->wait(60s);
}

std::string BrokerProcess::output() const {
    const std::lock_guard lock(mutex_);
    return output_;
}

bool BrokerProcess::printed(std::string_view text, std::chrono::milliseconds time) {
    return await(time, std::string(text));
}

/// Waits for `text` and the end of its line.
bool BrokerProcess::await(std::chrono::milliseconds time, const std::string& text) {
    const auto found = [&] {
        const std::size_t at = output_.find(text);
        return at != std::string::npos && output_.find('\n', at) != std::string::npos;
    };
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, time, [&] { return finished_ || found(); });
    return found();
}

void BrokerProcess::read_output() {
    std::array<char, 4096> buffer{};
    while (true) {
        const ssize_t got = read(pipe_.get(), buffer.data(), buffer.size());
        const std::lock_guard lock(mutex_);
        if (got > 0) {
            output_.append(buffer.data(), static_cast<std::size_t>(got));
        } else if (got == 0 || errno != EINTR) {
            finished_ = true;
        }
        changed_.notify_all();
        if (finished_) {
            return;
        }
    }
}

} // namespace queen::test
