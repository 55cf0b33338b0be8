// What the SQL tests share: a database with the schema in it, empty, and its clock stopped.
#pragma once
#include "support/sql_session.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace queen::test {

inline constexpr std::string_view kTenant = "00000000-0000-0000-0000-000000000001";

/// A hash argument: the text form of bytea.
std::string hash(std::string_view id);
/// As procedures report it.
std::string hash_hex(std::string_view id);

/// A pop of named partitions.
struct PopCall {
    std::string queue = "q";
    std::string partition = "p";
    std::string group = "g";
    int budget = 100;
    int lease = 60;
    std::string worker = "w";
    bool auto_ack = false;
    std::string mode = "all";
    std::string from = "";
    bool skip_window = false;
};

/// A wildcard pop.
struct WildcardCall {
    std::string queue = "q";
    std::string group = "g";
    int budget = 100;
    int lease = 60;
    std::string worker = "w";
    bool auto_ack = false;
    int partitions = 100;
    std::string mode = "all";
    std::string from = "";
};

/// A procedure with one place of it broken: what a test must notice.
struct Mutation {
    const char* function;
    const char* from;
    const char* to;
};

class SqlTest : public ::testing::Test {
protected:
    /// Tests that change the schema, or count what the server counts, take a database of their own;
    /// the others share one, which is emptied before each.
    enum class Database { shared, own };
    explicit SqlTest(Database database = Database::shared);

    SqlSession connect() const;

    /// The database's clock stands at this many seconds after a fixed moment. It begins at 0.
    void clock(double seconds);
    void run_clock(); ///< real time from here on

    /// One segment with one message per id. @return "queued <base>" or "duplicate i:off ..."
    std::string push(const std::string& queue, const std::string& partition,
                     const std::vector<std::string>& ids, std::int64_t verified = -1);
    void configure(const std::string& queue, const std::string& options);

    /// A pinned pop: slices as "base+start*take", "" for nothing.
    std::string pop(const PopCall& what, SqlSession* session = nullptr);
    /// A wildcard pop: "partition:base+start*take ..." sorted by partition.
    std::string wildcard(const WildcardCall& what, SqlSession* session = nullptr);
    /// A list pop: its verdicts as "name=took|empty|leased(ms)".
    std::string list(const std::vector<std::string>& names, const PopCall& what = {},
                     SqlSession* session = nullptr, int partitions = 100);

    std::string pid(const std::string& partition = "p", const std::string& queue = "q");
    /// A column of the cursor row.
    std::string cursor(const std::string& column, const std::string& partition = "p",
                       const std::string& group = "g", const std::string& queue = "q");
    /// Ack by hash; "id=status" each. @return the answer as JSON text
    std::string ack(const std::vector<std::pair<std::string, std::string>>& items,
                    const std::string& worker = "w", const std::string& partition = "p",
                    const std::string& group = "g");
    /// Breaks the procedure; the database is the test's own. @return its text as it was, a script
    /// that mends it. @throws std::runtime_error when the text has no such place,
    /// or more than one
    std::string mutate(const Mutation& mutation);
    /// Waits until the statement that a session was sent waits for a lock.
    void await_lock(const SqlSession& session);
    std::int64_t deadlocks(); ///< of the database, ever
    /// What the statements that run inside those of `call` did, as auto_explain tells it: plans as
    /// JSON, with the rows that were really visited.
    static std::vector<std::string> nested_plans(SqlSession& session,
                                                 const std::function<void()>& call);
    /// A member of a JSON text, as text.
    std::string member(const std::string& json, const std::string& name);

    std::string database_name;
    SqlSession sql;
};

} // namespace queen::test
