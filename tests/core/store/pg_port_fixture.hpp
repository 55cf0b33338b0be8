// What the tests of the ports that PostgreSQL implements share.
#pragma once
#include "model/names.hpp"
#include "store/conninfo.hpp"
#include "store/executor.hpp"
#include "store/installer.hpp"
#include "store/pg_session.hpp"
#include "support/postgres.hpp"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace queen::store {

inline constexpr SteadyTime kNever = SteadyTime::max();
inline const std::string kTenant{kDefaultTenant};
inline const std::string kOtherTenant = "00000000-0000-0000-0000-0000000000aa";

/// @return how to connect to a new database, with the schema that the installer made. Throws when
/// it could not
inline std::string installed_database() {
    auto& server = test::TestPostgres::shared();
    std::string conninfo = *complete_conninfo(server.conninfo(server.create_database()));
    if (const auto installed = Installer(conninfo).run(); !installed) {
        throw std::runtime_error(installed.error().message);
    }
    return conninfo;
}

inline std::unique_ptr<Executor> sessions_of(const std::string& conninfo) {
    return std::make_unique<Executor>(
        Executor::Options{.sessions = 4, .spare_threads = 1},
        [conninfo] { return std::make_unique<PgSession>(conninfo, StatementLimits{}); });
}

/// Makes a call with a continuation of our own and waits for its outcome.
template <class X, class Call>
Result<X> wait_for(Call&& call) {
    auto promise = std::make_shared<std::promise<Result<X>>>();
    call([promise](Result<X> outcome) { promise->set_value(std::move(outcome)); });
    return promise->get_future().get();
}

/// A database for each test.
class PgPortTest : public testing::Test {
protected:
    const std::string conninfo_ = installed_database();
    const std::unique_ptr<Executor> executor_ = sessions_of(conninfo_);
};

} // namespace queen::store
