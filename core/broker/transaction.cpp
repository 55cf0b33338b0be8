#include "broker/transaction.hpp"

#include "base/text.hpp"
#include "broker/ack_words.hpp"
#include "broker/dedup_cache.hpp"
#include "broker/letter_reader.hpp"
#include "broker/lost_race.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace queen::broker {
namespace {

/// A statement that only lost a race (deadlock, serialization) is sent again this often.
constexpr int kTries = 3;

/// How often letters are brought before what the store still misses counts as lost: each time it
/// judges anew, and somebody else's ack may have come in between.
constexpr int kLetterRounds = 3;

/// Messages that a text names; the rest are counted.
constexpr std::size_t kNamed = 10;

/// SQLSTATE of a row that stayed locked for as long as a push waits for it (PUSH-9).
constexpr std::string_view kLockNotAvailable = "55P03";
constexpr const char* kLocked = "a partition or cursor is locked in the database; try again";

/// An id as texts show it: whole, unless somebody uses one of kilobytes.
std::string shown(std::string_view id) {
    constexpr std::size_t kShownBytes = 200;
    if (id.size() <= kShownBytes) {
        return "'" + std::string(id) + "'";
    }
    auto end = kShownBytes;
    while (end > 0 && (static_cast<unsigned char>(id[end]) & 0xC0) == 0x80) {
        --end; // not inside a character
    }
    return "'" + std::string(id.substr(0, end)) + "...'";
}

/// "first, second and 3 more"
std::string listed(const std::vector<std::string>& texts) {
    std::string out;
    for (std::size_t i = 0; i < std::min(texts.size(), kNamed); ++i) {
        out += (i > 0 ? "; " : "") + texts[i];
    }
    if (texts.size() > kNamed) {
        out += "; and " + std::to_string(texts.size() - kNamed) + " more";
    }
    return out;
}

} // namespace

/// One transaction until its answer. Lives in the callbacks of the statement under way.
struct Transactions::Job : std::enable_shared_from_this<Transactions::Job> {
    using Verdict = TransactionResult::Verdict;
    using Outcome = TransactionOutcome;

    Job(Transactions& owner_in, TransactionRequest request_in,
        std::function<void(TransactionResult)> done_in)
        : owner(owner_in), request(std::move(request_in)), done(std::move(done_in)) {}

    /// What the dedup cache was asked about a segment, and what it answered.
    struct Asked {
        std::string key;
        std::vector<std::uint64_t> fingerprints;
        std::optional<Vouch> vouch;
    };

    void start() {
        result.id = owner.ids_.next();
        for (auto& item : request.pushes) {
            item.producer_sub = request.producer_sub;
        }
        layout = lay_out(request.pushes, owner.ids_);
        for (const auto& group : layout.groups) {
            forms.push_back({owner.encryption_->wanted(request.tenant, group.queue)});
        }
        std::vector<std::string> strange;
        for (const auto& ack : request.acks) {
            const auto id = parse_uuid(ack.item.partition_id);
            if (!id) {
                strange.push_back("ack of transactionId " + shown(ack.item.transaction_id) + ": " +
                                  words::kNotAPartition);
            }
            partitions.push_back(id.value_or(Uuid{}));
        }
        if (!strange.empty()) {
            refuse(Verdict::rejected_ack, "QTXN: " + listed(strange));
        } else if (request.pushes.empty() && request.acks.empty() &&
                   request.required_leases.empty() && request.timers.empty()) {
            finish();
        } else {
            send();
        }
    }

    void send() {
        TransactionCall call;
        call.tenant = request.tenant;
        asked.clear();
        for (std::size_t g = 0; g < layout.groups.size(); ++g) { // each time it is sent
            const auto& group = layout.groups[g];
            auto& segment = call.segments.emplace_back(owner.packer_.pack(
                request.tenant, group, request.pushes, layout, forms[g].encrypted));
            if (owner.dedup_ != nullptr) {
                auto& question = asked.emplace_back(
                    Asked{dedup_key(request.tenant, group.queue, group.partition),
                          fingerprints_of(segment.hashes),
                          {}});
                question.vouch = owner.dedup_->vouch(question.key, question.fingerprints);
                segment.vouch = question.vouch;
            }
        }
        for (std::size_t i = 0; i < request.acks.size(); ++i) {
            const auto& [item, group] = request.acks[i];
            call.acks.push_back({partitions[i], group, item.lease_id,
                                 hash_transaction_id(item.transaction_id), item.status,
                                 item.error});
        }
        call.required_leases = request.required_leases;
        call.timers = request.timers;
        call.producer_sub = request.producer_sub;
        call.letters = letters;
        call.no_further_letters = !letters_complete;
        owner.store_.transact(owner.clock_.now() + owner.options_.wait, std::move(call),
                              [self = shared_from_this()](const Result<Outcome>& outcome) {
                                  self->answered(outcome);
                              });
    }

