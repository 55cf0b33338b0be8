#include "queenctl/arguments.hpp"

#include "settings/values.hpp"

#include <algorithm>

namespace queen::ctl {
namespace {

tl::unexpected<Error> usage(std::string message) {
    return fail(Errc::invalid_argument, std::move(message));
}

std::string unknown_option(std::string_view name, std::span<const Flag> flags) {
    std::vector<std::string> names;
    for (const Flag& flag : flags) {
        names.emplace_back(flag.name);
    }
    const std::string meant = settings::nearest(name, names);
    return "unknown option --" + std::string(name) +
           (meant.empty() ? "" : "; did you mean --" + meant + "?");
}

} // namespace

Result<Arguments> Arguments::parse(std::span<const std::string> words,
                                   std::span<const Flag> flags) {
    Arguments out;
    bool options = true;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string_view word = words[i];
        if (options && word == "--") {
            options = false;
            continue;
        }
        if (!options || word == "-" || !word.starts_with('-')) {
            out.words_.emplace_back(word);
            continue;
        }
        if (!word.starts_with("--")) {
            return usage("unknown option " + std::string(word));
        }
        const std::size_t equals = word.find('=');
        const std::string_view name = word.substr(2, equals - 2);
        const auto flag = std::find_if(flags.begin(), flags.end(),
                                       [&](const Flag& known) { return known.name == name; });
        if (flag == flags.end()) {
            return usage(unknown_option(name, flags));
        }
        std::string value;
        if (flag->value.empty()) {
            if (equals != std::string_view::npos) {
                return usage("--" + std::string(name) + " takes no value");
            }
        } else if (equals != std::string_view::npos) {
            value = word.substr(equals + 1);
        } else if (++i < words.size()) {
            value = words[i];
        } else {
            return usage("--" + std::string(name) + " needs a value (" + std::string(flag->value) +
                         ")");
        }
        if (!out.values_.emplace(std::string(name), std::move(value)).second) {
            return usage("--" + std::string(name) + " is given twice");
        }
    }
    return out;
}

std::string Arguments::text(std::string_view name, std::string fallback) const {
    const auto found = values_.find(name);
    return found == values_.end() ? fallback : found->second;
}

Result<std::int64_t> Arguments::whole(std::string_view name, std::int64_t fallback,
                                      std::int64_t min, std::int64_t max) const {
    const auto found = values_.find(name);
    if (found == values_.end()) {
        return fallback;
    }
    const auto number = settings::parse_whole(found->second);
    if (!number || *number < min || *number > max) {
        return usage("--" + std::string(name) + " " + settings::shown(found->second) +
                     ": allowed is a whole number from " + std::to_string(min) + " to " +
                     std::to_string(max));
    }
    return *number;
}

Result<std::optional<std::chrono::nanoseconds>> Arguments::duration(std::string_view name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) {
        return std::nullopt;
    }
    const auto time = settings::parse_duration(found->second);
    if (!time) {
        return usage("--" + std::string(name) + " " + time.error().message);
    }
    return *time;
}

Result<void> Arguments::expect(std::size_t min, std::size_t max, std::string_view what) const {
    if (words_.size() < min) {
        return usage(std::string(what) + " is missing");
    }
    if (words_.size() > max) {
        return usage("one word too many: " + settings::shown(words_[max]));
    }
    return {};
}

Result<void> Arguments::exclusive(std::initializer_list<std::string_view> names) const {
    std::string first;
    for (const std::string_view name : names) {
        if (!has(name)) {
            continue;
        }
        if (!first.empty()) {
            return usage("--" + first + " and --" + std::string(name) + " exclude each other");
        }
        first = name;
    }
    return {};
}

} // namespace queen::ctl
