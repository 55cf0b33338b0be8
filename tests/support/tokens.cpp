#include "support/tokens.hpp"

#include "base/base64.hpp"
#include "base/json.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace queen::test {

std::string signed_token(std::string_view header, std::string_view claims,
                         std::string_view secret) {
    const std::string text = to_base64url(header) + "." + to_base64url(claims);
    std::string mac(EVP_MAX_MD_SIZE, '\0');
    unsigned int size = 0;
    HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
         reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(mac.data()), &size);
    mac.resize(size);
    return text + "." + to_base64url(mac);
}

std::string token_of_role(std::string_view role, std::string_view secret,
                          std::string_view subject) {
    std::string claims;
    json::Writer writer(claims);
    writer.begin_object().key("sub").string(subject);
    if (!role.empty()) {
        writer.key("role").string(role);
    }
    writer.end_object();
    return signed_token(R"({"alg":"HS256","typ":"JWT"})", claims, secret);
}

} // namespace queen::test
