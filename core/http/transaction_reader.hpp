#pragma once
#include "base/result.hpp"
#include "broker/transaction.hpp"
#include "http/timer_reader.hpp"

#include <tl/expected.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace queen::http {

/// Pushed messages and acks of one transaction: it holds the locks of all its partitions until it
/// commits, so it is shorter than a push.
inline constexpr std::size_t kMaxTransactionItems = 10'000;

/// The body of a transaction. The answer has one element for each item, in the order of the
/// operations, whatever they are.
struct TransactionBody {
    enum class Kind { push, ack };
    broker::TransactionRequest request;
    std::vector<Kind> order; ///< each the next of its kind in `request`
};

/// Why a body cannot be run: about its timers in their words, else an error.
struct TransactionRefusal {
    Error error; ///< its message names operation and item
    std::optional<TimerRefusal> timers{};
};

/// Reads the body in one pass. Payloads are slices of `body`, byte for byte; the request keeps
/// `body` alive. Timers come as they are written: Timers::stage() makes them ready.
/// @errors invalid_argument, name_too_long; too_large
/// @source TX-1, TX-5, TX-8
tl::expected<TransactionBody, TransactionRefusal>
read_transaction(std::string_view tenant, std::shared_ptr<const std::string> body,
                 const settings::TimerSettings& timers);

} // namespace queen::http
