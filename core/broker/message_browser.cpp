#include "broker/message_browser.hpp"

#include "base/text.hpp"
#include "broker/message_view.hpp"
#include "broker/page_cursor.hpp"
#include "model/frame.hpp"
#include "model/hash.hpp"
#include "model/segment.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <set>
#include <utility>

namespace queen::broker {
namespace {

/// What two questions share an answer by, the page apart.
std::string question_of(const MessageQuery& query) {
    std::string text = figure_question("messages", {query.tenant});
    for (const auto& name : {query.queue, query.partition, query.name_space, query.task}) {
        text += name ? figure_question("", {*name}) : " -";
    }
    text += query.status ? " " + std::string(word_of(*query.status)) : " -";
    for (const auto& at : {query.from, query.to}) {
        text += at ? " " + std::to_string(at->time_since_epoch().count()) : " -";
    }
    return text;
}

/// None when the segment does not parse.
std::vector<Frame> frames_of(std::string_view bytes) {
    auto frames = parse_frames(bytes);
    return frames ? std::move(*frames) : std::vector<Frame>{};
}

} // namespace

/// One page, until its answer.
struct MessageBrowser::Page {
    BrowseQuery query;
    std::int32_t asked_offset = 0; ///< the client's, whatever the page begins behind
    std::string question;
    SteadyTime deadline{};
    Done<std::optional<std::string>> done;

    /// Messages of one segment that are shown, in the order of the list.
    struct Run {
        std::shared_ptr<const MessagePlace> place;
        Offset base{-1};
        WallTime created_at{};
        std::int64_t bytes = 0;
        std::vector<std::pair<Offset, Standing>> messages{};
    };
    std::deque<Run> runs;
    std::int32_t skipped = 0;
    std::int32_t picked = 0;
    int rounds = 0;
    bool complete = true;
    bool more = false;
    bool cut = false;                     ///< ended early: kReadBytes
    std::optional<MessageKey> last;       ///< behind which the next page begins
    std::optional<MessageKey> looked;     ///< the last one that was decided about
    std::optional<MessageKey> last_shown; ///< so it is when the page is cut

    std::string body;
    std::optional<json::Writer> writer; ///< into `body`, from the first fetch on
    ConsumerMode mode;
    std::int32_t shown = 0;
    std::int64_t read = 0;     ///< bytes of segments
    std::int64_t payloads = 0; ///< bytes shown

