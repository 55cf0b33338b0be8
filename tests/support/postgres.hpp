#pragma once
#include "app/embedded_postgres.hpp"
#include "support/temp_directory.hpp"

#include <atomic>
#include <map>
#include <memory>
#include <string>

namespace queen::test {

/// A private PostgreSQL cluster of this test process: no fsync, unix socket only, gone at exit and
/// with the thread that first called shared() (which is main's in a GoogleTest program).
class TestPostgres {
public:
    /// Started at the first call. Throws std::runtime_error with the reason when it does not start.
    static TestPostgres& shared();

    explicit TestPostgres(std::map<std::string, std::string> settings = {});
    ~TestPostgres();
    TestPostgres(const TestPostgres&) = delete;
    TestPostgres& operator=(const TestPostgres&) = delete;

    std::string conninfo(const std::string& database = "postgres") const;
    /// A fresh, empty database. @return its name, "t1", "t2" and so on. @thread any
    std::string create_database();
    /// One or several statements in one call; throws std::runtime_error with the server's message.
    /// @return first column of the first row of the last statement, "" without one. @thread any
    std::string execute(const std::string& database, const std::string& sql) const;

    pid_t pid() const; ///< the postmaster; 0 after kill9()
    void kill9();      ///< the whole server dies as if power failed, and stays dead until restart()
    void restart();    ///< stops fast when it runs; returns once it takes connections again

private:
    TempDirectory folder_;
    std::unique_ptr<app::EmbeddedPostgres> server_;
    std::atomic<int> databases_{0};
    pid_t owner_;
};

} // namespace queen::test
