// auth/verifier.hpp - from the text of a token to who sent it.
//
// A token is believed when its algorithm is one that the settings allow and that a key of that
// family stands for, its signature fits, and its times, issuer and audience are right. The
// signature comes first: nothing of the payload is read before (AUTH-3).
#pragma once
#include "auth/identity.hpp"
#include "auth/keys.hpp"
#include "base/clock.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace queen::auth {

inline constexpr std::size_t kMaxTokenBytes = 8192; ///< a guess: tokens have 0.3 to 2 KB

/// What a token must be. Texts that may be absent are "" then.
struct Rules {
    std::optional<Algorithm> algorithm; ///< nullopt: any that there is a key for
    std::string issuer, audience;
    std::chrono::seconds skew{30};
    std::string role_claim{"role"}, roles_claim{"roles"};
    std::string admin{"admin"}, read_write{"read-write"}, read_only{"read-only"},
        write_only{"write-only"};
};

/// Keys that change while the broker runs.
class KeySource {
public:
    virtual ~KeySource() = default;
    /// As last read; never null. @thread any
    virtual std::shared_ptr<const std::vector<NamedKey>> keys() const = 0;
    /// A token named a key that is not there: have a look soon, some time. @thread any
    virtual void missed() = 0;
};

/// Why a token is not believed, in the words of the API; they tell a caller nothing that is secret.
enum class Refusal {
    bad_header,
    unsupported_algorithm,
    unknown_key,
    bad_signature,
    expired,
    not_yet_valid,
    issued_in_future,
    wrong_issuer,
    wrong_audience
};
std::string_view text_of(Refusal refusal);

/// @thread any, concurrently
/// @source AUTH-3
class Verifier {
public:
    using WallClock = std::function<WallTime()>;
    /// @param keys secrets and public keys of the settings; have no id
    /// @param published null: none are
    Verifier(Rules rules, std::vector<Key> keys, std::shared_ptr<KeySource> published,
             WallClock clock = SystemClock::wall);

    tl::expected<Identity, Refusal> verify(std::string_view token) const;

private:
    struct Header {
        Algorithm algorithm;
        std::string key_id;
    };
    tl::expected<Header, Refusal> read_header(std::string_view part) const;
    tl::expected<void, Refusal> check_signature(const Header& header, std::string_view text,
                                                std::string_view signature) const;
    bool offered(Family family) const;

    const Rules rules_;
    const std::vector<Key> keys_;
    const std::shared_ptr<KeySource> published_;
    const WallClock clock_;
};

} // namespace queen::auth
