// Brokers of their own on one database.
#pragma once
#include "base/json.hpp"
#include "support/api.hpp"
#include "support/broker_process.hpp"
#include "support/candidate_source.hpp"
#include "support/postgres.hpp"
#include "support/sql_session.hpp"
#include "support/temp_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace queen::test {

class SecurityTest : public testing::Test {
protected:
    SecurityTest() : database_(TestPostgres::shared().create_database()) {}

    /// Another broker on the database of the test.
    std::unique_ptr<BrokerProcess> start(const std::vector<std::string>& environment) {
        directories_.push_back(std::make_unique<TempDirectory>());
        return std::make_unique<BrokerProcess>(
            BrokerOptions{.config = config(),
                          .data_directory = directories_.back()->path() + "/data",
                          .environment = environment});
    }
    std::string config() const {
        return "database: {url: \"" + TestPostgres::shared().conninfo(database_) +
               "\", sessions: 4}\n" + serving("sqlscan");
    }
    std::string refusal(const std::vector<std::string>& environment) {
        TempDirectory directory;
        const auto end =
            BrokerProcess::run_to_end(BrokerOptions{.config = config(),
                                                    .data_directory = directory.path() + "/data",
                                                    .environment = environment});
        EXPECT_NE(end.status, 0);
        return end.output;
    }
    SqlSession sql() const { return SqlSession(TestPostgres::shared().conninfo(database_)); }

    std::string database_;
    std::vector<std::unique_ptr<TempDirectory>> directories_;
};

inline std::string member(const HttpResponse& response, std::size_t index, std::string_view name) {
    const auto document = json::Document::parse(response.body);
    return document ? std::string(document->root().at(index)[name].string()) : response.body;
}

} // namespace queen::test
