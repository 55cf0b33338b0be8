#include "mesh.hpp"

#include "proof.hpp"

#include <chrono>
#include <exception>
#include <random>
#include <string>
#include <utility>

namespace queen::mesh {
namespace {

constexpr std::chrono::seconds kAfterAFault{1};
constexpr std::chrono::milliseconds kLastWords{100}; // for what was said just before the stop
constexpr std::size_t kShortSecret = 16; // bytes; shorter ones are guessed from one recorded hello

std::uint64_t random_seed() {
    std::random_device device;
    return std::uint64_t{device()} << 32 | device();
}

Options checked(Options options) {
    check(options);
    if (options.instance.empty()) {
        options.instance = make_nonce();
    }
    return options;
}

} // namespace

Mesh::Mesh(Options options, const Clock& clock, plugin::MeshHost& host, Log log,
           std::unique_ptr<Resolver> resolver)
    : options_(checked(std::move(options))), clock_(clock), log_(std::move(log)),
      resolver_(std::move(resolver)) {
    if (options_.enabled && !options_.peers.empty()) {
        network_ =
            std::make_unique<Network>(options_, clock_, host, log_, *resolver_, random_seed());
    }
}

Mesh::~Mesh() {
    stop();
}

void Mesh::warn() const {
    const std::string where = options_.listen.text();
    if (options_.secret.empty() && !is_loopback(options_.listen.host)) {
        log_(plugin::LogLevel::warning,
             "no secret is set and the port " + where +
                 " can be reached from other machines: whoever does can send "
                 "hints (set secret, or QUEEN_SYNC_SECRET)");
    }
    if (!options_.secret.empty() && options_.secret.size() < kShortSecret) {
        log_(plugin::LogLevel::warning,
             "the secret is shorter than " + std::to_string(kShortSecret) +
                 " bytes, so that it can be guessed from what goes over the "
                 "line");
    }
    if (!options_.secret.empty() && !options_.require_challenge) {
        log_(plugin::LogLevel::warning, "require_challenge is off: who recorded a hello can repeat "
                                        "it");
    }
}

void Mesh::start() {
    if (network_ == nullptr) {
        log_(plugin::LogLevel::info, options_.enabled ? "no peers, so it is off" : "it is off");
        return;
    }
    warn();
    network_->open();
    thread_ = std::thread([this] { run(); });
}

void Mesh::stop() {
    if (thread_.joinable()) {
        {
            const std::lock_guard lock(stop_mutex_);
            stopping_.store(true);
        }
        stop_.notify_all();
        network_->wake();
        thread_.join();
        network_->close();
    }
}

void Mesh::run() noexcept {
    while (!stopping_.load()) {
        try {
            network_->turn(std::chrono::hours(1));
        } catch (const std::exception& e) {
            network_->figures().faults.add();
            log_(plugin::LogLevel::warning,
                 std::string("all connections are ended and begun anew: ") + e.what());
            network_->close_all();
            // Whatever it was may last: then the broker's log and a core are to stay usable.
            std::unique_lock lock(stop_mutex_);
            stop_.wait_for(lock, kAfterAFault, [&] { return stopping_.load(); });
        }
    }
    try {
        network_->drain(kLastWords);
    } catch (const std::exception& e) {
        log_(plugin::LogLevel::warning, std::string("the last hints are not sent: ") + e.what());
    }
}

void Mesh::publish(std::span<const plugin::Hint> hints) {
    if (listened()) {
        network_->outbox().publish(hints);
    }
}

std::uint16_t Mesh::port() const noexcept {
    return network_ == nullptr ? 0 : network_->port();
}

void Mesh::stats(plugin::Stats& out) {
    if (network_ == nullptr) {
        out.add("listening", 0);
        out.add("peers", 0);
        return;
    }
    const auto add = [&](const char* name, std::uint64_t value) {
        out.add(name, static_cast<double>(value));
    };
    const Figures& figures = network_->figures();
    const Roster::Counts servers = network_->roster().counts(clock_.now());
    add("listening", figures.listening.load());
    add("peers", options_.peers.size());
    add("peers_connected", servers.connected);
    add("servers_alive", servers.alive);
    add("servers_dead", servers.dead);
    add("connections", figures.accepted.load());
    add("send_queue_frames", network_->outbox().queued());
    add("dirty", network_->outbox().dirty_size());
    add("frames_sent_total", figures.frames_sent.value());
    add("frames_received_total", figures.frames_received.value());
    add("bytes_sent_total", figures.bytes_sent.value());
    add("bytes_received_total", figures.bytes_received.value());
    add("hints_sent_total", figures.hints_sent.value());
    add("hints_received_total", figures.hints_received.value());
    add("frames_dropped_full_total", figures.dropped_full.value());
    add("frames_dropped_stale_total", figures.dropped_stale.value());
    add("frames_bad_total", figures.frames_bad.value());
    add("frames_early_total", figures.frames_early.value());
    add("frames_unknown_total", figures.frames_unknown.value());
    add("dirty_dropped_total", figures.dropped_dirty.value());
    add("items_skipped_total", figures.items_skipped.value());
    add("handshake_failures_total", figures.handshake_failures());
    add("handshakes_without_hello_total", figures.failed_hello.value());
    add("handshakes_wrong_mac_total", figures.failed_mac.value());
    add("handshakes_too_late_total", figures.failed_late.value());
    add("connections_refused_total", figures.refused.value());
    add("connections_silent_total", figures.silent.value());
    add("connections_stalled_total", figures.stalled.value());
    add("connections_crowded_total", figures.crowded.value());
    add("throttled_total", figures.throttled.value());
    add("dials_total", figures.dials.value());
    add("dials_failed_total", figures.dials_failed.value());
    add("reconnects_total", figures.reconnects.value());
    add("listen_failures_total", figures.listen_failed.value());
    add("faults_total", figures.faults.value());
}

void Mesh::peers(plugin::Peers& out) {
    if (network_ != nullptr) {
        network_->roster().report(out, clock_.now());
    }
}

} // namespace queen::mesh
