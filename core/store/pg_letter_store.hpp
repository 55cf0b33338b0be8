#pragma once
#include "ports/letter_store.hpp"
#include "store/asker.hpp"

namespace queen::store {

/// The LetterStore port on PostgreSQL, all of it in the lane of administration. Keeps no state.
class PgLetterStore final : public LetterStore {
public:
    explicit PgLetterStore(Asker asker) : asker_(std::move(asker)) {}

    void list(Deadline, LetterQuery, Done<LetterPage>) override;
    void find(Deadline, std::string tenant, Uuid id, Done<std::optional<DeadLetter>>) override;
    void newest(Deadline, std::string tenant, Uuid partition_id, std::string transaction_id,
                Done<std::optional<DeadLetter>>) override;
    void remove(Deadline, std::string tenant, Uuid partition_id, std::string transaction_id,
                Done<std::int64_t>) override;
    void purge(Deadline, std::string tenant, std::string queue, std::optional<std::string> group,
               Done<std::int64_t>) override;
    void move(Deadline, LetterMove, Done<LetterMoved>) override;

private:
    const Asker asker_;
};

} // namespace queen::store
