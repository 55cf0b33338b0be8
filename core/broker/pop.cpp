#include "broker/pop.hpp"

#include "base/text.hpp"
#include "broker/fill_wait.hpp"
#include "broker/pending_probe.hpp"
#include "broker/pop_turn.hpp"
#include "broker/seeded_groups.hpp"
#include "broker/selection.hpp"
#include "model/names.hpp"
#include "model/uuid7.hpp"

#include <algorithm>
#include <limits>

namespace queen::broker {
namespace {

constexpr std::chrono::seconds kLeastWait{1}; ///< for a session, whatever the client's timeout
constexpr std::uint32_t kMaxRounds = 4;       ///< a source is asked this often in one look
constexpr std::uint64_t kMostCandidates = 256;

/// A source that has more to offer after a look that took nothing is asked again this soon: slow
/// enough that names that never hold anything cost a bounded number of statements.
constexpr std::chrono::milliseconds kLookAgain{10};

/// How old a queue's window may be to believe that a source has waited for it (WIN-1).
constexpr std::chrono::seconds kWindowAge{30};

/// Names asked of a source for a pop of that many partitions. Later rounds follow one in which
/// every name was stale: more at a time, so that many stale names do not hide a good one.
std::uint64_t candidate_limit(std::int32_t partitions, std::uint32_t round) {
    if (round > 0) {
        return kMostCandidates;
    }
    return std::clamp<std::uint64_t>(8u * static_cast<std::uint64_t>(std::max(partitions, 1)), 16,
                                     kMostCandidates);
}

} // namespace

class Pop::Impl {
public:
    Impl(Store& store_in, const Sources& sources_in, Announcer& announcer_in, Parking& parking_in,
         Workers& workers_in, Ticker& ticker_in, const Clock& clock_in, Options options_in)
        : store(store_in), sources(sources_in), announcer(announcer_in), parking(parking_in),
          workers(workers_in), ticker(ticker_in), clock(clock_in), options(std::move(options_in)),
          activity(metrics::Activity::or_own(options.activity, clock_in)),
          probe(store_in, clock_in, options.wait, activity->pop) {}

    Store::Deadline session_deadline() const { return clock.now() + options.wait; }
    /// A pop that waits is not kept past its own deadline by a queue for sessions; it gets a second
    /// all the same, or a short timeout could never claim on a busy broker.
    Store::Deadline session_deadline(const PopRequest& request, SteadyTime deadline) const {
        const auto longest = session_deadline();
        return request.wait ? std::min(longest, std::max(deadline, clock.now() + kLeastWait))
                            : longest;
    }

    Store& store;
    const Sources& sources;
    Announcer& announcer;
    Parking& parking;
    Workers& workers;
    Ticker& ticker;
    const Clock& clock;
    const Options options;
    const std::shared_ptr<metrics::Activity> activity;
    PendingProbe probe;
    SeededGroups seeded;
    QueueConfigs configs;
    Uuid7 ids;
};

namespace {

using LookDone = std::function<void(LookOutcome)>;

} // namespace

/// One request on its way: chooses candidates, claims, keeps the batch until the turn ends.
class PopWork final : public PopCall, public std::enable_shared_from_this<PopWork> {
public:
    PopWork(Pop::Impl& impl, PopRequest request, Done<PopBatch> done)
        : impl_(impl), request_(std::move(request)), done_(std::move(done)),
          key_(queue_key(request_.tenant, request_.queue)), worker_(to_string(impl_.ids.next())),
          deadline_(impl_.clock.now() + request_.timeout), size_{request_.batch,
                                                                 request_.partitions},
          fill_(deadline_, impl_.activity->pop) {}

    void start() {
        WaitScope scope{.gate = key_, .group = request_.group, .partition = {}, .labels = {}};
        if (request_.shape == PopRequest::Shape::pinned) {
            scope.partition = request_.partition;
        } else if (request_.shape == PopRequest::Shape::discovery) {
            scope.gate = discovery_gate(request_.tenant);
            scope.labels = {request_.ns, request_.task};
        }
        PopTurn::Waiting waiting{
            .wait = request_.wait, .deadline = deadline_, .most_parked = impl_.options.parked};
        const auto self = shared_from_this();
        const auto turn = std::make_shared<PopTurn>(
            impl_.parking, impl_.workers, impl_.ticker, impl_.clock, scope, waiting,
            [self](bool again, LookDone look_done) { self->look(again, std::move(look_done)); },
            [self](PopTurn::End end, std::optional<Error> error) {
                self->finish(end, std::move(error));
            });
        turn_ = turn;
        turn->start();
    }

