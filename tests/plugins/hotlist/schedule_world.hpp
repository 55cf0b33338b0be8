// One hot-list over the model store, driven one step at a time: what a broker does around a source,
// cut where something else may come between. A commit and the mark that tells of it; the take, the
// beginning of the claim's statement, its run, the settle; an ack and its release; the pages of a
// walk as they are read and as they arrive. Everything told to the source later than it happened
// lies in events() until it is told.
#pragma once
#include "../../../plugins/hotlist/hotlist.hpp"
#include "schedule_store.hpp"

#include <queen/plugin/testing.hpp>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace queen::hotlist::schedule {

struct Setup {
    Options options;
    std::size_t page = 1000;      ///< partitions that a page of a walk covers
    bool prompt_releases = false; ///< a release is told before the next claim of it is settled
    bool check_releases = false;  ///< what a release frees is ready when it is told
};

/// (tenant, queue) by the store's index, and the group.
struct Place {
    std::size_t queue = 0;
    std::string group;
    friend auto operator<=>(const Place&, const Place&) = default;
};

/// One pop on its way.
struct Pop {
    Place place;
    ClaimArgs args;
    plugin::Selection selection;
    std::vector<plugin::NameList::Entry> offered;
    std::vector<std::string> names;
    std::optional<Store::Snapshot> seen;         ///< the statement has begun
    std::optional<std::vector<Claimed>> answers; ///< and has ended
    plugin::QueueConfig config;                  ///< as the statement read it
};
using PopPtr = std::shared_ptr<Pop>;

/// A lease somebody holds.
struct Batch {
    Place place;
    std::string partition;
    Uuid id;
    std::uint64_t worker = 0;
    std::int64_t first = 0, last = -1;
};

/// What has happened and is not yet told.
struct Event {
    enum Kind { mark, released, forget, configured } kind = mark;
    std::size_t queue = 0;
    std::string group = {}; ///< empty: every group
    std::string partition = {};
    Uuid id = {};
    std::uint64_t frames = 0;
    bool covered = false;
    plugin::QueueConfig config = {};
    plugin::Origin origin = plugin::Origin::push;
};

/// A walk that was asked for.
struct Walk {
    Place place;
    plugin::Ticket ticket = 0;
    Nanoseconds window{0};
    DbTime since = DbTime::min();
    Uuid after;
    bool begun = false;
    std::optional<Store::Page> page; ///< read, not yet told
    plugin::QueueConfig config;
};

