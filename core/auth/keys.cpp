#include "auth/keys.hpp"

#include "base/assert.hpp"
#include "base/base64.hpp"
#include "base/json.hpp"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>

#include <array>
#include <utility>

namespace queen::auth {
namespace {

struct Named {
    std::string_view name;
    Algorithm algorithm;
};
constexpr std::array kNames{Named{"HS256", Algorithm::hs256}, Named{"HS384", Algorithm::hs384},
                            Named{"HS512", Algorithm::hs512}, Named{"RS256", Algorithm::rs256},
                            Named{"RS384", Algorithm::rs384}, Named{"RS512", Algorithm::rs512},
                            Named{"EdDSA", Algorithm::eddsa}};

/// RFC 7518, 3.3. Shorter ones can be factored.
constexpr int kMinRsaBits = 2048;
constexpr std::size_t kEd25519Bytes = 32;

template <auto Free>
struct With {
    template <class T>
    void operator()(T* pointer) const {
        Free(pointer);
    }
};
using Bio = std::unique_ptr<BIO, With<BIO_free_all>>;
using Number = std::unique_ptr<BIGNUM, With<BN_free>>;
using Builder = std::unique_ptr<OSSL_PARAM_BLD, With<OSSL_PARAM_BLD_free>>;
using Params = std::unique_ptr<OSSL_PARAM, With<OSSL_PARAM_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, With<EVP_PKEY_CTX_free>>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, With<EVP_MD_CTX_free>>;

std::shared_ptr<EVP_PKEY> shared(EVP_PKEY* key) {
    return {key, With<EVP_PKEY_free>{}};
}

const unsigned char* bytes_of(std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
}

const EVP_MD* digest_of(Algorithm algorithm) {
    switch (algorithm) {
    case Algorithm::hs256:
    case Algorithm::rs256:
        return EVP_sha256();
    case Algorithm::hs384:
    case Algorithm::rs384:
        return EVP_sha384();
    case Algorithm::hs512:
    case Algorithm::rs512:
        return EVP_sha512();
    case Algorithm::eddsa: // hashes by itself
        return nullptr;
    }
    return nullptr;
}

bool hmac_fits(Algorithm algorithm, const std::string& secret, std::string_view text,
               std::string_view signature) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> mac;
    unsigned int size = 0;
    const bool made = HMAC(digest_of(algorithm), secret.data(), static_cast<int>(secret.size()),
                           bytes_of(text), text.size(), mac.data(), &size) != nullptr;
    return made && signature.size() == size &&
           CRYPTO_memcmp(mac.data(), signature.data(), size) == 0;
}

bool signature_fits(Algorithm algorithm, EVP_PKEY* key, std::string_view text,
                    std::string_view signature) {
    const DigestContext context(EVP_MD_CTX_new());
    QUEEN_ASSERT(context != nullptr, "OpenSSL got no memory for a digest's context");
    // PKCS #1 v1.5 is what RS256 and its kin mean, and OpenSSL's default for RSA.
    const bool fits =
        EVP_DigestVerifyInit(context.get(), nullptr, digest_of(algorithm), nullptr, key) == 1 &&
        EVP_DigestVerify(context.get(), bytes_of(signature), signature.size(), bytes_of(text),
                         text.size()) == 1;
    if (!fits) {
        ERR_clear_error(); // else it is found by the next who looks, the database's TLS for one
    }
    return fits;
}

tl::unexpected<Error> unfit(std::string why) {
    ERR_clear_error();
    return fail(Errc::invalid_argument, std::move(why));
}

bool big_enough(const EVP_PKEY* key) {
    return EVP_PKEY_get_bits(key) >= kMinRsaBits;
}

std::string short_rsa(const EVP_PKEY* key) {
    return "an RSA key of " + std::to_string(EVP_PKEY_get_bits(key)) +
           " bits is too short; allowed: at least " + std::to_string(kMinRsaBits);
}

/// nullopt: of a kind that is not known here, or damaged.
std::optional<Key> read_key(const json::Value& jwk) {
    const std::string_view kind = jwk["kty"].string();
    if (kind == "RSA") {
        const auto modulus = from_base64url(jwk["n"].string());
        const auto exponent = from_base64url(jwk["e"].string());
        const auto key = modulus && exponent ? Key::rsa(*modulus, *exponent)
                                             : Result<Key>(fail(Errc::invalid_argument, ""));
        return key ? std::optional(*key) : std::nullopt;
    }
    if (kind == "OKP" && jwk["crv"].string() == "Ed25519") {
        const auto raw = from_base64url(jwk["x"].string());
        const auto key = raw ? Key::ed25519(*raw) : Result<Key>(fail(Errc::invalid_argument, ""));
        return key ? std::optional(*key) : std::nullopt;
    }
    return std::nullopt; // a secret ("oct") is never published
}

} // namespace

std::optional<Algorithm> algorithm_of(std::string_view name) {
    for (const Named& named : kNames) {
        if (named.name == name) {
            return named.algorithm;
        }
    }
    return std::nullopt;
}