    void answered(const Result<Outcome>& outcome) {
        if (!outcome) {
            if (lost_a_race(outcome.error()) && ++tries < kTries) {
                send();
                return;
            }
            result.error = outcome.error();
            if (result.error.sqlstate == kLockNotAvailable) {
                result.error.message = kLocked;
            }
            result.verdict = Verdict::failed;
            finish();
            return;
        }
        switch (outcome->kind) {
        case Outcome::Kind::committed:
            committed(*outcome);
            return;
        case Outcome::Kind::duplicate:
            refuse(Verdict::duplicate, duplicate_text(*outcome));
            return;
        case Outcome::Kind::form:
            change_forms(outcome->forms);
            return;
        case Outcome::Kind::rejected:
            refuse(Verdict::rejected_ack, rejected_text(*outcome));
            return;
        case Outcome::Kind::letters:
            bring_letters(outcome->wanted);
            return;
        }
    }

    /// Nothing was done: these segments are packed as their queues want them, and it is run again.
    void change_forms(const std::vector<Outcome::OtherForm>& wanted) {
        for (const auto& [segment, encrypted] : wanted) {
            if (segment >= layout.groups.size()) {
                continue;
            }
            const auto& queue = layout.groups[segment].queue;
            auto changed =
                owner.encryption_->change(forms[segment], request.tenant, queue, encrypted);
            if (!changed) {
                const bool keyless = changed.error().code == Errc::conflict;
                result.verdict = keyless ? Verdict::no_key : Verdict::failed;
                result.error = std::move(changed).error();
                result.error.message = "queue " + shown(queue) + ": " + result.error.message;
                finish();
                return;
            }
        }
        send();
    }

    /// Nothing was done: these messages are read, and it is run again with them.
    void bring_letters(const std::vector<Outcome::Wanted>& wanted) {
        if (++letter_rounds > kLetterRounds) {
            letters_complete = false;
            send();
            return;
        }
        letters.clear();
        for (const auto& [partition, offsets] : wanted) { // groups of one partition share letters
            to_read[partition].insert(offsets.begin(), offsets.end());
        }
        read_next();
    }

    void read_next() {
        if (to_read.empty()) {
            send();
            return;
        }
        const auto [partition, offsets] = *to_read.begin();
        to_read.erase(to_read.begin());
        read_letters(owner.messages_, owner.clock_, owner.options_.wait, partition,
                     {offsets.begin(), offsets.end()},
                     [self = shared_from_this(), partition = partition,
                      count = offsets.size()](Result<std::vector<Letter>> read) {
                         if (!read) {
                             self->result.error = std::move(read.error());
                             self->result.verdict = Verdict::failed;
                             self->finish();
                             return;
                         }
                         if (read->size() < count) { // retention took one, or it is unreadable
                             self->letters_complete = false;
                         }
                         self->letters.push_back({partition, std::move(*read)});
                         self->read_next();
                     });
    }

    void committed(const Outcome& outcome) {
        std::map<std::string, std::vector<Arrival>> arrivals;
        const auto stored = std::min(outcome.pushes.size(), layout.groups.size());
        for (std::size_t g = 0; g < stored; ++g) {
            const auto& group = layout.groups[g];
            const auto& push = outcome.pushes[g];
            if (owner.dedup_ != nullptr) { // only now: what was rolled back is no one's knowledge
                owner.dedup_->told(asked[g].key, asked[g].fingerprints, asked[g].vouch, push);
            }
            arrivals[group.queue].push_back(
                {group.partition, push.partition_id, group.items.size()});
        }
        for (const auto& [queue, list] : arrivals) {
            owner.announcer_.arrived(request.tenant, queue, plugin::Origin::transaction, list);
        }
        result.acks.resize(request.acks.size());
        for (const auto& settled : outcome.settled) {
            if (settled.lease_released || settled.freed) {
                owner.announcer_.released(request.tenant, settled.queue, settled.partition,
                                          settled.partition_id, settled.group, settled.covered);
            }
            if (owner.registry_ != nullptr) { // its batch is not whole any more
                owner.registry_->forget({request.tenant, settled.partition_id, settled.group}, {});
            }
            for (const auto i : settled.filed) {
                result.acks.at(i).dlq = true;
            }
        }
        for (std::size_t i = 0; i < request.acks.size(); ++i) {
            if (const auto& word = request.acks[i].item.unknown_word; !word.empty()) {
                result.acks[i].error = words::unknown_status(word);
            }
        }
        for (std::size_t i = 0; i < request.pushes.size(); ++i) {
            const auto leader = layout.slots[i].leader;
            result.pushes.push_back(
                {layout.slots[leader].message_id, request.pushes[i].transaction_id, leader != i});
        }
        result.timers = outcome.timers;
        ring(result.timers, owner.clock_, owner.options_.scheduled);
        count(outcome);
        finish();
    }

