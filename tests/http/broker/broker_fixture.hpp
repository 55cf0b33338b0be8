#pragma once
#include "support/api.hpp"
#include "support/broker_process.hpp"
#include "support/candidate_source.hpp"
#include "support/temp_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace queen::test {

/// A real broker on an embedded PostgreSQL, one for all tests of the program, which runs once for
/// each candidate source. The backoff is a minute: whoever is answered sooner was woken, not lucky.
/// Tests use queues of their own.
class BrokerTest : public testing::Test {
protected:
    static void SetUpTestSuite() {
        if (!broker_) {
            directory_ = new TempDirectory;
            broker_ = new BrokerProcess({.config = "pop: {backoff_initial: 60s, backoff_max: 60s}\n"
                                                   "limits: {body: 8MiB}\n" +
                                                   serving(source_under_test()),
                                         .data_directory = directory_->path() + "/data"});
        }
    }
    static std::uint16_t port() { return broker_->port(); }

    /// A queue no other test uses.
    std::string queue() const {
        const auto* info = testing::UnitTest::GetInstance()->current_test_info();
        return std::string(info->test_suite_name()) + "." + info->name();
    }

    static BrokerProcess* broker_;

private:
    static TempDirectory* directory_;
    friend class BrokerEnvironment;
};

} // namespace queen::test
