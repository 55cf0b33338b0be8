// The FormStore port against the schema that the installer made.
#include "model/names.hpp"
#include "store/conninfo.hpp"
#include "store/installer.hpp"
#include "store/pg_form_store.hpp"
#include "store/pg_session.hpp"
#include "store/pg_store.hpp"
#include "support/postgres.hpp"

#include <gmock/gmock.h>

#include <future>

namespace queen::store {
namespace {

using queen::test::TestPostgres;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr SteadyTime kNever = SteadyTime::max();
const std::string kTenant{kDefaultTenant};
const std::string kOtherTenant = "00000000-0000-0000-0000-0000000000aa";

class PgFormStoreTest : public testing::Test {
protected:
    void SetUp() override {
        const auto conninfo = *complete_conninfo(
            TestPostgres::shared().conninfo(TestPostgres::shared().create_database()));
        const auto installed = Installer(conninfo).run();
        ASSERT_TRUE(installed) << installed.error().message;
        executor_ = std::make_unique<Executor>(
            Executor::Options{.sessions = 2, .spare_threads = 1},
            [conninfo] { return std::make_unique<PgSession>(conninfo, StatementLimits{}); });
    }
    template <class X, class Call>
    static Result<X> wait_for(Call&& call) {
        auto promise = std::make_shared<std::promise<Result<X>>>();
        call([promise](Result<X> outcome) { promise->set_value(std::move(outcome)); });
        return promise->get_future().get();
    }
    void configure(const std::string& queue, const std::string& encrypted) {
        PgStore store{Asker(*executor_)};
        ASSERT_TRUE(wait_for<std::string>([&](auto done) {
            store.configure(kNever, kTenant, queue, R"({"encryptionEnabled":)" + encrypted + "}",
                            done);
        }));
    }
    Result<std::vector<bool>> encrypted(const std::string& tenant,
                                        const std::vector<std::string>& queues) {
        PgFormStore forms{Asker(*executor_)};
        return wait_for<std::vector<bool>>(
            [&](auto done) { forms.encrypted(kNever, tenant, queues, done); });
    }

    std::unique_ptr<Executor> executor_;
};

// ENC-4
TEST_F(PgFormStoreTest, TellsOfEachQueueAsItIsNow) {
    configure("plain", "false");
    configure("vault", "true");
    EXPECT_THAT(*encrypted(kTenant, {"vault", "no such", "plain", "vault"}),
                ElementsAre(true, false, false, true));
    EXPECT_THAT(*encrypted(kOtherTenant, {"vault"}), ElementsAre(false));
    EXPECT_THAT(*encrypted(kTenant, {}), IsEmpty());
    configure("vault", "false");
    EXPECT_THAT(*encrypted(kTenant, {"vault"}), ElementsAre(false));
    EXPECT_FALSE(encrypted("nobody", {"vault"}));
}

} // namespace
} // namespace queen::store