    void abandon() override {
        if (const auto turn = turn_.lock()) {
            turn->abandon();
        }
    }

private:
    plugin::Scope scope() const {
        return {{key_, request_.tenant, request_.queue}, request_.group};
    }

    PopArgs args(bool skip_window = false) {
        asked_ = impl_.clock.now();
        return {.tenant = request_.tenant,
                .queue = request_.queue,
                .group = request_.group,
                .budget = size_.batch,
                .lease_seconds = request_.lease_seconds,
                .worker = worker_,
                .auto_ack = request_.auto_ack,
                .max_partitions = size_.partitions,
                .sub_mode = std::string(request_.subscription.sql_mode()),
                .sub_from = request_.subscription.sql_from(),
                .skip_window = skip_window,
                .conflate = request_.conflation};
    }

    void look(bool again, LookDone done) {
        if (impl_.options.paused && impl_.options.paused()) {
            batch_.paused = true;
            done({.over = true});
            return;
        }
        if (request_.shape == PopRequest::Shape::wildcard) {
            look_wildcard(std::move(done));
            return;
        }
        choose({});
        if (may_fill()) {
            look_filling(std::move(done));
        } else if (again && impl_.options.pending_gate) {
            // A re-poll: one index step tells whether the claim is worth a statement (LP-5).
            probe(std::move(done),
                  [](PopWork& work, LookDone then) { work.claim(std::move(then)); });
        } else {
            claim(std::move(done));
        }
    }

    /// Pinned and discovery pops ask no source: the name is given, or the store picks.
    void claim(LookDone done) {
        const auto self = shared_from_this();
        auto claimed = [self, done = std::move(done)](Result<PopResult> result) {
            self->tell_config(result);
            const bool pinned = self->request_.shape == PopRequest::Shape::pinned;
            self->claimed(std::move(result), done, [&](const PopResult& popped) {
                // One pinned batch is all a group may hold; auto-ack may leave a backlog behind.
                return !pinned || (self->request_.auto_ack && !popped.partitions.front().drained);
            });
        };
        if (request_.shape == PopRequest::Shape::pinned) {
            impl_.store.pop_specific(impl_.session_deadline(request_, deadline_), args(),
                                     request_.partition, std::move(claimed));
        } else {
            impl_.store.pop_discover(impl_.session_deadline(request_, deadline_), args(),
                                     request_.ns, request_.task, std::move(claimed));
        }
    }

    /// Whether this pop may have to wait for a fuller batch. A discovery spans queues with settings
    /// of their own and never does.
    bool may_fill() const {
        return request_.wait && request_.shape != PopRequest::Shape::discovery &&
               (fill_.waits() || impl_.configs.min_pop_wait(key_) > Nanoseconds::zero());
    }

    /// Something is ready: claims, or waits for more. @param ready messages, if known
    template <class Claim>
    void fill_or(std::optional<std::uint64_t> ready, LookDone done, Claim claim) {
        if (request_.wait) {
            const auto until = fill_.until(impl_.configs.min_pop_wait(key_), size_.batch, ready,
                                           impl_.clock.now());
            if (until) {
                done({.hold_until = until, .need = static_cast<std::uint64_t>(size_.batch)});
                return;
            }
        }
        claim(std::move(done));
    }

    /// No source tells what one partition holds: once something is pending the time is waited out.
    void look_filling(LookDone done) {
        const auto take = [self = shared_from_this()](LookDone then) {
            self->fill_or(std::nullopt, std::move(then),
                          [self](LookDone last) { self->claim(std::move(last)); });
        };
        if (fill_.waits()) {
            take(std::move(done));
        } else {
            probe(std::move(done), [take](PopWork&, LookDone then) { take(std::move(then)); });
        }
    }

    void look_wildcard(LookDone done) {
        const auto policy = impl_.seeded.conflates(key_, request_.group);
        if (!policy) {
            impl_.activity->pop.first_contacts.add();
            conflates_ = request_.conflation.value_or(false);
            choose({});
            scan(nullptr, std::move(done)); // first contact: provisions, registers, seeds
            return;
        }
        conflates_ = *policy;
        const auto& source = impl_.sources.serving(request_.tenant, request_.queue);
        const auto readiness = source->peek(scope());
        choose(readiness);
        const auto begin = [self = shared_from_this()](LookDone then) {
            self->round(0, std::move(then));
        };
        switch (readiness.state) {
        case plugin::ReadyState::ready:
            fill_or(messages_in(readiness), std::move(done), begin);
            return;
        case plugin::ReadyState::cold:
            begin(std::move(done));
            return;
        case plugin::ReadyState::ask_store:
            if (fill_.waits()) { // it is pending, as was seen
                fill_or(std::nullopt, std::move(done), begin);
                return;
            }
            probe(std::move(done), [begin](PopWork& work, LookDone then) {
                work.fill_or(std::nullopt, std::move(then), begin);
            });
            return;
        case plugin::ReadyState::nothing:
            break;
        }
        fill_.end(impl_.clock.now());
        look_elsewhere(readiness.next_due, std::move(done));
    }

