#pragma once
// Several networks of the mesh in one thread, and peers of whom a test writes every byte. Nothing
// waits for a time to pass: the clock is moved, and turns are made until something is so.
#include "mesh/network.hpp"
#include "mesh/proof.hpp"

#include <queen/plugin/testing.hpp>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace queen::mesh {

using namespace std::chrono_literals;
using plugin::Hint;
using plugin::HintKind;
using plugin::ManualClock;
using plugin::OwnedHint;
using plugin::RecordingMeshHost;

inline constexpr std::string_view kTenant = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";
inline constexpr std::string_view kSecret = "a secret that is long enough";

inline Hint stored(std::string_view queue, std::string_view partition) {
    Hint hint;
    hint.tenant = kTenant;
    hint.queue = queue;
    hint.partition = partition;
    return hint;
}

inline Hint moved(std::string_view queue, std::string_view partition, std::string_view group) {
    Hint hint = stored(queue, partition);
    hint.kind = HintKind::moved;
    hint.group = group;
    return hint;
}

inline Hint configured(std::string_view queue) {
    Hint hint = stored(queue, "");
    hint.kind = HintKind::configured;
    return hint;
}

inline Hint deleted(std::string_view queue) {
    Hint hint = stored(queue, "");
    hint.kind = HintKind::deleted;
    return hint;
}

inline Hint switched(std::string_view subject, bool enabled) {
    Hint hint;
    hint.kind = HintKind::switched;
    hint.subject = subject;
    hint.enabled = enabled;
    return hint;
}

inline Endpoint loopback(std::uint16_t port) {
    return resolve({"127.0.0.1", port}, true).endpoints.front();
}

/// Names to ports of this machine. A name without one has no answer yet; port 0 is no such name.
/// @thread any
class Names {
public:
    void set(const std::string& name, std::uint16_t port) {
        const std::lock_guard lock(mutex_);
        ports_[name] = port;
    }
    std::optional<std::uint16_t> find(const std::string& name) const {
        const std::lock_guard lock(mutex_);
        const auto found = ports_.find(name);
        return found == ports_.end() ? std::nullopt : std::optional(found->second);
    }

private:
    mutable std::mutex mutex_;
    std::map<std::string, std::uint16_t> ports_;
};

class TableResolver final : public Resolver {
public:
    explicit TableResolver(const Names& names) : names_(names) {}
    void start(Done done) override { done_ = std::move(done); }
    void ask(std::uint64_t ticket, const Address& address) override {
        ++asked;
        const auto port = names_.find(address.host);
        if (!port) {
            return;
        }
        Resolved found;
        if (*port == 0) {
            found.error = "no such name";
        } else {
            found.endpoints.push_back(loopback(*port));
        }
        done_(ticket, std::move(found));
    }
    void stop() override {}

    int asked = 0;

private:
    const Names& names_;
    Done done_;
};

/// One broker's mesh.
struct Node {
    Node(Options set, const Clock& clock, Names& names)
        : options(std::move(set)), resolver(names),
          log([this](plugin::LogLevel, std::string_view line) { lines.emplace_back(line); }),
          network(options, clock, host, log, resolver, 1) {
        network.open();
        names.set(options.server_id, network.port());
    }
    bool listened() { return network.outbox().listened(); }
    bool logged(std::string_view part) const {
        for (const std::string& line : lines) {
            if (line.find(part) != line.npos) {
                return true;
            }
        }
        return false;
    }

    const Options options;
    TableResolver resolver;
    RecordingMeshHost host;
    std::vector<std::string> lines;
    const Log log;
    Network network;
};

