// What happens when broker or database die, and what a start that cannot work says.
#include "support/api.hpp"
#include "support/broker_process.hpp"
#include "support/sql_session.hpp"
#include "support/temp_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

namespace queen::test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class QueendTest : public testing::Test {
protected:
    BrokerOptions options(const std::string& config = {}) const {
        return {.config = config, .data_directory = directory_.path() + "/data"};
    }
    /// Pushes until one is stored: while the database recovers, items answer `error`.
    static void push_when_up(Api& api, const std::string& queue, const std::string& id) {
        until([&] {
            const auto status = column(api.push_ids(queue, "p", {id}), "status").at(0);
            return status == "queued" || status == "duplicate";
        });
    }
    /// Repeats what needs the database until it holds, for at most a minute.
    template <class Holds>
    static void until(Holds holds) {
        const auto end = std::chrono::steady_clock::now() + 60s;
        while (!holds()) {
            ASSERT_LT(std::chrono::steady_clock::now(), end) << "not within a minute";
        }
    }
    /// A server whose broker was killed may stay a zombie until init reaps it: that is dead, too.
    static bool lives(pid_t pid) {
        std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline");
        std::string line;
        std::getline(file, line);
        return !line.empty();
    }
    static pid_t postmaster_of(const std::string& data) {
        std::ifstream file(data + "/postgres/postmaster.pid");
        pid_t pid = 0;
        file >> pid;
        return pid;
    }

    TempDirectory directory_;
};

TEST_F(QueendTest, AKilledBrokersDatabaseIsAdoptedAndNothingIsLost) {
    pid_t database = 0;
    {
        BrokerProcess broker(options());
        Api api(broker.port());
        api.push_ids("q", "p", {"1", "2"});
        database = postmaster_of(directory_.path() + "/data");
        broker.kill9();
        BrokerProcess next(options());
        EXPECT_EQ(postmaster_of(directory_.path() + "/data"), database) << "the same server";
        Api again(next.port());
        EXPECT_THAT(again.pop("q", "autoAck=true").ids(), ElementsAre("1", "2"));
        EXPECT_EQ(next.stop(), 0);
    }
    EXPECT_FALSE(lives(database)) << "stopped with the broker that adopted it";
}

// K31: the broker goes on by itself when PostgreSQL dies under it.
TEST_F(QueendTest, AKilledDatabaseComesBackAndParkedPopsAreServed) {
    BrokerProcess broker(options());
    Api api(broker.port());
    api.push_ids("q", "p", {"before"});
    ASSERT_THAT(api.pop("q", "autoAck=true").ids(), ElementsAre("before"));
    HttpClient parked(broker.port(), 90s);
    parked.start("GET", Api::pop_target("q", "wait=true&timeout=60000"));
    EXPECT_FALSE(parked.readable(100ms));
    ASSERT_EQ(kill(postmaster_of(directory_.path() + "/data"), SIGKILL), 0);
    push_when_up(api, "q", "after");
    EXPECT_THAT(Api::read_pop(parked.read()).ids(), ElementsAre("after"));
    until([&] { return api.http.get("/health").status == 200; });
}

// K03: what is answered while PostgreSQL is away is the truth: either the push failed, or it is
// there afterwards, once and in order.
TEST_F(QueendTest, K03_NoPushIsAnsweredStoredWhileTheDatabaseIsAway) {
    BrokerProcess broker(options());
    Api api(broker.port());
    std::vector<std::string> stored;
    int refused = 0, since = 0;
    for (int i = 0; since < 20; ++i) {
        if (i == 20) {
            ASSERT_EQ(kill(postmaster_of(directory_.path() + "/data"), SIGKILL), 0);
        }
        const auto id = std::to_string(i);
        const auto answer = api.push_ids("q", "p", {id});
        const bool whole = answer.status == 201 || answer.status >= 500;
        ASSERT_TRUE(whole) << answer.status << " " << answer.body;
        const auto status = answer.status == 201 ? column(answer, "status").at(0) : "refused";
        if (status == "queued") {
            stored.push_back(id);
            since += refused > 0 ? 1 : 0; // it is back
        } else {
            EXPECT_THAT(status, testing::AnyOf("refused", "error"));
            ++refused;
        }
    }
    const auto popped = api.pop("q", "batch=10000&autoAck=true");
    // An answer that says no may still have been stored, when the link broke over the commit.
    std::vector<std::string> known;
    for (const auto& id : popped.ids()) {
        if (std::find(stored.begin(), stored.end(), id) != stored.end()) {
            known.push_back(id);
        }
    }
    EXPECT_EQ(known, stored);
    EXPECT_LE(popped.messages.size(), stored.size() + static_cast<std::size_t>(refused));
}

