#include "settings/address.hpp"

#include <gtest/gtest.h>

namespace queen::settings {
namespace {

TEST(Address, ReadsBothFamiliesAndWritesThemBack) {
    for (const char* text :
         {"127.0.0.1:6632", "0.0.0.0:0", "[::1]:6632", "[fe80::1]:65535", "localhost:80"}) {
        const auto address = parse_address(text);
        ASSERT_TRUE(address.has_value()) << text;
        EXPECT_EQ(format_address(*address), text);
    }
    EXPECT_EQ(parse_address("[::1]:6632")->host, "::1");
}

TEST(Address, RefusesWhatHasNoPortOrIsNoAddress) {
    for (const char* text :
         {"", ":", ":80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
          "127.0.0.1:+1", "127.0.0.1:8o", "::1:80", "[::1]", "[]:80", "[127.0.0.1]:80",
          "example.com:80", "1.2.3:80", "127.0.0.1:000080"}) {
        EXPECT_FALSE(parse_address(text).has_value()) << text;
    }
}

TEST(Address, KnowsWhoCanReachIt) {
    for (const char* text : {"127.0.0.1:1", "127.255.0.9:1", "[::1]:1", "localhost:1"}) {
        EXPECT_TRUE(parse_address(text)->loopback()) << text;
    }
    for (const char* text : {"0.0.0.0:1", "128.0.0.1:1", "[::]:1", "10.0.0.1:1"}) {
        EXPECT_FALSE(parse_address(text)->loopback()) << text;
    }
}

} // namespace
} // namespace queen::settings
