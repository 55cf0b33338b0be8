#include "meshpg.hpp"

#include <array>
#include <chrono>
#include <exception>
#include <random>
#include <string>
#include <utility>

namespace queen::meshpg {
namespace {

constexpr std::chrono::milliseconds kLastWords{100}; // for what was said just before the stop

Options checked(Options options) {
    check(options);
    return options;
}

/// 128 random bits as hex: told apart, not proved.
std::string make_instance() {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::random_device device;
    std::string out;
    for (int i = 0; i < 32; ++i) {
        out += kDigits[device() % kDigits.size()];
    }
    return out;
}

} // namespace

MeshPg::MeshPg(Options options, const Clock& clock, plugin::MeshHost& host, Log log,
               Session::Connect connect)
    : options_(checked(std::move(options))), log_(std::move(log)),
      channel_(options_, clock, host, log_, make_instance(), std::move(connect)) {}

MeshPg::~MeshPg() {
    stop();
}

void MeshPg::start() {
    if (!options_.enabled) {
        log_(plugin::LogLevel::info, "it is off");
        return;
    }
    log_(plugin::LogLevel::info, "whoever may connect to this database can read the channel " +
                                     options_.channel + ", and send hints on it");
    thread_ = std::thread([this] { run(); });
}

void MeshPg::stop() {
    if (thread_.joinable()) {
        stopping_.store(true);
        channel_.wake();
        thread_.join();
        channel_.close();
    }
}

void MeshPg::run() noexcept {
    while (!stopping_.load()) {
        try {
            channel_.turn(std::chrono::hours(1));
        } catch (const std::exception& e) {
            channel_.fault(e.what());
        }
    }
    try {
        channel_.drain(kLastWords);
    } catch (const std::exception& e) {
        channel_.fault(e.what());
    }
}

} // namespace queen::meshpg
