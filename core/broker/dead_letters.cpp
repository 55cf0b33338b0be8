#include "broker/dead_letters.hpp"

#include "base/text.hpp"
#include "broker/message_view.hpp"
#include "broker/page_cursor.hpp"
#include "model/frame.hpp"
#include "model/names.hpp"

#include <array>
#include <memory>
#include <utility>

namespace queen::broker {
namespace {

/// A statement that only lost a race (deadlock, serialization, a locked row) is sent again this
/// often.
constexpr int kTransientTries = 3;

/// What two questions share an answer by, the page apart.
std::string question_of(const LetterQuery& query) {
    std::string text = figure_question("letters", {query.tenant});
    for (const auto& name : {query.queue, query.group, query.partition}) {
        text += name ? figure_question("", {*name}) : " -";
    }
    for (const auto& at : {query.from, query.to}) {
        text += at ? " " + std::to_string(at->time_since_epoch().count()) : " -";
    }
    return text;
}

/// Letters of the engine itself, a timer's for one: their message never was in a queue, so it has
/// no offset there. A client's group may have a name that looks the same.
bool of_the_engine(const DeadLetter& letter) {
    const std::string& group = letter.group;
    return letter.offset < Offset{0} && group != kQueueModeGroup && group.size() > 4 &&
           group.starts_with("__") && group.ends_with("__");
}

/// Whether the store may have done it although it did not say so: only a link that broke leaves
/// that open. What has a SQLSTATE was rolled back, and what found no session was not sent.
bool open_end(const Error& error) {
    switch (error.code) {
    case Errc::transient:
    case Errc::timeout:
    case Errc::internal:
        return error.sqlstate.empty();
    case Errc::invalid_argument:
    case Errc::name_too_long:
    case Errc::not_found:
    case Errc::conflict:
    case Errc::unavailable:
    case Errc::store_failed:
    case Errc::corrupt:
    case Errc::unsupported:
    case Errc::overloaded:
    case Errc::too_large:
    case Errc::shutting_down:
        return false;
    }
    return true;
}

} // namespace

/// One replay, until its answer.
struct DeadLetters::Move {
    std::string tenant;
    ReplayTarget target;
    std::function<void(Replay)> done;
    DeadLetter letter; ///< payload and flag change with the form
    SegmentForm form;
    LetterMove frame;
    Replay replay;
    int tries = 0;