    /// What the source knows of gives nothing. Without hints from other brokers a push over there
    /// is unseen until a floor; a client that does not wait would never learn of it, so it asks the
    /// store now and then. So it does when candidates were there and are held by others, or a lease
    /// that somebody keeps would hide every other partition from it.
    void look_elsewhere(SteadyTime next_due, LookDone done) {
        if (!request_.wait && !probed_ &&
            impl_.probe.due(pending_query(request_), impl_.options.probe_interval)) {
            probe(std::move(done),
                  [](PopWork& work, LookDone then) { work.scan(nullptr, std::move(then)); });
            return;
        }
        done({.next_due = next_due});
    }

    /// Messages this pop may get of what the source sees; nullopt when it does not count them.
    std::optional<std::uint64_t> messages_in(const plugin::Readiness& ready) const {
        const auto count = conflates_ ? ready.partitions : ready.messages;
        return count > 0 ? std::optional(count) : std::nullopt;
    }

    void choose(const std::optional<plugin::Readiness>& ready) {
        if (request_.autopilot) {
            size_ = choose_size({request_.batch, request_.partitions}, *request_.autopilot, ready,
                                conflates_);
            batch_.chosen = size_;
        }
    }

    template <class Then>
    void probe(LookDone done, Then then) {
        probed_ = true;
        impl_.probe.ask(pending_query(request_), [self = shared_from_this(), done = std::move(done),
                                                  then](const Result<bool>& pending) {
            if (!pending) {
                done({.error = pending.error()});
            } else if (!*pending) {
                done({});
            } else {
                then(*self, done);
            }
        });
    }

    /// Asks the source for candidates and claims among them; a round that took nothing asks again.
    void round(std::uint32_t number, LookDone done) {
        const auto source = impl_.sources.serving(request_.tenant, request_.queue);
        const plugin::Take take{.scope = scope(),
                                .round = number,
                                .partitions = static_cast<std::uint32_t>(size_.partitions),
                                // Of a partition that conflates one message is taken, whatever the
                                // source thinks it holds: only the partitions count.
                                .messages = conflates_ ? std::numeric_limits<std::uint64_t>::max()
                                                       : static_cast<std::uint64_t>(size_.batch),
                                .limit = candidate_limit(size_.partitions, number)};
        auto held = std::make_shared<HeldSelection>(source, take);
        switch (held->pick()) {
        case plugin::Pick::none:
            look_elsewhere(source->peek(scope()).next_due, std::move(done));
            return;
        case plugin::Pick::scan:
            scan(std::move(held), std::move(done));
            return;
        case plugin::Pick::names:
            break;
        }
        auto names = held->names();
        impl_.store.pop_list(
            impl_.session_deadline(request_, deadline_), args(window_held(*held)), std::move(names),
            [self = shared_from_this(), held, source, number,
             done = std::move(done)](Result<PopResult> result) mutable {
                // Before the verdicts: what "empty" means depends on delay and window.
                self->tell_config(result);
                if (result) {
                    held->settle(*result, self->request_.auto_ack, self->asked_);
                    self->know(*result);
                    if (result->partitions.empty() && number + 1 < kMaxRounds) {
                        held.reset();
                        self->round(number + 1, std::move(done));
                        return;
                    }
                    if (result->partitions.empty() && !self->request_.wait) {
                        self->look_elsewhere(source->peek(self->scope()).next_due, std::move(done));
                        return;
                    }
                }
                self->claimed(std::move(result), done, [&](const PopResult& popped) {
                    return self->more_after(*source, popped, true);
                });
            });
    }

