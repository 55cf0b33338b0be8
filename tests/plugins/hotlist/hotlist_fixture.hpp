// One hot-list with a clock that stands still and a host that remembers.
#pragma once
#include "hotlist.hpp"

#include <queen/plugin/testing.hpp>

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace queen::hotlist {

using namespace std::chrono_literals;

inline constexpr plugin::Queue kOrders{"t\x1forders", "t", "orders"};
inline constexpr plugin::Queue kOthersOrders{"u\x1forders", "u", "orders"};
inline constexpr plugin::Queue kInvoices{"t\x1finvoices", "t", "invoices"};
inline constexpr plugin::Scope kA{kOrders, "a"};
inline constexpr plugin::Scope kB{kOrders, "b"};

inline Uuid id_of(std::uint8_t n) {
    Uuid id;
    id.bytes.fill(n);
    return id;
}

class HotListFixture : public testing::Test {
protected:
    using Names = std::vector<std::string>;

    void remake(Options options) {
        list = std::make_unique<HotList>(
            options, clock, host, [this](plugin::LogLevel level, std::string_view line) {
                lines.emplace_back(
                    std::string(level == plugin::LogLevel::warning ? "warning " : "") +
                    std::string(line));
            });
    }
    void SetUp() override { remake({}); }

    void mark(const Names& partitions, const plugin::Queue& queue = kOrders,
              std::string_view group = {}, std::uint64_t frames = 1,
              plugin::Origin origin = plugin::Origin::push) {
        std::vector<plugin::Mark> marks;
        for (const std::string& partition : partitions) {
            marks.push_back({partition, {}, frames});
        }
        list->mark(queue, group, origin, marks);
    }
    struct Taken {
        plugin::Scope scope;
        plugin::Selection selection;
        std::vector<plugin::NameList::Entry> offered;
        Names names;
        plugin::Pick pick() const { return selection.pick; }
    };
    Taken take(const plugin::Scope& scope = kA, std::uint64_t messages = 1'000'000,
               std::uint64_t limit = 16) {
        plugin::NameList names(limit);
        auto selection = list->take({scope, 0, 1, messages, limit}, names);
        EXPECT_EQ(names.refused(), 0u);
        EXPECT_EQ(selection.pick == plugin::Pick::names, !names.entries().empty());
        return {scope, std::move(selection), names.entries(), names.partitions()};
    }
    void settle(Taken taken, const std::vector<plugin::Verdict>& verdicts = {}) {
        if (taken.selection.cookie != nullptr || !taken.offered.empty()) {
            list->settle(taken.scope, std::move(taken.selection.cookie), verdicts);
        }
    }
    /// The same verdict for each name; ids are id_of(the name's last character).
    void settle(Taken taken, plugin::VerdictKind kind, bool drained = false,
                Nanoseconds lease = 60s) {
        std::vector<plugin::Verdict> verdicts;
        for (const auto& entry : taken.offered) {
            verdicts.push_back({entry.token, entry.partition, id_of_name(entry.partition), kind,
                                drained, 1, clock.now() + lease});
        }
        settle(std::move(taken), verdicts);
    }
    static Uuid id_of_name(std::string_view name) {
        return id_of(static_cast<std::uint8_t>(name.back()));
    }
    plugin::ReadyState state(const plugin::Scope& scope = kA) { return list->peek(scope).state; }

    /// Pages of rows, then the end, for the walk asked for last.
    void page(const Names& partitions, const plugin::Scope& scope = kA) {
        std::vector<plugin::ReseedRow> rows;
        for (const std::string& partition : partitions) {
            rows.push_back({partition, id_of_name(partition)});
        }
        EXPECT_TRUE(list->reseed_page(scope, ticket(), rows));
    }
    void done(bool complete = true, const plugin::Scope& scope = kA) {
        list->reseed_done(scope, ticket(), complete);
    }
    plugin::Ticket ticket() const { return host.reseeds().back().ticket; }
    /// A ring that knows what there is: nothing.
    void warm(const plugin::Scope& scope = kA) {
        settle(take(scope));
        page({}, scope);
        done(true, scope);
        ASSERT_EQ(state(scope), plugin::ReadyState::nothing);
    }
    SteadyTime tick() { return list->tick(clock.now()); }
    /// Ticks when the list wants it, up to the time. @return ticks
    int run_until(SteadyTime end) {
        int ticks = 0;
        for (SteadyTime next = tick(); next <= end; next = tick()) {
            clock.advance(next - clock.now());
            ++ticks;
        }
        clock.advance(end - clock.now());
        return ticks;
    }
    double figure(const std::string& name) {
        struct Figures final : plugin::Stats {
            std::map<std::string, double> values;
            void add(std::string_view key, double value) override {
                values[std::string(key)] = value;
            }
        } figures;
        list->stats(figures);
        EXPECT_TRUE(figures.values.contains(name)) << name;
        return figures.values[name];
    }
    /// Answers walks as they are asked for, with nothing, so that only other things happen.
    void answer_walks() {
        const auto asked = host.reseeds();
        for (; answered < asked.size(); ++answered) {
            const auto& walk = asked[answered];
            const auto name = walk.queue_key.substr(walk.queue_key.find('\x1f') + 1);
            const auto tenant = walk.queue_key.substr(0, walk.queue_key.find('\x1f'));
            const plugin::Scope scope{{walk.queue_key, tenant, name}, walk.group};
            list->reseed_page(scope, walk.ticket, {});
            list->reseed_done(scope, walk.ticket, true);
        }
    }

    plugin::ManualClock clock;
    plugin::RecordingHost host;
    std::vector<std::string> lines;
    std::unique_ptr<HotList> list;
    std::size_t answered = 0;
};

} // namespace queen::hotlist
