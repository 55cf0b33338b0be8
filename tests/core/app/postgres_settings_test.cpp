#include "app/postgres_settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace queen::app {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::uint64_t kGiB = 1ULL << 30U;

TEST(PostgresSettings, SharedBuffersAreAnEighthOfMemoryWithinBounds) {
    EXPECT_THAT(postgres_configuration(10, true, 8 * kGiB, {}),
                HasSubstr("shared_buffers = '1024MB'\n"));
    EXPECT_THAT(postgres_configuration(10, true, kGiB / 4, {}),
                HasSubstr("shared_buffers = '64MB'\n"));
    EXPECT_THAT(postgres_configuration(10, true, 512 * kGiB, {}),
                HasSubstr("shared_buffers = '4096MB'\n"));
}

TEST(PostgresSettings, ABrokersServerKeepsWhatItAcknowledged) {
    const std::string text = postgres_configuration(10, true, kGiB, {});
    EXPECT_THAT(text, Not(HasSubstr("fsync")));
    EXPECT_THAT(text, Not(HasSubstr("synchronous_commit")));
    EXPECT_THAT(text, Not(HasSubstr("full_page_writes")));
}

TEST(PostgresSettings, ATestsServerSkipsFsyncAndStillSurvivesAKill) {
    const std::string text = postgres_configuration(10, false, kGiB, {});
    EXPECT_THAT(text, HasSubstr("fsync = 'off'\n"));
    EXPECT_THAT(text, Not(HasSubstr("synchronous_commit")));
}

TEST(PostgresSettings, ExtraSettingsWinAndAreQuoted) {
    const std::string text =
        postgres_configuration(10, true, kGiB, {{"jit", "on"}, {"application_name", "it's"}});
    EXPECT_THAT(text, HasSubstr("jit = 'on'\n"));
    EXPECT_THAT(text, Not(HasSubstr("jit = 'off'")));
    EXPECT_THAT(text, HasSubstr("application_name = 'it''s'\n"));
}

TEST(PostgresSettings, ConnectionsAreThoseAskedFor) {
    EXPECT_THAT(postgres_configuration(77, true, kGiB, {}), HasSubstr("max_connections = '77'\n"));
}

TEST(PostgresSettings, UsableMemoryIsSomethingAMachineCanHave) {
    EXPECT_GT(usable_memory(), 16ULL << 20U);
    EXPECT_LT(usable_memory(), 1ULL << 50U);
}

} // namespace
} // namespace queen::app
