#pragma once
#include "ports/letter_store.hpp"
#include "support/hook.hpp"

#include <optional>
#include <string>
#include <utility>

namespace queen::test {

/// Dead letters as the test writes them: each verb has a hook; one without a hook fails with
/// `unsupported`, so that an unexpected call is seen.
class ScriptedLetterStore final : public LetterStore {
public:
    Hook<LetterQuery, Done<LetterPage>> on_list;
    Hook<std::string, Uuid, Done<std::optional<DeadLetter>>> on_find;
    Hook<std::string, Uuid, std::string, Done<std::optional<DeadLetter>>> on_newest;
    Hook<std::string, Uuid, std::string, Done<std::int64_t>> on_remove;
    Hook<std::string, std::string, std::optional<std::string>, Done<std::int64_t>> on_purge;
    Hook<LetterMove, Done<LetterMoved>> on_move;

    void list(Deadline, LetterQuery query, Done<LetterPage> done) override {
        call_hook(on_list, std::move(query), std::move(done));
    }
    void find(Deadline, std::string tenant, Uuid id,
              Done<std::optional<DeadLetter>> done) override {
        call_hook(on_find, std::move(tenant), id, std::move(done));
    }
    void newest(Deadline, std::string tenant, Uuid partition_id, std::string txn,
                Done<std::optional<DeadLetter>> done) override {
        call_hook(on_newest, std::move(tenant), partition_id, std::move(txn), std::move(done));
    }
    void remove(Deadline, std::string tenant, Uuid partition_id, std::string txn,
                Done<std::int64_t> done) override {
        call_hook(on_remove, std::move(tenant), partition_id, std::move(txn), std::move(done));
    }
    void purge(Deadline, std::string tenant, std::string queue, std::optional<std::string> group,
               Done<std::int64_t> done) override {
        call_hook(on_purge, std::move(tenant), std::move(queue), std::move(group), std::move(done));
    }
    void move(Deadline, LetterMove move, Done<LetterMoved> done) override {
        call_hook(on_move, std::move(move), std::move(done));
    }
};

} // namespace queen::test
