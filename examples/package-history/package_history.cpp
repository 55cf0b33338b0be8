// Replays the system's package log through a queue and proves what the broker promises: each
// consumer group sees each line once, and the lines of one package in order.
//
//   package-history [--url URL] [--file FILE] [--queue NAME] [--workers N] [--batch N]
//                   [--figures FILE]
//
// The partition is the package (`-` for lines that name none), so that packages are consumed in
// parallel and each package's history stays in order. The transaction id is the line's number, not
// its text: the log repeats lines.
#include <Poco/JSON/Array.h>
#include <Poco/JSON/Object.h>
#include <Poco/JSON/Parser.h>
#include <Poco/Net/HTTPClientSession.h>
#include <Poco/Net/HTTPRequest.h>
#include <Poco/Net/HTTPResponse.h>
#include <Poco/NumberParser.h>
#include <Poco/StreamCopier.h>
#include <Poco/StringTokenizer.h>
#include <Poco/URI.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using Poco::JSON::Array;
using Poco::JSON::Object;

struct Options {
    std::string url = "http://127.0.0.1:6632";
    std::string file = "/var/log/dpkg.log";
    std::string queue = "package-history";
    std::string figures; ///< file for what was measured, a name and a value a line
    int workers = 4;
    int batch = 100;
};

using Figures = std::vector<std::pair<std::string, double>>;

/// One keep-alive connection to the broker.
class Client {
public:
    explicit Client(const std::string& url) : uri_(url), session_(uri_.getHost(), uri_.getPort()) {
        session_.setKeepAlive(true);
        session_.setTimeout(Poco::Timespan(90, 0));
    }

    /// @return the parsed answer; empty for 204. Throws on any status that is not a success.
    Poco::Dynamic::Var call(const std::string& method, const std::string& path,
                            const std::string& body = {}) {
        const auto text = text_of(method, path, body);
        return text.empty() ? Poco::Dynamic::Var() : Poco::JSON::Parser().parse(text);
    }
    std::string text_of(const std::string& method, const std::string& path,
                        const std::string& body = {}) {
        Poco::Net::HTTPRequest request(method, path, Poco::Net::HTTPRequest::HTTP_1_1);
        request.setContentType("application/json");
        request.setContentLength(static_cast<std::streamsize>(body.size()));
        session_.sendRequest(request) << body;
        Poco::Net::HTTPResponse response;
        std::string text;
        Poco::StreamCopier::copyToString(session_.receiveResponse(response), text);
        if (response.getStatus() >= 300) {
            throw std::runtime_error(method + " " + path + ": " +
                                     std::to_string(response.getStatus()) + " " + text);
        }
        return text;
    }

private:
    Poco::URI uri_;
    Poco::Net::HTTPClientSession session_;
};

/// What the broker has counted so far: statements sent to the database for pops, and what became of
/// the candidates they named.
Figures counted(Client& client) {
    Figures figures{{"pop statements", 0},
                    {"of these scans", 0},
                    {"candidates taken", 0},
                    {"candidates empty", 0},
                    {"candidates leased", 0}};
    std::istringstream lines(client.text_of("GET", "/metrics/prometheus"));
    for (std::string line; std::getline(lines, line);) {
        const auto value = [&] { return std::stod(line.substr(line.rfind(' ') + 1)); };
        const auto is = [&](const char* family, const char* label) {
            return line.rfind(family, 0) == 0 && line.find(label) != std::string::npos;
        };
        if (is("queen_store_statements_total{", "statement=\"pop_") ||
            is("queen_store_statements_total{", "has_pending\"")) {
            figures[0].second += value();
        }
        if (is("queen_store_statements_total{", "statement=\"pop_wildcard\"")) {
            figures[1].second += value();
        }
        const char* verdicts[] = {"verdict=\"took\"", "verdict=\"empty\"", "verdict=\"leased\""};
        for (std::size_t i = 0; i < 3; ++i) {
            figures[2 + i].second +=
                is("queen_candidates_claims_total{", verdicts[i]) ? value() : 0;
        }
    }
    return figures;
}

std::string encoded(const std::string& text) {
    std::string out;
    Poco::URI::encode(text, "!#$&'()*+,/:;=?@[]%", out);
    return out;
}

std::string as_text(const Object& object) {
    std::ostringstream out;
    object.stringify(out);
    return out.str();
}

