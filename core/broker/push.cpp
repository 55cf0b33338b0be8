#include "broker/push.hpp"

#include "broker/dedup_cache.hpp"
#include "model/frame.hpp"
#include "model/segment.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace queen::broker {
namespace {

/// A statement that only lost a race (deadlock, serialization) is sent again this often.
constexpr int kTransientTries = 3;

/// SQLSTATE of a row that stayed locked for as long as a push waits for it (PUSH-9).
constexpr std::string_view kLockNotAvailable = "55P03";
constexpr const char* kLocked = "the partition is locked in the database; try again";

} // namespace

/// One request until its answer. Lives in the callbacks of the statement under way.
struct Push::Job : std::enable_shared_from_this<Push::Job> {
    Job(Push& push_in, PushRequest request_in,
        std::function<void(std::vector<PushItemResult>)> done_in)
        : push(push_in), request(std::move(request_in)), done(std::move(done_in)) {}

    /// Groups that go into one statement.
    struct Call {
        /// What the dedup cache was asked about a segment, and what it answered.
        struct Asked {
            std::string key;
            std::vector<std::uint64_t> fingerprints;
            std::optional<Vouch> vouch;
        };
        std::vector<std::size_t> groups;
        int tries = 0;
        std::vector<Asked> asked{}; ///< of what was sent, by position; with a cache only
    };
    /// A frame that the store knows already; its first message's id is looked up.
    struct Repeat {
        std::size_t item;
        Uuid partition_id;
        Offset first;
    };

    using Group = PushLayout::Group;

    void start() {
        assign_ids();
        plan(all_groups());
        next();
    }

    void assign_ids() {
        for (auto& item : request.items) {
            item.producer_sub = request.producer_sub;
        }
        layout = lay_out(request.items, push.ids_);
        for (const auto& group : layout.groups) {
            forms.push_back({push.encryption_->wanted(request.tenant, group.queue)});
        }
        for (std::size_t i = 0; i < request.items.size(); ++i) {
            PushItemResult result;
            result.message_id = layout.slots[i].message_id;
            result.transaction_id = request.items[i].transaction_id;
            results.push_back(std::move(result));
        }
    }

    std::vector<std::size_t> all_groups() const {
        std::vector<std::size_t> all(layout.groups.size());
        for (std::size_t i = 0; i < all.size(); ++i) {
            all[i] = i;
        }
        return all;
    }

    /// Packs the groups and cuts them into statements of bounded size.
    void plan(const std::vector<std::size_t>& wanted) {
        const auto planned = calls.size();
        std::size_t bytes = 0;
        for (const auto g : wanted) {
            const auto& segment = segments[g] = pack(g);
            const auto size = segment.blob.size();
            if (calls.size() == planned ||
                calls.back().groups.size() >= push.options_.call_segments ||
                bytes + size > push.options_.call_bytes) {
                calls.push_back({});
                bytes = 0;
            }
            calls.back().groups.push_back(g);
            bytes += size;
        }
    }

    PushSegment pack(std::size_t g) const {
        return push.packer_.pack(request.tenant, layout.groups[g], request.items, layout,
                                 forms[g].encrypted);
    }

    /// The segment as planned; one that is sent again is packed again, which is rare, instead of
    /// keeping a copy of every one that is sent.
    PushSegment take_segment(std::size_t g) {
        const auto packed = segments.find(g);
        if (packed == segments.end()) {
            return pack(g);
        }
        auto segment = std::move(packed->second);
        segments.erase(packed);
        return segment;
    }

    void next() {
        if (calls.empty()) {
            std::sort(repeats.begin(), repeats.end(), [](const Repeat& a, const Repeat& b) {
                return std::tie(a.partition_id, a.first) < std::tie(b.partition_id, b.first);
            });
            find_first_ids();
            return;
        }
        auto call = std::move(calls.front());
        calls.pop_front();
        ++call.tries;
        std::vector<PushSegment> batch;
        call.asked.clear();
        for (const auto g : call.groups) {
            auto& segment = batch.emplace_back(take_segment(g));
            if (push.dedup_ != nullptr) { // as late as can be: the cache knows more by then
                auto& asked = call.asked.emplace_back(
                    Call::Asked{dedup_key(segment.tenant, segment.queue, segment.partition),
                                fingerprints_of(segment.hashes),
                                {}});
                asked.vouch = push.dedup_->vouch(asked.key, asked.fingerprints);
                segment.vouch = asked.vouch;
            }
        }
        push.store_.push(push.clock_.now() + push.options_.wait, std::move(batch),
                         [self = shared_from_this(), call = std::move(call)](
                             const Result<std::vector<PushOutcome>>& outcomes) {
                             self->answered(call, outcomes);
                         });
    }

