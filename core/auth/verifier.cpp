#include "auth/verifier.hpp"

#include "base/base64.hpp"
#include "base/json.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace queen::auth {
namespace {

using json::Kind;
using json::Value;
using std::chrono::seconds;

tl::unexpected<Refusal> refuse(Refusal refusal) {
    return tl::unexpected<Refusal>(refusal);
}

/// Seconds since the epoch of a NumericDate, decimals cut off; nullopt: no number. Beyond what a
/// clock can reach it stays there.
std::optional<seconds> date_of(const Value& value) {
    if (!value.is(Kind::number)) {
        return std::nullopt;
    }
    if (const auto whole = value.integer()) {
        constexpr std::int64_t kFar = std::int64_t{1} << 53;
        return seconds{std::clamp(*whole, -kFar, kFar)};
    }
    const double real = std::strtod(std::string(value.raw_number()).c_str(), nullptr);
    return seconds{static_cast<std::int64_t>(std::clamp(std::floor(real), -9e15, 9e15))};
}

bool names(const Value& audience, std::string_view wanted) {
    if (audience.is(Kind::string)) {
        return audience.string() == wanted;
    }
    for (std::size_t i = 0; i < audience.size(); ++i) {
        if (audience.is(Kind::array) && audience.at(i).is(Kind::string) &&
            audience.at(i).string() == wanted) {
            return true;
        }
    }
    return false;
}

void add_role(Roles& roles, const Value& name, const Rules& rules) {
    if (!name.is(Kind::string)) {
        return;
    }
    const std::string_view text = name.string();
    if (text == rules.admin) {
        roles.add(Role::admin);
    } else if (text == rules.read_write) {
        roles.add(Role::read_write);
    } else if (text == rules.read_only) {
        roles.add(Role::read_only);
    } else if (text == rules.write_only) {
        roles.add(Role::write_only);
    }
}

Roles roles_of(const Value& claims, const Rules& rules) {
    Roles roles;
    add_role(roles, claims[rules.role_claim], rules);
    const Value list = claims[rules.roles_claim];
    if (list.is(Kind::string)) { // one that was not put into a list
        add_role(roles, list, rules);
    }
    for (std::size_t i = 0; list.is(Kind::array) && i < list.size(); ++i) {
        add_role(roles, list.at(i), rules);
    }
    return roles;
}

/// The times of a token against now. One that is there and no number is as bad as a wrong one.
tl::expected<void, Refusal> check_times(const Value& claims, WallTime now, seconds skew) {
    const auto at = std::chrono::floor<seconds>(now.time_since_epoch());
    const auto given = [&](std::string_view name) { return !claims[name].is(Kind::missing); };
    if (given("exp")) {
        const auto end = date_of(claims["exp"]);
        if (!end || at >= *end + skew) { // RFC 7519, 4.1.4: on or after
            return refuse(Refusal::expired);
        }
    }
    if (given("nbf")) {
        const auto begin = date_of(claims["nbf"]);
        if (!begin || at + skew < *begin) {
            return refuse(Refusal::not_yet_valid);
        }
    }
    if (given("iat")) {
        const auto issued = date_of(claims["iat"]);
        if (!issued || at + skew < *issued) {
            return refuse(Refusal::issued_in_future);
        }
    }
    return {};
}

/// Header, payload and signature; false when there are not exactly three parts.
bool split(std::string_view token, std::string_view (&parts)[3]) {
    for (std::size_t i = 0; i < 3; ++i) {
        const std::size_t dot = token.find('.');
        if ((dot == std::string_view::npos) != (i == 2)) {
            return false;
        }
        parts[i] = token.substr(0, dot);
        token.remove_prefix(std::min(dot == std::string_view::npos ? dot : dot + 1, token.size()));
    }
    return true;
}

} // namespace

std::string_view text_of(Refusal refusal) {
    switch (refusal) {
    case Refusal::bad_header:
        return "Bad token header";
    case Refusal::unsupported_algorithm:
        return "Unsupported token algorithm";
    case Refusal::unknown_key:
        return "Unknown key ID";
    case Refusal::bad_signature:
        return "Invalid token signature";
    case Refusal::expired:
        return "Token has expired";
    case Refusal::not_yet_valid:
        return "Token not yet valid";
    case Refusal::issued_in_future:
        return "Token issued in the future";
    case Refusal::wrong_issuer:
        return "Invalid token issuer";
    case Refusal::wrong_audience:
        return "Invalid token audience";
    }
    return "Bad token header";
}