/// The package a log line is about: `date time status STATE PACKAGE …`, `date time ACTION PACKAGE
/// …`.
std::string package_of(const std::string& line) {
    const Poco::StringTokenizer words(line, " ", Poco::StringTokenizer::TOK_IGNORE_EMPTY);
    if (words.count() < 4 || words[2] == "startup" || words[2] == "conffile") {
        return "-";
    }
    const std::size_t at = words[2] == "status" ? 4 : 3;
    return words.count() > at ? words[at] : "-";
}

/// Pushes every line; @return their number.
std::size_t push_file(const Options& options) {
    std::ifstream file(options.file);
    if (!file) {
        throw std::runtime_error("cannot read " + options.file);
    }
    Client client(options.url);
    std::size_t number = 0;
    std::size_t waiting = 0;
    Array::Ptr items = new Array;
    const auto send = [&] {
        Object body;
        body.set("items", items);
        const auto answer =
            client.call("POST", "/api/v1/push", as_text(body)).extract<Array::Ptr>();
        for (std::size_t i = 0; i < answer->size(); ++i) {
            const auto status =
                answer->getObject(static_cast<unsigned>(i))->getValue<std::string>("status");
            if (status != "queued") {
                throw std::runtime_error("a line was answered '" + status + "'");
            }
        }
        items = new Array;
        waiting = 0;
    };
    for (std::string line; std::getline(file, line);) {
        Object payload;
        payload.set("line", ++number).set("text", line);
        Object item;
        item.set("queue", options.queue)
            .set("partition", package_of(line))
            .set("transactionId", std::to_string(number))
            .set("payload", payload);
        items->add(item);
        if (++waiting == 500) {
            send();
        }
    }
    if (waiting > 0) {
        send();
    }
    return number;
}

/// What one consumer group saw.
class Ledger {
public:
    Ledger(std::string group, std::size_t expected)
        : group_(std::move(group)), expected_(expected) {}

    void saw(const std::string& package, std::size_t line) {
        const std::lock_guard lock(mutex_);
        ++seen_[line];
        ++deliveries_;
        auto& last = last_of_[package];
        out_of_order_ += line <= last ? 1 : 0;
        last = line;
        seen_at_ = std::chrono::steady_clock::now();
    }
    bool complete() const {
        const std::lock_guard lock(mutex_);
        return seen_.size() >= expected_;
    }
    /// Prints the group's line of the report. @return whether every promise was kept
    bool report(std::chrono::steady_clock::time_point start, Figures& figures) const {
        const std::lock_guard lock(mutex_);
        // Until the last line came: the workers' last polls end later, having waited in vain.
        const auto seconds = std::chrono::duration<double>(seen_at_ - start).count();
        const auto repeated = deliveries_ - seen_.size();
        std::printf("%-8s %8zu lines %8zu missing %8zu repeated %8zu out of order %6zu packages "
                    "%10.0f lines/s\n",
                    group_.c_str(), seen_.size(), expected_ - seen_.size(), repeated, out_of_order_,
                    last_of_.size(), static_cast<double>(deliveries_) / seconds);
        figures.emplace_back(group_ + " lines", static_cast<double>(seen_.size()));
        figures.emplace_back(group_ + " lines/s", static_cast<double>(deliveries_) / seconds);
        return seen_.size() == expected_ && repeated == 0 && out_of_order_ == 0;
    }
    const std::string& group() const { return group_; }

private:
    const std::string group_;
    const std::size_t expected_;
    mutable std::mutex mutex_;
    std::map<std::size_t, std::size_t> seen_;
    std::map<std::string, std::size_t> last_of_;
    std::size_t deliveries_ = 0;
    std::size_t out_of_order_ = 0;
    std::chrono::steady_clock::time_point seen_at_{}; ///< the last delivery
};

