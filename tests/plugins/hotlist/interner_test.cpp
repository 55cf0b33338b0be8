#include "interner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

namespace queen::hotlist {
namespace {

Uuid id_of(std::uint32_t n) {
    Uuid id;
    for (std::size_t i = 0; i < 4; ++i) {
        id.bytes[i] = static_cast<std::uint8_t>(n >> (8 * i));
    }
    id.bytes[15] = 1;
    return id;
}

std::string name_of(const Interner& interner, Interner::Index index) {
    std::string name;
    interner.names(1, &index, [&](std::size_t, std::string_view text) { name = text; });
    return name;
}

TEST(Interner, NumbersNamesDenselyInTheOrderTheyCome) {
    Totals totals;
    Interner interner(totals);
    EXPECT_EQ(interner.intern("b", {}), 0u);
    EXPECT_EQ(interner.intern("a", {}), 1u);
    EXPECT_EQ(interner.intern("b", {}), 0u);
    EXPECT_EQ(interner.size(), 2u);
    EXPECT_EQ(totals.value(Totals::partitions), 2u);
}

TEST(Interner, KeepsNamesByteForByte) {
    Totals totals;
    Interner interner(totals);
    const std::vector<std::string> names{"",
                                         " ",
                                         "p",
                                         "P",
                                         "p ",
                                         "äöü-日本",
                                         std::string(255, 'x'),
                                         std::string(100'000, 'y'),
                                         std::string("a\0b", 3)};
    for (const std::string& name : names) {
        interner.intern(name, {});
    }
    EXPECT_EQ(interner.size(), names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
        EXPECT_EQ(name_of(interner, static_cast<Interner::Index>(i)), names[i]);
    }
}

std::vector<Interner::Index> hear(Interner& interner, const std::vector<std::string>& names) {
    std::vector<Interner::Index> out(names.size());
    const auto refused = interner.intern_hearsay(
        names.size(), [&](std::size_t i) { return std::string_view(names[i]); }, out.data());
    EXPECT_EQ(static_cast<std::size_t>(std::count(out.begin(), out.end(), Interner::kNone)),
              refused);
    return out;
}

TEST(Interner, HL27_HearsayHasABoundAndWhatIsProvenNeedsNoRoom) {
    Totals totals;
    Interner interner(totals, 2);
    interner.intern("known", id_of(1));
    EXPECT_EQ(hear(interner, {"a", "known", "b", "a", "c"}),
              (std::vector<Interner::Index>{1, 0, 2, 1, Interner::kNone}));
    interner.intern("c", {}); // somebody here says so
    EXPECT_EQ(hear(interner, {"c", "d"}), (std::vector<Interner::Index>{3, Interner::kNone}));
    interner.remember(std::vector<Interner::Known>{{1, id_of(2)}}); // a claim found it
    EXPECT_EQ(hear(interner, {"d", "e"}), (std::vector<Interner::Index>{4, Interner::kNone}));
    interner.not_found(std::vector<Interner::Index>{0, 2, 2});
    EXPECT_TRUE(interner.haunted());
    interner.intern("b", {}); // it is there after all
    EXPECT_FALSE(interner.haunted());
    EXPECT_EQ(hear(interner, {"f"}), std::vector<Interner::Index>{5});
    EXPECT_FALSE(interner.haunted()) << "full, yet nobody looked for them";
    EXPECT_EQ(interner.size(), 6u);
}

TEST(Interner, ATextStaysWhereItIsWhileOthersCome) {
    Totals totals;
    Interner interner(totals);
    const Interner::Index index = interner.intern("first", {});
    std::string_view text;
    interner.names(1, &index, [&](std::size_t, std::string_view name) { text = name; });
    const char* const where = text.data();
    for (int i = 0; i < 10'000; ++i) {
        interner.intern("p" + std::to_string(i), {});
    }
    interner.names(1, &index, [&](std::size_t, std::string_view name) { text = name; });
    EXPECT_EQ(text.data(), where);
}

TEST(Interner, FindsAllOfManyWhileItGrows) {
    Totals totals;
    Interner interner(totals);
    for (std::uint32_t i = 0; i < 20'000; ++i) {
        ASSERT_EQ(interner.intern("p" + std::to_string(i), id_of(i)), i);
        const std::uint32_t earlier = (i * 7919u) % (i + 1);
        ASSERT_EQ(interner.intern("p" + std::to_string(earlier), {}), earlier);
        ASSERT_EQ(interner.find(id_of(earlier)), earlier);
    }
    EXPECT_EQ(interner.size(), 20'000u);
}

TEST(Interner, AnIdNobodyToldIsNotFound) {
    Totals totals;
    Interner interner(totals);
    interner.intern("p", {});
    EXPECT_EQ(interner.find(id_of(1)), Interner::kNone);
    EXPECT_EQ(interner.find(Uuid{}), Interner::kNone) << "all zero means not known";
    interner.intern("p", id_of(1));
    EXPECT_EQ(interner.find(id_of(1)), 0u);
}

TEST(Interner, TheLastIdOfANameCounts) {
    Totals totals;
    Interner interner(totals);
    interner.intern("p", id_of(1));
    interner.intern("p", id_of(2));
    EXPECT_EQ(interner.find(id_of(1)), Interner::kNone);
    EXPECT_EQ(interner.find(id_of(2)), 0u);
    const Interner::Known back{0, id_of(1)};
    interner.remember({&back, 1});
    EXPECT_EQ(interner.find(id_of(1)), 0u);
    EXPECT_EQ(interner.find(id_of(2)), Interner::kNone);
}

TEST(Interner, ABatchThatRepeatsANameGetsOneNumberForIt) {
    Totals totals;
    Interner interner(totals);
    const std::vector<std::string> names{"a", "b", "a", "c", "b"};
    std::vector<Interner::Index> indices(names.size());
    interner.intern(
        names.size(),
        [&](std::size_t i) {
            return Interner::Named{names[i], {}};
        },
        indices.data());
    EXPECT_EQ(indices, (std::vector<Interner::Index>{0, 1, 0, 2, 1}));
}

TEST(Interner, GivesEachNameOneNumberHoweverManyAskAtOnce) {
    Totals totals;
    Interner interner(totals);
    std::vector<std::vector<Interner::Index>> seen(4);
    {
        std::vector<std::jthread> threads;
        for (auto& mine : seen) {
            threads.emplace_back([&] {
                for (std::uint32_t i = 0; i < 5'000; ++i) {
                    mine.push_back(interner.intern("p" + std::to_string(i), id_of(i)));
                }
            });
        }
    }
    for (const auto& mine : seen) {
        EXPECT_EQ(mine, seen[0]);
    }
    EXPECT_EQ(interner.size(), 5'000u);
}

} // namespace
} // namespace queen::hotlist
