// http/access.hpp - who may pass, before anything of a request is read: first the token, then the
// tenant, then the route (AUTH-1, TEN-1).
#pragma once
#include "auth/identity.hpp"
#include "auth/verifier.hpp"
#include "http/message.hpp"
#include "http/route_table.hpp"
#include "settings/settings.hpp"

#include <optional>
#include <string>
#include <vector>

namespace queen::http {

/// Whose request it is.
struct Admitted {
    auth::Identity identity; ///< nobody when no token was asked for
    std::string tenant;      ///< uuid text, lower case
};

/// @thread any, concurrently
class Access {
public:
    /// @param verifier null: authentication is off
    Access(const auth::Verifier* verifier, const settings::AuthSettings& auth,
           const settings::TenancySettings& tenancy);

    bool asks() const noexcept { return verifier_ != nullptr; }
    /// @param segments of the path, decoded
    /// @param route null: there is none, which who has any token may know
    /// @return or the answer: 401, 403, 400
    tl::expected<Admitted, Reply> admit(const Request& request,
                                        const std::vector<std::string>& segments,
                                        const Route* route) const;

private:
    tl::expected<auth::Identity, Reply> identify(const Request& request,
                                                 const std::vector<std::string>& segments,
                                                 const Route* route) const;
    bool skipped(const std::vector<std::string>& segments) const;

    const auth::Verifier* verifier_;
    const bool tenants_;
    std::vector<std::vector<std::string>> skipped_; ///< paths, as the router sees them
};

/// The one value of a header; "" when it is absent, nullopt when it is there more than once.
std::optional<std::string_view> only_header(const Request& request, std::string_view name);

/// Who the token of a request names; nullopt without one that is good. For routes that ask nobody
/// and tell who asks.
std::optional<auth::Identity> identity_of(const Request& request, const auth::Verifier& verifier);

} // namespace queen::http
