#pragma once
#include "broker/announce.hpp"
#include "broker/encryption.hpp"
#include "broker/figure_reads.hpp"
#include "broker/page_marks.hpp"
#include "model/segment.hpp"
#include "model/uuid7.hpp"
#include "ports/letter_store.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace queen::broker {

/// Where a letter goes when it is replayed; what is absent is where it came from.
struct ReplayTarget {
    std::optional<std::string> queue, partition;
};

/// What became of a replay.
struct Replay {
    enum class Result {
        moved,     ///< stored as a new message, the letter is gone
        duplicate, ///< a message of its id was there already, the letter stays
        gone,      ///< there is no such letter, or somebody else was faster
        refused,   ///< it cannot be replayed; `error` says why
        failed     ///< `error` says why
    } result = Result::gone;
    Error error;
    bool unknown = false; ///< failed, and it may have been moved nevertheless
    // Unless it is gone:
    Uuid letter_id;
    std::string queue, partition, group; ///< destination, and the group that had given it up
    std::string original_transaction_id;
    std::string transaction_id; ///< the message's
    Uuid message_id;            ///< unknown for a duplicate
    Offset offset{-1};
};

/// Dead letters: shown, removed, put back into their queue. Lists count what matches, so they go
/// through FigureReads (K30).
///
/// A replay reads the letter, packs its message anew (same payload, trace and subject, a new id,
/// the transaction id "dlq:<letter>") and lets the store exchange one for the other. Whoever comes
/// second finds the letter gone, or, later, its message there (DQ-4). What was stored is announced
/// before the answer goes out, at once. A payload whose destination wants it in the other form is
/// sealed or opened and moved again, or refused when the broker's key cannot do that (ENC-5).
/// @thread worker. Every `done` runs once, on a worker.
/// @source DQ-3, DQ-4, DQ-5, DQ-6
class DeadLetters {
public:
    struct Options {
        int zstd_level = kDefaultZstdLevel;
        std::chrono::milliseconds wait{30'000};   ///< for a session
        std::shared_ptr<Encryption> encryption{}; ///< null: there is no key
    };
    /// Payloads and errors of a page, together. A page of 1,000 letters of 8 KiB fits; `data` and
    /// `payload` both show it, so an answer is about twice as long.
    static constexpr std::int64_t kPageBytes = 8 << 20;

    DeadLetters(LetterStore& store, Announcer& announcer, FigureReads& reads, const Clock& clock,
                Options options);

    /// The body of GET /dlq; never nothing. `bytes` of the query is set here.
    void list(LetterQuery query, Done<std::optional<std::string>> done);
    /// How many were removed.
    void remove(std::string tenant, Uuid partition_id, std::string transaction_id,
                Done<std::int64_t> done);
    void purge(std::string tenant, std::string queue, std::optional<std::string> group,
               Done<std::int64_t> done);
    void replay(std::string tenant, Uuid letter_id, ReplayTarget target,
                std::function<void(Replay)> done);
    /// The newest letter of a message.
    void retry(std::string tenant, Uuid partition_id, std::string transaction_id,
               std::function<void(Replay)> done);

private:
    struct Move;
    void begin(const std::shared_ptr<Move>& move, Result<std::optional<DeadLetter>> read);
    void pack(const std::shared_ptr<Move>& move);
    void repack(const std::shared_ptr<Move>& move, bool encrypted);
    void exchange(const std::shared_ptr<Move>& move);
    void moved_to(const std::shared_ptr<Move>& move, const Result<LetterMoved>& moved);
    void show(const LetterQuery& query, std::int32_t asked_offset, const std::string& question,
              const LetterPage& page, std::string& body);

    LetterStore& store_;
    Announcer& announcer_;
    FigureReads& reads_;
    const Clock& clock_;
    const Options options_;
    const std::shared_ptr<Encryption> encryption_; ///< never null
    Uuid7 ids_;
    PageMarks<LetterKey> marks_;
};

} // namespace queen::broker
