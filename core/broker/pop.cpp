#include "broker/pop.hpp"

#include "base/text.hpp"
#include "broker/pending_probe.hpp"
#include "broker/pop_turn.hpp"
#include "broker/queue_configs.hpp"
#include "broker/seeded_groups.hpp"
#include "broker/selection.hpp"
#include "model/names.hpp"
#include "model/uuid7.hpp"

#include <algorithm>

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
          deadline_(impl_.clock.now() + request_.timeout) {}

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
                .budget = request_.batch,
                .lease_seconds = request_.lease_seconds,
                .worker = worker_,
                .auto_ack = request_.auto_ack,
                .max_partitions = request_.partitions,
                .sub_mode = std::string(request_.subscription.sql_mode()),
                .sub_from = request_.subscription.sql_from(),
                .skip_window = skip_window};
    }

    PendingQuery pending_query() const {
        PendingQuery query{.tenant = request_.tenant,
                           .queue = request_.queue,
                           .group = request_.group,
                           .partition = {},
                           .labels = {}};
        if (request_.shape == PopRequest::Shape::pinned) {
            query.partition = request_.partition;
        } else if (request_.shape == PopRequest::Shape::discovery) {
            query.labels = {request_.ns, request_.task};
        }
        return query;
    }

    void look(bool again, LookDone done) {
        if (impl_.options.paused && impl_.options.paused()) {
            batch_.paused = true;
            done({.over = true});
        } else if (request_.shape == PopRequest::Shape::wildcard) {
            look_wildcard(std::move(done));
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

    void look_wildcard(LookDone done) {
        if (!impl_.seeded.contains(key_, request_.group)) {
            impl_.activity->pop.first_contacts.add();
            scan(nullptr, std::move(done)); // first contact: provisions, registers, seeds
            return;
        }
        const auto& source = impl_.sources.serving(request_.tenant, request_.queue);
        const auto readiness = source->peek(scope());
        switch (readiness.state) {
        case plugin::ReadyState::ready:
        case plugin::ReadyState::cold:
            round(0, std::move(done));
            return;
        case plugin::ReadyState::ask_store:
            probe(std::move(done),
                  [](PopWork& work, LookDone then) { work.round(0, std::move(then)); });
            return;
        case plugin::ReadyState::nothing:
            break;
        }
        // Without hints from other brokers a push over there is unseen until a floor; a client that
        // does not wait would never learn of it, so it asks the store now and then.
        if (!request_.wait && impl_.probe.due(pending_query(), impl_.options.probe_interval)) {
            probe(std::move(done),
                  [](PopWork& work, LookDone then) { work.scan(nullptr, std::move(then)); });
            return;
        }
        done({.next_due = readiness.next_due});
    }

    template <class Then>
    void probe(LookDone done, Then then) {
        impl_.probe.ask(pending_query(), [self = shared_from_this(), done = std::move(done),
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
                                .partitions = static_cast<std::uint32_t>(request_.partitions),
                                .messages = static_cast<std::uint64_t>(request_.batch),
                                .limit = candidate_limit(request_.partitions, number)};
        auto held = std::make_shared<HeldSelection>(source, take);
        switch (held->pick()) {
        case plugin::Pick::none:
            done({.next_due = source->peek(scope()).next_due});
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
                    if (!result->seeded) {
                        self->impl_.seeded.forget(self->key_, self->request_.group);
                    }
                    if (result->partitions.empty() && number + 1 < kMaxRounds) {
                        held.reset();
                        self->round(number + 1, std::move(done));
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
                    if (result->seeded) { // else somebody is at it: the next look tries again
                        self->impl_.seeded.add(self->key_, self->request_.group);
                    }
                    if (held) {
                        held->settle(*result, self->request_.auto_ack, self->asked_);
                    } else if (!result->partitions.empty()) {
                        // Pushed elsewhere, and perhaps not alone.
                        self->impl_.probe.found(self->pending_query());
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
        std::int64_t room = request_.batch;
        for (const auto& partition : popped.partitions) {
            for (const auto& segment : partition.segments) {
                room -= segment.take;
            }
        }
        return hinted || room <= 0 ||
               popped.partitions.size() >= static_cast<std::size_t>(request_.partitions) ||
               std::any_of(popped.partitions.begin(), popped.partitions.end(),
                           [](const PoppedPartition& p) { return !p.drained; });
    }

    template <class More>
    void claimed(Result<PopResult> result, const LookDone& done, More more) {
        if (!result) {
            done({.error = result.error()});
            return;
        }
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
        return config && config->window > Nanoseconds{0} && held.window_held() == config->window;
    }

    void tell_config(const Result<PopResult>& result) {
        if (!result || request_.shape == PopRequest::Shape::discovery) {
            return; // a discovery spans queues
        }
        const plugin::QueueConfig config{std::chrono::seconds(result->delay_seconds),
                                         std::chrono::seconds(result->window_seconds), asked_};
        impl_.configs.learn(key_, config);
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

    void finish(PopTurn::End end, std::optional<Error> error) {
        const auto done = std::exchange(done_, nullptr);
        switch (end) {
        case PopTurn::End::taken:
            count_delivered();
            done(std::move(batch_));
            return;
        case PopTurn::End::empty:
            count_empty();
            done(PopBatch{.lease_id = {}, .partitions = {}, .paused = batch_.paused});
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

void Pop::forget(std::string_view tenant, std::string_view queue) {
    const auto key = queue_key(tenant, queue);
    impl_->seeded.forget(key);
    impl_->configs.forget(key);
}

} // namespace queen::broker