    std::int32_t wanted() const { return query.offset + query.limit + 1 - skipped - picked; }
    void take(const MessageSlices& slices);
    bool take_one(const MessageSlice& slice, Offset offset,
                  const std::shared_ptr<const MessagePlace>& place,
                  const std::set<std::pair<std::size_t, Offset>>& dead);
    void show(const Run& run, const std::optional<std::string>& blob, const Cipher* cipher);
};

/// Decides about every message of the slices, newest first, until the page is full and one more is
/// known.
void MessageBrowser::Page::take(const MessageSlices& slices) {
    std::vector<std::shared_ptr<const MessagePlace>> places;
    for (const MessagePlace& place : slices.places) {
        places.push_back(std::make_shared<MessagePlace>(place));
    }
    const std::set<std::pair<std::size_t, Offset>> dead(slices.dead.begin(), slices.dead.end());
    for (const MessageSlice& slice : slices.slices) {
        for (std::int64_t at = slice.high.value(); at >= slice.low.value(); --at) {
            if (!take_one(slice, Offset{at}, places[slice.place], dead)) {
                return;
            }
        }
    }
}

/// False when the page is full and this would have been the next.
bool MessageBrowser::Page::take_one(const MessageSlice& slice, Offset offset,
                                    const std::shared_ptr<const MessagePlace>& place,
                                    const std::set<std::pair<std::size_t, Offset>>& dead) {
    const Standing standing = standing_of(*place, offset, dead.contains({slice.place, offset}));
    const MessageKey key{slice.created_at, place->partition_id, offset};
    if (query.filter.status && standing.status != *query.filter.status) {
        looked = key;
        return true;
    }
    if (picked == query.limit) {
        more = true;
        return false;
    }
    looked = key;
    if (skipped < query.offset) {
        ++skipped;
        return true;
    }
    if (runs.empty() || runs.back().base != slice.base || runs.back().place != place) {
        runs.push_back({place, slice.base, slice.created_at, slice.bytes});
    }
    runs.back().messages.emplace_back(offset, standing);
    ++picked;
    last = key;
    return true;
}

void MessageBrowser::list(BrowseQuery query, Done<std::optional<std::string>> done) {
    const std::string question = question_of(query.filter);
    const std::int32_t asked_offset = query.offset;
    if (query.filter.after) {
        query.offset = 0;
    } else if (query.offset > 0) {
        query.filter.after = marks_.begin(question, query.offset);
        if (query.filter.after) {
            query.offset = 0;
        } else if (query.offset > kMostOffset) {
            done(fail(
                Errc::invalid_argument,
                "offset must be a whole number from 0 to " + std::to_string(kMostOffset) +
                    ", or that at which the page before ended; deeper pages go by after, got " +
                    std::to_string(query.offset)));
            return;
        }
    }
    const std::string page_question = question + " " + std::to_string(query.limit) + " " +
                                      std::to_string(asked_offset) + " " +
                                      (query.filter.after ? write_cursor(*query.filter.after) : "");
    reads_.ask(
        page_question,
        [this, query, question, asked_offset](SteadyTime deadline,
                                              Done<std::optional<std::string>> got) {
            auto page = std::make_shared<Page>();
            page->query = query;
            page->asked_offset = asked_offset;
            page->question = question;
            page->deadline = deadline;
            page->done = std::move(got);
            look(page);
        },
        std::move(done));
}

void MessageBrowser::look(const std::shared_ptr<Page>& page) {
    ++page->rounds;
    MessageQuery query = page->query.filter;
    if (page->looked) {
        query.after = page->looked;
    }
    // With a status some of what comes will not count, so a look is never for a handful: what it
    // costs is the partitions, about a second with 20,000 of them.
    constexpr std::int32_t kLeast = 4'000;
    query.want = query.status ? std::max(page->wanted(), kLeast) : page->wanted();
    const std::int32_t want = query.want;
    store_.slices(page->deadline, std::move(query),
                  [this, page, want](const Result<MessageSlices>& slices) {
                      if (!slices) {
                          page->done(fail(slices.error()));
                          return;
                      }
                      page->complete = page->complete && slices->complete;
                      std::int64_t found = 0;
                      for (const MessageSlice& slice : slices->slices) {
                          found += slice.high.value() - slice.low.value() + 1;
                      }
                      page->take(*slices);
                      if (page->more || found < want) {
                          fetch(page);
                      } else if (page->rounds < kRounds) {
                          look(page);
                      } else {
                          page->complete = false;
                          page->more = true;
                          page->last = page->looked;
                          fetch(page);
                      }
                  });
}

/// Fetches the next segments of the page, shows their messages, and so on.
void MessageBrowser::fetch(const std::shared_ptr<Page>& page) {
    if (!page->writer) {
        page->writer.emplace(page->body);
        page->writer->begin_object();
        page->writer->key("messages").begin_array();
    }
    if (!page->runs.empty() && page->read >= kReadBytes) {
        page->complete = false; // a page of fewer messages; the next one begins with these
        page->more = true;
        page->cut = true;
        page->runs.clear();
    }
    if (page->runs.empty()) {
        finish(page);
        return;
    }
    auto runs = std::make_shared<std::vector<Page::Run>>();
    std::vector<std::pair<Uuid, Offset>> wanted;
    std::int64_t bytes = 0;
    while (!page->runs.empty() &&
           (runs->empty() || bytes + page->runs.front().bytes <= kFetchBytes)) {
        bytes += page->runs.front().bytes;
        wanted.emplace_back(page->runs.front().place->partition_id, page->runs.front().base);
        runs->push_back(std::move(page->runs.front()));
        page->runs.pop_front();
    }
    page->read += bytes;
    store_.segments(
        page->deadline, std::move(wanted),
        [this, page, runs](const Result<std::vector<std::optional<std::string>>>& blobs) {
            if (!blobs) {
                page->done(fail(blobs.error()));
                return;
            }
            for (std::size_t i = 0; i < runs->size() && i < blobs->size(); ++i) {
                page->show((*runs)[i], (*blobs)[i], cipher_);
            }
            fetch(page);
        });
}

void MessageBrowser::Page::show(const Run& run, const std::optional<std::string>& blob,
                                const Cipher* cipher) {
    if (run.messages.empty()) {
        return;
    }
    last_shown = {run.created_at, run.place->partition_id, run.messages.back().first};
    if (!blob) {
        return; // retention took it meanwhile: these messages are no more
    }
    mode.add(*run.place);
    const auto bytes = decompress_segment(*blob);
    const std::vector<Frame> frames = bytes ? frames_of(*bytes) : std::vector<Frame>{};
    for (const auto& [offset, standing] : run.messages) {
        const auto index = static_cast<std::size_t>(offset.value() - run.base.value());
        MessageRow row{.place = *run.place,
                       .base = run.base,
                       .offset = offset,
                       .created_at = run.created_at,
                       .standing = standing};
        if (index < frames.size()) {
            row.frame = &frames[index];
            const auto size = static_cast<std::int64_t>(frames[index].payload.size());
            row.available = shown == 0 || payloads + size <= kPageBytes;
            payloads += row.available ? size : 0;
        }
        write_message(*writer, row, cipher);
        ++shown;
    }
}

void MessageBrowser::finish(const std::shared_ptr<Page>& page) {
    json::Writer& writer = *page->writer;
    writer.end_array();
    writer.key("mode");
    write_mode(writer, page->mode);
    writer.key("total").integer(page->shown);
    writer.key("complete").boolean(page->complete);
    writer.key("pagination").begin_object();
    writer.key("limit").integer(page->query.limit);
    writer.key("offset").integer(page->asked_offset);
    writer.key("next");
    // A page that ended early ends at what was shown, not at what had been picked for it.
    const auto& last = page->cut ? page->last_shown : page->last;
    if (page->more && last) {
        writer.string(write_cursor(*last));
    } else {
        writer.null();
    }
    if (last) {
        // Clients go on by as many as they asked for, or as many as they got; also behind the end.
        for (const std::int32_t step : {page->query.limit, page->shown}) {
            marks_.ended(page->question, std::int64_t{page->asked_offset} + step, *last);
        }
    }
    writer.end_object();
    writer.end_object();
    page->done(std::optional(std::move(page->body)));
}

/// One message that is looked up, until its answer.
struct MessageBrowser::Search {
    std::string tenant, transaction_id;
    Uuid partition_id;
    SteadyTime deadline{};
    Done<std::optional<std::string>> done;
    std::optional<FoundMessage> found;
    const Cipher* cipher = nullptr;

