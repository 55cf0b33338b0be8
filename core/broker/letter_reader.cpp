#include "broker/letter_reader.hpp"

#include "model/frame.hpp"
#include "model/segment.hpp"

#include <memory>
#include <utility>

namespace queen::broker {
namespace {

class Reading final : public std::enable_shared_from_this<Reading> {
public:
    Reading(Store& store, const Clock& clock, std::chrono::milliseconds wait, Uuid partition_id,
            std::vector<Offset> offsets, Done<std::vector<Letter>> done)
        : store_(store), clock_(clock), wait_(wait), partition_id_(partition_id),
          offsets_(std::move(offsets)), done_(std::move(done)) {}

    void next() {
        if (at_ == offsets_.size() || bytes_ >= kMostLetterBytes) {
            done_(std::move(letters_));
            return;
        }
        store_.segment_at(
            clock_.now() + wait_, partition_id_, offsets_[at_],
            [self = shared_from_this()](const Result<std::optional<StoredSegment>>& segment) {
                if (!segment) {
                    self->done_(fail(segment.error()));
                    return;
                }
                if (*segment) {
                    self->take(**segment);
                } else {
                    ++self->at_;
                }
                self->next();
            });
    }

private:
    /// All that are wanted of this segment; one offset at least is passed.
    void take(const StoredSegment& segment) {
        const auto first = at_++;
        while (at_ < offsets_.size() && offsets_[at_] <= segment.end) {
            ++at_;
        }
        const auto bytes = decompress_segment(segment.blob);
        const auto frames = bytes ? parse_frames(*bytes) : fail(bytes.error());
        if (!frames) {
            return;
        }
        for (auto i = first; i < at_ && bytes_ < kMostLetterBytes; ++i) {
            const auto place =
                static_cast<std::uint64_t>(offsets_[i].value() - segment.base.value());
            if (place >= frames->size()) { // before the segment wraps round to beyond it
                continue;
            }
            const Frame& frame = (*frames)[place];
            bytes_ += frame.payload.size();
            letters_.push_back({.offset = offsets_[i],
                                .message_id = frame.message_id,
                                .trace_id = frame.trace_id,
                                .transaction_id = std::string(frame.transaction_id),
                                .producer_sub = std::string(frame.producer_sub),
                                .payload = std::string(frame.payload),
                                .encrypted = frame.encrypted,
                                .created_at = segment.created_at});
        }
    }

    Store& store_;
    const Clock& clock_;
    const std::chrono::milliseconds wait_;
    const Uuid partition_id_;
    const std::vector<Offset> offsets_;
    const Done<std::vector<Letter>> done_;
    std::size_t at_ = 0; ///< the offset to look for
    std::size_t bytes_ = 0;
    std::vector<Letter> letters_;
};

} // namespace

void read_letters(Store& store, const Clock& clock, std::chrono::milliseconds wait,
                  Uuid partition_id, std::vector<Offset> offsets, Done<std::vector<Letter>> done) {
    std::make_shared<Reading>(store, clock, wait, partition_id, std::move(offsets), std::move(done))
        ->next();
}

} // namespace queen::broker
