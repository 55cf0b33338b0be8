#include "base/text.hpp"
#include "model/hash.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <unordered_set>

namespace queen {
namespace {

/// The pseudo-random bytes over which xxHash publishes its test vectors.
std::string published_input(std::size_t size) {
    std::uint64_t generator = 2654435761u;
    std::string bytes;
    for (std::size_t i = 0; i < size; ++i) {
        bytes += static_cast<char>(generator >> 56);
        generator *= 11400714785074694797u;
    }
    return bytes;
}

std::string hash_of(std::string_view id) {
    return to_hex(hash_transaction_id(id).view());
}

// FMT-12: the published XXH3-128 vectors (seed 0), high half first. A wrong byte order or a wrong
// seed would break dedup and acks without a word.
TEST(Hash, EqualsThePublishedVectorsForEveryLengthClass) {
    const struct {
        std::size_t size;
        std::string_view hex;
    } kVectors[] = {
        {0, "99aa06d3014798d86001c324468d497f"},   {1, "a6cd5e9392000f6ac44bdff4074eecdb"},
        {6, "082afe0b8162d12a3e7039bdda43cfc6"},   {12, "6e3efd8fc7802b18061a192713f69ad9"},
        {24, "0ce966e4678d37611e7044d28b1b901d"},  {48, "a002ac4e5478227ef942219aed80f67b"},
        {81, "4952f58181ab00425e8bafb9f95fb803"},  {222, "337e09641b948717f1aebd597cec6b3a"},
        {403, "1b6de21e332dd73dcdeb804d65c6dea4"}, {512, "18d2d110dcc9bca1617e49599013cb6b"},
    };
    for (const auto& vector : kVectors) {
        EXPECT_EQ(hash_of(published_input(vector.size)), vector.hex) << vector.size;
    }
}

// Written down once; a change would orphan every stored transaction id.
TEST(Hash, TransactionIdsKeepTheirHash) {
    EXPECT_EQ(hash_of("a"), "a96faf705af16834e6c632b61e964e1f");
    EXPECT_EQ(hash_of("order-1"), "5a8a409613f90ad0af63a0f835ca6746");
    EXPECT_EQ(hash_of("0190163d-8694-739b-aea5-966c26f8ad91"), "01092884b502a986c7e5a2d7c3476fd0");
    EXPECT_EQ(hash_of("bestellung-ü-日本"), "3a6a0fa4ae303d4a8d719264f03bd954");
    EXPECT_EQ(hash_of(std::string(65535, 'x')), "e7f602a22573717e802d38f7e4fe4f5f");
}

TEST(Hash, EqualIdsHaveEqualHashesAndOthersDiffer) {
    EXPECT_EQ(hash_transaction_id("a"), hash_transaction_id(std::string("a")));
    EXPECT_NE(hash_transaction_id("a"), hash_transaction_id("A"));
    EXPECT_NE(hash_transaction_id("a"), hash_transaction_id(std::string_view("a\0", 2)));
    std::unordered_set<TxnHash> seen;
    std::set<TxnHash> ordered;
    for (int i = 0; i < 10'000; ++i) {
        seen.insert(hash_transaction_id(std::to_string(i)));
        ordered.insert(hash_transaction_id(std::to_string(i)));
    }
    EXPECT_EQ(seen.size(), 10'000u);
    EXPECT_EQ(ordered.size(), 10'000u);
}

// The longest ids, which differ in one byte each, wherever it is.
TEST(Hash, K07_EachByteOfALongIdCounts) {
    constexpr std::size_t kLongest = 65'535;
    const std::string id(kLongest, 'x');
    std::unordered_set<TxnHash> seen{hash_transaction_id(id),
                                     hash_transaction_id(std::string_view(id).substr(1))};
    std::size_t others = 0;
    for (std::size_t at = 0; at < kLongest; at = at < 1'024 ? at + 1 : at + 509) {
        auto other = id;
        other[at] = 'y';
        seen.insert(hash_transaction_id(other));
        ++others;
    }
    for (const char last : {'a', 'b', '\0'}) {
        auto other = id;
        other.back() = last;
        seen.insert(hash_transaction_id(other));
        ++others;
    }
    EXPECT_EQ(seen.size(), others + 2);
}

TEST(Hash, TheViewIsTheSixteenBytes) {
    const TxnHash hash = hash_transaction_id("");
    EXPECT_EQ(hash.view().size(), 16u);
    EXPECT_EQ(static_cast<unsigned char>(hash.view().front()), 0x99);
}

} // namespace
} // namespace queen
