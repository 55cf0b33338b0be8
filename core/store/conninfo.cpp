#include "store/conninfo.hpp"

#include <libpq-fe.h>

#include <array>
#include <memory>
#include <string_view>
#include <utility>

namespace queen::store {
namespace {

/// Keep-alive: 10 s idle, then three probes 5 s apart = 25 s. tcp_user_timeout bounds data that is
/// sent and never acknowledged, which keep-alive does not see. Both are no-ops on a unix socket.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kDefaults{{
    {"application_name", "queend"},
    {"client_encoding", "UTF8"},
    {"connect_timeout", "5"}, // s
    {"keepalives", "1"},
    {"keepalives_idle", "10"},    // s
    {"keepalives_interval", "5"}, // s
    {"keepalives_count", "3"},
    {"tcp_user_timeout", "20000"}, // ms
}};

using Options = std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)>;

Options parse(const std::string& url, std::string& why) {
    char* message = nullptr;
    Options options(PQconninfoParse(url.c_str(), &message), &PQconninfoFree);
    if (message != nullptr) {
        why = message;
        PQfreemem(message);
        while (!why.empty() && why.back() == '\n') {
            why.pop_back();
        }
    }
    return options;
}

void append(std::string& out, std::string_view keyword, std::string_view value) {
    if (!out.empty()) {
        out += ' ';
    }
    out.append(keyword).append("='");
    for (const char c : value) {
        if (c == '\'' || c == '\\') {
            out += '\\';
        }
        out += c;
    }
    out += '\'';
}

} // namespace

Result<std::string> complete_conninfo(const std::string& url) {
    std::string why;
    const Options options = parse(url, why);
    if (!options) {
        return fail(Errc::invalid_argument, "database url: " + why);
    }
    std::string out;
    for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
        if (option->val != nullptr) {
            append(out, option->keyword, option->val);
            continue;
        }
        for (const auto& [keyword, value] : kDefaults) {
            if (keyword == option->keyword) {
                append(out, keyword, value);
            }
        }
    }
    return out;
}

std::string describe_conninfo(const std::string& conninfo) {
    std::string why;
    const Options options = parse(conninfo, why);
    std::string out;
    for (const PQconninfoOption* option = options.get(); option && option->keyword != nullptr;
         ++option) {
        const std::string_view keyword = option->keyword;
        const bool shown = keyword == "host" || keyword == "hostaddr" || keyword == "port" ||
                           keyword == "user" || keyword == "dbname";
        if (shown && option->val != nullptr) {
            out.append(out.empty() ? "" : " ").append(keyword).append("=").append(option->val);
        }
    }
    return out;
}

} // namespace queen::store
