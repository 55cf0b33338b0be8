#pragma once
#include "ports/transaction_store.hpp"
#include "store/asker.hpp"

namespace queen::store {

/// The TransactionStore port on PostgreSQL: one prepared statement, which is the transaction.
/// Keeps no state.
class PgTransactionStore final : public TransactionStore {
public:
    explicit PgTransactionStore(Asker asker) : asker_(std::move(asker)) {}

    void transact(SteadyTime deadline, TransactionCall call,
                  Done<TransactionOutcome> done) override;

private:
    const Asker asker_;
};

/// What log_transaction_v1 raised, as an outcome; anything else stays an error.
/// @errors the one given; internal when its detail is not what the procedure writes
Result<TransactionOutcome> read_refusal(Error error);

/// The timers of what log_transaction_v1 answered, one for each of `ops`. @errors internal
Result<std::vector<TimerVerdict>> read_timers(std::string_view json, std::size_t ops);

/// The acks member of what log_transaction_v1 answered. @errors internal
Result<std::vector<TransactionOutcome::Settled>> read_settled(std::string_view json);

} // namespace queen::store
