// Times as text: the wire's one written form, and the forms that are read.
#include "base/text.hpp"

#include <array>
#include <chrono>
#include <cstdio>

namespace queen {
namespace {

using std::chrono::microseconds;

/// Reads fixed fields from the front of a text.
class Fields {
public:
    explicit Fields(std::string_view text) : text_(text) {}

    bool done() const { return text_.empty(); }
    bool next_is_digit() const {
        return !text_.empty() && text_.front() >= '0' && text_.front() <= '9';
    }
    /// Takes one character if it is one of `any`; else 0.
    char one_of(std::string_view any) {
        if (text_.empty() || any.find(text_.front()) == any.npos) {
            return 0;
        }
        const char c = text_.front();
        text_.remove_prefix(1);
        return c;
    }
    /// Takes exactly `count` digits.
    std::optional<int> digits(int count) {
        int value = 0;
        for (int i = 0; i < count; ++i) {
            if (!next_is_digit()) {
                return std::nullopt;
            }
            value = value * 10 + (text_.front() - '0');
            text_.remove_prefix(1);
        }
        return value;
    }

private:
    std::string_view text_;
};

std::optional<std::chrono::sys_days> read_date(Fields& fields) {
    const auto year = fields.digits(4);
    if (!year || !fields.one_of("-")) {
        return std::nullopt;
    }
    const auto month = fields.digits(2);
    if (!month || !fields.one_of("-")) {
        return std::nullopt;
    }
    const auto day = fields.digits(2);
    if (!day) {
        return std::nullopt;
    }
    const std::chrono::year_month_day date(std::chrono::year(*year),
                                           std::chrono::month(static_cast<unsigned>(*month)),
                                           std::chrono::day(static_cast<unsigned>(*day)));
    return date.ok() ? std::optional(std::chrono::sys_days(date)) : std::nullopt;
}

/// The digits behind the point, cut to micros.
std::optional<microseconds> read_fraction(Fields& fields) {
    if (!fields.next_is_digit()) {
        return std::nullopt;
    }
    int place = 100'000;
    microseconds fraction{0};
    while (const auto digit = fields.digits(1)) {
        fraction += microseconds(*digit * place);
        place /= 10;
    }
    return fraction;
}

/// Time since midnight; 24:00:00 is the end of the day.
std::optional<microseconds> read_time_of_day(Fields& fields) {
    const auto hour = fields.digits(2);
    if (!hour || !fields.one_of(":")) {
        return std::nullopt;
    }
    const auto minute = fields.digits(2);
    if (!minute) {
        return std::nullopt;
    }
    int second = 0;
    microseconds fraction{0};
    if (fields.one_of(":")) {
        const auto read = fields.digits(2);
        if (!read) {
            return std::nullopt;
        }
        second = *read;
        if (fields.one_of(".,")) {
            const auto part = read_fraction(fields);
            if (!part) {
                return std::nullopt;
            }
            fraction = *part;
        }
    }
    const microseconds time = std::chrono::hours(*hour) + std::chrono::minutes(*minute) +
                              std::chrono::seconds(second) + fraction;
    if (*minute > 59 || second > 59 || time > std::chrono::hours(24)) {
        return std::nullopt;
    }
    return time;
}

/// Distance from UTC: Z, +hh, +hhmm, +hh:mm; nothing is UTC.
std::optional<std::chrono::minutes> read_zone(Fields& fields) {
    constexpr int kMostHours = 15; // PostgreSQL's bound
    if (fields.done() || fields.one_of("Zz")) {
        return std::chrono::minutes(0);
    }
    const char sign = fields.one_of("+- ");
    if (sign == 0) {
        return std::nullopt;
    }
    const auto hours = fields.digits(2);
    if (!hours || *hours > kMostHours) {
        return std::nullopt;
    }
    int minutes = 0;
    if (!fields.done()) {
        fields.one_of(":");
        const auto read = fields.digits(2);
        if (!read || *read > 59) {
            return std::nullopt;
        }
        minutes = *read;
    }
    const std::chrono::minutes distance =
        std::chrono::hours(*hours) + std::chrono::minutes(minutes);
    return sign == '-' ? -distance : distance;
}

} // namespace

std::string format_micros(WallTime time) {
    const auto day = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day date(day);
    const std::chrono::hh_mm_ss<microseconds> clock(time - day);
    std::array<char, 64> text;
    const int length =
        std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%06dZ",
                      int(date.year()), unsigned(date.month()), unsigned(date.day()),
                      int(clock.hours().count()), int(clock.minutes().count()),
                      int(clock.seconds().count()), int(clock.subseconds().count()));
    return {text.data(), static_cast<std::size_t>(length)};
}

std::optional<WallTime> parse_time(std::string_view text) {
    constexpr WallTime kFirst = std::chrono::sys_days(std::chrono::year(1) / 1 / 1);
    constexpr WallTime kEnd = std::chrono::sys_days(std::chrono::year(10'000) / 1 / 1);
    Fields fields(text);
    const auto date = read_date(fields);
    if (!date) {
        return std::nullopt;
    }
    if (fields.done()) {
        return *date >= kFirst ? std::optional<WallTime>(*date) : std::nullopt;
    }
    if (!fields.one_of("Tt ")) {
        return std::nullopt;
    }
    const auto time_of_day = read_time_of_day(fields);
    if (!time_of_day) {
        return std::nullopt;
    }
    const auto zone = read_zone(fields);
    if (!zone || !fields.done()) {
        return std::nullopt;
    }
    const WallTime time = *date + *time_of_day - *zone;
    return time >= kFirst && time < kEnd ? std::optional(time) : std::nullopt;
}

} // namespace queen
