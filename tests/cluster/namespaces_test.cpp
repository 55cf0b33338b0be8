// Two brokers on two machines, as far as their network goes: a network namespace each and a cable
// between them that can be pulled. Reported as skipped where namespaces are not permitted.
#include "app/child_process.hpp"
#include "support/api.hpp"
#include "support/broker_process.hpp"
#include "support/exposition.hpp"
#include "support/postgres.hpp"
#include "support/temp_directory.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

namespace queen::test {
namespace {

using testing::ElementsAre;

app::UniqueFd own_network() {
    return app::UniqueFd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
}

/// The calling thread's sockets, and processes it starts, belong to that namespace meanwhile.
class Inside {
public:
    explicit Inside(const app::UniqueFd& network) : before_(own_network()) {
        EXPECT_EQ(::setns(network.get(), CLONE_NEWNET), 0);
    }
    ~Inside() { EXPECT_EQ(::setns(before_.get(), CLONE_NEWNET), 0); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

private:
    const app::UniqueFd before_;
};

/// @return a new namespace; none when that is not permitted
app::UniqueFd new_network() {
    const auto before = own_network();
    if (!before || ::unshare(CLONE_NEWNET) != 0) {
        return {};
    }
    auto made = own_network();
    EXPECT_EQ(::setns(before.get(), CLONE_NEWNET), 0);
    return made;
}

bool done(const std::string& command) {
    return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

class Machines : public testing::Test {
protected:
    struct Machine {
        std::string name, address, card;
        app::UniqueFd network;
        std::unique_ptr<BrokerProcess> broker;
    };

    /// @return what is not permitted; "" when all is there
    std::string build() {
        for (auto* machine : {&a_, &b_}) {
            machine->network = new_network();
            if (!machine->network) {
                return "unshare(CLONE_NEWNET)";
            }
        }
        {
            const Inside b(b_.network);
            const auto self = std::to_string(::getpid());
            if (!done("nsenter --net=/proc/" + self + "/fd/" + std::to_string(a_.network.get()) +
                      " ip link add va type veth peer name vb netns " + self)) {
                return "ip link add (veth)";
            }
        }
        for (auto* machine : {&a_, &b_}) {
            const Inside here(machine->network);
            if (!done("ip link set lo up && ip address add " + machine->address + "/24 dev " +
                      machine->card + " && ip link set " + machine->card + " up")) {
                return "ip address add";
            }
        }
        return {};
    }

    void start(Machine& machine, const Machine& peer) {
        const Inside here(machine.network);
        machine.broker = std::make_unique<BrokerProcess>(BrokerOptions{
            .config = "server_id: " + machine.name + "\ndatabase: {url: \"" +
                      TestPostgres::shared().conninfo(database_) +
                      "\", sessions: 6}\n"
                      "pop: {backoff_initial: 60s, backoff_max: 60s}\n"
                      "plugins:\n"
                      "  - {name: hotlist, path: hotlist.so, options: {reseed: 1h}}\n"
                      "  - {name: sqlscan, path: sqlscan.so}\n"
                      "  - {name: mesh, path: mesh.so, options: {listen: " +
                      machine.address + ", peers: " + peer.address +
                      ", secret: \"0123456789abcdef\", heartbeat: 100ms, dead_threshold: 1s}}\n",
            .data_directory = directory_.path() + "/" + machine.name});
    }
    static HttpClient client(const Machine& machine) {
        const Inside here(machine.network);
        return HttpClient(machine.broker->port(), std::chrono::seconds(70));
    }
    static Api api(const Machine& machine) {
        const Inside here(machine.network);
        return Api(machine.broker->port());
    }
    static void await(const Machine& machine, const std::string& series, double value) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
        double is = -1;
        while (is != value && std::chrono::steady_clock::now() < end) {
            const auto page = parse_exposition(client(machine).get("/metrics/prometheus").body);
            const auto found = page.by_series.find(series);
            is = found == page.by_series.end() ? -1 : found->second;
        }
        EXPECT_EQ(is, value) << machine.name << ": " << series;
    }

    const std::string database_ = TestPostgres::shared().create_database();
    TempDirectory directory_;
    Machine a_{"a", "10.77.0.1", "va", {}, {}};
    Machine b_{"b", "10.77.0.2", "vb", {}, {}};
};

TEST_F(Machines, ACableThatIsPulledCostsHintsAndNoPush) {
    if (const auto refused = build(); !refused.empty()) {
        GTEST_SKIP() << "network namespaces are not permitted here: " << refused << " failed";
    }
    start(a_, b_);
    start(b_, a_);
    const std::string connected = "queen_mesh_peers_connected{plugin=\"mesh\"}";
    const std::string alive = "queen_mesh_servers_alive{plugin=\"mesh\"}";
    for (const auto* machine : {&a_, &b_}) {
        await(*machine, connected, 1);
        await(*machine, alive, 1);
    }
    auto on_a = api(a_);
    const auto wakes_b = [&](const std::string& id) {
        auto parked = client(b_);
        parked.start("GET", "/api/v1/pop/queue/q?wait=true&timeout=58000&autoAck=true");
        await(b_, "queen_parked_pops", 1);
        ASSERT_EQ(on_a.push_ids("q", "p", {id}).status, 201);
        EXPECT_THAT(Api::read_pop(parked.read()).ids(), ElementsAre(id));
    };
    wakes_b("1");
    {
        const Inside a(a_.network);
        ASSERT_TRUE(done("ip link set va down"));
    }
    for (int i = 0; i < 20; ++i) {
        ASSERT_EQ(on_a.push_ids("other", "p", {"m" + std::to_string(i)}).status, 201);
    }
    await(a_, alive, 0);
    await(b_, alive, 0);
    {
        const Inside a(a_.network);
        ASSERT_TRUE(done("ip link set va up"));
    }
    for (const auto* machine : {&a_, &b_}) {
        await(*machine, alive, 1);
        await(*machine, connected, 1);
    }
    wakes_b("2");
}

} // namespace
} // namespace queen::test