/// One worker: leased pops, each acknowledged as a batch, until its group has seen everything.
void drain(const Options& options, Ledger& ledger) {
    Client client(options.url);
    const std::string pop =
        "/api/v1/pop/queue/" + encoded(options.queue) + "?consumerGroup=" + ledger.group() +
        "&batch=" + std::to_string(options.batch) + "&partitions=10&wait=true&timeout=1000";
    for (int idle = 0; !ledger.complete() && idle < 30;) {
        const auto answer = client.call("GET", pop);
        if (answer.isEmpty()) {
            ++idle;
            continue;
        }
        idle = 0;
        const auto messages = answer.extract<Object::Ptr>()->getArray("messages");
        Array::Ptr acknowledgments = new Array;
        for (std::size_t i = 0; i < messages->size(); ++i) {
            const auto message = messages->getObject(static_cast<unsigned>(i));
            const auto line = message->getObject("data")->getValue<Poco::UInt64>("line");
            ledger.saw(message->getValue<std::string>("partition"), line);
            Object ack;
            ack.set("transactionId", message->get("transactionId"))
                .set("partitionId", message->get("partitionId"))
                .set("leaseId", message->get("leaseId"));
            acknowledgments->add(ack);
        }
        Object body;
        body.set("consumerGroup", ledger.group()).set("acknowledgments", acknowledgments);
        const auto results =
            client.call("POST", "/api/v1/ack/batch", as_text(body)).extract<Array::Ptr>();
        for (std::size_t i = 0; i < results->size(); ++i) {
            const auto result = results->getObject(static_cast<unsigned>(i));
            if (!result->getValue<bool>("success")) {
                throw std::runtime_error("an ack was refused: " + as_text(*result));
            }
        }
    }
}

int count_of(const std::string& option, const std::string& value) {
    int count = 0;
    if (!Poco::NumberParser::tryParse(value, count) || count < 1) {
        throw std::runtime_error(option + " " + value + ": allowed is a whole number from 1");
    }
    return count;
}

Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; i += 2) {
        const std::string name = argv[i];
        if (i + 1 >= argc) {
            throw std::runtime_error(
                name + " has no value; options: --url URL, --file FILE, --queue NAME, --workers N, "
                       "--batch N, --figures FILE");
        }
        const std::string value = argv[i + 1];
        if (name == "--url") {
            options.url = value;
        } else if (name == "--file") {
            options.file = value;
        } else if (name == "--queue") {
            options.queue = value;
        } else if (name == "--figures") {
            options.figures = value;
        } else if (name == "--workers") {
            options.workers = count_of(name, value);
        } else if (name == "--batch") {
            options.batch = count_of(name, value);
        } else {
            throw std::runtime_error("unknown option " + name);
        }
    }
    return options;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int run(const Options& options) {
    Client client(options.url);
    client.call("DELETE", "/api/v1/resources/queues/" + encoded(options.queue));

    auto start = std::chrono::steady_clock::now();
    const auto lines = push_file(options);
    Figures figures{{"pushed lines/s", static_cast<double>(lines) / seconds_since(start)}};
    std::printf("pushed   %8zu lines of %s %10.0f lines/s\n", lines, options.file.c_str(),
                figures.front().second);
    const auto before = counted(client);

    std::vector<std::unique_ptr<Ledger>> ledgers;
    ledgers.push_back(std::make_unique<Ledger>("audit", lines));
    ledgers.push_back(std::make_unique<Ledger>("report", lines));
    std::mutex mutex;
    std::vector<std::string> failures;
    std::vector<std::thread> workers;
    start = std::chrono::steady_clock::now();
    for (const auto& ledger : ledgers) {
        for (int i = 0; i < options.workers; ++i) {
            workers.emplace_back([&] {
                try {
                    drain(options, *ledger);
                } catch (const Poco::Exception& e) {
                    const std::lock_guard lock(mutex);
                    failures.push_back(e.displayText());
                } catch (const std::exception& e) {
                    const std::lock_guard lock(mutex);
                    failures.push_back(e.what());
                }
            });
        }
    }
    for (auto& worker : workers) {
        worker.join();
    }
    bool kept = failures.empty();
    for (const auto& ledger : ledgers) {
        kept &= ledger->report(start, figures);
    }
    const auto after = counted(client);
    for (std::size_t i = 0; i < after.size(); ++i) {
        const auto& [name, value] = after[i];
        figures.emplace_back(name, value - before[i].second);
        std::printf("%-18s %8.0f\n", name.c_str(), figures.back().second);
    }
    if (!options.figures.empty()) {
        std::ofstream file(options.figures);
        for (const auto& [name, value] : figures) {
            file << name << '\t' << std::llround(value) << '\n';
        }
    }
    for (const auto& failure : failures) {
        std::fprintf(stderr, "package-history: %s\n", failure.c_str());
    }
    std::puts(kept ? "every line once per group, in order per package" : "PROMISES BROKEN");
    return kept ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
    try {
        return run(parse(argc, argv));
    } catch (const Poco::Exception& e) {
        std::fprintf(stderr, "package-history: %s\n", e.displayText().c_str());
    } catch (const std::exception& e) {
        std::fprintf(stderr, "package-history: %s\n", e.what());
    }
    return 2;
}
