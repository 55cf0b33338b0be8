// The rows of the table about who may do what: keys, tokens, tenants.
#include "settings/security_options.hpp"

#include "settings/values.hpp"

namespace queen::settings {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kSecond = 1000, kMinute = 60 * kSecond, kHour = 60 * kMinute;

/// The word for "there is none", as `embedded` and `auto` are words.
std::string if_any(std::string text) {
    return text == kNone ? std::string() : std::move(text);
}

/// PEM text that came through an environment often has its line breaks as two characters.
std::string with_line_breaks(std::string text) {
    for (std::size_t at = 0; (at = text.find("\\n", at)) != std::string::npos; ++at) {
        text.replace(at, 2, "\n");
    }
    return text;
}

constexpr std::array kSecurity{
    Option{"encryption.key",
           Type::secret,
           "",
           "none",
           0,
           0,
           "",
           "Key that payloads of encrypted queues are stored under: 64 hex digits (256 bits), or "
           "file:PATH.",
           {"QUEEN_ENCRYPTION_KEY"},
           [](Settings& s, Value v) { s.encryption.key = if_any(std::move(v.text)); }},

    Option{"auth.enabled",
           Type::boolean,
           "",
           "false",
           0,
           0,
           "",
           "Ask every request for a token (JWT); needs a key below.",
           {"JWT_ENABLED"},
           [](Settings& s, Value v) { s.auth.enabled = v.flag; }},
    Option{"auth.algorithm",
           Type::choice,
           "",
           "HS256",
           0,
           0,
           "HS256|HS384|HS512|RS256|RS384|RS512|EdDSA|auto",
           "How tokens are signed; auto: whatever of these there is a key for.",
           {"JWT_ALGORITHM"},
           [](Settings& s, Value v) { s.auth.algorithm = std::move(v.text); }},
    Option{"auth.secret",
           Type::secret,
           "",
           "none",
           0,
           0,
           "",
           "Secret of HS256, HS384 and HS512, or file:PATH.",
           {"JWT_SECRET"},
           [](Settings& s, Value v) { s.auth.secret = if_any(std::move(v.text)); }},
    Option{"auth.public_key",
           Type::secret,
           "",
           "none",
           0,
           0,
           "",
           "Public key of RS256, RS384, RS512 or EdDSA as PEM text, or file:PATH.",
           {"JWT_PUBLIC_KEY"},
           [](Settings& s, Value v) {
               s.auth.public_key = with_line_breaks(if_any(std::move(v.text)));
           }},
    Option{"auth.jwks_url",
           Type::text,
           "",
           "none",
           0,
           0,
           "",
           "Where the public keys are published (JWKS), https://... in any network that is not "
           "yours alone.",
           {"JWT_JWKS_URL"},
           [](Settings& s, Value v) { s.auth.jwks_url = if_any(std::move(v.text)); }},
    Option{"auth.jwks_refresh",
           Type::duration,
           "s",
           "1h",
           10 * kSecond,
           7 * 24 * kHour,
           "",
           "How often published keys are read again; an unknown key id reads them at once, at most "
           "once a minute.",
           {"JWT_JWKS_REFRESH_INTERVAL"},
           [](Settings& s, Value v) { s.auth.jwks_refresh = milliseconds(v.number); }},
    Option{"auth.jwks_timeout",
           Type::duration,
           "",
           "5s",
           100,
           kMinute,
           "",
           "How long one reading of them may take.",
           {"JWT_JWKS_TIMEOUT_MS"},
           [](Settings& s, Value v) { s.auth.jwks_timeout = milliseconds(v.number); }},
    Option{"auth.issuer",
           Type::text,
           "",
           "none",
           0,
           0,
           "",
           "Issuer that a token must name; none: any.",
           {"JWT_ISSUER"},
           [](Settings& s, Value v) { s.auth.issuer = if_any(std::move(v.text)); }},
    Option{"auth.audience",
           Type::text,
           "",
           "none",
           0,
           0,
           "",
           "Audience that a token must name; none: any.",
           {"JWT_AUDIENCE"},
           [](Settings& s, Value v) { s.auth.audience = if_any(std::move(v.text)); }},
    Option{"auth.clock_skew",
           Type::duration,
           "s",
           "30s",
           0,
           kHour,
           "",
           "How far the clocks of this broker and of the issuer may be apart.",
           {"JWT_CLOCK_SKEW"},
           [](Settings& s, Value v) { s.auth.clock_skew = milliseconds(v.number); }},
    Option{"auth.skip_paths",
           Type::texts,
           "",
           "[/health, /metrics/prometheus, /metrics, /]",
           0,
           0,
           "",
           "Paths that are served without a token, each exactly as written.",
           {"JWT_SKIP_PATHS"},
           [](Settings& s, Value v) { s.auth.skip_paths = std::move(v.texts); }},
    Option{"auth.role_claim",
           Type::text,
           "",
           "role",
           0,
           0,
           "",
           "Claim that names one role.",
           {"JWT_ROLES_CLAIM"},
           [](Settings& s, Value v) { s.auth.role_claim = std::move(v.text); }},
    Option{"auth.roles_claim",
           Type::text,
           "",
           "roles",
           0,
           0,
           "",
           "Claim that lists roles.",
           {"JWT_ROLES_ARRAY_CLAIM"},
           [](Settings& s, Value v) { s.auth.roles_claim = std::move(v.text); }},
    Option{"auth.role_admin",
           Type::text,
           "",
           "admin",
           0,
           0,
           "",
           "What tokens call the role that may do everything.",
           {"JWT_ROLE_ADMIN"},
           [](Settings& s, Value v) { s.auth.role_admin = std::move(v.text); }},
    Option{"auth.role_read_write",
           Type::text,
           "",
           "read-write",
           0,
           0,
           "",
           "The role of producers and consumers.",
           {"JWT_ROLE_READ_WRITE"},
           [](Settings& s, Value v) { s.auth.role_read_write = std::move(v.text); }},
    Option{"auth.role_read_only",
           Type::text,
           "",
           "read-only",
           0,
           0,
           "",
           "The role that looks and changes nothing.",
           {"JWT_ROLE_READ_ONLY"},
           [](Settings& s, Value v) { s.auth.role_read_only = std::move(v.text); }},
    Option{"auth.role_write_only",
           Type::text,
           "",
           "write-only",
           0,
           0,
           "",
           "The role that pushes and sees nothing.",
           {"JWT_ROLE_WRITE_ONLY"},
           [](Settings& s, Value v) { s.auth.role_write_only = std::move(v.text); }},

    Option{"tenancy.header",
           Type::boolean,
           "",
           "false",
           0,
           0,
           "",
           "Take the tenant of a request from its header x-queen-tenant; needs trusted_proxy.",
           {"QUEEN_TENANCY_HEADER"},
           [](Settings& s, Value v) { s.tenancy.header = v.flag; }},
    Option{"tenancy.trusted_proxy",
           Type::boolean,
           "",
           "false",
           0,
           0,
           "",
           "Clients reach this broker only through a proxy that sets x-queen-tenant itself.",
           {"QUEEN_KV_TRUSTED_PROXY"},
           [](Settings& s, Value v) { s.tenancy.trusted_proxy = v.flag; }},
};

bool is_hex_key(std::string_view text) {
    return text.size() == 64 && text.find_first_not_of("0123456789abcdefABCDEF") == text.npos;
}

void check_keys(Layers& layers) {
    const auto given = [&](std::string_view option) {
        return layers.held(option).value.text != kNone;
    };
    const Held& enabled = layers.held("auth.enabled");
    const Held& algorithm = layers.held("auth.algorithm");
    for (const std::string_view option :
         {"auth.enabled", "auth.algorithm", "auth.secret", "auth.public_key", "auth.jwks_url"}) {
        if (layers.faulty(option)) { // what it holds is not what was meant
            return;
        }
    }
    const bool shared = given("auth.secret");
    const bool asymmetric = given("auth.public_key") || given("auth.jwks_url");
    if (!enabled.value.flag) {
        for (const std::string_view option : {"auth.secret", "auth.public_key", "auth.jwks_url"}) {
            if (given(option)) {
                layers.warnings().push_back(
                    to_string(layers.held(option).place) + ": " + std::string(option) +
                    ": has no effect while auth.enabled is false; nobody is "
                    "asked for a token");
            }
        }
        return;
    }
    if (!shared && !asymmetric) {
        layers.complain(enabled.place, "auth.enabled",
                        "is true and there is no key to check tokens with; allowed: with "
                        "auth.secret, auth.public_key or auth.jwks_url");
        return;
    }
    const std::string_view name = algorithm.value.text;
    const Place& place = algorithm.built_in ? enabled.place : algorithm.place;
    if (name.starts_with("HS") && !shared) {
        layers.complain(place, "auth.algorithm",
                        std::string(name) + " needs auth.secret; allowed with the key there is: "
                                            "RS256, RS384, RS512, EdDSA, auto");
    } else if ((name.starts_with("RS") || name == "EdDSA") && !asymmetric) {
        layers.complain(place, "auth.algorithm",
                        std::string(name) +
                            " needs auth.public_key or auth.jwks_url; allowed with the key there "
                            "is: HS256, HS384, HS512, auto");
    }
    constexpr std::size_t kShortSecret = 32; // RFC 7518, 3.2: as long as the hash's output
    if (shared && layers.held("auth.secret").value.text.size() < kShortSecret) {
        layers.warnings().push_back(to_string(layers.held("auth.secret").place) +
                                    ": auth.secret: is shorter than 32 bytes; a secret that can be "
                                    "guessed lets anybody sign tokens");
    }
}

void check_url(Layers& layers) {
    const Held& url = layers.held("auth.jwks_url");
    const std::string& text = url.value.text;
    if (text == kNone || layers.faulty("auth.jwks_url")) {
        return;
    }
    constexpr std::string_view kPlain = "http://";
    if (!text.starts_with("https://") && !text.starts_with(kPlain)) {
        layers.complain(url.place, "auth.jwks_url",
                        "is no address of the web; allowed: https://... or http://...");
        return;
    }
    if (text.starts_with(kPlain)) {
        const std::string host =
            text.substr(kPlain.size(), text.find_first_of(":/", kPlain.size()) - kPlain.size());
        if (host != "localhost" && !host.starts_with("127.")) {
            layers.warnings().push_back(to_string(url.place) +
                                        ": auth.jwks_url: comes without TLS; whoever is on the way "
                                        "can put in a key of his own");
        }
    }
}

void check_paths(Layers& layers) {
    const Held& paths = layers.held("auth.skip_paths");
    for (const std::string& path : paths.value.texts) {
        if (!path.starts_with('/') || path.find_first_of("?#%* ") != std::string::npos) {
            layers.complain(paths.place, "auth.skip_paths",
                            shown(path) + " is no path; allowed: /path, without query, escapes and "
                                          "wildcards");
        }
    }
}

void check_roles(Layers& layers) {
    constexpr std::array<std::string_view, 4> kRoles{"auth.role_admin", "auth.role_read_write",
                                                     "auth.role_read_only", "auth.role_write_only"};
    for (std::size_t i = 0; i < kRoles.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            if (layers.held(kRoles[i]).value.text == layers.held(kRoles[j]).value.text) {
                layers.complain(layers.held(kRoles[i]).place, kRoles[i],
                                "is the name of " + std::string(kRoles[j]) +
                                    " too; allowed: a name of its own");
            }
        }
    }
}

} // namespace

std::span<const Option> security_options() {
    return kSecurity;
}

void check_security(Layers& layers) {
    const Held& key = layers.held("encryption.key");
    if (!layers.faulty("encryption.key") && key.value.text != kNone &&
        !is_hex_key(key.value.text)) {
        layers.complain(key.place, "encryption.key",
                        "is no key; allowed: 64 hex digits (256 bits), or file:PATH");
    }
    check_keys(layers);
    check_url(layers);
    check_paths(layers);
    check_roles(layers);
    const Held& header = layers.held("tenancy.header");
    if (header.value.flag && !layers.faulty("tenancy.trusted_proxy") &&
        !layers.held("tenancy.trusted_proxy").value.flag) {
        layers.complain(header.place, "tenancy.header",
                        "lets every client name any tenant unless a proxy sets x-queen-tenant; "
                        "allowed: together with tenancy.trusted_proxy "
                        "(QUEEN_KV_TRUSTED_PROXY=1)");
    }
}

} // namespace queen::settings
