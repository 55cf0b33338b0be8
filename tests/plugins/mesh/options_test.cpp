#include "mesh/options.hpp"

#include <queen/plugin/common.hpp>

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace queen::mesh {
namespace {

using Addresses = std::vector<Address>;
using plugin::ConfigError;

TEST(MeshOptions, ME17_PeersInEveryForm) {
    EXPECT_EQ(parse_peers("a, b:7000,http://c:1/ ,https://d,[::1]:9,[fe80::2],fe80::3,,", 6633),
              (Addresses{{"a", 6633},
                         {"b", 7000},
                         {"c", 1},
                         {"d", 6633},
                         {"::1", 9},
                         {"fe80::2", 6633},
                         {"fe80::3", 6633}}));
    EXPECT_TRUE(parse_peers("", 6633).empty());
    EXPECT_TRUE(parse_peers(" , ", 6633).empty());
}

TEST(MeshOptions, ABadPeerIsNamed) {
    for (const std::string bad : {"a:0", "a:65536", "a:x", "a:", ":7", "a b", "[::1", "[::1]7",
                                  "[zz]:7", "1:2:3", "a/b", "a:7x", "http://", "a:-1"}) {
        try {
            parse_peers("good," + bad + ",fine", 6633);
            ADD_FAILURE() << bad << " is taken";
        } catch (const ConfigError& e) {
            EXPECT_EQ(e.option(), "peers");
            EXPECT_NE(std::string(e.what()).find("'" + bad + "'"), std::string::npos) << e.what();
        }
    }
    EXPECT_THROW(parse_peers("a,b,a:6633", 6633), ConfigError) << "named twice";
}

TEST(MeshOptions, ListenTakesNumbersAndTwoWords) {
    EXPECT_EQ(parse_listen("127.0.0.1"), "127.0.0.1");
    EXPECT_EQ(parse_listen("[::1]"), "::1");
    EXPECT_EQ(parse_listen("localhost"), "127.0.0.1");
    EXPECT_EQ(parse_listen("*"), "0.0.0.0");
    EXPECT_THROW(parse_listen("broker-1"), ConfigError);
    EXPECT_THROW(parse_listen(""), ConfigError);
    EXPECT_THROW(parse_listen("127.0.0.1:6633"), ConfigError);
}

TEST(MeshOptions, OlderNamesCountWhenTheNewerAreLeftAlone) {
    EXPECT_EQ(older_peers("a", ""), "a");
    EXPECT_EQ(older_peers("", "b"), "b");
    EXPECT_EQ(older_peers("a", "a"), "a");
    EXPECT_THROW(older_peers("a", "b"), ConfigError);
    EXPECT_EQ(older_port(kDefaultPort, 0), kDefaultPort);
    EXPECT_EQ(older_port(kDefaultPort, 7), 7u);
    EXPECT_EQ(older_port(8, 0), 8u);
    EXPECT_THROW(older_port(8, 7), ConfigError);
}

TEST(MeshOptions, LoopbackIsKnown) {
    EXPECT_TRUE(is_loopback("127.0.0.1"));
    EXPECT_TRUE(is_loopback("::1"));
    EXPECT_FALSE(is_loopback("0.0.0.0"));
    EXPECT_FALSE(is_loopback("::"));
}

TEST(MeshOptions, ASecretMayStandInAFile) {
    EXPECT_EQ(read_secret("plain"), "plain");
    EXPECT_EQ(read_secret(""), "");
    const std::string path = testing::TempDir() + "mesh_secret_" + std::to_string(::getpid());
    std::ofstream(path) << "from a file\n\n";
    EXPECT_EQ(read_secret("file:" + path), "from a file");
    std::remove(path.c_str());
    EXPECT_THROW(read_secret("file:" + path), ConfigError);
    EXPECT_THROW(read_secret("file:relative"), ConfigError);
}

TEST(MeshOptions, ContradictionsAreTold) {
    Options options;
    options.server_id = "a";
    EXPECT_NO_THROW(check(options));
    options.dead_threshold = options.heartbeat;
    EXPECT_THROW(check(options), ConfigError);
    options = Options{};
    EXPECT_THROW(check(options), ConfigError) << "no server id";
    for (const std::string& id : {std::string(256, 'x'), std::string("a\nb"), std::string("\xff"),
                                  std::string("a\0b", 3), std::string("\xed\xa0\x80")}) {
        options.server_id = id;
        EXPECT_THROW(check(options), ConfigError) << id;
    }
    for (const std::string& id : {std::string(255, 'x'), std::string("b\"1\\ \xc3\xbc")}) {
        options.server_id = id;
        EXPECT_NO_THROW(check(options)) << id;
    }
}

} // namespace
} // namespace queen::mesh