    void answer(const std::optional<DeadLetter>& letter);
};

/// The frame is the message only if it bears the id: the hash alone does not say so.
void MessageBrowser::Search::answer(const std::optional<DeadLetter>& letter) {
    MessageDetail detail;
    detail.found = found ? &*found : nullptr;
    detail.letter = letter ? &*letter : nullptr;
    std::string bytes;
    std::vector<Frame> frames;
    if (found && found->segment && found->offset) {
        if (auto opened = decompress_segment(found->segment->blob)) {
            bytes = std::move(*opened);
            frames = frames_of(bytes);
        }
        const auto index =
            static_cast<std::size_t>(found->offset->value() - found->segment->base.value());
        if (index < frames.size() && frames[index].transaction_id == transaction_id) {
            detail.frame = &frames[index];
        }
    }
    if (detail.frame == nullptr && detail.letter == nullptr) {
        done(std::optional<std::string>{});
    } else {
        done(std::optional(render_detail(detail, cipher)));
    }
}

void MessageBrowser::find(const std::string& tenant, Uuid partition_id,
                          const std::string& transaction_id,
                          Done<std::optional<std::string>> done) {
    reads_.ask(
        "message " + tenant + " " + to_string(partition_id) + " " + transaction_id,
        [this, tenant, partition_id, transaction_id](SteadyTime deadline,
                                                     Done<std::optional<std::string>> got) {
            auto search = std::make_shared<Search>();
            search->tenant = tenant;
            search->transaction_id = transaction_id;
            search->partition_id = partition_id;
            search->cipher = cipher_;
            search->deadline = deadline;
            search->done = std::move(got);
            store_.find(deadline, tenant, partition_id, hash_transaction_id(transaction_id),
                        [this, search](Result<std::optional<FoundMessage>> found) {
                            if (!found) {
                                search->done(fail(std::move(found).error()));
                                return;
                            }
                            search->found = std::move(*found);
                            letters_.newest(
                                search->deadline, search->tenant, search->partition_id,
                                search->transaction_id,
                                [search](const Result<std::optional<DeadLetter>>& letter) {
                                    if (!letter) {
                                        search->done(fail(letter.error()));
                                        return;
                                    }
                                    search->answer(*letter);
                                });
                        });
        },
        std::move(done));
}

} // namespace queen::broker
