// http/front/loop.hpp - the one thread of the front: sockets, requests, answers, time limits.
//
// One turn: wait for epoll; serve what is ready; take the mail of other threads; end what is
// overdue. Nothing in a turn blocks, and no turn serves one connection without bound: reads,
// accepts and requests per connection are limited, the rest is still ready in the next turn.
//
// Interest is level triggered and changed as rarely as possible: while a request is in flight the
// socket stays armed for reading until bytes really come, so a client in step (the usual one) costs
// no epoll_ctl at all.
#pragma once
#include "http/front.hpp"
#include "http/front/connection.hpp"
#include "http/front/deadlines.hpp"
#include "http/front/listener.hpp"
#include "http/front/mailbox.hpp"
#include "http/front/reader.hpp"

#include <queen/plugin/types.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace queen::http {

/// Written by the front's thread, read by any.
struct Counters {
    static constexpr int kLeastStatus = 200;
    std::atomic<std::uint64_t> accepted{0}, open{0}, refused{0}, requests{0}, bad_requests{0},
        timed_out{0};
    std::array<std::atomic<std::uint64_t>, 5> by_state{}; ///< by Connection::State
    std::atomic<std::uint64_t> body_bytes{0};
    std::array<std::atomic<std::uint64_t>, 400> responses{}; ///< from kLeastStatus on
    LatencyHistogram lag;

    void response(int status) noexcept {
        responses[static_cast<std::size_t>(status - kLeastStatus)].fetch_add(
            1, std::memory_order_relaxed);
    }
};

/// Invariant: callbacks of exchanges and the handler run on the loop's thread, and never while a
/// connection is half changed. @thread the front's, but for the mailbox and the counters
class Loop {
public:
    static constexpr std::size_t kScratchBytes = 64 * 1024;
    static constexpr std::size_t kReadsPerTurn = 1024 * 1024; ///< bytes of one connection
    static constexpr int kAcceptsPerTurn = 64;
    static constexpr std::size_t kRefusedAtOnce = 64; ///< connections told 503, beyond the limit
    /// At least these are left to others of the process: database sessions, files, the mesh.
    static constexpr std::size_t kOtherDescriptors = 64;
    static constexpr std::chrono::milliseconds kLingerSilence{5'000};
    static constexpr std::chrono::milliseconds kLingerTime{30'000};
    static constexpr std::size_t kLingerBytes = 256u << 20; ///< drained at least; 4 bodies else
    static constexpr std::chrono::milliseconds kLingerAtStop{250};
    static constexpr std::chrono::milliseconds kAcceptPause{200}; ///< without any descriptor left
    static constexpr std::chrono::seconds kShortageLines{10};     ///< between two lines about it

    /// How many connections are served. Those that are told 503 hold a descriptor as well, so they
    /// are left out, or a crowd at the limit would cost the database its sessions (K14).
    static std::size_t connections_for(std::size_t configured,
                                       std::size_t descriptor_limit) noexcept;

    /// @param descriptor_limit of the process; bounds the connections when `limits` does not
    Loop(Limits limits, Listeners listeners, std::size_t descriptor_limit, Handler& handler,
         const Clock& clock);
    ~Loop();
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;

    /// @errors unavailable when the kernel gives no epoll set
    Result<void> prepare();
    /// Serves until a stop is done.
    void run();
    /// @thread any
    void request_stop(std::chrono::milliseconds grace);
    const Counters& counters() const noexcept { return counters_; }

private:
    struct Slot {
        std::uint32_t generation = 0;
        std::unique_ptr<Connection> connection;
    };

    // loop.cpp: the turn, connections coming and going
    void turn();
    int wait_time();
    void on_accept(int listener);
    void refuse_without_descriptor(int listener);
    void pause_accepting();
    void resume_accepting();
    void arm_listeners(std::uint32_t events, int operation);
    void admit(Descriptor socket);
    Connection* find(ConnectionId id) noexcept;
    void close(Connection& connection);
    void enter(Connection& connection, Connection::State state) noexcept;
    void expire(Connection& connection);
    void begin_stop();
    bool stop_is_done();
    void finish();
    void run_guarded(const std::function<void()>& callback);

    // transfer.cpp: bytes in, requests out, answers in, bytes out
    void on_event(Connection& connection, std::uint32_t events);
    void on_readable(Connection& connection);
    void on_drainable(Connection& connection);
    void step(Connection& connection, RequestReader::Outcome outcome);
    void dispatch(Connection& connection);
    void refuse(Connection& connection, const Refusal& refusal);
    void deliver(Message& message);
    void answer(Connection& connection, Reply reply, std::function<void()> undelivered);
    void flush(Connection& connection);
    void answered(Connection& connection);
    void linger(Connection& connection);
    void arm(Connection& connection, std::uint32_t events);
    std::uint32_t listening_events(const Connection& connection) const noexcept;
    void start_wait(Connection& connection, Wait wait) { deadlines_.start(connection, wait, now_); }

    const Limits limits_;
    const HeadLimits head_limits_;
    const std::size_t connection_limit_;
    Listeners listeners_;
    Handler& handler_;
    const Clock& clock_;
    SteadyTime now_;
    Deadlines deadlines_;
    BodyBudget budget_;
    std::shared_ptr<Mailbox> mailbox_;
    std::vector<Message> mail_;
    Descriptor epoll_;
    Descriptor reserve_; ///< given up for a moment to tell a client that descriptors ran out
    std::vector<Slot> slots_;
    std::vector<std::uint32_t> free_slots_;
    std::vector<std::unique_ptr<Connection>> closed_; ///< freed at the end of the turn
    std::array<char, kScratchBytes> scratch_;
    Counters counters_;
    std::uint64_t requests_ = 0;
    std::size_t open_ = 0, refused_open_ = 0, lingering_ = 0;
    std::optional<SteadyTime> accept_paused_until_;
    SteadyTime next_shortage_line_{};

    std::atomic<bool> stop_requested_{false};
    std::atomic<std::chrono::milliseconds::rep> stop_grace_{0};
    std::optional<SteadyTime> stop_deadline_;
    bool stop_lingers_ = false;
};

} // namespace queen::http