// K33: parked clients get an answer, not a reset; every stored push is there afterwards.
TEST_F(QueendTest, SigtermAnswersEveryoneAndKeepsWhatWasAnswered) {
    std::set<std::string> stored;
    {
        BrokerProcess broker(options());
        std::vector<std::unique_ptr<HttpClient>> parked;
        for (int i = 0; i < 200; ++i) {
            parked.push_back(std::make_unique<HttpClient>(broker.port()));
            parked.back()->start("GET", Api::pop_target("empty", "wait=true&timeout=50000"));
        }
        std::atomic<bool> signalled{false};
        std::thread pusher([&] {
            try {
                Api api(broker.port());
                for (int i = 0;; ++i) {
                    const auto id = std::to_string(i);
                    const auto response = api.push_ids("q", "p", {id});
                    if (response.status == 201 && column(response, "status").at(0) == "queued") {
                        stored.insert(id);
                    }
                    if (i == 20) {
                        broker.signal(SIGTERM);
                        signalled = true;
                    }
                }
            } catch (const HttpClosed&) {
                EXPECT_TRUE(signalled.load());
            }
        });
        for (const auto& client : parked) {
            EXPECT_EQ(client->read().status, 204);
        }
        EXPECT_EQ(broker.wait(30s), 0);
        pusher.join();
    }
    BrokerProcess next(options());
    Api api(next.port());
    const auto found = api.pop("q", "batch=10000").ids();
    for (const auto& id : stored) {
        EXPECT_NE(std::find(found.begin(), found.end(), id), found.end()) << id;
    }
}

// A terminal that closes sends SIGHUP: the database must not outlive the broker.
TEST_F(QueendTest, AHangUpStopsBrokerAndDatabase) {
    BrokerProcess broker(options());
    const pid_t postmaster = postmaster_of(directory_.path() + "/data");
    ASSERT_GT(postmaster, 0);
    broker.signal(SIGHUP);
    EXPECT_EQ(broker.wait(30s), 0);
    EXPECT_FALSE(lives(postmaster));
}

TEST_F(QueendTest, BrokersInDifferentDirectoriesLiveSideBySide) {
    BrokerProcess one(options());
    BrokerProcess two({.config = {}, .data_directory = directory_.path() + "/other"});
    Api(one.port()).push_ids("q", "p", {"one"});
    EXPECT_EQ(Api(two.port()).pop("q").status, 204);
    EXPECT_THAT(Api(one.port()).pop("q").ids(), ElementsAre("one"));
}

TEST_F(QueendTest, TwoBrokersShareOneDatabaseByUrl) {
    BrokerProcess owner(options());
    const auto url = "host=" + directory_.path() + "/data/run user=queen dbname=queen";
    BrokerProcess guest({.config = "database: {url: \"" + url + "\"}\n",
                         .data_directory = directory_.path() + "/guest"});
    Api(owner.port()).push_ids("q", "p", {"t"});
    EXPECT_THAT(Api(guest.port()).pop("q").ids(), ElementsAre("t"));
}

// With every session of both in use, the operator's psql still gets in.
TEST_F(QueendTest, AnEmbeddedDatabaseHasRoomForAGuestOfTheSameSize) {
    constexpr int kSessions = 20;
    const BrokerProcess owner(options("database: {sessions: " + std::to_string(kSessions) + "}\n"));
    const auto url = "host=" + directory_.path() + "/data/run user=queen dbname=queen";
    std::vector<SqlSession> both;
    for (int i = 0; i < 2 * kSessions; ++i) {
        both.emplace_back(url);
    }
    EXPECT_EQ(SqlSession(url).one("SELECT 1"), "1");
}

/// One line that names what is wrong, and no success.
void expect_refusal(const BrokerExit& exit, const std::string& text) {
    EXPECT_NE(exit.status, 0);
    EXPECT_LT(exit.status, 128) << "a clean exit, not a signal: " << exit.output;
    EXPECT_THAT(exit.output, HasSubstr(text));
}

// Another installer holds the schema: a start that waits for it is stopped by a signal at once.
TEST_F(QueendTest, AStartThatWaitsForAnotherInstallerCanBeStopped) {
    BrokerProcess owner(options());
    const auto conninfo = "host=" + directory_.path() + "/data/run user=queen dbname=queen";
    SqlSession installing(conninfo);
    installing.query("select pg_advisory_lock(778120010)");
    BrokerExit exit;
    std::thread second([&] {
        exit = BrokerProcess::run_to_end({.config = "database: {url: \"" + conninfo + "\"}\n",
                                          .data_directory = directory_.path() + "/guest"});
    });
    SqlSession watcher(conninfo);
    watcher.wait_for("exists (select 1 from pg_stat_activity where application_name = 'queend' "
                     "and query like '%pg_try_advisory_lock%')");
    std::string pid;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        std::ifstream file(entry.path() / "cmdline");
        std::string line;
        std::getline(file, line);
        if (line.find(directory_.path() + "/guest") != std::string::npos) {
            pid = entry.path().filename();
        }
    }
    ASSERT_FALSE(pid.empty());
    ASSERT_EQ(kill(static_cast<pid_t>(std::stol(pid)), SIGTERM), 0);
    second.join();
    EXPECT_EQ(exit.status, 0) << exit.output;
    EXPECT_THAT(exit.output, HasSubstr("stopped before it was ready"));
}