    std::string duplicate_text(const Outcome& outcome) const {
        std::vector<std::string> texts;
        for (const auto& repeat : outcome.repeats) {
            if (repeat.segment >= layout.groups.size() ||
                repeat.frame >= layout.groups[repeat.segment].items.size()) {
                continue;
            }
            const auto& group = layout.groups[repeat.segment];
            const auto& item = request.pushes[group.items[repeat.frame]];
            texts.push_back("transactionId " + shown(item.transaction_id) + " is at offset " +
                            std::to_string(repeat.first.value()) + " of queue " +
                            shown(group.queue) + ", partition " + shown(group.partition));
        }
        return "QDUP: pushed before: " + listed(texts);
    }

    std::string rejected_text(const Outcome& outcome) const {
        using Refusal = Outcome::Refusal;
        std::vector<std::string> texts;
        for (const auto& lease : outcome.lost_leases) {
            texts.push_back("required lease " + shown(lease) + ": " + words::kLostLease);
        }
        for (const auto& rejection : outcome.rejections) {
            if (rejection.ack >= request.acks.size()) {
                continue;
            }
            std::string why = rejection.error;
            switch (rejection.refusal) {
            case Refusal::told:
                break;
            case Refusal::unresolved:
                why = words::kUnresolvable;
                break;
            case Refusal::stale:
                why = words::kBeyond;
                break;
            case Refusal::committed:
                why = words::kCommitted;
                break;
            case Refusal::no_letter:
                why = words::kNoDeadLetters;
                break;
            }
            const auto& item = request.acks[rejection.ack].item;
            texts.push_back("ack of transactionId " + shown(item.transaction_id) +
                            " in partition " + item.partition_id + ": " + why);
        }
        return "QTXN: " + listed(texts);
    }

    void refuse(Verdict verdict, std::string text) {
        result.verdict = verdict;
        result.error = {Errc::conflict, std::move(text), {}};
        finish();
    }

    void count(const Outcome& outcome) const {
        std::map<std::string_view, metrics::QueueFigures> by_queue;
        std::uint64_t messages = 0;
        for (const auto& group : layout.groups) {
            by_queue[group.queue].push_messages += group.items.size();
            messages += group.items.size();
        }
        for (const auto& settled : outcome.settled) {
            auto& figures = by_queue[settled.queue];
            for (const auto i : settled.acks) {
                const auto status = request.acks[i].item.status;
                const auto word = static_cast<std::size_t>(ack_result(status));
                ++figures.acks[word];
                owner.activity_->ack.by_result[word].add();
            }
            owner.activity_->ack.dead_letters.add(settled.filed.size());
        }
        owner.activity_->push.messages.add(messages);
        owner.activity_->push.duplicates.add(request.pushes.size() - messages);
        owner.activity_->ack.messages.add(request.acks.size());
        for (const auto& [queue, figures] : by_queue) {
            owner.activity_->queues.add(queue, figures);
        }
    }

    void finish() {
        auto& counters = owner.activity_->transaction;
        switch (result.verdict) {
        case Verdict::committed:
            counters.committed.add();
            break;
        case Verdict::duplicate:
            counters.duplicate.add();
            break;
        case Verdict::rejected_ack:
            counters.rejected.add();
            break;
        case Verdict::no_key:
        case Verdict::failed:
            counters.failed.add();
            break;
        }
        done(std::move(result));
    }

    Transactions& owner;
    TransactionRequest request;
    std::function<void(TransactionResult)> done;
    PushLayout layout;
    std::vector<SegmentForm> forms; ///< by group
    std::vector<Uuid> partitions;   ///< by ack
    std::vector<Asked> asked;       ///< by group; with a cache only
    TransactionResult result;
    int tries = 0;
    std::map<Uuid, std::set<Offset>> to_read; ///< of letters
    std::vector<PartitionLetters> letters;
    bool letters_complete = true;
    int letter_rounds = 0;
};

Transactions::Transactions(TransactionStore& store, Store& messages, Announcer& announcer,
                           const Clock& clock, Options options, DedupCache* dedup,
                           AckRegistry* registry)
    : store_(store), messages_(messages), announcer_(announcer), clock_(clock),
      options_(std::move(options)), dedup_(dedup), registry_(registry),
      packer_(options_.zstd_level, options_.encryption ? options_.encryption->cipher() : nullptr),
      activity_(metrics::Activity::or_own(options_.activity, clock)),
      encryption_(Encryption::or_none(options_.encryption)) {}

void Transactions::run(TransactionRequest request, std::function<void(TransactionResult)> done) {
    std::make_shared<Job>(*this, std::move(request), std::move(done))->start();
}

} // namespace queen::broker
