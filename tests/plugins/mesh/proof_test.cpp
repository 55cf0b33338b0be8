#include "mesh/proof.hpp"

#include <gtest/gtest.h>

#include <set>

namespace queen::mesh {
namespace {

TEST(Proof, ME6_TheHellosMacIsHmacSha256OfTheNoncesText) {
    // printf 0123456789abcdef0123456789abcdef | openssl dgst -sha256 -hmac secret
    EXPECT_EQ(hello_mac("secret", "0123456789abcdef0123456789abcdef"),
              "4048002ec5ff2ec0ea0d5a8cc577d5542744d62cdfb71f677645c382ec3373f8");
}

TEST(Proof, NoncesAreHexAndNew) {
    std::set<std::string> seen;
    for (int i = 0; i < 100; ++i) {
        const std::string nonce = make_nonce();
        EXPECT_EQ(nonce.size(), 32u);
        EXPECT_EQ(nonce.find_first_not_of("0123456789abcdef"), std::string::npos);
        EXPECT_TRUE(seen.insert(nonce).second);
    }
}

TEST(Proof, AMacChangesWithEachPartAndKind) {
    const Exchange exchange{"a", "b", "n1", "n2"};
    std::set<std::string> seen{hello_mac("s", "n1"), challenge_mac("s", exchange),
                               answer_mac("s", exchange)};
    for (const Exchange& other :
         {Exchange{"x", "b", "n1", "n2"}, Exchange{"a", "x", "n1", "n2"},
          Exchange{"a", "b", "x", "n2"}, Exchange{"a", "b", "n1", "x"},
          Exchange{"b", "a", "n1", "n2"}, Exchange{"a", "b", "n1", "n2", "i1", "i2"}}) {
        seen.insert(challenge_mac("s", other));
        seen.insert(answer_mac("s", other));
    }
    seen.insert(answer_mac("t", exchange));
    EXPECT_EQ(seen.size(), 16u);
}

TEST(Proof, SameMeansEveryByte) {
    EXPECT_TRUE(same_mac("abc", "abc"));
    EXPECT_FALSE(same_mac("abc", "abd"));
    EXPECT_FALSE(same_mac("abc", "ab"));
    EXPECT_FALSE(same_mac("", "a"));
}

} // namespace
} // namespace queen::mesh
