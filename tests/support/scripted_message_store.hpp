#pragma once
#include "ports/message_store.hpp"
#include "support/hook.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace queen::test {

/// Messages to look at, as the test writes them: each verb has a hook; one without a hook fails
/// with `unsupported`, so that an unexpected call is seen.
class ScriptedMessageStore final : public MessageStore {
public:
    using Wanted = std::vector<std::pair<Uuid, Offset>>;
    using Blobs = std::vector<std::optional<std::string>>;

    Hook<MessageQuery, Done<MessageSlices>> on_slices;
    Hook<Wanted, Done<Blobs>> on_segments;
    Hook<std::string, Uuid, TxnHash, Done<std::optional<FoundMessage>>> on_find;

    void slices(Deadline, MessageQuery query, Done<MessageSlices> done) override {
        call_hook(on_slices, std::move(query), std::move(done));
    }
    void segments(Deadline, Wanted wanted, Done<Blobs> done) override {
        call_hook(on_segments, std::move(wanted), std::move(done));
    }
    void find(Deadline, std::string tenant, Uuid partition_id, TxnHash hash,
              Done<std::optional<FoundMessage>> done) override {
        call_hook(on_find, std::move(tenant), partition_id, hash, std::move(done));
    }
};

} // namespace queen::test
