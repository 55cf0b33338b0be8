#include "candidates_conformance.hpp"
#include "recent.hpp"

namespace acme::recent {
namespace {

using namespace std::chrono_literals;
using namespace queen::plugin;

constexpr Queue kOrders{"t\x1forders", "t", "orders"};

TEST(Recent, ForgetsEntriesOlderThanMaxAge) {
    ManualClock clock;
    Recent recent({.capacity = 4, .max_age = 30s}, clock);
    const Mark mark{"cust-42", {}, 1};
    recent.mark(kOrders, "", Origin::push, {&mark, 1});
    NameList names(16);
    EXPECT_EQ(recent.take({{kOrders, "g"}, 0, 1, 1, 16}, names).pick, Pick::names);
    clock.advance(30s + 1ms);
    NameList late(16);
    EXPECT_EQ(recent.take({{kOrders, "g"}, 0, 1, 1, 16}, late).pick, Pick::scan);
}

} // namespace
} // namespace acme::recent

namespace queen::conformance {

INSTANTIATE_TEST_SUITE_P(Recent, CandidateConformance,
                         testing::Values(Subject{
                             "Class",
                             [] {
                                 auto clock = std::make_shared<plugin::ManualClock>();
                                 auto source = std::make_shared<acme::recent::Recent>(
                                     acme::recent::Options{64, std::chrono::hours(1)}, *clock);
                                 return Loaded{clock, std::move(source), nullptr, {}};
                             }}),
                         name_of);

} // namespace queen::conformance