Verifier::Verifier(Rules rules, std::vector<Key> keys, std::shared_ptr<KeySource> published,
                   WallClock clock)
    : rules_(std::move(rules)), keys_(std::move(keys)), published_(std::move(published)),
      clock_(std::move(clock)) {}

tl::expected<Identity, Refusal> Verifier::verify(std::string_view token) const {
    std::string_view parts[3];
    if (token.size() > kMaxTokenBytes || !split(token, parts)) {
        return refuse(Refusal::bad_header);
    }
    const auto header = read_header(parts[0]);
    if (!header) {
        return refuse(header.error());
    }
    const auto signature = from_base64url(parts[2]);
    if (!signature) {
        return refuse(Refusal::bad_signature);
    }
    const std::string_view signed_text = token.substr(0, parts[0].size() + 1 + parts[1].size());
    if (auto fits = check_signature(*header, signed_text, *signature); !fits) {
        return refuse(fits.error());
    }
    const auto payload = from_base64url(parts[1]);
    const auto document = payload ? json::Document::parse(*payload)
                                  : Result<json::Document>(fail(Errc::invalid_argument, ""));
    if (!document || !document->root().is(Kind::object)) {
        return refuse(Refusal::bad_header); // by somebody who has the key
    }
    const Value claims = document->root();
    if (auto times = check_times(claims, clock_(), rules_.skew); !times) {
        return refuse(times.error());
    }
    if (!rules_.issuer.empty() && claims["iss"].string() != rules_.issuer) {
        return refuse(Refusal::wrong_issuer);
    }
    if (!rules_.audience.empty() && !names(claims["aud"], rules_.audience)) {
        return refuse(Refusal::wrong_audience);
    }
    return Identity{std::string(claims["sub"].string()), roles_of(claims, rules_)};
}

tl::expected<Verifier::Header, Refusal> Verifier::read_header(std::string_view part) const {
    const auto text = from_base64url(part);
    const auto document =
        text ? json::Document::parse(*text) : Result<json::Document>(fail(Errc::internal, ""));
    if (!document || !document->root().is(Kind::object) ||
        !document->root()["alg"].is(Kind::string)) {
        return refuse(Refusal::bad_header);
    }
    const Value root = document->root();
    // RFC 7515, 4.1.11: what must be understood and is not makes the token invalid.
    if (!root["crit"].is(Kind::missing) ||
        !(root["kid"].is(Kind::missing) || root["kid"].is(Kind::string))) {
        return refuse(Refusal::bad_header);
    }
    const auto algorithm = algorithm_of(root["alg"].string());
    if (!algorithm || (rules_.algorithm && *rules_.algorithm != *algorithm) ||
        !offered(family_of(*algorithm))) {
        return refuse(Refusal::unsupported_algorithm);
    }
    return Header{*algorithm, std::string(root["kid"].string())};
}

/// Published keys may be of either kind at any time; a secret is never among them.
bool Verifier::offered(Family family) const {
    return (published_ && family != Family::hmac) ||
           std::any_of(keys_.begin(), keys_.end(),
                       [&](const Key& key) { return key.family() == family; });
}

tl::expected<void, Refusal> Verifier::check_signature(const Header& header, std::string_view text,
                                                      std::string_view signature) const {
    const Family family = family_of(header.algorithm);
    for (const Key& key : keys_) {
        if (key.verifies(header.algorithm, text, signature)) {
            return {};
        }
    }
    if (published_ && family != Family::hmac) {
        const auto keys = published_->keys();
        const NamedKey* found = nullptr;
        std::size_t fitting = 0;
        for (const NamedKey& key : *keys) {
            if (key.key.family() == family && (!key.only || *key.only == header.algorithm) &&
                (header.key_id.empty() || key.id == header.key_id)) {
                found = &key;
                ++fitting;
            }
        }
        if (fitting == 1) { // a token without a key id is for the only key that it can be for
            return found->key.verifies(header.algorithm, text, signature)
                       ? tl::expected<void, Refusal>()
                       : refuse(Refusal::bad_signature);
        }
        published_->missed();
        return refuse(Refusal::unknown_key);
    }
    return refuse(Refusal::bad_signature);
}

} // namespace queen::auth
