#pragma once
#include "base/result.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace queen::ctl {

/// An option of a command line, `--name` or `--name VALUE` (also `--name=VALUE`).
struct Flag {
    std::string_view name;
    std::string_view value; ///< what stands for the value in the help; "" when it takes none
    std::string_view meaning;
};

/// A command line that was taken apart. Every getter's error is invalid_argument and one line.
class Arguments {
public:
    /// `-` alone is a word, `--` ends the options.
    /// @errors invalid_argument: unknown, repeated, value missing or not taken
    static Result<Arguments> parse(std::span<const std::string> words, std::span<const Flag> flags);

    const std::vector<std::string>& words() const noexcept { return words_; }
    bool has(std::string_view name) const { return values_.contains(name); }
    std::string text(std::string_view name, std::string fallback = {}) const;
    Result<std::int64_t> whole(std::string_view name, std::int64_t fallback, std::int64_t min,
                               std::int64_t max) const;
    /// `30s`; nullopt when not given.
    Result<std::optional<std::chrono::nanoseconds>> duration(std::string_view name) const;
    /// Fails unless between `min` and `max` words were given; `what` names them.
    Result<void> expect(std::size_t min, std::size_t max, std::string_view what) const;
    /// Fails when more than one of the options was given.
    Result<void> exclusive(std::initializer_list<std::string_view> names) const;

private:
    std::map<std::string, std::string, std::less<>> values_;
    std::vector<std::string> words_;
};

/// The error of the first result that is one, or nullptr.
template <class... Results>
const Error* first_error(const Results&... results) {
    const Error* first = nullptr;
    ((first = first == nullptr && !results ? &results.error() : first), ...);
    return first;
}

} // namespace queen::ctl