TEST_F(QueendTest, ADirectoryInUseIsRefused) {
    const BrokerProcess owner(options());
    expect_refusal(BrokerProcess::run_to_end(options()), "in use");
}

TEST_F(QueendTest, APortInUseIsRefused) {
    const BrokerProcess owner(options());
    auto second = options();
    second.data_directory += "-second";
    second.port = owner.port();
    expect_refusal(BrokerProcess::run_to_end(second),
                   "port " + std::to_string(owner.port()) + " on 127.0.0.1 is in use");
}

TEST_F(QueendTest, ADataDirectoryThatIsAFileIsRefused) {
    std::ofstream(directory_.path() + "/data") << "not a directory";
    expect_refusal(BrokerProcess::run_to_end(options()), "/data");
}

TEST_F(QueendTest, ADatabaseThatIsNotThereIsRefused) {
    expect_refusal(
        BrokerProcess::run_to_end(options("database: {url: \"host=/nowhere user=q dbname=q\"}\n")),
        "/nowhere");
}

TEST_F(QueendTest, EverySettingsFaultIsToldAtOnceWithItsPlace) {
    const auto exit = BrokerProcess::run_to_end(
        options("listn: 1\npop: {default_timeout: 30}\nlog: {level: x}\n"));
    EXPECT_EQ(exit.status, 2);
    EXPECT_THAT(exit.output, AllOf(HasSubstr(":1:1:"), HasSubstr(":2:"), HasSubstr(":3:")));
}

// K38: a plugin that does not fit is refused in one sentence.
TEST_F(QueendTest, APluginThatDoesNotFitIsRefused) {
    const auto path = directory_.path() + "/odd.so";
    std::ofstream(path) << "text";
    expect_refusal(BrokerProcess::run_to_end(options("plugins: [{name: odd, path: " + path +
                                                     "}]\ncandidates: {default: odd}\n")),
                   "odd.so");
    EXPECT_FALSE(std::filesystem::exists(directory_.path() + "/data")) << "judged before that";
}

TEST_F(QueendTest, APluginOptionOutOfRangeIsToldWithItsPlace) {
    const auto exit = BrokerProcess::run_to_end(
        options("plugins:\n  - name: hotlist\n    path: hotlist.so\n    options: {shards: 0}\n"));
    EXPECT_NE(exit.status, 0);
    EXPECT_THAT(exit.output, AllOf(HasSubstr(":4:"), HasSubstr("shards")));
}

// An option that inherits gets the broker's own setting, not its default, and /status tells what
// became of each plugin.
TEST_F(QueendTest, APluginInheritsTheBrokersSettingsAndIsSeenInTheStatus) {
    const auto build = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
    const auto path = (build / "fixtures/good_options.so").string();
    BrokerProcess broker(
        options("server_id: alpha\nplugins:\n  - {name: hotlist, path: hotlist.so}\n"
                "  - {name: mine, path: " +
                path + ", options: {depth: 1}}\n"));
    EXPECT_THAT(broker.output(), HasSubstr("label=alpha"));

    const auto document = json::Document::parse(Api(broker.port()).http.get("/status").body);
    ASSERT_TRUE(document.has_value());
    const auto plugins = document->root()["plugins"];
    ASSERT_EQ(plugins.size(), 2u);
    EXPECT_EQ(plugins.at(0)["name"].string(), "hotlist");
    const auto mine = plugins.at(1);
    EXPECT_EQ(mine["name"].string(), "mine");
    EXPECT_EQ(mine["path"].string(), path);
    EXPECT_EQ(mine["id"].string(), "test.options");
    EXPECT_EQ(mine["version"].string(), "1.2.3");
    EXPECT_EQ(mine["kinds"].at(0).string(), "queen.candidates/1");
    EXPECT_EQ(mine["loaded"].boolean(), true);
    EXPECT_EQ(mine["paused"].boolean(), false);
    EXPECT_EQ(mine["verdict"].string(), "loaded");
    EXPECT_EQ(mine["faults"].kind(), json::Kind::object);
}

} // namespace
} // namespace queen::test
