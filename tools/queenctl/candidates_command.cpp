// queenctl candidates: the figures of the candidate sources, a column each, so that two strategies
// can be compared on one workload. Knows no figure by name: a source may be anybody's.
#include "queenctl/command.hpp"
#include "queenctl/json_text.hpp"
#include "queenctl/text_table.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <ostream>
#include <sstream>

namespace queen::ctl {
namespace {

using namespace std::chrono_literals;

constexpr std::array kFlags{
    Flag{"watch", "", "Look again and again, with rates, until Ctrl-C."},
    Flag{"every", "TIME", "Time between two looks of --watch; 2s."},
};
constexpr std::chrono::nanoseconds kEvery = 2s;
constexpr std::chrono::nanoseconds kShortest = 100ms;

/// To the upper left corner, and everything below it is gone.
constexpr std::string_view kClear = "\x1b[H\x1b[J";

/// What one look saw.
struct Look {
    SteadyTime at;
    std::map<std::pair<std::string, std::string>, double> figures; ///< by source and name
};

double number(json::Value value) {
    return std::strtod(std::string(value.raw_number()).c_str(), nullptr);
}

Look look_at(json::Value sources, SteadyTime at) {
    Look look{at, {}};
    for (std::size_t i = 0; i < sources.size(); ++i) {
        const json::Value stats = sources.at(i)["stats"];
        for (std::size_t j = 0; j < stats.size(); ++j) {
            if (stats.value_at(j).is(json::Kind::number)) {
                look.figures[{to_plain(sources.at(i)["name"]), std::string(stats.key_at(j))}] =
                    number(stats.value_at(j));
            }
        }
    }
    return look;
}

/// Growth by the second since the look before; "" for what does not count, is new, or began anew
/// with its broker.
std::string rate(const std::optional<Look>& before, const Look& now, const std::string& source,
                 const std::string& name) {
    if (!before || !name.ends_with("_total")) {
        return {};
    }
    const auto was = before->figures.find({source, name});
    const auto is = now.figures.find({source, name});
    const double seconds = std::chrono::duration<double>(now.at - before->at).count();
    if (was == before->figures.end() || is == now.figures.end() || is->second < was->second ||
        seconds <= 0) {
        return {};
    }
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%.1f", (is->second - was->second) / seconds);
    return text.data();
}

std::string state_of(json::Value source) {
    if (source["loaded"].boolean() != true) {
        return to_plain(source["verdict"]);
    }
    return source["paused"].boolean() == true ? "paused" : "loaded";
}

/// "slow_call 3, bad_name 1", or a dash.
std::string faults_of(json::Value faults) {
    std::string text;
    for (std::size_t i = 0; i < faults.size(); ++i) {
        text += (text.empty() ? "" : ", ") + std::string(faults.key_at(i)) + " " +
                to_plain(faults.value_at(i));
    }
    return text.empty() ? "-" : text;
}

/// The names of all figures, in the order in which the sources tell them.
std::vector<std::string> names_of(json::Value sources) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < sources.size(); ++i) {
        const json::Value stats = sources.at(i)["stats"];
        for (std::size_t j = 0; j < stats.size(); ++j) {
            if (std::find(names.begin(), names.end(), stats.key_at(j)) == names.end()) {
                names.emplace_back(stats.key_at(j));
            }
        }
    }
    return names;
}

void print(std::ostream& out, json::Value root, const std::optional<Look>& before, const Look& now,
           bool rates) {
    const json::Value sources = root["sources"];
    std::vector<TextTable::Column> columns{{"SOURCE"}};
    for (std::size_t i = 0; i < sources.size(); ++i) {
        const std::string name = to_plain(sources.at(i)["name"]);
        columns.push_back(
            {printable(name) + (name == to_plain(root["default"]) ? " (default)" : ""), true});
        if (rates) {
            columns.push_back({"/s", true});
        }
    }
    TextTable table(std::move(columns));
    const auto add = [&](const std::string& title, const auto& cell, const auto& rate_of) {
        std::vector<std::string> row{title};
        for (std::size_t i = 0; i < sources.size(); ++i) {
            row.push_back(cell(sources.at(i)));
            if (rates) {
                row.push_back(rate_of(sources.at(i)));
            }
        }
        table.add(std::move(row));
    };
    const auto none = [](json::Value) { return std::string(); };
    add(
        "id", [](json::Value source) { return to_plain(source["id"]); }, none);
    add(
        "version", [](json::Value source) { return to_plain(source["version"]); }, none);
    add("state", state_of, none);
    add(
        "faults", [](json::Value source) { return faults_of(source["faults"]); }, none);
    for (const std::string& name : names_of(sources)) {
        add(
            name, [&](json::Value source) { return to_plain(source["stats"][name]); },
            [&](json::Value source) { return rate(before, now, to_plain(source["name"]), name); });
    }
    table.print(out);
}

} // namespace

constinit const std::span<const Flag> kCandidatesFlags = kFlags;

Result<Exit> candidates(Session& session) {
    const auto words = session.arguments.expect(0, 0, "");
    const auto every = session.arguments.duration("every");
    if (const Error* error = first_error(words, every)) {
        return fail(*error);
    }
    const bool watch = session.arguments.has("watch");
    if (*every && !watch) {
        return fail(Errc::invalid_argument, "--every needs --watch");
    }
    if (every->value_or(kEvery) < kShortest) {
        return fail(Errc::invalid_argument, "--every must be at least 100ms");
    }
    Terminal& terminal = session.terminal;
    std::optional<Look> before;
    while (true) {
        const auto reply = ask(session, "GET", "/api/v1/system/candidates");
        if (!reply) {
            return fail(reply.error());
        }
        if (!session.json()) {
            const json::Value root = reply->document.root();
            Look now = look_at(root["sources"], terminal.clock.now());
            std::ostringstream text; // written at once, so that a terminal does not flicker
            print(text, root, before, now, watch);
            terminal.out << (watch && terminal.out_is_terminal ? kClear : "") << text.str();
            before = std::move(now);
        }
        if (!watch) {
            return Exit::ok;
        }
        if (!session.json() && !terminal.out_is_terminal) {
            terminal.out << "\n";
        }
        if (!terminal.out.flush()) {
            return fail(Errc::store_failed, "the output could not be written");
        }
        terminal.pause(
            std::chrono::duration_cast<std::chrono::milliseconds>(every->value_or(kEvery)));
    }
}

} // namespace queen::ctl
