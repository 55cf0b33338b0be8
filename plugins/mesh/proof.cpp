#include "proof.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <array>
#include <span>
#include <stdexcept>

namespace queen::mesh {
namespace {

std::string hex(std::span<const unsigned char> bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string out;
    out.reserve(2 * bytes.size());
    for (const unsigned char byte : bytes) {
        out += kDigits[byte >> 4];
        out += kDigits[byte & 0xf];
    }
    return out;
}

std::string hmac(std::string_view secret, std::string_view message) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
    unsigned size = 0;
    if (HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
             reinterpret_cast<const unsigned char*>(message.data()), message.size(), digest.data(),
             &size) == nullptr) {
        throw std::runtime_error("HMAC-SHA256 is not available");
    }
    return hex(std::span(digest).first(size));
}

/// Ids and nonces hold no line feed: the readers of the frames see to it.
std::string message(std::string_view word, const Exchange& exchange) {
    std::string out(word);
    for (const std::string_view part :
         {exchange.dialler, exchange.acceptor, exchange.hello_nonce, exchange.challenge_nonce}) {
        out += '\n';
        out += part;
    }
    if (!exchange.dialler_instance.empty() && !exchange.acceptor_instance.empty()) {
        out += '\n';
        out += exchange.dialler_instance;
        out += '\n';
        out += exchange.acceptor_instance;
    }
    return out;
}

} // namespace

std::string make_nonce() {
    std::array<unsigned char, 16> bytes;
    if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
        throw std::runtime_error("the system has no random bytes");
    }
    return hex(bytes);
}

std::string hello_mac(std::string_view secret, std::string_view nonce) {
    return hmac(secret, nonce);
}

std::string challenge_mac(std::string_view secret, const Exchange& exchange) {
    return hmac(secret, message("queen mesh challenge", exchange));
}

std::string answer_mac(std::string_view secret, const Exchange& exchange) {
    return hmac(secret, message("queen mesh answer", exchange));
}

bool same_mac(std::string_view a, std::string_view b) noexcept {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

} // namespace queen::mesh