    void answered(const Call& call, const Result<std::vector<PushOutcome>>& outcomes) {
        if (!outcomes) {
            refused(call, outcomes.error());
        } else if (outcomes->size() != call.groups.size()) {
            fail_groups(call, "the store answered for another number of groups");
        } else {
            accept(call, *outcomes);
        }
        next();
    }

    void refused(const Call& call, const Error& error) {
        // Without a SQLSTATE the link broke and the statement may have committed (ERR-2): only the
        // client knows whether its queue's dedup window makes another try safe.
        const bool rolled_back = error.code == Errc::transient && !error.sqlstate.empty();
        // Waiting again with all the others would not help them.
        const bool locked = error.sqlstate == kLockNotAvailable;
        const bool alone = call.groups.size() == 1;
        if (rolled_back && call.tries < kTransientTries && (alone || !locked)) {
            calls.push_front(call);
            return;
        }
        const bool permanent =
            error.code == Errc::store_failed || error.code == Errc::invalid_argument;
        if (alone || !(permanent || locked)) {
            fail_groups(call, locked ? kLocked : error.message);
            return;
        }
        // One bad group failed the statement: halve until it stands alone (its neighbours store).
        const auto middle =
            call.groups.begin() + static_cast<std::ptrdiff_t>(call.groups.size() / 2);
        calls.push_front({{middle, call.groups.end()}, 0});
        calls.push_front({{call.groups.begin(), middle}, 0});
    }

    void fail_groups(const Call& call, const std::string& why) {
        for (const auto g : call.groups) {
            for (const auto i : layout.groups[g].items) {
                results[i].status = PushStatus::error;
                results[i].error = why;
            }
        }
    }

    void accept(const Call& call, const std::vector<PushOutcome>& outcomes) {
        std::vector<std::size_t> again;
        std::unordered_map<std::string, std::vector<Arrival>> arrivals;
        for (std::size_t n = 0; n < outcomes.size(); ++n) {
            const auto g = call.groups[n];
            const auto& outcome = outcomes[n];
            auto& group = layout.groups[g];
            if (outcome.wants_encrypted) { // before anything was compared
                if (change_form(g, *outcome.wants_encrypted)) {
                    again.push_back(g);
                }
                continue;
            }
            if (push.dedup_ != nullptr) {
                const auto& asked = call.asked[n];
                push.dedup_->told(asked.key, asked.fingerprints, asked.vouch, outcome);
            }
            if (!outcome.duplicate) {
                queued(group, outcome);
                arrivals[group.queue].push_back(
                    {group.partition, outcome.partition_id, group.items.size()});
            } else if (drop_repeats(group, outcome) && !group.items.empty()) {
                again.push_back(g); // survivors, in a transaction of their own (FUS-9)
            }
        }
        for (const auto& [queue, list] : arrivals) {
            push.announcer_.arrived(request.tenant, queue, plugin::Origin::push, list);
        }
        plan(again);
    }

    /// False when the group cannot be stored that way: then its items are in error.
    bool change_form(std::size_t g, bool encrypted) {
        const auto changed =
            push.encryption_->change(forms[g], request.tenant, layout.groups[g].queue, encrypted);
        if (changed) {
            return true;
        }
        for (const auto i : layout.groups[g].items) {
            results[i].error = changed.error().message;
        }
        return false;
    }

    void queued(const Group& group, const PushOutcome& outcome) {
        auto offset = outcome.base.value();
        for (const auto i : group.items) {
            results[i].status = PushStatus::queued;
            results[i].offset = Offset{offset++};
        }
    }

    /// Takes the frames the store knows out of the group. False when the answer makes no sense:
    /// then nothing was stored and every item is in error.
    bool drop_repeats(Group& group, const PushOutcome& outcome) {
        std::vector<bool> known(group.items.size(), false);
        for (const auto& repeat : outcome.repeats) {
            if (repeat.frame >= known.size()) {
                continue;
            }
            const auto item = group.items[repeat.frame];
            known[repeat.frame] = true;
            results[item].status = PushStatus::duplicate;
            results[item].message_id = {};
            results[item].offset = repeat.first;
            repeats.push_back({item, outcome.partition_id, repeat.first});
        }
        std::vector<std::size_t> survivors;
        for (std::size_t f = 0; f < known.size(); ++f) {
            if (!known[f]) {
                survivors.push_back(group.items[f]);
            }
        }
        const bool shrunk = survivors.size() < group.items.size(); // also bounds the rounds
        if (!shrunk) {
            for (const auto i : group.items) {
                results[i].error = "the store answered 'duplicate' without naming one";
            }
        }
        group.items = std::move(survivors);
        return shrunk;
    }

