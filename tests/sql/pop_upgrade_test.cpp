// Brokers of the first release go on popping while a new one boots: after each statement of the
// boot every pop that they know works, as they call it.
#include "sql/sql_fixture.hpp"
#include "support/sql_files.hpp"

#include <fstream>
#include <sstream>

namespace queen::test {
namespace {

class PopUpgrade : public SqlTest {
protected:
    PopUpgrade() : SqlTest(Database::own) {
        std::ifstream file(QUEEN_RELEASE_1);
        std::stringstream text;
        text << file.rdbuf();
        sql.script("drop schema queen cascade; drop schema if exists oracle cascade");
        sql.script(text.str());
        sql.script("reset all");
    }

    /// The calls of release 1, with all the arguments it gives. Nothing stays.
    void pop_as_release_1_does(SqlSession& broker) {
        broker.script("begin");
        broker.query(
            "select * from queen.log_pop_list_v1('orders', 'g', '{a,b}', 10, 0, 'w', false, 2, "
            "'all', '', false, $1)",
            {kTenant});
        broker.query(
            "select * from queen.log_pop_wildcard_bin_v1('orders', 'h', 10, 0, 'w', false, 2, "
            "'all', '', $1)",
            {kTenant});
        broker.query(
            "select * from queen.log_pop_specific_bin_v1('orders', 'a', 'i', 10, 0, 'w', true, "
            "'new', '', $1)",
            {kTenant});
        broker.query(
            "select * from queen.log_pop_discover_bin_v1('shop', '', 'j', 10, 0, 'w', false, "
            "2, 'all', '', $1)",
            {kTenant});
        broker.script("rollback");
    }
};

TEST_F(PopUpgrade, NoStatementOfTheBootBreaksAPopOfTheFirstRelease) {
    SqlSession broker = connect();
    pop_as_release_1_does(broker);
    for (const SqlFile& file : read_sql_files()) {
        for (std::size_t i = 0; i < file.statements.size(); ++i) {
            sql.script(file.statements[i]);
            ASSERT_NO_THROW(pop_as_release_1_does(broker)) << file.name << " statement " << i + 1;
        }
    }
    EXPECT_EQ(sql.integer("select count(*) from pg_proc where pronamespace = "
                          "'queen'::regnamespace and proname in ('_claim', '_register_group', "
                          "'_subscription', '_scan_and_claim')"),
              4)
        << "of each one is left";
}

} // namespace
} // namespace queen::test
