#include "http/query.hpp"

#include "base/text.hpp"

#include <limits>

namespace queen::http {
namespace {

constexpr std::size_t kEchoedBytes = 64; // of a bad value in an error text

// At most kEchoedBytes, never cutting a character in two.
std::string excerpt(std::string_view value) {
    if (value.size() <= kEchoedBytes) {
        return std::string(value);
    }
    std::size_t end = kEchoedBytes;
    while (end > 0 && (static_cast<unsigned char>(value[end]) & 0xC0u) == 0x80u) {
        --end;
    }
    return std::string(value.substr(0, end)) + "...";
}

} // namespace

Error not_allowed(std::string_view name, std::string_view allowed, std::string_view value) {
    std::string text(name);
    text.append(" must be ").append(allowed).append(", got \"").append(excerpt(value)).append("\"");
    return {Errc::invalid_argument, std::move(text), {}};
}

Result<Query> Query::parse(std::string_view text) {
    Query query;
    while (!text.empty()) {
        const std::size_t ampersand = text.find('&');
        const std::string_view pair = text.substr(0, ampersand);
        text.remove_prefix(ampersand == std::string_view::npos ? text.size() : ampersand + 1);
        if (pair.empty()) {
            continue;
        }
        const std::size_t equals = pair.find('=');
        auto name = percent_decode(pair.substr(0, equals), true);
        auto value = equals == std::string_view::npos
                         ? std::optional<std::string>(std::string())
                         : percent_decode(pair.substr(equals + 1), true);
        if (!name || !value) {
            return fail(Errc::invalid_argument,
                        "the query has a bad percent escape; allowed: % and two hex digits");
        }
        if (!valid_utf8(*name) || !valid_utf8(*value)) {
            return fail(Errc::invalid_argument, "the query is not UTF-8");
        }
        query.parameters_.emplace_back(std::move(*name), std::move(*value));
    }
    return query;
}

Result<std::optional<std::string_view>> Query::text(std::string_view name) const {
    std::optional<std::string_view> found;
    for (const auto& [key, value] : parameters_) {
        if (key != name) {
            continue;
        }
        if (found) {
            return fail(Errc::invalid_argument,
                        std::string(name) + " is given more than once in the query");
        }
        found = value;
    }
    return found;
}

Result<std::optional<std::int32_t>> Query::integer(std::string_view name,
                                                   std::string_view allowed) const {
    const auto value = text(name);
    if (!value) {
        return fail(value.error());
    }
    if (!*value) {
        return std::nullopt;
    }
    const auto number = parse_int(**value);
    if (!number || *number < std::numeric_limits<std::int32_t>::min() ||
        *number > std::numeric_limits<std::int32_t>::max()) {
        return fail(not_allowed(name, allowed, **value));
    }
    return static_cast<std::int32_t>(*number);
}

Result<std::optional<bool>> Query::boolean(std::string_view name) const {
    const auto value = text(name);
    if (!value) {
        return fail(value.error());
    }
    if (!*value) {
        return std::nullopt;
    }
    if (**value == "true") {
        return true;
    }
    if (**value == "false") {
        return false;
    }
    return fail(not_allowed(name, "true or false", **value));
}

} // namespace queen::http
