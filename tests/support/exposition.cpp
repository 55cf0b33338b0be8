#include "support/exposition.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <sstream>

namespace queen::test {
namespace {

bool name_ok(std::string_view name) {
    const auto letter = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    return !name.empty() && letter(name.front()) &&
           std::all_of(name.begin(), name.end(),
                       [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

std::optional<double> number(std::string_view text) {
    if (text == "+Inf") {
        return std::numeric_limits<double>::infinity();
    }
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return value;
}

class Parser {
public:
    Exposition parse(std::string_view page) {
        if (page.empty() || page.back() != '\n') {
            complain("the page does not end in a line end");
        }
        while (!page.empty()) {
            ++line_;
            const auto end = page.find('\n');
            read(page.substr(0, end));
            page.remove_prefix(end == std::string_view::npos ? page.size() : end + 1);
        }
        line_ = 0;
        for (const auto& [name, family] : out_.families) {
            if (family.type == "histogram") {
                check_histogram(name, family);
            }
        }
        return std::move(out_);
    }

private:
    void complain(const std::string& what) {
        out_.problems.push_back("line " + std::to_string(line_) + ": " + what);
    }

    void read(std::string_view line) {
        if (line.starts_with("# HELP ")) {
            comment(line.substr(7), true);
        } else if (line.starts_with("# TYPE ")) {
            comment(line.substr(7), false);
        } else if (line.empty() || line.front() == '#') {
            complain("neither HELP, TYPE nor a sample");
        } else {
            sample(line);
        }
    }

    void comment(std::string_view text, bool help) {
        const auto blank = text.find(' ');
        const std::string name(text.substr(0, blank));
        const std::string rest(blank == std::string_view::npos ? "" : text.substr(blank + 1));
        if (!name_ok(name) || rest.empty()) {
            complain("HELP or TYPE without a name or a text");
            return;
        }
        if (help) {
            if (!out_.families.try_emplace(name, Exposition::Family{{}, rest, {}}).second) {
                complain(name + " has a second HELP");
            }
            current_ = name;
            return;
        }
        static const std::set<std::string> types{"counter", "gauge", "histogram"};
        if (name != current_ || !out_.families.at(current_).type.empty()) {
            complain("TYPE of " + name + " does not follow its HELP");
        } else if (!types.contains(rest)) {
            complain(rest + " is no type");
        } else {
            out_.families.at(name).type = rest;
            if ((rest == "counter") != name.ends_with("_total")) {
                complain(name + ": _total is for counters, and for each of them");
            }
        }
    }

    void sample(std::string_view line) {
        const std::string_view whole = line;
        Exposition::Sample sample;
        const auto name_end = line.find_first_of("{ ");
        sample.name = line.substr(0, name_end);
        line.remove_prefix(std::min(name_end, line.size()));
        if (!name_ok(sample.name) || line.empty()) {
            complain("no sample: " + std::string(whole));
            return;
        }
        if (line.front() == '{' && !labels(line, sample)) {
            complain("bad labels: " + std::string(whole));
            return;
        }
        if (line.empty() || line.front() != ' ') {
            complain("no blank before the value: " + std::string(whole));
            return;
        }
        const std::string series(whole.substr(0, whole.size() - line.size()));
        const auto value = number(line.substr(1));
        if (!value || std::isnan(*value)) {
            complain("no value: " + std::string(whole));
            return;
        }
        sample.value = *value;
        const auto family = out_.families.find(current_);
        const bool own =
            family != out_.families.end() && !family->second.type.empty() &&
            (family->second.type == "histogram"
                 ? sample.name == current_ + "_bucket" || sample.name == current_ + "_sum" ||
                       sample.name == current_ + "_count"
                 : sample.name == current_);
        if (!own) {
            complain(sample.name + " does not stand under its HELP and TYPE");
            return;
        }
        if (family->second.type != "gauge" && sample.value < 0) {
            complain(series + " is negative");
        }
        if (!seen_.insert({sample.name, sample.labels}).second) {
            complain(series + " comes twice");
        }
        out_.by_series[series] = sample.value;
        family->second.samples.push_back(std::move(sample));
    }

    /// Takes `{a="b",...}` off the front.
    static bool labels(std::string_view& line, Exposition::Sample& sample) {
        line.remove_prefix(1);
        while (true) {
            const auto equals = line.find('=');
            if (equals == std::string_view::npos || !name_ok(line.substr(0, equals))) {
                return false;
            }
            const std::string name(line.substr(0, equals));
            line.remove_prefix(equals + 1);
            if (line.empty() || line.front() != '"') {
                return false;
            }
            line.remove_prefix(1);
            std::string value;
            while (!line.empty() && line.front() != '"') {
                char c = line.front();
                line.remove_prefix(1);
                if (c == '\\') {
                    if (line.empty() ||
                        std::string_view("\\\"n").find(line.front()) == std::string_view::npos) {
                        return false;
                    }
                    c = line.front() == 'n' ? '\n' : line.front();
                    line.remove_prefix(1);
                }
                value += c;
            }
            if (line.empty() || !sample.labels.emplace(name, value).second) {
                return false;
            }
            line.remove_prefix(1);
            if (line.empty()) {
                return false;
            }
            const char after = line.front();
            line.remove_prefix(1);
            if (after == '}') {
                return true;
            }
            if (after != ',') {
                return false;
            }
        }
    }

    void check_histogram(const std::string& name, const Exposition::Family& family) {
        struct One {
            std::vector<std::pair<double, double>> buckets;
            std::optional<double> sum, count;
        };
        std::map<std::map<std::string, std::string>, One> by_labels;
        for (const auto& sample : family.samples) {
            auto labels = sample.labels;
            std::optional<double> bound;
            if (const auto le = labels.find("le"); le != labels.end()) {
                bound = number(le->second);
                labels.erase(le);
            }
            auto& one = by_labels[labels];
            if (sample.name == name + "_bucket") {
                if (!bound) {
                    complain(name + " has a bucket without a bound");
                    continue;
                }
                one.buckets.emplace_back(*bound, sample.value);
            } else {
                (sample.name == name + "_sum" ? one.sum : one.count) = sample.value;
            }
        }
        for (const auto& [labels, one] : by_labels) {
            const bool whole = !one.buckets.empty() && std::isinf(one.buckets.back().first) &&
                               one.sum && one.count && one.buckets.back().second == *one.count;
            bool cumulative = true;
            for (std::size_t i = 1; i < one.buckets.size(); ++i) {
                cumulative = cumulative && one.buckets[i - 1].first < one.buckets[i].first &&
                             one.buckets[i - 1].second <= one.buckets[i].second;
            }
            if (!whole || !cumulative) {
                complain("the buckets of " + name + " do not add up");
            }
        }
    }

    Exposition out_;
    std::size_t line_ = 0;
    std::string current_;
    std::set<std::pair<std::string, std::map<std::string, std::string>>> seen_;
};

} // namespace

Exposition parse_exposition(std::string_view page) {
    return Parser().parse(page);
}

std::string Exposition::value(std::string_view series) const {
    const auto found = by_series.find(std::string(series));
    if (found == by_series.end()) {
        return "<missing>";
    }
    std::ostringstream out;
    out << found->second;
    return out.str();
}

} // namespace queen::test