std::string_view name_of(Algorithm algorithm) {
    for (const Named& named : kNames) {
        if (named.algorithm == algorithm) {
            return named.name;
        }
    }
    return {};
}

Family family_of(Algorithm algorithm) {
    switch (algorithm) {
    case Algorithm::hs256:
    case Algorithm::hs384:
    case Algorithm::hs512:
        return Family::hmac;
    case Algorithm::rs256:
    case Algorithm::rs384:
    case Algorithm::rs512:
        return Family::rsa;
    case Algorithm::eddsa:
        return Family::ed25519;
    }
    return Family::hmac;
}

Key Key::secret(std::string_view bytes) {
    Key key(Family::hmac, nullptr);
    key.secret_ = std::shared_ptr<const std::string>(new std::string(bytes), [](std::string* text) {
        OPENSSL_cleanse(text->data(), text->size());
        delete text;
    });
    return key;
}

Result<Key> Key::from_pem(std::string_view pem) {
    const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    QUEEN_ASSERT(bio != nullptr, "OpenSSL got no memory for a buffer");
    // Without a callback it would ask the terminal for a passphrase.
    const auto no_passphrase = [](char*, int, int, void*) { return -1; };
    const auto key = shared(PEM_read_bio_PUBKEY(bio.get(), nullptr, no_passphrase, nullptr));
    if (!key) {
        return unfit(pem.find("PRIVATE KEY") != std::string_view::npos
                         ? "this is a private key; allowed: the public one, PEM text of PUBLIC KEY"
                     : pem.size() < 200 ? "invalid Ed public key PEM" // one has about 110 bytes
                                        : "invalid RSA public key PEM");
    }
    if (EVP_PKEY_is_a(key.get(), "RSA")) {
        return big_enough(key.get()) ? Result<Key>(Key(Family::rsa, key))
                                     : unfit(short_rsa(key.get()));
    }
    if (EVP_PKEY_is_a(key.get(), "ED25519")) {
        return Key(Family::ed25519, key);
    }
    return unfit("the public key is of a kind that no algorithm here uses; allowed: RSA, Ed25519");
}

Result<Key> Key::rsa(std::string_view modulus, std::string_view exponent) {
    const Number n(BN_bin2bn(bytes_of(modulus), static_cast<int>(modulus.size()), nullptr));
    const Number e(BN_bin2bn(bytes_of(exponent), static_cast<int>(exponent.size()), nullptr));
    const Builder builder(OSSL_PARAM_BLD_new());
    const KeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, "RSA", nullptr));
    if (!n || !e || !builder || !context ||
        OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, n.get()) != 1 ||
        OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, e.get()) != 1) {
        return unfit("invalid RSA key");
    }
    const Params params(OSSL_PARAM_BLD_to_param(builder.get()));
    EVP_PKEY* made = nullptr;
    if (!params || EVP_PKEY_fromdata_init(context.get()) != 1 ||
        EVP_PKEY_fromdata(context.get(), &made, EVP_PKEY_PUBLIC_KEY, params.get()) != 1) {
        return unfit("invalid RSA key");
    }
    const auto key = shared(made);
    return big_enough(key.get()) ? Result<Key>(Key(Family::rsa, key)) : unfit(short_rsa(key.get()));
}

Result<Key> Key::ed25519(std::string_view raw) {
    if (raw.size() != kEd25519Bytes) {
        return unfit("an Ed25519 key has 32 bytes");
    }
    const auto key =
        shared(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, bytes_of(raw), raw.size()));
    return key ? Result<Key>(Key(Family::ed25519, key)) : unfit("invalid Ed25519 key");
}

bool Key::verifies(Algorithm algorithm, std::string_view text, std::string_view signature) const {
    if (family_of(algorithm) != family_) {
        return false;
    }
    return family_ == Family::hmac ? hmac_fits(algorithm, *secret_, text, signature)
                                   : signature_fits(algorithm, key_.get(), text, signature);
}

Result<std::vector<NamedKey>> read_key_set(std::string_view json) {
    const auto document = json::Document::parse(json);
    const json::Value list = document ? document->root()["keys"] : json::Value();
    if (!list.is(json::Kind::array)) {
        return fail(Errc::invalid_argument, "what is published there is no JSON Web Key Set");
    }
    std::vector<NamedKey> keys;
    for (std::size_t i = 0; i < list.size() && keys.size() < kMaxSetKeys; ++i) {
        const json::Value jwk = list.at(i);
        const json::Value use = jwk["use"];
        const json::Value algorithm = jwk["alg"];
        const auto only = algorithm_of(algorithm.string());
        const auto key = read_key(jwk);
        const bool for_signatures = use.is(json::Kind::missing) || use.string() == "sig";
        const bool known = algorithm.is(json::Kind::missing) || only.has_value();
        if (!key || !for_signatures || !known || (only && family_of(*only) != key->family())) {
            continue;
        }
        keys.push_back({std::string(jwk["kid"].string()), only, *key});
    }
    if (keys.empty()) {
        return fail(Errc::invalid_argument,
                    "none of the published keys is of use; allowed: RSA of 2048 bits or more, "
                    "Ed25519");
    }
    return keys;
}

} // namespace queen::auth
