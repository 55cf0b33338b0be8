// queenctl/pusher.hpp - sends messages in order, in batches, and again when that is safe.
#pragma once
#include "queenctl/client.hpp"
#include "queenctl/messages.hpp"
#include "queenctl/terminal.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace queen::ctl {

struct PushTotals {
    std::int64_t queued = 0, duplicate = 0, buffered = 0, failed = 0;
};

/// Sends batches one after the other over one connection, so that the messages of a partition
/// arrive in the order of the input.
///
/// A batch is sent again, with the same transaction ids, when the broker answers 429 or 5xx, when
/// the connection breaks, and, its failed items alone, when items failed: the next batch waits.
/// What a first try had stored after all comes back as a duplicate. A batch refused for one of its
/// messages (400, 413) is halved until that message stands alone.
class Pusher {
public:
    struct Options {
        std::string queue;
        std::int64_t retries = 5; ///< after the first try
        bool own_ids = false;     ///< ids minted here: a duplicate on a retry is our own message
        bool keep_going = false;  ///< a batch that failed whole does not stop the input
    };
    Pusher(Client& client, Terminal& terminal, Options options)
        : client_(client), terminal_(terminal), options_(std::move(options)) {}

    /// @errors unavailable: the broker cannot be reached, the batch is not counted; store_failed:
    /// all of the batch failed. In both cases the input should be stopped: what follows would fail
    /// too.
    Result<void> send(std::span<const Message> batch);

    const PushTotals& totals() const noexcept { return totals_; }
    void count_failed(std::int64_t line, const std::string& why);

private:
    using Batch = std::vector<const Message*>;
    Result<void> send_all(Batch batch, bool again);
    Result<void> halve(const Batch& batch, bool again, const Answer& answer);
    /// @return the messages to send again
    Result<Batch> read_results(const Batch& batch, bool again, const std::string& body,
                               std::string& why);
    std::string body_of(const Batch& batch) const;

    Client& client_;
    Terminal& terminal_;
    Options options_;
    PushTotals totals_;
    std::int64_t reported_ = 0;
};

} // namespace queen::ctl
