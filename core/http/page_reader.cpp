#include "http/page_reader.hpp"

#include "base/text.hpp"
#include "model/names.hpp"

#include <algorithm>

namespace queen::http {
namespace {

constexpr std::int32_t kMostListed = 1'000;

Result<std::optional<WallTime>> read_time(const Query& query, std::string_view name) {
    const auto text = query.text(name);
    if (!text) {
        return fail(text.error());
    }
    if (!*text || (*text)->empty()) {
        return std::optional<WallTime>{};
    }
    const auto time = parse_time(**text);
    if (!time) {
        return fail(not_allowed(name, "a time as 2026-01-31T12:00:00Z", **text));
    }
    return time;
}

} // namespace

Result<PageQuery> read_page(const Query& query, std::int32_t default_limit) {
    const auto limit = query.integer("limit", "a whole number, of effect from 1 to 1000");
    const std::string offsets = "a whole number from 0 to 2147483647";
    const auto offset = query.integer("offset", offsets);
    const auto from = read_time(query, "from");
    const auto to = read_time(query, "to");
    const auto after = query.text("after");
    for (const Error* error : {limit ? nullptr : &limit.error(), offset ? nullptr : &offset.error(),
                               from ? nullptr : &from.error(), to ? nullptr : &to.error(),
                               after ? nullptr : &after.error()}) {
        if (error != nullptr) {
            return fail(*error);
        }
    }
    PageQuery page;
    page.limit = std::clamp(limit->value_or(default_limit), 1, kMostListed);
    page.offset = offset->value_or(0);
    if (page.offset < 0) {
        return fail(not_allowed("offset", offsets, std::to_string(page.offset)));
    }
    page.from = *from;
    if (*to) {
        page.to = std::chrono::floor<std::chrono::minutes>(**to) + std::chrono::minutes(1);
    }
    if (page.from && page.to && *page.from >= *page.to) {
        return fail(Errc::invalid_argument, "from must not be later than to");
    }
    if (*after && !(*after)->empty()) {
        page.after = std::string(**after);
    }
    return page;
}

Result<std::optional<std::string>> read_filter(const Query& query, std::string_view name) {
    const auto text = query.text(name);
    if (!text) {
        return fail(text.error());
    }
    if (!*text || (*text)->empty()) {
        return std::optional<std::string>{};
    }
    if (auto ok = check_name(name, **text); !ok) {
        return fail(ok.error());
    }
    return std::optional(std::string(**text));
}

Result<Uuid> read_id(std::string_view field, std::string_view text) {
    const auto id = parse_uuid(text);
    if (!id) {
        return fail(not_allowed(field, "a UUID", text));
    }
    return *id;
}

} // namespace queen::http
