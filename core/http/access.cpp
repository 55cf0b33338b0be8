#include "http/access.hpp"

#include "auth/authenticator.hpp"
#include "base/assert.hpp"
#include "base/text.hpp"
#include "http/error_map.hpp"
#include "http/levels.hpp"
#include "http/path.hpp"
#include "model/names.hpp"

#include <algorithm>
#include <cctype>

namespace queen::http {
namespace {

constexpr std::string_view kChallenge = "WWW-Authenticate";
constexpr std::string_view kBearer = R"(Bearer realm="queen")"; // RFC 6750, 3

bool same_name(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
        return std::tolower(x) == std::tolower(y);
    });
}

Reply unauthorized(std::string_view text, bool token) {
    Reply reply = error_reply(401, "unauthorized", text);
    std::string challenge(kBearer);
    if (token) {
        challenge.append(R"(, error="invalid_token", error_description=")").append(text);
        challenge.append("\"");
    }
    reply.headers.emplace_back(kChallenge, std::move(challenge));
    return reply;
}

Reply forbidden() {
    Reply reply = error_reply(403, "forbidden", "Insufficient permissions");
    reply.headers.emplace_back(kChallenge,
                               std::string(kBearer) + R"(, error="insufficient_scope")");
    return reply;
}

} // namespace

std::optional<std::string_view> only_header(const Request& request, std::string_view name) {
    std::optional<std::string_view> found;
    for (const auto& [key, value] : request.headers) {
        if (same_name(key, name)) {
            if (found) {
                return std::nullopt;
            }
            found = value;
        }
    }
    return found.value_or(std::string_view());
}

std::optional<auth::Identity> identity_of(const Request& request, const auth::Verifier& verifier) {
    const auto field = only_header(request, "authorization");
    const auto token = field ? auth::token_of(*field) : std::string_view();
    auto identity = verifier.verify(token);
    return identity ? std::optional(std::move(*identity)) : std::nullopt;
}

Access::Access(const auth::Verifier* verifier, const settings::AuthSettings& auth,
               const settings::TenancySettings& tenancy)
    : verifier_(verifier), tenants_(tenancy.header) {
    for (const std::string& path : auth.skip_paths) {
        auto segments = decode_path(path);
        QUEEN_ASSERT(segments.has_value(), "the settings let through paths only");
        skipped_.push_back(std::move(*segments));
    }
}

tl::expected<Admitted, Reply> Access::admit(const Request& request,
                                            const std::vector<std::string>& segments,
                                            const Route* route) const {
    Admitted admitted{{}, std::string(kDefaultTenant)};
    if (verifier_ != nullptr) {
        auto identity = identify(request, segments, route);
        if (!identity) {
            return tl::unexpected<Reply>(std::move(identity.error()));
        }
        admitted.identity = std::move(*identity);
    }
    if (tenants_) {
        const auto header = only_header(request, "x-queen-tenant");
        const auto tenant = header ? parse_uuid(*header) : std::nullopt;
        if (tenant) {
            admitted.tenant = to_string(*tenant);
        } else if (!header || !header->empty()) {
            return tl::unexpected<Reply>(
                error_reply(400, "bad_request", "invalid x-queen-tenant header (must be a UUID)"));
        }
    }
    return admitted;
}

tl::expected<auth::Identity, Reply> Access::identify(const Request& request,
                                                     const std::vector<std::string>& segments,
                                                     const Route* route) const {
    if (skipped(segments) || (route != nullptr && level_of(*route) == auth::Level::open)) {
        return auth::Identity{};
    }
    const auto field = only_header(request, "authorization");
    if (!field) {
        return tl::unexpected<Reply>(unauthorized(auth::text_of(auth::Refusal::bad_header), true));
    }
    const std::string_view token = auth::token_of(*field);
    if (token.empty()) {
        return tl::unexpected<Reply>(unauthorized("Authentication required", false));
    }
    auto identity = verifier_->verify(token);
    if (!identity) {
        return tl::unexpected<Reply>(unauthorized(auth::text_of(identity.error()), true));
    }
    if (route != nullptr && !identity->roles.may(level_of(*route))) {
        return tl::unexpected<Reply>(forbidden());
    }
    return std::move(*identity);
}

bool Access::skipped(const std::vector<std::string>& segments) const {
    return std::find(skipped_.begin(), skipped_.end(), segments) != skipped_.end();
}

} // namespace queen::http