/// A peer of whom the test writes every byte.
class RawPeer {
public:
    RawPeer() = default;
    explicit RawPeer(std::uint16_t port) {
        std::string error;
        socket_ = connect_to(loopback(port), 1h, error);
        EXPECT_TRUE(static_cast<bool>(socket_)) << error;
    }
    /// From another address of this machine.
    RawPeer(std::uint16_t port, const std::string& from)
        : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
        const Endpoint own = resolve({from, 0}, true).endpoints.front();
        const Endpoint other = loopback(port);
        EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&own.address), own.size),
                  0);
        EXPECT_TRUE(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&other.address),
                              other.size) == 0 ||
                    errno == EINPROGRESS);
    }
    explicit RawPeer(Descriptor socket) : socket_(std::move(socket)) {}

    /// @return bytes that the kernel took; -1 when the connection is gone
    ssize_t send(std::string_view bytes) const {
        const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        return sent < 0 && (errno == EAGAIN || errno == ENOTCONN) ? 0 : sent;
    }
    /// What has come until now, all of it since the beginning.
    const std::string& received() {
        std::array<char, 4096> buffer;
        while (!closed_) {
            const ssize_t got = recv(socket_.get(), buffer.data(), buffer.size(), 0);
            if (got <= 0) {
                closed_ = got == 0 || (errno != EAGAIN && errno != ENOTCONN);
                break;
            }
            received_.append(buffer.data(), static_cast<std::size_t>(got));
        }
        return received_;
    }
    bool closed() {
        received();
        return closed_;
    }
    /// Whole frames that came.
    std::vector<std::string> frames() {
        std::vector<std::string> out;
        std::string_view rest = received();
        while (rest.size() >= 4) {
            std::size_t length = 0;
            for (int i = 0; i < 4; ++i) {
                length = length << 8 | static_cast<unsigned char>(rest[static_cast<size_t>(i)]);
            }
            if (rest.size() < 4 + length) {
                break;
            }
            out.emplace_back(rest.substr(4, length));
            rest.remove_prefix(4 + length);
        }
        return out;
    }
    void shut() { socket_.reset(); }

private:
    Descriptor socket_;
    std::string received_;
    bool closed_ = false;
};

/// Where a test accepts what a network dials.
class RawListener {
public:
    RawListener() { listener_ = listen_at(loopback(0), port_, error_); }
    std::uint16_t port() const { return port_; }
    /// @return nothing until somebody has dialled
    std::unique_ptr<RawPeer> accept() const {
        Accepted accepted = accept_from(listener_);
        return accepted.socket ? std::make_unique<RawPeer>(std::move(accepted.socket)) : nullptr;
    }

private:
    std::uint16_t port_ = 0;
    std::string error_;
    Descriptor listener_;
};

inline std::string text_field(std::string_view json, const std::string& key) {
    const std::size_t at = json.find("\"" + key + "\":\"");
    if (at == json.npos) {
        return {};
    }
    const std::size_t from = at + key.size() + 4;
    return std::string(json.substr(from, json.find('"', from) - from));
}

class MeshBed : public testing::Test {
protected:
    static Options options(const std::string& id, const std::vector<std::string>& peers,
                           std::string_view secret = kSecret) {
        Options made;
        made.server_id = id;
        made.instance = make_nonce();
        made.listen = {"127.0.0.1", 0};
        for (const std::string& peer : peers) {
            made.peers.push_back({peer, kDefaultPort});
        }
        made.secret = secret;
        return made;
    }
    Node& add(Options set) {
        nodes_.push_back(std::make_unique<Node>(std::move(set), clock_, names_));
        return *nodes_.back();
    }
    Node& add(const std::string& id, const std::vector<std::string>& peers,
              std::string_view secret = kSecret) {
        return add(options(id, peers, secret));
    }
    void remove(Node& node) {
        std::erase_if(nodes_, [&](const auto& held) { return held.get() == &node; });
    }
    /// Turns of all networks until it is so. @return false when it does not come to be
    bool until(const std::function<bool()>& so) {
        constexpr int kTurns = 5'000; // of up to a millisecond, for what never comes
        for (int i = 0; i < kTurns; ++i) {
            if (so()) {
                return true;
            }
            turn();
        }
        return false;
    }
    void turn() {
        for (const auto& node : nodes_) {
            node->network.turn(1ms);
        }
    }
    /// Long enough for what is on its way to come, and no proof that nothing does.
    void settle() {
        for (int i = 0; i < 30; ++i) {
            turn();
        }
    }
    void advance(Nanoseconds by) { clock_.advance(by); }
    /// Time passes in steps, so that heartbeats are not missed.
    void pass(Nanoseconds time) {
        for (Nanoseconds done{0}; done < time; done += 500ms) {
            advance(500ms);
            for (int i = 0; i < 3; ++i) {
                turn();
            }
        }
    }

    ManualClock clock_;
    Names names_;
    std::vector<std::unique_ptr<Node>> nodes_;
};

} // namespace queen::mesh
