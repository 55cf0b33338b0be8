// Against servers of this process, on loopback: with and without TLS, honest and not.
#include "auth/fetch.hpp"
#include "support/temp_directory.hpp"

#include <Poco/Net/Context.h>
#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPRequestHandlerFactory.h>
#include <Poco/Net/HTTPServer.h>
#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>
#include <Poco/Net/SecureServerSocket.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <tuple>

namespace queen::auth {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class Pages final : public Poco::Net::HTTPRequestHandlerFactory {
    struct Page final : Poco::Net::HTTPRequestHandler {
        void handleRequest(Poco::Net::HTTPServerRequest& request,
                           Poco::Net::HTTPServerResponse& response) override {
            if (request.getURI() == "/moved") {
                response.redirect("/keys");
            } else if (request.getURI() == "/keys?v=1") {
                response.send() << R"({"keys":[]})";
            } else if (request.getURI() == "/large") {
                response.send() << std::string((1 << 20) + 1, 'x');
            } else {
                response.setStatusAndReason(Poco::Net::HTTPResponse::HTTP_NOT_FOUND);
                response.send();
            }
        }
    };

public:
    Poco::Net::HTTPRequestHandler*
    createRequestHandler(const Poco::Net::HTTPServerRequest&) override {
        return new Page;
    }
};

class Server {
public:
    explicit Server(const Poco::Net::ServerSocket& socket)
        : server_(new Pages, socket, new Poco::Net::HTTPServerParams),
          port_(socket.address().port()) {
        server_.start();
    }
    ~Server() { server_.stopAll(true); }
    std::string port() const { return std::to_string(port_); }

private:
    Poco::Net::HTTPServer server_;
    int port_;
};

Poco::Net::SocketAddress loopback() {
    return {"127.0.0.1", 0};
}

/// A certificate that signs itself, for one host, valid since yesterday, and its key.
void write_certificate(const std::string& host, const std::string& file,
                       const std::string& key_file) {
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"),
                                                                  EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), X509_free);
    X509_set_version(certificate.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -86'400);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 86'400);
    X509_set_pubkey(certificate.get(), key.get());
    X509_NAME* name = X509_get_subject_name(certificate.get());
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(host.c_str()), -1, -1, 0);
    X509_set_issuer_name(certificate.get(), name);
    X509_EXTENSION* names =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, ("DNS:" + host).c_str());
    X509_add_ext(certificate.get(), names, -1);
    X509_EXTENSION_free(names);
    X509_sign(certificate.get(), key.get(), EVP_sha256());
    std::FILE* out = std::fopen(file.c_str(), "w");
    PEM_write_X509(out, certificate.get());
    std::fclose(out);
    out = std::fopen(key_file.c_str(), "w");
    PEM_write_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(out);
}

TEST(Fetch, TheBodyOfA200AndNothingElse) {
    const Server server{Poco::Net::ServerSocket(loopback())};
    const std::string base = "http://127.0.0.1:" + server.port();
    EXPECT_EQ(fetch(base + "/keys?v=1", 5s), R"({"keys":[]})");
    EXPECT_THAT(fetch(base + "/nothing", 5s).error().message, HasSubstr("answered 404"));
    EXPECT_THAT(fetch(base + "/moved", 5s).error().message, HasSubstr("answered 302"))
        << "keys come from where the settings say";
    EXPECT_THAT(fetch(base + "/large", 5s).error().message, HasSubstr("more than 1 MiB"));
    EXPECT_EQ(fetch("http://127.0.0.1:9/", 5s).error().code, Errc::unavailable);
}

// AUTH-4: whoever answers under another name, or under none that anybody vouches for, is nobody.
TEST(Fetch, AServerHasToProveItsName) {
    const test::TempDirectory directory;
    const auto file = [&](const std::string& name) { return directory.path() + "/" + name; };
    write_certificate("localhost", file("good.pem"), file("good.key"));
    write_certificate("other.example", file("other.pem"), file("other.key"));
    write_certificate("localhost", file("unknown.pem"), file("unknown.key"));
    std::ignore = std::system(
        ("cat " + file("good.pem") + " " + file("other.pem") + " > " + file("roots.pem")).c_str());
    ASSERT_EQ(setenv("SSL_CERT_FILE", file("roots.pem").c_str(), 1), 0);
    const auto answer = [&](const std::string& name) {
        const Poco::Net::Context::Ptr context =
            new Poco::Net::Context(Poco::Net::Context::TLS_SERVER_USE, file(name + ".key"),
                                   file(name + ".pem"), "", Poco::Net::Context::VERIFY_NONE);
        const Server server{Poco::Net::SecureServerSocket(loopback(), 64, context)};
        return fetch("https://localhost:" + server.port() + "/keys?v=1", 5s);
    };
    const auto good = answer("good");
    EXPECT_EQ(good, R"({"keys":[]})") << (good ? "" : good.error().message);
    EXPECT_FALSE(answer("other").has_value()) << "known, and another host";
    EXPECT_FALSE(answer("unknown").has_value()) << "the right name, and nobody vouches for it";
    EXPECT_TRUE(answer("good").has_value());
}

} // namespace
} // namespace queen::auth
