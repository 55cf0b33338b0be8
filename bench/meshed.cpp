// What hints between brokers cost, and what they bring: two brokers over one database, pushes on
// one, pops that wait at the other. Without a mesh, over TCP, and over LISTEN/NOTIFY of the
// database. Each kind has brokers and a PostgreSQL of its own, all run from the beginning, and the
// kinds take short turns, so that a machine whose speed drifts favours none. Without a mesh a pop
// that waits is woken by the walk of the hot-list (30 s): that is measured once, and not again
// under load.
#include "base/clock.hpp"
#include "cluster.hpp"
#include "pause.hpp"
#include "producers.hpp"
#include "quantiles.hpp"
#include "queenctl/text_table.hpp"
#include "scenario.hpp"
#include "scrape.hpp"
#include "subject.hpp"
#include "support/api.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <thread>

namespace queen::bench {
namespace {

using namespace std::chrono_literals;

constexpr const char* kLoad = "load";
/// A pop that waits looks by itself at intervals that grow for 1.7 s, to 1 s; from then on it is
/// one that has long waited.
constexpr auto kLongParked = 2500ms;

/// A port that was free a moment ago.
std::uint16_t free_port() {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    const bool bound = fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                       getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
    close(fd);
    if (!bound) {
        throw std::runtime_error("no free port");
    }
    return ntohs(address.sin_port);
}

struct Pair {
    explicit Pair(const std::string& kind) : kind(kind) {
        if (kind == "tcp") {
            const std::array ports{std::to_string(free_port()), std::to_string(free_port())};
            for (const int i : {0, 1}) {
                cluster.add(plugins({"{name: mesh, path: mesh.so, options: {port: " + ports[i] +
                                     ", peers: \"127.0.0.1:" + ports[1 - i] + "\"}}"}));
            }
        } else {
            for (int i = 0; i < 2; ++i) {
                cluster.add(plugins(kind == "notify" ? std::vector<std::string>{"{name: mesh, "
                                                                                "path: meshpg.so}"}
                                                     : std::vector<std::string>{}));
            }
        }
        for (std::size_t i = 0; i < cluster.size() && kind != "none"; ++i) {
            await_figure(cluster.port(i), "queen_mesh_servers_alive", 1);
        }
    }
    std::uint16_t pushes() const { return cluster.port(0); }
    std::uint16_t pops() const { return cluster.port(1); }

    const std::string kind;
    Cluster cluster;
    Used used;               ///< in the stretches of pushes
    std::int64_t pushed = 0; ///< in them
    Quantiles rest, loaded;  ///< from a push's answer to that of the pop it woke
};

std::string wake_queue(std::int64_t number) {
    return "wake" + std::to_string(number);
}

/// Pops that wait at one broker, each for a queue of its own, and the pushes on the other that they
/// wait for.
class Wakes {
public:
    Wakes(const Pair& pair, std::int64_t count) : api_(pair.pushes()) {
        for (std::int64_t i = 0; i < count; ++i) {
            pops_.emplace_back(pair.pops(), 90s);
            pops_.back().start("GET", test::Api::pop_target(wake_queue(i),
                                                            "wait=true&timeout=60000&autoAck=true"
                                                            "&consumerGroup=g"));
        }
        await_figure(pair.pops(), "queen_parked_pops", static_cast<double>(count));
    }
    ~Wakes() {
        if (collector_.joinable()) {
            collector_.join();
        }
    }
    Wakes(const Wakes&) = delete;
    Wakes& operator=(const Wakes&) = delete;

