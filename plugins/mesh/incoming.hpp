// mesh/incoming.hpp - a connection that a peer dialled; its hints come in on it.
//
//   fresh (no hello yet) -> challenged (answer awaited) -> proven
//                       `-> proven (without a secret, or with require_challenge off)
//                       `-> ourselves (our own instance: told so, and left to hang up)
//
// The first frame after that tells the broker that hints may have been missed: what the peer said
// before there was this connection went nowhere.
//
// Until it is proven a connection gets 4 KiB of memory and the dead threshold's time, and what it
// sends beside its handshake is ignored. Afterwards it lives for as long as it is heard from.
#pragma once
#include "context.hpp"
#include "shared/hint_json.hpp"
#include "shared/hint_list.hpp"
#include "wire.hpp"

#include <cstddef>
#include <memory>
#include <string>

namespace queen::mesh {

/// @thread the mesh's own. Every call that returns false asks to be closed.
class Incoming {
public:
    Incoming(Context& context, Accepted accepted, SteadyTime now);

    Poller::Key key() const noexcept { return key_; }
    bool proven() const noexcept { return state_ == State::proven; }
    const std::string& server_id() const noexcept { return server_id_; } ///< once proven
    const std::string& from() const noexcept { return from_; }           ///< host:port
    const std::string& host() const noexcept { return host_; }           ///< without the port
    SteadyTime since() const noexcept { return since_; }
    std::size_t memory() const noexcept { return reader_.memory(); }
    /// Another connection is proven that has the same server id. When both go on to speak and are
    /// of different processes, that is told.
    void beware_of(const Incoming& other);
    SteadyTime due() const noexcept;
    bool tick(SteadyTime now);
    bool event(SteadyTime now);

private:
    enum class State { fresh, challenged, proven, ourselves };

    bool cut(SteadyTime now);
    bool handle(const FrameReader::Frame& frame, SteadyTime now);
    bool hello(std::string_view json, SteadyTime now);
    bool answered(std::string_view json, SteadyTime now);
    bool send_challenge();
    void become_proven(SteadyTime now);
    void tell_of_namesakes(const std::string& instance, const std::string& line, SteadyTime now);
    bool hints(const FrameReader::Frame& frame);
    void add(plugin::HintKind kind, const hint_json::Item& item);
    void add_switch(std::string_view subject);
    bool reject(Counter& cause, const std::string& why, SteadyTime now);
    /// @return false when the peer has to wait
    bool pay(std::size_t hints, std::size_t bytes, SteadyTime now);

    Context& context_;
    Descriptor socket_;
    const std::string from_, host_;
    const SteadyTime since_;
    Poller::Key key_ = 0;
    State state_ = State::fresh;
    bool told_missed_ = false;
    FrameReader reader_;
    std::string server_id_, instance_, hello_nonce_, challenge_nonce_;
    std::string rival_, rival_instance_; ///< address of who has the same server id
    SteadyTime heard_;

    std::shared_ptr<Budget> budget_; ///< once proven
    bool paused_ = false;
    SteadyTime resume_;

    // Reused from frame to frame.
    hint_json::Reading reading_;
    hint_json::HintList hints_;
};

} // namespace queen::mesh
