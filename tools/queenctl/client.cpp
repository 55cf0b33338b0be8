#include "queenctl/client.hpp"

#include "base/json.hpp"
#include "base/text.hpp"
#include "queenctl/text_table.hpp"
#include "settings/values.hpp"

#include <Poco/Exception.h>
#include <Poco/Net/HTTPClientSession.h>
#include <Poco/Net/HTTPRequest.h>
#include <Poco/Net/HTTPResponse.h>
#include <Poco/StreamCopier.h>
#include <Poco/Timespan.h>
#include <Poco/URI.h>

#include <istream>
#include <ostream>

namespace queen::ctl {
namespace {

Poco::Timespan timespan(std::chrono::milliseconds time) {
    return Poco::Timespan(std::chrono::duration_cast<std::chrono::microseconds>(time).count());
}

std::string target_of(const std::string& prefix, const std::string& path, const Query& query) {
    std::string target = prefix + path;
    char separator = '?';
    for (const auto& [name, value] : query) {
        target += separator + percent_encode(name) + "=" + percent_encode(value);
        separator = '&';
    }
    return target;
}

} // namespace

struct Client::Impl {
    Poco::Net::HTTPClientSession session;
    std::string url, prefix;
    std::vector<std::pair<std::string, std::string>> fields; ///< of every request
    std::chrono::milliseconds timeout{0};
};

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

Result<Client> Client::open(const std::string& url, std::chrono::milliseconds timeout) {
    auto impl = std::make_unique<Impl>();
    try {
        const Poco::URI uri(url);
        if (uri.getScheme() != "http" || uri.getHost().empty() || !uri.getQuery().empty() ||
            !uri.getFragment().empty() || !uri.getUserInfo().empty()) {
            return fail(Errc::invalid_argument,
                        "--url " + settings::shown(url) + ": allowed is http://HOST:PORT[/PATH]");
        }
        impl->prefix = uri.getPath();
        while (impl->prefix.ends_with('/')) {
            impl->prefix.pop_back();
        }
        impl->session.setHost(uri.getHost());
        impl->session.setPort(uri.getPort());
        impl->session.setKeepAlive(true);
        impl->url = url;
        impl->timeout = timeout;
        return Client(std::move(impl));
    } catch (const Poco::Exception& e) {
        return fail(Errc::invalid_argument,
                    "--url " + settings::shown(url) + ": " + e.displayText());
    }
}

void Client::bear(std::string name, std::string value) {
    impl_->fields.emplace_back(std::move(name), std::move(value));
}

Result<Answer> Client::call(const std::string& method, const std::string& path, const Query& query,
                            const std::string& body, std::chrono::milliseconds extra) {
    auto& session = impl_->session;
    try {
        session.setTimeout(timespan(impl_->timeout), timespan(impl_->timeout),
                           timespan(impl_->timeout + extra));
        Poco::Net::HTTPRequest request(method, target_of(impl_->prefix, path, query),
                                       Poco::Net::HTTPMessage::HTTP_1_1);
        request.set("User-Agent", "queenctl");
        for (const auto& [name, value] : impl_->fields) {
            request.set(name, value);
        }
        if (method != "GET") {
            request.setContentType("application/json");
            request.setContentLength64(static_cast<Poco::Int64>(body.size()));
        }
        session.sendRequest(request) << body << std::flush;
        Poco::Net::HTTPResponse response;
        Answer answer;
        std::istream& in = session.receiveResponse(response);
        Poco::StreamCopier::copyToString(in, answer.body);
        answer.status = response.getStatus();
        if (response.hasContentLength() &&
            static_cast<std::size_t>(response.getContentLength64()) != answer.body.size()) {
            session.reset();
            return fail(Errc::unavailable, impl_->url + ": the answer is cut");
        }
        const auto seconds = parse_int(response.get("Retry-After", "0"));
        answer.retry_after = std::chrono::seconds(seconds.value_or(0));
        return answer;
    } catch (const Poco::Exception& e) {
        session.reset();
        return fail(Errc::unavailable, impl_->url + ": " + e.displayText());
    }
}

std::string segment(const std::string& name) {
    return "/" + percent_encode(name);
}

std::string refusal(const Answer& answer) {
    std::string text = "the broker answered " + std::to_string(answer.status);
    const auto document = json::Document::parse(answer.body);
    const std::string_view error =
        document ? document->root()["error"].string() : std::string_view();
    if (!error.empty()) {
        text += ": " + printable(error);
        for (const char* more : {"reason", "detail"}) { // where `error` is but a word
            const std::string_view said = document->root()[more].string();
            if (!said.empty() && document->root()["code"].string() == error) {
                text += " (" + printable(said) + ")";
            }
        }
    }
    return text;
}

} // namespace queen::ctl