    /// The store looks for candidates itself.
    void scan(std::shared_ptr<HeldSelection> held, LookDone done) {
        impl_.store.pop_wildcard(
            impl_.session_deadline(request_, deadline_), args(),
            [self = shared_from_this(), held = std::move(held),
             done = std::move(done)](Result<PopResult> result) {
                self->tell_config(result);
                if (result) {
                    self->know(*result); // not seeded: somebody is at it, the next look tries again
                    if (held) {
                        held->settle(*result, self->request_.auto_ack, self->asked_);
                    } else if (!result->partitions.empty()) {
                        // Pushed elsewhere, and perhaps not alone.
                        self->impl_.probe.found(pending_query(self->request_));
                    }
                }
                auto& source =
                    *self->impl_.sources.serving(self->request_.tenant, self->request_.queue);
                self->claimed(std::move(result), done, [&](const PopResult& popped) {
                    return self->more_after(source, popped, false);
                });
            });
    }

    /// Whether another waiter of this scope may find something after this claim.
    bool more_after(plugin::CandidateSource& source, const PopResult& popped, bool hinted) {
        switch (source.peek(scope()).state) {
        case plugin::ReadyState::ready:
            return true;
        case plugin::ReadyState::nothing:
            return false;
        case plugin::ReadyState::cold:
        case plugin::ReadyState::ask_store:
            break;
        }
        // A scan that came back with less than it may claim, in partitions and in messages, saw
        // nothing else; what comes later brings a wake of its own.
        std::int64_t room = size_.batch;
        for (const auto& partition : popped.partitions) {
            for (const auto& segment : partition.segments) {
                room -= segment.take;
            }
        }
        return hinted || room <= 0 ||
               popped.partitions.size() >= static_cast<std::size_t>(size_.partitions) ||
               std::any_of(popped.partitions.begin(), popped.partitions.end(),
                           [](const PoppedPartition& p) { return !p.drained; });
    }

    template <class More>
    void claimed(Result<PopResult> result, const LookDone& done, More more) {
        if (!result) {
            done({.error = result.error()});
            return;
        }
        batch_.conflates = result->conflates;
        batch_.conflict = result->conflation_conflict;
        told_ = true;
        if (result->partitions.empty()) {
            LookOutcome nothing;
            if (request_.shape == PopRequest::Shape::wildcard) {
                const auto readiness =
                    impl_.sources.serving(request_.tenant, request_.queue)->peek(scope());
                nothing.next_due = readiness.state == plugin::ReadyState::ready
                                       ? impl_.clock.now() + kLookAgain
                                       : readiness.next_due;
            }
            done(nothing);
            return;
        }
        const bool others = more(*result);
        for (const auto& partition : result->partitions) {
            learn(partition);
        }
        batch_.partitions = std::move(result->partitions);
        batch_.lease_id = request_.auto_ack ? std::string() : worker_;
        done({.took = true, .more = others});
    }

    /// The store debounces windowBuffer itself, unless these candidates have waited in memory for
    /// the very window the queue has.
    bool window_held(const HeldSelection& held) const {
        const auto config = impl_.configs.known(key_, impl_.clock.now(), kWindowAge);
        return config && config->visible.window > Nanoseconds{0} &&
               held.window_held() == config->visible.window;
    }

    /// Whether the group is registered, and as what.
    void know(const PopResult& result) {
        if (result.seeded) {
            impl_.seeded.add(key_, request_.group, result.conflates);
            conflates_ = result.conflates;
        } else {
            impl_.seeded.forget(key_, request_.group);
        }
    }

    void tell_config(const Result<PopResult>& result) {
        if (!result || request_.shape == PopRequest::Shape::discovery) {
            return; // a discovery spans queues
        }
        const plugin::QueueConfig config{std::chrono::seconds(result->delay_seconds),
                                         std::chrono::seconds(result->window_seconds), asked_};
        impl_.configs.learn(key_, {config, result->min_pop_wait});
        for (const auto& entry : impl_.sources.all()) {
            entry.source->configured(scope().queue, config);
        }
    }

    void learn(const PoppedPartition& partition) {
        const auto& queue = partition.queue.empty() ? request_.queue : partition.queue;
        const auto key = queue_key(request_.tenant, queue);
        for (const auto& entry : impl_.sources.all()) {
            entry.source->learn({key, request_.tenant, queue}, partition.partition,
                                partition.partition_id);
        }
    }

    /// Without an answer of the store in hand: what is known of the group, else what was asked.
    void tell_policy() {
        const auto known = request_.shape == PopRequest::Shape::wildcard
                               ? impl_.seeded.conflates(key_, request_.group)
                               : std::nullopt;
        batch_.conflates = known.value_or(request_.conflation.value_or(false));
        batch_.conflict = request_.conflation.value_or(batch_.conflates) != batch_.conflates;
    }

