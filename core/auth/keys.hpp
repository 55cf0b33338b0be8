// auth/keys.hpp - what tokens are checked with, and the checking of a signature.
//
// A key knows its family, and an algorithm is used with keys of its family alone: a public RSA key,
// which everybody may have, is never taken for the secret of an HMAC, and `none` is no algorithm.
#pragma once
#include "base/result.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct evp_pkey_st;

namespace queen::auth {

/// The algorithms of RFC 7518 and RFC 8037 that tokens may be signed with.
enum class Algorithm { hs256, hs384, hs512, rs256, rs384, rs512, eddsa };
enum class Family { hmac, rsa, ed25519 };

std::optional<Algorithm> algorithm_of(std::string_view name); ///< exact spelling; nullopt: unknown
std::string_view name_of(Algorithm algorithm);
Family family_of(Algorithm algorithm);

/// A public key, or a secret. Copies share it.
/// @thread any, concurrently
class Key {
public:
    static Key secret(std::string_view bytes);
    /// An RSA key of at least 2048 bits, or an Ed25519 key.
    /// @errors invalid_argument: "invalid RSA public key PEM", "invalid Ed public key PEM" when the
    /// text says which it was meant to be, or another sentence; never the key
    static Result<Key> from_pem(std::string_view pem);
    static Result<Key> rsa(std::string_view modulus, std::string_view exponent); ///< big-endian
    static Result<Key> ed25519(std::string_view raw);                            ///< 32 bytes

    Family family() const noexcept { return family_; }
    /// In constant time where there is a secret. False for an algorithm of another family.
    bool verifies(Algorithm algorithm, std::string_view text, std::string_view signature) const;

private:
    Key(Family family, std::shared_ptr<evp_pkey_st> key) : family_(family), key_(std::move(key)) {}

    Family family_;
    std::shared_ptr<evp_pkey_st> key_; ///< null for a secret
    std::shared_ptr<const std::string> secret_;
};

/// A key of a published set.
struct NamedKey {
    std::string id;                ///< "kid"; "" when it has none
    std::optional<Algorithm> only; ///< "alg": what the publisher signs with it
    Key key;
};

inline constexpr std::size_t kMaxSetKeys = 100;

/// Reads a JWKS (RFC 7517). Keys of kinds that are not known here, for other uses, or that do not
/// parse are left out, as the standard asks.
/// @errors invalid_argument: not a set, or nothing in it is of use
Result<std::vector<NamedKey>> read_key_set(std::string_view json);

} // namespace queen::auth
