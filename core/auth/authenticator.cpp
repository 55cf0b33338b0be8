#include "auth/authenticator.hpp"

#include "auth/fetch.hpp"
#include "auth/published_keys.hpp"

#include <algorithm>
#include <cctype>

namespace queen::auth {
namespace {

Rules rules_of(const settings::AuthSettings& settings) {
    return {.algorithm = algorithm_of(settings.algorithm), // `auto` is none of them
            .issuer = settings.issuer,
            .audience = settings.audience,
            .skew = std::chrono::duration_cast<std::chrono::seconds>(settings.clock_skew),
            .role_claim = settings.role_claim,
            .roles_claim = settings.roles_claim,
            .admin = settings.role_admin,
            .read_write = settings.role_read_write,
            .read_only = settings.role_read_only,
            .write_only = settings.role_write_only};
}

std::string_view trimmed(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) {
        return {};
    }
    return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

} // namespace

Result<std::shared_ptr<const Verifier>> make_verifier(const settings::AuthSettings& settings,
                                                      const Surroundings& around) {
    std::vector<Key> keys;
    std::shared_ptr<KeySource> published;
    if (!settings.secret.empty()) {
        keys.push_back(Key::secret(settings.secret));
    }
    if (!settings.public_key.empty()) {
        auto key = Key::from_pem(settings.public_key);
        if (!key) {
            return fail(Errc::invalid_argument, "auth.public_key: " + key.error().message);
        }
        const auto algorithm = algorithm_of(settings.algorithm);
        if (algorithm && settings.jwks_url.empty() && family_of(*algorithm) != Family::hmac &&
            family_of(*algorithm) != key->family()) {
            return fail(Errc::invalid_argument, "auth.public_key: is of another kind than " +
                                                    settings.algorithm + " (auth.algorithm) uses");
        }
        keys.push_back(std::move(*key));
    }
    if (!settings.jwks_url.empty()) {
        auto read = PublishedKeys::start(
            [url = settings.jwks_url, timeout = settings.jwks_timeout] {
                return fetch(url, timeout);
            },
            around.ticker, around.clock, {.refresh = settings.jwks_refresh, .warn = around.warn});
        if (!read) {
            return fail(Errc::unavailable, "auth.jwks_url: " + read.error().message);
        }
        published = std::move(*read);
    }
    return std::make_shared<const Verifier>(rules_of(settings), std::move(keys),
                                            std::move(published));
}

std::string_view token_of(std::string_view field) {
    constexpr std::string_view kScheme = "bearer";
    field = trimmed(field);
    const bool scheme =
        field.size() >= kScheme.size() &&
        std::equal(kScheme.begin(), kScheme.end(), field.begin(),
                   [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
    if (scheme && field.size() == kScheme.size()) {
        return {};
    }
    if (scheme && (field[kScheme.size()] == ' ' || field[kScheme.size()] == '\t')) {
        return trimmed(field.substr(kScheme.size()));
    }
    return field;
}

} // namespace queen::auth
