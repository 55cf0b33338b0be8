// http/front/mailbox.hpp - how other threads reach the front's thread.
//
// An exchange holds the mailbox and the address of its connection, never the connection: slot,
// generation and number of the request, so an answer that comes late finds nobody instead of
// somebody else. The mailbox outlives the front; after the front closed it, callers learn at once
// that their answer reached nobody.
#pragma once
#include "http/message.hpp"

#include <queen/plugin/types.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace queen::http {

/// Place of a connection. The generation tells its present owner from earlier ones.
struct ConnectionId {
    std::uint32_t slot = 0;
    std::uint32_t generation = 0;
};

struct Message {
    enum class Kind : std::uint8_t {
        answer,  ///< `callback` runs when the reply reaches nobody
        dropped, ///< the exchange went without an answer
        watch,   ///< `callback` runs when the peer goes before the answer
        run,     ///< just run `callback`
    };
    Kind kind = Kind::run;
    ConnectionId connection;
    std::uint64_t request = 0;
    std::size_t charge = 0; ///< body bytes the answer gives back
    Reply reply;
    std::function<void()> callback;
};

/// Locks: `mutex_` is a leaf; no callback runs under it.
class Mailbox {
public:
    explicit Mailbox(const Clock& clock);
    ~Mailbox();
    Mailbox(const Mailbox&) = delete;
    Mailbox& operator=(const Mailbox&) = delete;

    int descriptor() const noexcept { return event_; } ///< readable when there is mail; -1: none
    void adopt_thread(std::thread::id reader);         ///< posts of this thread need no wake-up

    /// @return false, `message` untouched, when the mailbox is closed. @thread any
    bool post(Message& message);
    void wake(); ///< the reader looks round. @thread any
    /// Moves the mail to the end of `out`.
    /// @return how long the first of it waited for the reader; nothing when no other thread posted
    /// @thread the reader
    std::optional<Nanoseconds> take(std::vector<Message>& out);
    bool empty() const;
    void close();

private:
    const Clock& clock_;
    int event_ = -1;
    mutable std::mutex mutex_;
    std::vector<Message> mail_;
    std::thread::id reader_;
    bool signalled_ = false; ///< the descriptor was written and not yet read
    SteadyTime signalled_at_{};
    bool closed_ = false;
};

class MailedExchange final : public Exchange {
public:
    MailedExchange(std::shared_ptr<Mailbox> mailbox, ConnectionId connection, std::uint64_t request,
                   std::size_t charge);
    ~MailedExchange() override;

    /// A second answer reaches nobody: its `undelivered` runs, nothing is sent.
    void reply(Reply reply, std::function<void()> undelivered) override;
    bool gone() const noexcept override { return gone_.load(std::memory_order_acquire); }
    void watch(std::function<void()> on_gone) override;

    void set_gone() noexcept { gone_.store(true, std::memory_order_release); }

private:
    Message message(Message::Kind kind, std::function<void()> callback) const;
    void post_or_run(Message message);

    std::shared_ptr<Mailbox> mailbox_;
    ConnectionId connection_;
    std::uint64_t request_;
    std::size_t charge_;
    std::atomic<bool> answered_{false};
    std::atomic<bool> gone_{false};
};

} // namespace queen::http
