// The mesh as the broker uses it: its own thread, real time, but nothing that waits for it.
#include "mesh/mesh.hpp"
#include "plugins/mesh/mesh_fixture.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <set>

namespace queen::mesh {
namespace {

class Lines {
public:
    Log log() {
        return [this](plugin::LogLevel, std::string_view line) {
            {
                const std::lock_guard lock(mutex_);
                lines_.emplace_back(line);
            }
            changed_.notify_all();
        };
    }
    bool await(std::string_view part) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, plugin::kPatience, [&] {
            return std::any_of(lines_.begin(), lines_.end(), [&](const std::string& line) {
                return line.find(part) != line.npos;
            });
        });
    }
    std::string all() {
        const std::lock_guard lock(mutex_);
        std::string out;
        for (const std::string& line : lines_) {
            out += line + "\n";
        }
        return out;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::string> lines_;
};

Options options(const std::string& id, const std::vector<std::string>& peers) {
    Options made;
    made.server_id = id;
    made.listen = {"127.0.0.1", 0};
    made.secret = kSecret;
    for (const std::string& peer : peers) {
        made.peers.push_back({peer, kDefaultPort});
    }
    return made;
}

class MeshTest : public testing::Test {
protected:
    std::unique_ptr<Mesh> make(const Options& set) {
        return std::make_unique<Mesh>(set, clock_, host_, lines_.log(),
                                      std::make_unique<TableResolver>(names_));
    }
    ManualClock clock_;
    RecordingMeshHost host_;
    Lines lines_;
    Names names_;
};

TEST_F(MeshTest, TwoOnThreadsOfTheirOwnHintEachOther) {
    ManualClock clock;
    RecordingMeshHost host_a;
    RecordingMeshHost host_b;
    Lines lines_a;
    Lines lines_b;
    Mesh a(options("a", {"127.0.0.1"}), clock, host_a, lines_a.log());
    a.start(); // its peer's port is not there: only to be listened at
    Options with_a = options("b", {});
    with_a.peers = {{"127.0.0.1", a.port()}};
    Mesh b(with_a, clock, host_b, lines_b.log());
    b.start();
    ASSERT_TRUE(lines_b.await("is connected"));
    EXPECT_TRUE(b.listened());
    std::vector<std::thread> workers;
    for (int w = 0; w < 4; ++w) {
        workers.emplace_back([&, w] {
            for (int i = 0; i < 100; ++i) {
                const std::string partition = std::to_string(w) + "-" + std::to_string(i);
                const Hint hint = stored("q", partition);
                b.publish(std::span(&hint, 1));
            }
        });
    }
    for (std::thread& worker : workers) {
        worker.join();
    }
    ASSERT_TRUE(host_a.await(400));
    std::set<std::string> partitions;
    for (const OwnedHint& hint : host_a.hints()) {
        partitions.insert(hint.partition);
    }
    EXPECT_EQ(partitions.size(), 400u);
    const Hint last = stored("q", "last");
    b.publish(std::span(&last, 1));
    b.stop();
    EXPECT_TRUE(host_a.await({OwnedHint(last)})) << "what was said before the stop is sent";
    EXPECT_FALSE(b.listened());
    const Hint late = stored("q", "late");
    b.publish(std::span(&late, 1));
    a.stop();
    const auto heard = host_a.hints();
    EXPECT_EQ(std::count(heard.begin(), heard.end(), OwnedHint(late)), 0);
}

TEST_F(MeshTest, ME2_WithoutPeersOrSwitchedOffThereIsNothing) {
    Options off = options("a", {"b"});
    off.enabled = false;
    for (const Options& set : {options("a", {}), off}) {
        const auto mesh = make(set);
        mesh->start();
        EXPECT_EQ(mesh->port(), 0);
        EXPECT_FALSE(mesh->listened());
        const Hint hint = stored("q", "p");
        mesh->publish(std::span(&hint, 1));
        struct Sum final : plugin::Stats {
            void add(std::string_view, double value) override { sum += value; }
            double sum = 0;
        } stats;
        mesh->stats(stats);
        EXPECT_EQ(stats.sum, 0);
        mesh->stop();
    }
}

TEST_F(MeshTest, OpenOnAnAddressOfTheOutsideWarns) {
    Options open = options("a", {"b"});
    open.secret.clear();
    open.listen.host = "0.0.0.0";
    make(open)->start();
    EXPECT_NE(lines_.all().find("no secret is set"), std::string::npos) << lines_.all();
}

TEST_F(MeshTest, OpenOnTheLoopbackDoesNot) {
    Options open = options("a", {"b"});
    open.secret.clear();
    make(open)->start();
    EXPECT_EQ(lines_.all().find("no secret is set"), std::string::npos) << lines_.all();
}

TEST_F(MeshTest, AWeakSecretAndAChallengeThatIsOffWarn) {
    Options weak = options("a", {"b"});
    weak.secret = "short";
    weak.require_challenge = false;
    make(weak)->start();
    EXPECT_NE(lines_.all().find("shorter than 16"), std::string::npos);
    EXPECT_NE(lines_.all().find("require_challenge is off"), std::string::npos);
    EXPECT_EQ(lines_.all().find("\"short\""), std::string::npos);
}

TEST_F(MeshTest, EveryFigureHasANameOfItsOwn) {
    const auto mesh = make(options("a", {"b"}));
    struct Seen final : plugin::Stats {
        void add(std::string_view name, double) override {
            EXPECT_TRUE(names.emplace(name).second) << name;
        }
        std::set<std::string> names;
    } stats;
    mesh->stats(stats);
    for (const char* name :
         {"frames_sent_total", "frames_received_total", "handshake_failures_total", "servers_alive",
          "servers_dead", "dirty", "frames_dropped_full_total"}) {
        EXPECT_TRUE(stats.names.contains(name)) << name;
    }
}

TEST_F(MeshTest, TheSystemsResolverFindsThisMachineAndStopsAtOnce) {
    const std::unique_ptr<Resolver> resolver = make_system_resolver();
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Resolved> answer;
    resolver->start([&](std::uint64_t ticket, Resolved found) {
        EXPECT_EQ(ticket, 7u);
        const std::lock_guard lock(mutex);
        answer = std::move(found);
        changed.notify_all();
    });
    resolver->ask(7, {"localhost", 80});
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, plugin::kPatience, [&] { return answer.has_value(); }));
    EXPECT_FALSE(answer->endpoints.empty()) << answer->error;
    lock.unlock();
    resolver->stop();
    resolver->ask(8, {"localhost", 80}); // nobody answers any more
}

} // namespace
} // namespace queen::mesh
