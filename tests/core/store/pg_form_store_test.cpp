// The FormStore port against the schema that the installer made.
#include "core/store/pg_port_fixture.hpp"
#include "store/pg_form_store.hpp"
#include "store/pg_store.hpp"

#include <gmock/gmock.h>

namespace queen::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class PgFormStoreTest : public PgPortTest {
protected:
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
