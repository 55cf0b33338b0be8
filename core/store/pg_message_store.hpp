#pragma once
#include "ports/message_store.hpp"
#include "store/asker.hpp"

#include <string_view>

namespace queen::store {

/// The MessageStore port on PostgreSQL, all of it in the lane of administration. Keeps no state.
class PgMessageStore final : public MessageStore {
public:
    explicit PgMessageStore(Asker asker) : asker_(std::move(asker)) {}

    void slices(Deadline, MessageQuery, Done<MessageSlices>) override;
    void segments(Deadline, std::vector<std::pair<Uuid, Offset>>,
                  Done<std::vector<std::optional<std::string>>>) override;
    void find(Deadline, std::string tenant, Uuid partition_id, TxnHash hash,
              Done<std::optional<FoundMessage>>) override;

private:
    const Asker asker_;
};

/// The answer of log_messages_v1.
/// @errors internal: it is not what the contract between our SQL and our C++ says
Result<MessageSlices> read_message_slices(std::string_view json);

} // namespace queen::store
