#include "auth/published_keys.hpp"
#include "core/auth/vectors.hpp"
#include "support/manual_clock.hpp"
#include "support/manual_ticker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace queen::auth {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class PublishedKeysTest : public testing::Test {
protected:
    static std::string set_of(const std::string& id) {
        return R"({"keys":[{"kty":"OKP","crv":"Ed25519","x":")" + std::string(vectors::kEdX) +
               R"(","kid":")" + id + "\"}]}";
    }
    void start() {
        auto made = PublishedKeys::start(
            [this] {
                ++looks_;
                return answer_;
            },
            ticker_, clock_,
            {.refresh = 1h, .floor = 1min, .warn = [this](const std::string& line) {
                 warnings_.push_back(line);
             }});
        ASSERT_TRUE(made.has_value());
        keys_ = *made;
    }
    std::string id() const {
        const auto keys = keys_->keys();
        return keys->empty() ? "none" : keys->front().id;
    }

    test::ManualClock clock_;
    test::ManualTicker ticker_{clock_};
    Result<std::string> answer_ = set_of("one");
    int looks_ = 0;
    std::vector<std::string> warnings_;
    std::shared_ptr<PublishedKeys> keys_;
};

TEST_F(PublishedKeysTest, AUTH4_AreReadAtTheStartAndAtEachInterval) {
    start();
    EXPECT_EQ(id(), "one");
    answer_ = set_of("two");
    ticker_.advance(59min + 59s);
    EXPECT_EQ(looks_, 1);
    ticker_.advance(1s);
    EXPECT_EQ(looks_, 2);
    EXPECT_EQ(id(), "two");
    ticker_.advance(3h);
    EXPECT_EQ(looks_, 5);
    EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(PublishedKeysTest, AUTH4_AStartWithoutThemFails) {
    for (const auto& bad : {Result<std::string>(fail(Errc::unavailable, "refused")),
                            Result<std::string>("<html>"), Result<std::string>(R"({"keys":[]})")}) {
        const auto made =
            PublishedKeys::start([&] { return bad; }, ticker_, clock_, {.refresh = 1h});
        EXPECT_FALSE(made.has_value());
    }
    EXPECT_EQ(ticker_.pending(), 0u);
}

TEST_F(PublishedKeysTest, AUTH4_LaterFailuresKeepTheKeysAndAreTriedAgainInAMinute) {
    start();
    answer_ = fail(Errc::unavailable, "no route");
    ticker_.advance(1h);
    EXPECT_EQ(id(), "one");
    EXPECT_THAT(warnings_, ElementsAre(HasSubstr("no route")));
    answer_ = "{}";
    ticker_.advance(1min);
    EXPECT_EQ(id(), "one");
    EXPECT_EQ(warnings_.size(), 2u);
    answer_ = set_of("two");
    ticker_.advance(1min);
    EXPECT_EQ(id(), "two");
    EXPECT_EQ(looks_, 4);
    ticker_.advance(59min);
    EXPECT_EQ(looks_, 4) << "and then at the interval again";
}

TEST_F(PublishedKeysTest, AUTH4_UnknownKeysAreLookedForAtMostOnceAMinuteHoweverMany) {
    start();
    ticker_.advance(10min);
    answer_ = set_of("two");
    for (int i = 0; i < 1000; ++i) {
        keys_->missed();
    }
    EXPECT_EQ(looks_, 1) << "never inside the call: that would be a request that waits";
    EXPECT_EQ(ticker_.pending(), 1u);
    ticker_.run_due();
    EXPECT_EQ(looks_, 2);
    EXPECT_EQ(id(), "two");
    for (int second = 0; second < 59; ++second) {
        keys_->missed();
        ticker_.advance(1s);
    }
    EXPECT_EQ(looks_, 2);
    ticker_.advance(1s);
    EXPECT_EQ(looks_, 3);
    ticker_.advance(59min);
    EXPECT_EQ(looks_, 3);
    ticker_.advance(1min);
    EXPECT_EQ(looks_, 4);
}

TEST_F(PublishedKeysTest, AfterTheirEndNothingIsRead) {
    start();
    keys_.reset();
    ticker_.advance(5h);
    EXPECT_EQ(looks_, 1);
    EXPECT_EQ(ticker_.pending(), 0u);
}

} // namespace
} // namespace queen::auth