    /// Looks up the message ids behind the repeats, one stored segment at a time, from the last.
    /// They are in order, so that those of one segment are found without a search.
    void find_first_ids() {
        if (repeats.empty()) {
            answer();
            return;
        }
        const auto wanted = repeats.back();
        push.store_.segment_at(
            push.clock_.now() + push.options_.wait, wanted.partition_id, wanted.first,
            [self = shared_from_this(), wanted](const Result<std::optional<StoredSegment>>& found) {
                if (found && *found) {
                    self->read_ids(wanted.partition_id, **found);
                } else {
                    self->repeats.pop_back(); // retention took it: the id stays all zero
                }
                self->find_first_ids();
            });
    }

    /// Settles the last repeat and every other whose first message lies in this segment.
    void read_ids(const Uuid& partition_id, const StoredSegment& segment) {
        const auto bytes = decompress_segment(segment.blob);
        const auto frames =
            bytes ? parse_frames(*bytes) : Result<std::vector<Frame>>(fail(bytes.error()));
        do {
            const auto& repeat = repeats.back();
            const auto index =
                static_cast<std::size_t>(repeat.first.value() - segment.base.value());
            if (frames && index < frames->size()) { // unreadable: the id stays all zero
                results[repeat.item].message_id = (*frames)[index].message_id;
            }
            repeats.pop_back();
        } while (!repeats.empty() && repeats.back().partition_id == partition_id &&
                 repeats.back().first >= segment.base);
    }

    void answer() {
        for (std::size_t i = 0; i < results.size(); ++i) {
            const auto& leader = results[layout.slots[i].leader];
            if (layout.slots[i].leader == i) {
                continue;
            }
            results[i].message_id = leader.message_id;
            results[i].offset = leader.offset;
            results[i].error = leader.error;
            results[i].status =
                leader.status == PushStatus::queued ? PushStatus::duplicate : leader.status;
        }
        count();
        done(std::move(results));
    }

    void count() const {
        auto& counters = push.activity_->push;
        std::map<std::string_view, std::uint64_t> stored; ///< by queue
        std::uint64_t messages = 0, duplicates = 0, failed = 0;
        for (std::size_t i = 0; i < results.size(); ++i) {
            auto& of_queue = stored[request.items[i].queue];
            switch (results[i].status) {
            case PushStatus::queued:
            case PushStatus::buffered:
                ++of_queue;
                ++messages;
                break;
            case PushStatus::duplicate:
                ++duplicates;
                break;
            case PushStatus::failed:
            case PushStatus::error:
                ++failed;
                break;
            }
        }
        counters.messages.add(messages);
        counters.duplicates.add(duplicates);
        counters.failed.add(failed);
        for (const auto& [queue, count] : stored) {
            push.activity_->queues.add(queue, {.push_requests = 1, .push_messages = count});
        }
    }

    Push& push;
    PushRequest request;
    std::function<void(std::vector<PushItemResult>)> done;
    std::vector<PushItemResult> results;
    PushLayout layout;
    std::vector<SegmentForm> forms;                        ///< by group
    std::unordered_map<std::size_t, PushSegment> segments; ///< packed and not sent yet, by group
    std::deque<Call> calls;
    std::vector<Repeat> repeats; ///< by partition and offset once nothing is left to push
};

Push::Push(Store& store, Announcer& announcer, const Clock& clock, Options options,
           DedupCache* dedup)
    : store_(store), announcer_(announcer), clock_(clock), options_(std::move(options)),
      dedup_(dedup),
      packer_(options_.zstd_level, options_.encryption ? options_.encryption->cipher() : nullptr),
      activity_(metrics::Activity::or_own(options_.activity, clock)),
      encryption_(Encryption::or_none(options_.encryption)) {}

void Push::push(PushRequest request, std::function<void(std::vector<PushItemResult>)> done) {
    if (request.items.empty()) {
        done({});
        return;
    }
    activity_->push.requests.add();
    std::make_shared<Job>(*this, std::move(request), std::move(done))->start();
}

} // namespace queen::broker
