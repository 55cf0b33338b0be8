// Walks under a seeded scheduler that picks one step at a time: sources ask, workers run in any
// order, pages come back in any order and any shape, the clock moves, the broker opens and closes.
#include "broker/reseed.hpp"
#include "model/names.hpp"
#include "support/idle_source.hpp"
#include "support/manual_clock.hpp"
#include "support/manual_workers.hpp"
#include "support/scripted_store.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kParallel = 2;
constexpr std::size_t kWaiting = 3;
constexpr std::uint32_t kPages = 3;

struct Step {
    enum Kind {
        open,
        ask,     ///< a source asks for a walk
        work,    ///< a posted task runs
        more,    ///< a page comes back, and partitions are left
        last,    ///< a page comes back, and none is left
        failed,  ///< a page does not come back
        at_once, ///< from now on, or no longer, the store fails inside the call
        pass,    ///< time
        close,
        kinds
    };
    int kind;
    std::uint8_t pick; ///< which of several
};

std::ostream& operator<<(std::ostream& out, const Step& step) {
    static constexpr const char* kNames[] = {"open",   "ask",     "work", "more", "last",
                                             "failed", "at_once", "pass", "close"};
    return out << kNames[step.kind] << '#' << int{step.pick};
}

/// Asks rather often, opens and closes seldom.
rc::Gen<Step> any_step() {
    return rc::gen::apply(
        [](int kind, std::uint8_t pick) {
            return Step{kind, pick};
        },
        rc::gen::weightedElement<int>({{2, Step::open},
                                       {6, Step::ask},
                                       {8, Step::work},
                                       {4, Step::more},
                                       {4, Step::last},
                                       {2, Step::failed},
                                       {1, Step::at_once},
                                       {2, Step::pass},
                                       {1, Step::close}}),
        rc::gen::arbitrary<std::uint8_t>());
}

/// What is true of one walk, kept beside the code under test.
struct Asked {
    bool windowed = false;
    bool wants_more = true; ///< what its source answers to a page
    bool under_way = false; ///< a page of it
    std::uint32_t pages = 0;
    std::uint8_t key = 0; ///< where its last page ended
    bool last_seen = false;
    int done = 0;
    bool complete = false;
    bool configured = false; ///< since its last page
    SteadyTime sent{};
};

class World {
public:
    World() {
        store_.on_reseed_page = [this](const ReseedQuery& query, const Done<ReseedPage>& done) {
            sent(query, done);
        };
    }

    void run(const Step& step) {
        switch (step.kind) {
        case Step::open:
            reseeder_.open();
            opened_ = true;
            break;
        case Step::ask:
            ask(step.pick);
            break;
        case Step::work:
            if (workers_.pending() > 0) {
                workers_.run_one(step.pick % workers_.pending());
            }
            break;
        case Step::more:
        case Step::last:
        case Step::failed:
            if (!under_way_.empty()) {
                answer(step.pick % under_way_.size(), static_cast<Step::Kind>(step.kind));
            }
            break;
        case Step::at_once:
            at_once_ = !at_once_;
            break;
        case Step::pass:
            clock_.advance(1s);
            break;
        case Step::close:
            reseeder_.close();
            closed_ = true;
            break;
        default:
            RC_FAIL("no such step");
        }
        const auto stats = reseeder_.stats();
        RC_ASSERT(stats.walking <= kParallel);
        RC_ASSERT(stats.waiting <= kWaiting);
        RC_ASSERT(under_way_.size() <= stats.walking);
        if (opened_ && !closed_) {
            RC_ASSERT(stats.walking == kParallel || stats.waiting == 0);
        }
    }