    void finish(PopTurn::End end, std::optional<Error> error) {
        const auto done = std::exchange(done_, nullptr);
        fill_.end(impl_.clock.now());
        if (!told_) {
            tell_policy();
        }
        switch (end) {
        case PopTurn::End::taken:
            count_delivered();
            done(std::move(batch_));
            return;
        case PopTurn::End::empty:
            count_empty();
            done(std::move(batch_));
            return;
        case PopTurn::End::failed:
            impl_.activity->pop.failed.add();
            done(fail(std::move(*error)));
            return;
        case PopTurn::End::crowded:
            impl_.activity->pop.failed.add();
            done(fail(Errc::overloaded, "too many pops are waiting: the limit is " +
                                            std::to_string(impl_.options.parked)));
            return;
        case PopTurn::End::abandoned:
            return;
        }
    }

    void count_empty() const {
        impl_.activity->pop.empty.add();
        if (request_.shape != PopRequest::Shape::discovery) { // which belongs to no queue
            impl_.activity->queues.add(request_.queue, {.pop_empty = 1});
        }
    }

    /// The lag compares two machines' wall clocks: a figure to look at, nothing is decided by it.
    void count_delivered() const {
        const auto now = SystemClock::wall();
        auto& counters = impl_.activity->pop;
        counters.taken.add();
        for (const auto& partition : batch_.partitions) {
            metrics::QueueFigures figures;
            for (const auto& segment : partition.segments) {
                const auto lag =
                    std::max<Nanoseconds>(now - segment.created_at, Nanoseconds::zero());
                counters.lag.observe(lag, segment.take);
                figures.pop_messages += segment.take;
                figures.lag_sum += std::chrono::duration<double>(lag) * segment.take;
                figures.lag_max = std::max(figures.lag_max, lag);
            }
            counters.messages.add(figures.pop_messages);
            impl_.activity->queues.add(partition.queue.empty() ? request_.queue : partition.queue,
                                       figures);
        }
    }

    Pop::Impl& impl_;
    const PopRequest request_;
    Done<PopBatch> done_;
    const std::string key_;
    const std::string worker_;
    const SteadyTime deadline_; ///< of the client, when it waits
    SteadyTime asked_{};        ///< when the store was asked last
    PopSize size_;              ///< chosen anew for each look when that is left to the broker
    bool conflates_ = false;    ///< as far as known
    bool probed_ = false;       ///< the store was asked whether anything is pending
    bool told_ = false;         ///< the store has said how it is with conflation
    FillWait fill_;
    PopBatch batch_;
    std::weak_ptr<PopTurn> turn_;
};

Pop::Pop(Store& store, const Sources& sources, Announcer& announcer, Parking& parking,
         Workers& workers, Ticker& ticker, const Clock& clock, Options options)
    : impl_(std::make_unique<Impl>(store, sources, announcer, parking, workers, ticker, clock,
                                   std::move(options))) {}

Pop::~Pop() = default;

std::shared_ptr<PopCall> Pop::pop(PopRequest request, Done<PopBatch> done) {
    impl_->activity->pop.requests.add();
    auto work = std::make_shared<PopWork>(*impl_, std::move(request), std::move(done));
    work->start();
    return work;
}

void Pop::undelivered(const PopRequest& request, const PopBatch& batch) {
    if (batch.lease_id.empty()) {
        return; // auto-ack: at most once, and this was the once
    }
    for (const auto& partition : batch.partitions) {
        const auto queue = partition.queue.empty() ? request.queue : partition.queue;
        impl_->store.release_undelivered(
            impl_->session_deadline(), partition.partition_id, request.group, batch.lease_id,
            [this, tenant = request.tenant, queue, group = request.group,
             name = partition.partition,
             id = partition.partition_id](const Result<bool>& released) {
                if (released && *released) {
                    impl_->activity->pop.given_back.add();
                    impl_->announcer.released(tenant, queue, name, id, group, false);
                }
            });
    }
}

void Pop::close() {
    impl_->parking.close();
}

void Pop::configured(std::string_view tenant, std::string_view queue,
                     const QueueSettings& settings) {
    impl_->configs.learn(queue_key(tenant, queue), settings);
}

QueueConfigs& Pop::configs() noexcept {
    return impl_->configs;
}

void Pop::forget(std::string_view tenant, std::string_view queue) {
    const auto key = queue_key(tenant, queue);
    impl_->seeded.forget(key);
    impl_->configs.forget(key);
}

void Pop::forget(std::string_view tenant, std::string_view queue, std::string_view group) {
    impl_->seeded.forget(queue_key(tenant, queue), std::string(group));
}

} // namespace queen::broker
