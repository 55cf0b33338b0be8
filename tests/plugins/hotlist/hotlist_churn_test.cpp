// Partitions that come and go: the names of those that are gone are given back at the floor. The
// hot-list with the broker's walks over it, over a store that only counts.
#include "broker/reseed.hpp"
#include "hotlist_fixture.hpp"
#include "support/manual_workers.hpp"
#include "support/scripted_store.hpp"

#include <memory>

namespace queen::hotlist {
namespace {

class HotListChurn : public HotListFixture {
protected:
    HotListChurn() {
        store_.on_reseed_page = [this](const ReseedQuery&, auto done) {
            ReseedPage page{.exists = true};
            page.queue_id = id_of(1);
            page.deleted = deleted_;
            done(page);
        };
    }
    /// All walks that the list asked for, to their ends.
    void walk() {
        const auto asked = host.reseeds();
        for (; answered < asked.size(); ++answered) {
            reseeder_.reseed("hotlist", kA, asked[answered].ticket, asked[answered].window);
        }
        workers_.run_all();
    }
    /// A pop that takes all there is, so that nothing stays in line.
    void drain() {
        for (auto taken = take(kA); !taken.names.empty(); taken = take(kA)) {
            settle(std::move(taken), plugin::VerdictKind::empty);
        }
    }

    test::ScriptedStore store_;
    test::ManualWorkers workers_;
    std::int64_t deleted_ = 0;
    int forgot_ = 0;
    struct Borrowed final : plugin::CandidateSource { // the fixture owns the list
        explicit Borrowed(HotListChurn& owner_in) : owner(owner_in) {}
        plugin::Readiness peek(const plugin::Scope& scope) override {
            return owner.list->peek(scope);
        }
        plugin::Selection take(const plugin::Take& take, plugin::Names& out) override {
            return owner.list->take(take, out);
        }
        void settle(const plugin::Scope& scope, std::unique_ptr<plugin::Cookie> cookie,
                    std::span<const plugin::Verdict> verdicts) override {
            owner.list->settle(scope, std::move(cookie), verdicts);
        }
        void forget(std::string_view tenant, std::string_view queue,
                    std::string_view group) override {
            owner.list->forget(tenant, queue, group);
        }
        bool reseed_page(const plugin::Scope& scope, plugin::Ticket ticket,
                         std::span<const plugin::ReseedRow> rows) override {
            return owner.list->reseed_page(scope, ticket, rows);
        }
        void reseed_done(const plugin::Scope& scope, plugin::Ticket ticket,
                         bool complete) override {
            owner.list->reseed_done(scope, ticket, complete);
        }
        HotListChurn& owner;
    };
    const broker::SourcePtr source_ = std::make_shared<Borrowed>(*this);
    broker::Reseeder reseeder_{
        store_, workers_, clock, [this](std::string_view) { return source_; },
        broker::Reseeder::Options{.forgot = [this](auto, auto) { ++forgot_; }}};
};

TEST_F(HotListChurn, NamesOfPartitionsThatAreGoneAreGivenBack) {
    reseeder_.open();
    drain();
    walk();
    double most = 0;
    for (int generation = 0; generation < 40; ++generation) {
        Names names;
        for (int i = 0; i < 250; ++i) {
            names.push_back(std::to_string(generation) + "-" + std::to_string(i));
        }
        mark(names);
        drain();
        most = std::max(most, figure("partitions"));
        deleted_ += 250;              // and soon they are gone
        for (int i = 0; i < 5; ++i) { // somebody polls all the time
            run_until(clock.now() + 10s);
            walk();
            drain();
            walk();
        }
    }
    // Of 10,000 that came and went: what a queue may keep, and one generation that is there.
    EXPECT_LE(most, 1'250 + 250);
    EXPECT_GE(most, 1'000);
    EXPECT_GE(forgot_, 8);
}

} // namespace
} // namespace queen::hotlist
