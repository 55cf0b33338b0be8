#include "http/broker/broker_fixture.hpp"

namespace queen::test {

BrokerProcess* BrokerTest::broker_ = nullptr;
TempDirectory* BrokerTest::directory_ = nullptr;

/// Ends the broker before the program does.
class BrokerEnvironment final : public testing::Environment {
public:
    void TearDown() override {
        delete std::exchange(BrokerTest::broker_, nullptr);
        delete std::exchange(BrokerTest::directory_, nullptr);
    }
};

namespace {
const auto* const kEnvironment = testing::AddGlobalTestEnvironment(new BrokerEnvironment);
} // namespace

} // namespace queen::test