    /// Everything comes to its end; what is under way has one page more and then its last.
    void settle() {
        if (!opened_) {
            run({Step::open, 0});
        }
        at_once_ = false;
        for (std::size_t steps = 0; workers_.run_one() || !under_way_.empty(); ++steps) {
            RC_ASSERT(steps < 10'000u);
            if (!under_way_.empty()) {
                answer(0, steps % 2 == 0 ? Step::more : Step::last);
            }
        }
        std::uint64_t complete = 0, windows = 0;
        for (const auto& [ticket, walk] : asked_) {
            RC_ASSERT(walk.done == 1);
            complete += walk.complete && !walk.windowed ? 1 : 0;
            windows += walk.complete && walk.windowed ? 1 : 0;
        }
        const auto stats = reseeder_.stats();
        RC_ASSERT(stats.walking == 0u);
        RC_ASSERT(stats.waiting == 0u);
        RC_ASSERT(stats.full == complete);
        RC_ASSERT(stats.window == windows);
        RC_ASSERT(stats.failed == asked_.size() - complete - windows);
        RC_ASSERT(stats.pages == answered_);
    }

private:
    struct Source final : test::IdleSource {
        explicit Source(World& world) : world_(world) {}
        void configured(const plugin::Queue& queue, const plugin::QueueConfig& config) override {
            auto& walk = world_.told(std::stoul(std::string(queue.name)));
            RC_ASSERT(!walk.configured);
            RC_ASSERT(config.read_at == walk.sent);
            walk.configured = true;
        }
        bool reseed_page(const plugin::Scope&, plugin::Ticket ticket,
                         std::span<const plugin::ReseedRow>) override {
            auto& walk = world_.told(ticket);
            RC_ASSERT(walk.configured);
            walk.configured = false;
            ++walk.pages;
            RC_ASSERT(walk.pages <= kPages);
            return walk.wants_more;
        }
        void reseed_done(const plugin::Scope&, plugin::Ticket ticket, bool complete) override {
            auto& walk = world_.told(ticket);
            RC_ASSERT(!walk.configured);
            RC_ASSERT(!walk.under_way);
            RC_ASSERT(complete == walk.last_seen);
            ++walk.done;
            walk.complete = complete;
        }
        World& world_;
    };

    void ask(std::uint8_t pick) {
        const plugin::Ticket ticket = asked_.size() + 1;
        auto& walk = asked_[ticket];
        walk.windowed = pick % 2 == 1;
        walk.wants_more = pick % 8 < 6;
        const auto name = std::to_string(ticket);
        const auto key = queue_key(kDefaultTenant, name);
        inside_ = true;
        reseeder_.reseed("ring", {{key, kDefaultTenant, name}, "g"}, ticket,
                         walk.windowed ? Nanoseconds(10min) : Nanoseconds(0));
        inside_ = false;
    }

    void sent(const ReseedQuery& query, const Done<ReseedPage>& done) {
        const auto ticket = std::stoul(query.queue);
        auto& walk = asked_.at(ticket);
        RC_ASSERT(!closed_);
        RC_ASSERT(walk.done == 0);
        RC_ASSERT(!walk.under_way);
        RC_ASSERT(!walk.last_seen);
        RC_ASSERT((query.window.count() > 0) == walk.windowed);
        RC_ASSERT((query.after ? query.after->partition_id.bytes[15] : 0) == walk.key);
        walk.sent = clock_.now();
        if (at_once_) {
            done(fail(Errc::shutting_down, "gone"));
            return;
        }
        walk.under_way = true;
        under_way_.emplace_back(ticket, done);
    }

    void answer(std::size_t which, Step::Kind kind) {
        const auto [ticket, done] = under_way_[which];
        under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(which));
        auto& walk = asked_.at(ticket);
        walk.under_way = false;
        if (kind == Step::failed) {
            done(fail(Errc::timeout, "late"));
            return;
        }
        ++answered_;
        ReseedPage page{.exists = true};
        walk.last_seen = kind == Step::last;
        if (kind == Step::more) {
            page.next.emplace().partition_id.bytes[15] = ++walk.key;
        }
        done(page);
    }

    /// A source is told something about a walk.
    Asked& told(plugin::Ticket ticket) {
        RC_ASSERT(!inside_);
        auto& walk = asked_.at(ticket);
        RC_ASSERT(walk.done == 0);
        return walk;
    }

    test::ManualClock clock_;
    test::ManualWorkers workers_;
    test::ScriptedStore store_;
    SourcePtr source_ = std::make_shared<Source>(*this);
    Reseeder reseeder_{store_,
                       workers_,
                       clock_,
                       [this](std::string_view) { return source_; },
                       {.parallel = kParallel, .waiting = kWaiting, .pages = kPages}};
    std::map<plugin::Ticket, Asked> asked_;
    std::vector<std::pair<plugin::Ticket, Done<ReseedPage>>> under_way_;
    std::uint64_t answered_ = 0;
    bool inside_ = false;
    bool at_once_ = false;
    bool opened_ = false;
    bool closed_ = false;
};

RC_GTEST_PROP(Reseeds, EachWalkIsToldItsPagesInOrderAndOnceThatItIsDone, ()) {
    const auto steps = *rc::gen::container<std::vector<Step>>(any_step());
    World world;
    for (const auto& step : steps) {
        world.run(step);
    }
    world.settle();
}

} // namespace
} // namespace queen::broker
