#include "auth/fetch.hpp"

#include "base/clock.hpp"

#include <Poco/Net/Context.h>
#include <Poco/Net/HTTPClientSession.h>
#include <Poco/Net/HTTPRequest.h>
#include <Poco/Net/HTTPResponse.h>
#include <Poco/Net/HTTPSClientSession.h>
#include <Poco/Net/RejectCertificateHandler.h>
#include <Poco/Net/SSLManager.h>
#include <Poco/URI.h>

#include <array>
#include <istream>
#include <memory>
#include <mutex>

namespace queen::auth {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;

Poco::Timespan to_poco(std::chrono::milliseconds time) {
    return {std::chrono::duration_cast<std::chrono::microseconds>(time).count()};
}

/// Poco asks its manager for a default context when a certificate is refused, and would look for
/// one in the settings of an application that we are not.
Poco::Net::Context::Ptr tls() {
    static Poco::Net::Context::Ptr context;
    static std::once_flag once;
    std::call_once(once, [] {
        Poco::Net::initializeSSL();
        context = new Poco::Net::Context(Poco::Net::Context::TLS_CLIENT_USE, "", "", "",
                                         Poco::Net::Context::VERIFY_STRICT, 9, true);
        context->requireMinimumProtocol(Poco::Net::Context::PROTO_TLSV1_2);
        Poco::Net::SSLManager::instance().initializeClient(
            nullptr, new Poco::Net::RejectCertificateHandler(false), context);
    });
    return context;
}

Result<std::string> get(const std::string& url, std::chrono::milliseconds timeout) {
    const Poco::URI uri(url);
    std::unique_ptr<Poco::Net::HTTPClientSession> session;
    if (uri.getScheme() == "https") {
        session =
            std::make_unique<Poco::Net::HTTPSClientSession>(uri.getHost(), uri.getPort(), tls());
    } else {
        session = std::make_unique<Poco::Net::HTTPClientSession>(uri.getHost(), uri.getPort());
    }
    session->setTimeout(to_poco(timeout), to_poco(timeout), to_poco(timeout));
    session->setKeepAlive(false);
    std::string path = uri.getPathAndQuery();
    Poco::Net::HTTPRequest request(Poco::Net::HTTPRequest::HTTP_GET, path.empty() ? "/" : path,
                                   Poco::Net::HTTPMessage::HTTP_1_1);
    request.set("Accept", "application/json");
    session->sendRequest(request);
    Poco::Net::HTTPResponse response;
    std::istream& body = session->receiveResponse(response);
    if (response.getStatus() != Poco::Net::HTTPResponse::HTTP_OK) {
        return fail(Errc::unavailable,
                    url + " answered " + std::to_string(static_cast<int>(response.getStatus())));
    }
    const Clock& clock = SystemClock::instance();
    const SteadyTime end = clock.now() + 2 * timeout;
    std::string text;
    std::array<char, 16 * 1024> piece;
    while (body.read(piece.data(), piece.size()), body.gcount() > 0) {
        text.append(piece.data(), static_cast<std::size_t>(body.gcount()));
        if (text.size() > kMostBytes) {
            return fail(Errc::unavailable, url + " answered more than 1 MiB");
        }
        if (clock.now() > end) {
            return fail(Errc::unavailable, url + " did not end its answer in time");
        }
    }
    return text;
}

} // namespace

Result<std::string> fetch(const std::string& url, std::chrono::milliseconds timeout) {
    try {
        return get(url, timeout);
    } catch (const Poco::Exception& exception) {
        return fail(Errc::unavailable, url + " cannot be read: " + exception.displayText());
    }
}

} // namespace queen::auth
