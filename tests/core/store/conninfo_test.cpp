#include "store/conninfo.hpp"

#include <gmock/gmock.h>

namespace queen::store {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Conninfo, AddsWhatFindsAHalfOpenLink) {
    const auto conninfo = complete_conninfo("postgresql://queen@db.example/app");
    ASSERT_TRUE(conninfo);
    for (const char* part :
         {"host='db.example'", "user='queen'", "dbname='app'", "application_name='queend'",
          "keepalives='1'", "keepalives_idle='10'", "keepalives_interval='5'",
          "keepalives_count='3'", "tcp_user_timeout='20000'", "connect_timeout='5'"}) {
        EXPECT_THAT(*conninfo, HasSubstr(part));
    }
}

TEST(Conninfo, WhatTheOperatorSetWins) {
    const auto conninfo =
        complete_conninfo("postgresql://h/d?keepalives_idle=60&application_name=mine");
    ASSERT_TRUE(conninfo);
    EXPECT_THAT(*conninfo, HasSubstr("keepalives_idle='60'"));
    EXPECT_THAT(*conninfo, HasSubstr("application_name='mine'"));
    EXPECT_THAT(*conninfo, Not(HasSubstr("queend")));
}

TEST(Conninfo, KeepsSeveralHostsAndOddPasswords) {
    const auto conninfo = complete_conninfo(
        R"(host=a,b port=1,2 target_session_attrs=read-write password='p\'w \\ x')");
    ASSERT_TRUE(conninfo);
    EXPECT_THAT(*conninfo, HasSubstr("host='a,b'"));
    EXPECT_THAT(*conninfo, HasSubstr("port='1,2'"));
    EXPECT_THAT(*conninfo, HasSubstr("target_session_attrs='read-write'"));
    EXPECT_THAT(*conninfo, HasSubstr(R"(password='p\'w \\ x')"));
    const auto again = complete_conninfo(*conninfo);
    EXPECT_EQ(*again, *conninfo) << "what it wrote is read the same";
}

TEST(Conninfo, NeverShowsAPassword) {
    const auto conninfo = complete_conninfo("postgresql://queen:secret@h:6000/d");
    ASSERT_TRUE(conninfo);
    EXPECT_EQ(describe_conninfo(*conninfo), "user=queen dbname=d host=h port=6000");
}

TEST(Conninfo, RefusesWhatLibpqCannotRead) {
    const auto conninfo = complete_conninfo("host=a nonsense=1");
    ASSERT_FALSE(conninfo);
    EXPECT_EQ(conninfo.error().code, Errc::invalid_argument);
    EXPECT_THAT(conninfo.error().message, HasSubstr("nonsense"));
}

} // namespace
} // namespace queen::store
