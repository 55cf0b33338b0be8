#include "model/encryption.hpp"

#include "base/assert.hpp"
#include "base/base64.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <limits>
#include <memory>

namespace queen {
namespace {

constexpr std::size_t kIvBytes = 16;
constexpr std::size_t kNonceBytes = 12;
constexpr std::size_t kTagBytes = 16;

struct FreeContext {
    void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};

// Making a context and finding the algorithm cost more than to encrypt a small payload.
EVP_CIPHER_CTX& context() {
    thread_local const std::unique_ptr<EVP_CIPHER_CTX, FreeContext> kept(EVP_CIPHER_CTX_new());
    QUEEN_ASSERT(kept != nullptr, "OpenSSL got no memory for a cipher's context");
    return *kept;
}

const EVP_CIPHER* algorithm() {
    static EVP_CIPHER* const kAlgorithm = EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr);
    QUEEN_ASSERT(kAlgorithm != nullptr, "OpenSSL has no AES-256-GCM");
    return kAlgorithm;
}

const unsigned char* bytes_of(std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* bytes_of(std::string& text) {
    return reinterpret_cast<unsigned char*>(text.data());
}

tl::unexpected<Error> not_opened(const char* why) {
    return fail(Errc::corrupt, std::string("the payload cannot be decrypted: ") + why);
}

/// A frame has at most 4 GiB, OpenSSL counts with int.
bool too_long(std::string_view text) {
    return text.size() > static_cast<std::size_t>(std::numeric_limits<int>::max());
}

} // namespace

Result<Cipher> Cipher::from_hex(std::string_view key) {
    auto bytes = queen::from_hex(key);
    Cipher cipher;
    const bool fits = bytes && bytes->size() == cipher.key_.size();
    if (fits) {
        std::copy(bytes->begin(), bytes->end(), cipher.key_.begin());
    }
    if (bytes) {
        OPENSSL_cleanse(bytes->data(), bytes->size());
    }
    if (!fits) {
        return fail(Errc::invalid_argument, "a key has 64 hex digits (256 bits), this one has " +
                                                std::to_string(key.size()) +
                                                " characters or others than hex digits");
    }
    return cipher;
}

Cipher::Cipher(Cipher&& other) noexcept : key_(other.key_) {
    OPENSSL_cleanse(other.key_.data(), other.key_.size());
}

Cipher::~Cipher() {
    OPENSSL_cleanse(key_.data(), key_.size());
}

std::string Cipher::seal(std::string_view payload) const {
    std::string iv(kIvBytes, '\0');
    QUEEN_ASSERT(!too_long(payload), "no request is that long");
    QUEEN_ASSERT(RAND_bytes(bytes_of(iv), kIvBytes) == 1, "no random bytes for an encryption");
    static_assert(kNonceBytes <= kIvBytes); // and the default length of a nonce of GCM
    EVP_CIPHER_CTX& with = context();
    std::string sealed(payload.size(), '\0');
    std::string tag(kTagBytes, '\0');
    int written = 0;
    int rest = 0;
    const bool done =
        EVP_EncryptInit_ex2(&with, algorithm(), key_.data(), bytes_of(iv), nullptr) == 1 &&
        EVP_EncryptUpdate(&with, bytes_of(sealed), &written, bytes_of(payload),
                          static_cast<int>(payload.size())) == 1 &&
        EVP_EncryptFinal_ex(&with, bytes_of(sealed) + written, &rest) == 1 &&
        EVP_CIPHER_CTX_ctrl(&with, EVP_CTRL_GCM_GET_TAG, kTagBytes, tag.data()) == 1;
    QUEEN_ASSERT(done, "AES-256-GCM encrypts any payload");
    std::string envelope;
    envelope.reserve(sealed.size() / 3 * 4 + 128);
    envelope.append(R"({"encrypted":")").append(to_base64(sealed));
    envelope.append(R"(","iv":")").append(to_base64(iv));
    envelope.append(R"(","authTag":")").append(to_base64(tag)).append(R"("})");
    return envelope;
}

Result<std::string> Cipher::open(std::string_view envelope) const {
    if (too_long(envelope)) {
        return not_opened("it is over 2 GiB");
    }
    const auto document = json::Document::parse(envelope);
    if (!document) {
        return not_opened("it is not JSON");
    }
    const auto member = [&](std::string_view name) {
        return from_base64(document->root()[name].string());
    };
    const auto sealed = member("encrypted");
    const auto iv = member("iv");
    auto tag = member("authTag");
    if (!document->root()["encrypted"].is(json::Kind::string) || !sealed || !iv ||
        iv->size() != kIvBytes || !tag || tag->size() != kTagBytes) {
        return not_opened("it is no envelope");
    }
    EVP_CIPHER_CTX& with = context();
    std::string payload(sealed->size(), '\0');
    int written = 0;
    int rest = 0;
    const bool read =
        EVP_DecryptInit_ex2(&with, algorithm(), key_.data(), bytes_of(*iv), nullptr) == 1 &&
        EVP_DecryptUpdate(&with, bytes_of(payload), &written, bytes_of(*sealed),
                          static_cast<int>(sealed->size())) == 1 &&
        EVP_CIPHER_CTX_ctrl(&with, EVP_CTRL_GCM_SET_TAG, kTagBytes, tag->data()) == 1;
    // Nothing of what was decrypted may be shown before the tag was compared.
    if (!read || EVP_DecryptFinal_ex(&with, bytes_of(payload) + written, &rest) != 1) {
        OPENSSL_cleanse(payload.data(), payload.size());
        return not_opened("it was made with another key, or changed since");
    }
    return payload;
}

RenderedPayload render_payload(std::string_view stored, bool encrypted, const Cipher* cipher,
                               std::string& scratch) {
    constexpr std::string_view kNothing = "null";
    if (encrypted && cipher != nullptr) {
        if (auto opened = cipher->open(stored)) {
            scratch = std::move(*opened);
            return {scratch.empty() ? kNothing : std::string_view(scratch), false};
        }
    }
    return {stored.empty() ? kNothing : stored, encrypted};
}

} // namespace queen