class World final : public plugin::CandidateHost {
public:
    static constexpr std::size_t kAcmeOrders = 0, kBlueOrders = 1, kAcmeJobs = 2, kBlueJobs = 3;
    static constexpr Nanoseconds kHostFloor{1'000'000'000}; ///< a parked scope looks so often
    static constexpr Nanoseconds kMostJitter{15'000'000'000};

    explicit World(Setup setup = {});
    ~World() override;

    plugin::Queue queue(std::size_t index) const;
    plugin::Scope scope(const Place& place) const;
    const std::vector<Place>& places() const { return places_; } ///< two queues, tenants, groups

    /// Lets each place have its ring, with its first walk done.
    void warm();
    /// Lets time pass for us and for the database alike; no tick is called.
    void advance(Nanoseconds by);

    // ---- pushes ----
    void commit(std::size_t queue, const std::string& partition, std::uint64_t frames = 1,
                plugin::Origin origin = plugin::Origin::push);
    void push(std::size_t queue, const std::string& partition, std::uint64_t frames = 1);

    // ---- pops ----
    PopPtr take(const Place& place, ClaimArgs args = {}, std::uint32_t round = 0);
    void begin(Pop& pop); ///< the statement's look without locks
    void claim(Pop& pop); ///< the statement's claims; begins it when need be
    std::vector<Batch> settle(const PopPtr& pop); ///< claims first when need be. @return its leases
    void drop(const PopPtr& pop);                 ///< it dies: settles without verdicts
    void strand(const PopPtr& pop);               ///< it dies and nobody settles
    std::vector<Batch> pop(const Place& place, ClaimArgs args = {}); ///< all of it
    /// A pop that names its partition asks no source; what it learns is told.
    std::vector<Batch> pinned(const Place& place, const std::string& partition,
                              ClaimArgs args = {});
    /// Another broker's consumer takes and completes all there is; nothing is told here.
    void consume_elsewhere(const Place& place);
    void push_elsewhere(std::size_t queue, const std::string& partition, std::uint64_t frames = 1);

    // ---- leases ----
    /// Completes the first `done` messages, gives back the rest; the release is an event.
    void ack(const Batch& batch, std::int64_t done, bool keep = false);
    void ack(const Batch& batch) { ack(batch, batch.last - batch.first + 1); }
    void nack(const Batch& batch) { ack(batch, 0); }
    void lose(const Batch& batch); ///< its consumer is gone, its lease runs out

    // ---- what is told ----
    std::deque<Event>& events() { return events_; }
    void tell(std::size_t index = 0);
    void tell_all();

    // ---- walks ----
    std::deque<Walk>& walks() { return walks_; }
    void read(Walk& walk);         ///< its next page, at this instant
    void apply(std::size_t index); ///< the page that was read; the last one ends the walk
    void fail(std::size_t index);  ///< the walk ends incomplete
    void finish_walks();

    // ---- ticks ----
    SteadyTime next_tick() const { return next_tick_; }
    void tick();

    /// Time passes from one event to the next: ticks when they are due, walks as they are asked,
    /// one consumer for each place.
    struct Run {
        bool told_only = false; ///< consumers look when told; else when peek says so
        bool walks = true;
        bool consumers = true;
        bool until_drained = true; ///< ends early when everything is delivered
    };
    void run(Nanoseconds span, Run how);
    void run(Nanoseconds span) { run(span, Run{}); }
    /// One consumer's look, as a broker does it. @return whether it took something
    bool look(std::size_t place);
    void look_if_told(std::size_t place);

    bool drained() const;
    std::string undelivered() const;
    plugin::Readiness peek(const Place& place) { return list->peek(scope(place)); }
    std::map<std::string, double> stats();
    double stat(const std::string& name) { return stats()[name]; }
    /// Names the hot-list could offer for the place now; they are given back as they were.
    std::vector<std::string> offers(const Place& place);

    const std::vector<std::string>& faults() const { return faults_; }
    const std::vector<std::string>& trace() const { return trace_; } ///< all that came out

    plugin::ManualClock clock;
    Store store;
    std::vector<PopPtr> pops;   ///< open ones
    std::vector<Batch> batches; ///< leases held
    std::uint64_t claims = 0;   ///< names that went into statements
    std::uint64_t stranded = 0; ///< selections that nobody settled
    std::uint64_t wakes = 0;    ///< asked for by the hot-list
    bool tracing = false;
    std::unique_ptr<HotList> list;

    // ---- the host ----
    void wake(const plugin::Queue& queue, std::string_view group, std::uint64_t ready) override;
    void reseed(const plugin::Scope& scope, plugin::Ticket ticket, Nanoseconds window) override;
    void tick_at(SteadyTime when) override;

private:
    struct Consumer {
        bool told = true;
        SteadyTime again = SteadyTime::min(); ///< no look before, unless told
        bool idle = false;                    ///< the last look found nothing to look at
    };

    void open(const Pop& pop);
    void close(const PopPtr& pop);
    void fault(std::string text);
    void trace(std::string text);
    void wake_consumers(std::size_t queue, std::string_view group);
    std::size_t queue_of(std::string_view key);
    bool step(const Run& how);
    bool wants_look(std::size_t place, const Run& how);
    SteadyTime next_event(const Run& how);
    plugin::QueueConfig config(std::size_t queue) const;
    void check_offer(const Pop& pop);
    void check_release(const Event& event);

    const Setup setup_;
    std::vector<std::string> keys_, tenants_, names_;
    std::vector<Place> places_;
    std::vector<Consumer> consumers_;
    std::deque<Event> events_;
    std::deque<Walk> walks_;
    /// Who has which partition checked out: nobody else may be offered it, until the floor or a
    /// deletion takes it back.
    std::map<Place, std::map<std::string, const Pop*>> open_;
    std::vector<std::unique_ptr<plugin::Cookie>> lost_;
    std::vector<PopPtr> stranded_;
    std::map<std::size_t, std::map<std::string, bool>> known_; ///< partitions of each queue
    SteadyTime next_tick_ = SteadyTime::max();
    std::uint64_t workers_ = 0;
    std::vector<std::string> faults_, trace_;
};

} // namespace queen::hotlist::schedule
