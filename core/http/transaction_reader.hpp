#pragma once
#include "base/result.hpp"
#include "broker/transaction.hpp"

#include <memory>
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

/// Reads the body in one pass. Payloads are slices of `body`, byte for byte; the request keeps
/// `body` alive.
/// @errors invalid_argument, name_too_long; too_large; the message names the operation and item
/// @source TX-1, TX-5, TX-8
Result<TransactionBody> read_transaction(std::string_view tenant,
                                         std::shared_ptr<const std::string> body);

} // namespace queen::http
