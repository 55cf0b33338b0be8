// mesh/outgoing.hpp - the connection that we dial to one peer; hints go out on it.
//
//   idle -> resolving -> connecting -> greeting -> ready -> idle (lost, with a longer wait each
//   time)
//                                         `-> ourselves: our own instance answered; asked again
//                                         rarely
//
// In greeting the hello is out. With a secret we wait for the peer's challenge: without it nothing
// goes out, unless require_challenge is off, when a peer that says nothing for a heartbeat's time
// is taken for one of the old protocol. Without a secret there is nothing to wait for.
#pragma once
#include "context.hpp"
#include "resolver.hpp"
#include "wire.hpp"

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace queen::mesh {

/// @thread the mesh's own
class Outgoing {
public:
    Outgoing(Context& context, Resolver& resolver, std::size_t index, std::uint64_t seed);

    SteadyTime due() const noexcept; ///< when tick() has something to do
    void tick(SteadyTime now);
    bool owns(Poller::Key key) const noexcept { return socket_ && key == key_; }
    void event(std::uint32_t events, SteadyTime now);
    /// @param ticket of an older dial: ignored
    void resolved(std::uint64_t ticket, Resolved found, SteadyTime now);
    /// Writes what waits. @return whether it stopped for others' sake, not for want of room
    bool pump(SteadyTime now);
    bool unsent() const noexcept { return state_ == State::ready && !writing_.empty(); }
    void lose(const std::string& why, SteadyTime now);
    /// The peer seems to be there: a wait before the next dial ends. At most once in the longest
    /// wait, so that whoever comes and goes makes us dial twice as often at most.
    void hurry(SteadyTime now);
    /// Whether this was one of the peer's addresses at the last dial. @param host a number
    bool is_at(std::string_view host) const;
    void close(); ///< without a word, for good

private:
    enum class State { idle, resolving, connecting, greeting, ready, ourselves };

    void dial(SteadyTime now);
    void connect_next(SteadyTime now);
    void greet(SteadyTime now);
    void read(SteadyTime now);
    bool challenged(std::string_view json, SteadyTime now); ///< @return false: connection is over
    void leave_alone(bool by_id, SteadyTime now);
    void become_ready(SteadyTime now);
    bool write(SteadyTime now); ///< @return whether all of writing_ is out
    void say(std::string frame);
    void wait_longer(SteadyTime now);

    Context& context_;
    Resolver& resolver_;
    const std::size_t index_;
    const Address address_;
    std::mt19937_64 random_;

    State state_ = State::idle;
    SteadyTime due_ = SteadyTime::min(); ///< of the state's deadline; in ready: the next heartbeat
    Nanoseconds retry_;
    SteadyTime hurry_again_ = SteadyTime::min();
    std::uint64_t ticket_ = 0;
    std::vector<Endpoint> endpoints_;
    std::size_t next_endpoint_ = 0;
    std::string last_error_;
    std::string told_error_; ///< that was logged, so that a peer that stays away costs one line
    bool was_ready_ = false;

    Descriptor socket_;
    Poller::Key key_ = 0;
    FrameReader reader_;
    SteadyTime window_; ///< since when frames_in_window_ are counted
    std::size_t frames_in_window_ = 0;
    std::string nonce_;
    bool answered_ = false;         ///< one challenge a connection
    std::vector<OutFrame> writing_; ///< taken from the outbox, or said by ourselves
    std::size_t written_ = 0;       ///< bytes of the first
    bool blocked_ = false;          ///< the kernel's buffer is full
    SteadyTime progress_;           ///< when something was written last, or nothing waited
    SteadyTime ready_since_;
};

} // namespace queen::mesh