    void end(Replay::Result result, Error error = {}) {
        replay.result = result;
        replay.error = std::move(error);
        done(std::move(replay));
    }
};

DeadLetters::DeadLetters(LetterStore& store, Announcer& announcer, FigureReads& reads,
                         const Clock& clock, Options options)
    : store_(store), announcer_(announcer), reads_(reads), clock_(clock),
      options_(std::move(options)), encryption_(Encryption::or_none(options_.encryption)),
      marks_(clock) {}

void DeadLetters::list(LetterQuery query, Done<std::optional<std::string>> done) {
    const std::string question = question_of(query);
    const std::int32_t asked_offset = query.offset;
    query.bytes = kPageBytes;
    if (query.after) {
        query.offset = 0;
    } else if (query.offset > 0) {
        query.after = marks_.begin(question, query.offset);
        query.offset = query.after ? 0 : query.offset;
    }
    const std::string page = question + " " + std::to_string(query.limit) + " " +
                             std::to_string(asked_offset) + " " +
                             (query.after ? write_cursor(*query.after) : "");
    reads_.ask(
        page,
        [this, query, asked_offset, question](SteadyTime deadline,
                                              Done<std::optional<std::string>> got) {
            store_.list(deadline, query,
                        [this, query, asked_offset, question,
                         got = std::move(got)](const Result<LetterPage>& letters) {
                            if (!letters) {
                                got(fail(letters.error()));
                                return;
                            }
                            std::string body;
                            show(query, asked_offset, question, *letters, body);
                            got(std::optional(std::move(body)));
                        });
        },
        std::move(done));
}

void DeadLetters::show(const LetterQuery& query, std::int32_t asked_offset,
                       const std::string& question, const LetterPage& page, std::string& body) {
    json::Writer writer(body);
    writer.begin_object();
    writer.key("messages").begin_array();
    for (const DeadLetter& letter : page.letters) {
        write_letter(writer, letter, encryption_->cipher());
    }
    writer.end_array();
    writer.key("pagination").begin_object();
    writer.key("limit").integer(query.limit);
    writer.key("offset").integer(asked_offset);
    writer.key("next");
    const auto shown = static_cast<std::int32_t>(page.letters.size());
    std::optional<LetterKey> last;
    if (shown > 0) {
        last = LetterKey{page.letters.back().failed_at, page.letters.back().id};
        // Clients go on by as many as they asked for, or as many as they got; also behind the end.
        for (const std::int32_t step : {query.limit, shown}) {
            marks_.ended(question, std::int64_t{asked_offset} + step, *last);
        }
    }
    if (shown >= query.limit) {
        writer.string(write_cursor(*last));
    } else {
        writer.null();
    }
    writer.end_object();
    writer.key("total").integer(page.total);
    writer.end_object();
}

void DeadLetters::remove(std::string tenant, Uuid partition_id, std::string transaction_id,
                         Done<std::int64_t> done) {
    store_.remove(clock_.now() + options_.wait, std::move(tenant), partition_id,
                  std::move(transaction_id), std::move(done));
}

void DeadLetters::purge(std::string tenant, std::string queue, std::optional<std::string> group,
                        Done<std::int64_t> done) {
    store_.purge(clock_.now() + options_.wait, std::move(tenant), std::move(queue),
                 std::move(group), std::move(done));
}

void DeadLetters::replay(std::string tenant, Uuid letter_id, ReplayTarget target,
                         std::function<void(Replay)> done) {
    auto move = std::make_shared<Move>();
    move->tenant = std::move(tenant);
    move->target = std::move(target);
    move->done = std::move(done);
    move->replay.letter_id = letter_id;
    store_.find(
        clock_.now() + options_.wait, move->tenant, letter_id,
        [this, move](Result<std::optional<DeadLetter>> letter) { begin(move, std::move(letter)); });
}

void DeadLetters::retry(std::string tenant, Uuid partition_id, std::string transaction_id,
                        std::function<void(Replay)> done) {
    auto move = std::make_shared<Move>();
    move->tenant = std::move(tenant);
    move->done = std::move(done);
    store_.newest(
        clock_.now() + options_.wait, move->tenant, partition_id, std::move(transaction_id),
        [this, move](Result<std::optional<DeadLetter>> letter) { begin(move, std::move(letter)); });
}

void DeadLetters::begin(const std::shared_ptr<Move>& move, Result<std::optional<DeadLetter>> read) {
    if (!read) {
        move->end(Replay::Result::failed, std::move(read).error());
        return;
    }
    if (!*read) {
        move->end(Replay::Result::gone);
        return;
    }
    move->letter = std::move(**read);
    const DeadLetter& letter = move->letter;
    Replay& replay = move->replay;
    replay.letter_id = letter.id;
    replay.queue = move->target.queue.value_or(letter.queue);
    replay.partition = move->target.partition.value_or(letter.partition);
    replay.group = letter.group;
    replay.original_transaction_id = letter.transaction_id;
    replay.transaction_id = "dlq:" + to_string(letter.id);
    if (of_the_engine(letter)) {
        move->end(Replay::Result::refused,
                  {Errc::conflict,
                   "a dead letter of " + letter.group + " is not replayed: schedule it again",
                   {}});
        return;
    }
    if (replay.partition.empty()) {
        move->end(Replay::Result::refused,
                  {Errc::conflict, "the partition of this dead letter is gone: name another", {}});
        return;
    }
    if (auto fits = check_names_fit(move->tenant, replay.queue, replay.partition); !fits) {
        move->end(Replay::Result::refused, std::move(fits).error());
        return;
    }
    replay.message_id = ids_.next();
    move->form.encrypted = letter.encrypted;
    pack(move);
}

void DeadLetters::pack(const std::shared_ptr<Move>& move) {
    const DeadLetter& letter = move->letter;
    const Replay& replay = move->replay;
    std::string frames;
    if (auto packed = append_frame(frames, {.message_id = replay.message_id,
                                            .trace_id = letter.trace_id,
                                            .transaction_id = replay.transaction_id,
                                            .producer_sub = letter.producer_sub,
                                            .payload = letter.payload,
                                            .encrypted = letter.encrypted});
        !packed) {
        move->end(Replay::Result::failed, std::move(packed).error());
        return;
    }
    move->frame = {.tenant = move->tenant,
                   .id = letter.id,
                   .queue = replay.queue,
                   .partition = replay.partition,
                   .hash = hash_transaction_id(replay.transaction_id),
                   .blob = compress_segment(frames, options_.zstd_level),
                   .encrypted = letter.encrypted};
    exchange(move);
}

/// Nothing was done: the destination wants the payload in the other form.
void DeadLetters::repack(const std::shared_ptr<Move>& move, bool encrypted) {
    DeadLetter& letter = move->letter;
    const std::string& queue = move->replay.queue;
    auto changed = encryption_->change(move->form, move->tenant, queue, encrypted);
    if (!changed) {
        const bool keyless = changed.error().code == Errc::conflict;
        move->end(keyless ? Replay::Result::refused : Replay::Result::failed,
                  std::move(changed).error());
        return;
    }
    if (encrypted && !letter.encrypted) {
        letter.payload = encryption_->cipher()->seal(letter.payload);
    } else if (!encrypted && letter.encrypted) {
        std::string opened;
        const auto shown = render_payload(letter.payload, true, encryption_->cipher(), opened);
        if (shown.sealed) {
            move->end(Replay::Result::refused,
                      {Errc::conflict,
                       "this dead letter is encrypted, queue " + queue +
                           " is not, and the letter cannot be opened: this broker has no "
                           "encryption key, or another one",
                       {}});
            return;
        }
        letter.payload = shown.json;
    }
    letter.encrypted = encrypted;
    pack(move);
}

void DeadLetters::exchange(const std::shared_ptr<Move>& move) {
    ++move->tries;
    store_.move(clock_.now() + options_.wait, move->frame,
                [this, move](const Result<LetterMoved>& moved) { moved_to(move, moved); });
}

void DeadLetters::moved_to(const std::shared_ptr<Move>& move, const Result<LetterMoved>& moved) {
    Replay& replay = move->replay;
    if (!moved) {
        const Error& error = moved.error();
        if (error.code == Errc::transient && !error.sqlstate.empty() &&
            move->tries < kTransientTries) {
            exchange(move);
            return;
        }
        replay.unknown = open_end(error);
        move->end(Replay::Result::failed, error);
        return;
    }
    replay.offset = moved->offset;
    switch (moved->result) {
    case LetterMoved::Result::moved: {
        const std::array arrivals{Arrival{replay.partition, moved->partition_id, 1}};
        announcer_.arrived(move->tenant, replay.queue, plugin::Origin::transaction, arrivals);
        move->end(Replay::Result::moved);
        return;
    }
    case LetterMoved::Result::duplicate:
        replay.message_id = {};
        move->end(Replay::Result::duplicate);
        return;
    case LetterMoved::Result::gone:
        move->end(Replay::Result::gone);
        return;
    case LetterMoved::Result::other_form:
        repack(move, moved->wants_encrypted);
        return;
    }
}

} // namespace queen::broker
