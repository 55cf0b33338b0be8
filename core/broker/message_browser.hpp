#pragma once
#include "broker/figure_reads.hpp"
#include "broker/page_marks.hpp"
#include "model/encryption.hpp"
#include "ports/letter_store.hpp"
#include "ports/message_store.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace queen::broker {

/// A page of messages, as asked for.
struct BrowseQuery {
    MessageQuery filter; ///< `want` is set by the browser
    std::int32_t limit = 200;
    std::int32_t offset = 0; ///< of no effect with filter.after
};

/// Shows messages without taking them (GET /messages). The store names the slices of a page, the
/// browser decides which of their messages have the status that was asked for, fetches the segments
/// of those, some at a time, and cuts out the frames. Goes through FigureReads: however many look,
/// two sessions are busy with it (K30).
///
/// Bounds, each told by `complete: false` and a place to go on behind: kRounds looks at the store
/// for one page (a status that few messages have), kReadBytes of segments. Beyond kPageBytes of
/// payloads messages come without theirs.
/// @thread worker. Every `done` runs once, on a worker.
/// @source ST-5, K41
class MessageBrowser {
public:
    static constexpr int kRounds = 4;
    static constexpr std::int32_t kMostOffset = 10'000; ///< that is counted, without a mark
    static constexpr std::int64_t kFetchBytes = 8 << 20;
    static constexpr std::int64_t kReadBytes = 256 << 20;
    static constexpr std::int64_t kPageBytes = 8 << 20; ///< each payload is shown twice

    /// @param cipher null: encrypted payloads are shown as their envelopes; outlives the browser
    MessageBrowser(MessageStore& store, LetterStore& letters, FigureReads& reads,
                   const Clock& clock, const Cipher* cipher = nullptr)
        : store_(store), letters_(letters), reads_(reads), cipher_(cipher), marks_(clock) {}

    /// The body of the answer; never nothing.
    /// @errors (to done) invalid_argument: an offset beyond kMostOffset at which no page ended
    void list(BrowseQuery query, Done<std::optional<std::string>> done);
    /// The body of the answer; nothing: the tenant has no such message, stored or dead.
    void find(const std::string& tenant, Uuid partition_id, const std::string& transaction_id,
              Done<std::optional<std::string>> done);

private:
    struct Page;
    struct Search;
    void look(const std::shared_ptr<Page>& page);
    void fetch(const std::shared_ptr<Page>& page);
    void finish(const std::shared_ptr<Page>& page);

    MessageStore& store_;
    LetterStore& letters_;
    FigureReads& reads_;
    const Cipher* cipher_;
    PageMarks<MessageKey> marks_;
};

} // namespace queen::broker