    void collect() {
        answered_.resize(pops_.size());
        pushed_.resize(pops_.size());
        collector_ = std::thread([this] { await_answers(); });
    }
    void push(std::size_t number, const std::string& id) {
        const auto answer = api_.push_ids(wake_queue(static_cast<std::int64_t>(number)), "p", {id});
        pushed_[number] = SystemClock::instance().now();
        if (answer.status != 201) {
            throw std::runtime_error("push: " + answer.body);
        }
    }
    /// Waits for all answers. An answer that was there before the push's own counts as negative.
    void finish(Quantiles& into) {
        collector_.join();
        for (std::size_t i = 0; i < pops_.size(); ++i) {
            const auto popped = test::Api::read_pop(pops_[i].read());
            if (popped.messages.size() != 1) {
                throw std::runtime_error("a pop that waited was answered " + popped.body);
            }
            into.add(answered_[i] - pushed_[i]);
        }
    }

private:
    void await_answers() {
        std::vector<pollfd> polls;
        for (const auto& pop : pops_) {
            polls.push_back({pop.descriptor(), POLLIN, 0});
        }
        for (std::size_t open = polls.size(); open > 0;) {
            // A pop is answered within its time-out, with or without a message.
            if (::poll(polls.data(), polls.size(), 90'000) <= 0) {
                return;
            }
            const auto now = SystemClock::instance().now();
            for (std::size_t i = 0; i < polls.size(); ++i) {
                if (polls[i].revents != 0) {
                    answered_[i] = now;
                    polls[i].fd = -1;
                    --open;
                }
            }
        }
    }

    test::Api api_;
    std::vector<test::HttpClient> pops_;
    std::vector<SteadyTime> answered_, pushed_;
    std::thread collector_;
};

using Pairs = std::vector<std::unique_ptr<Pair>>;

/// Queues, partitions and groups are there, and the other broker follows all of them.
void prepare(Pair& pair, const Meshed& meshed) {
    test::Api pushes(pair.pushes()), pops(pair.pops());
    for (std::int64_t i = 0; i < meshed.wakes; ++i) {
        pushes.push_ids(wake_queue(i), "p", {"first"});
        pops.pop(wake_queue(i), "autoAck=true&consumerGroup=g");
    }
    {
        const Producers warm(pair.pushes(), kLoad, meshed.connections);
        pause(500ms);
    }
    pops.pop(kLoad, "autoAck=true&consumerGroup=g");
}

/// At rest: nothing but the pushes that wake, the kinds in turn, push by push.
void at_rest(Pairs& pairs, const Meshed& meshed) {
    std::vector<std::unique_ptr<Wakes>> wakes;
    for (auto& pair : pairs) {
        wakes.push_back(std::make_unique<Wakes>(*pair, meshed.wakes));
    }
    pause(kLongParked);
    for (auto& wake : wakes) {
        wake->collect();
    }
    for (std::int64_t i = 0; i < meshed.wakes; ++i) {
        for (std::size_t k = 0; k < wakes.size(); ++k) {
            wakes[(k + static_cast<std::size_t>(i)) % wakes.size()]->push(
                static_cast<std::size_t>(i), "rest");
            pause(15ms);
        }
    }
    for (std::size_t k = 0; k < wakes.size(); ++k) {
        wakes[k]->finish(pairs[k]->rest);
    }
}

/// Pushes as fast as they are answered, and what they cost.
void stretch(Pair& pair, const Meshed& meshed) {
    const Producers producers(pair.pushes(), kLoad, meshed.connections);
    const auto before = pair.cluster.used();
    const auto pushed = producers.pushed();
    pause(std::chrono::seconds(meshed.seconds));
    pair.pushed += producers.pushed() - pushed;
    pair.used += pair.cluster.since(before);
}

/// The same pushes, and those that wake beside them.
void under_load(Pair& pair, const Meshed& meshed) {
    const Producers producers(pair.pushes(), kLoad, meshed.connections);
    Wakes wakes(pair, meshed.wakes);
    pause(kLongParked);
    wakes.collect();
    for (std::int64_t i = 0; i < meshed.wakes; ++i) {
        wakes.push(static_cast<std::size_t>(i), "load");
        pause(25ms);
    }
    wakes.finish(pair.loaded);
    static_cast<void>(producers.pushed()); // throws when one failed
}

double per_push(const Pair& pair, std::chrono::nanoseconds cpu) {
    return std::chrono::duration<double, std::micro>(cpu).count() /
           static_cast<double>(pair.pushed);
}

void print(Pairs& pairs, std::ostream& out) {
    ctl::TextTable cost({{"mesh", false},
                         {"pushes", true},
                         {"pushes/s", true},
                         {"to none", true},
                         {"cpu us/push: A", true},
                         {"B", true},
                         {"PostgreSQL", true},
                         {"together", true},
                         {"added: A", true},
                         {"B", true},
                         {"PostgreSQL", true},
                         {"together", true},
                         {"to none", true}});
    ctl::TextTable wakes({{"mesh", false},
                          {"pushes", true},
                          {"at rest: median ms", true},
                          {"p99", true},
                          {"under load: median ms", true},
                          {"p99", true}});
    const auto rate = [](const Pair& pair) {
        return static_cast<double>(pair.pushed) / pair.used.seconds();
    };
    const auto cpu = [](const Pair& pair) {
        std::array<double, 4> parts{per_push(pair, pair.used.brokers[0]),
                                    per_push(pair, pair.used.brokers[1]),
                                    per_push(pair, pair.used.postgres), 0};
        parts[3] = parts[0] + parts[1] + parts[2];
        return parts;
    };
    const auto& none = *pairs.front();
    for (auto& pair : pairs) {
        std::vector<std::string> row{pair->kind, std::to_string(pair->pushed),
                                     fixed(rate(*pair), 0),
                                     fixed(rate(*pair) / rate(none), 2) + " x"};
        for (const double part : cpu(*pair)) {
            row.push_back(fixed(part, 1));
        }
        for (std::size_t i = 0; i < 4; ++i) {
            row.push_back(fixed(cpu(*pair)[i] - cpu(none)[i], 1));
        }
        row.push_back(fixed(cpu(*pair)[3] / cpu(none)[3], 2) + " x");
        cost.add(row);
        wakes.add({pair->kind, std::to_string(pair->rest.count()),
                   fixed(pair->rest.milliseconds(0.5), 2), fixed(pair->rest.milliseconds(0.99), 2),
                   pair == pairs.front() ? "-" : fixed(pair->loaded.milliseconds(0.5), 2),
                   pair == pairs.front() ? "-" : fixed(pair->loaded.milliseconds(0.99), 2)});
    }
    cost.print(out);
    out << "\nfrom a push's answer on A to that of the pop that waits at B\n\n";
    wakes.print(out);
}

} // namespace

void run(const Meshed& meshed, std::ostream& out) {
    Pairs pairs;
    for (const char* kind : {"none", "tcp", "notify"}) {
        pairs.push_back(std::make_unique<Pair>(kind));
        prepare(*pairs.back(), meshed);
    }
    at_rest(pairs, meshed);
    for (std::int64_t round = 0; round < meshed.rounds; ++round) {
        for (std::size_t k = 0; k < pairs.size(); ++k) {
            stretch(*pairs[(k + static_cast<std::size_t>(round)) % pairs.size()], meshed);
        }
    }
    for (std::size_t k = 1; k < pairs.size(); ++k) {
        under_load(*pairs[k], meshed);
    }
    out << "two brokers, " << meshed.rounds << " turns of " << meshed.seconds << " s of pushes on "
        << meshed.connections << " connections to A, one message each\n\n";
    print(pairs, out);
}

} // namespace queen::bench
