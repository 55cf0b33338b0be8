#include "scripted_server.hpp"

#include "base/json.hpp"

#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPRequestHandlerFactory.h>
#include <Poco/Net/HTTPServer.h>
#include <Poco/Net/HTTPServerParams.h>
#include <Poco/Net/HTTPServerRequestImpl.h>
#include <Poco/Net/HTTPServerResponse.h>
#include <Poco/Net/ServerSocket.h>
#include <Poco/Net/SocketAddress.h>
#include <Poco/StreamCopier.h>

#include <algorithm>
#include <csignal>
#include <mutex>
#include <ostream>

namespace queen::ctl::testing {
namespace {

struct Script {
    std::function<Reaction(const Seen&)> answer;
    mutable std::mutex mutex;
    std::vector<Seen> seen;
};

class Handler final : public Poco::Net::HTTPRequestHandler {
public:
    explicit Handler(Script& script) : script_(script) {}

    void handleRequest(Poco::Net::HTTPServerRequest& request,
                       Poco::Net::HTTPServerResponse& response) override {
        Seen seen;
        seen.method = request.getMethod();
        seen.target = request.getURI();
        seen.authorization = request.get("Authorization", "");
        seen.tenant = request.get("x-queen-tenant", "");
        seen.client_port = request.clientAddress().port();
        Poco::StreamCopier::copyToString(request.stream(), seen.body);
        Reaction reaction;
        {
            const std::lock_guard lock(script_.mutex);
            script_.seen.push_back(seen);
            reaction = script_.answer(seen);
        }
        if (reaction.drop) {
            dynamic_cast<Poco::Net::HTTPServerRequestImpl&>(request).socket().shutdown();
            return;
        }
        response.setStatus(static_cast<Poco::Net::HTTPResponse::HTTPStatus>(reaction.status));
        response.setKeepAlive(true);
        for (const auto& [name, value] : reaction.headers) {
            response.set(name, value);
        }
        if (reaction.status == 204) {
            response.send();
            return;
        }
        if (reaction.cut) {
            response.setContentLength64(static_cast<Poco::Int64>(reaction.body.size()) + 10);
            response.send() << reaction.body << std::flush;
            dynamic_cast<Poco::Net::HTTPServerRequestImpl&>(request).socket().shutdown();
            return;
        }
        response.sendBuffer(reaction.body.data(), reaction.body.size());
    }

private:
    Script& script_;
};

class Factory final : public Poco::Net::HTTPRequestHandlerFactory {
public:
    explicit Factory(Script& script) : script_(script) {}
    Poco::Net::HTTPRequestHandler*
    createRequestHandler(const Poco::Net::HTTPServerRequest&) override {
        return new Handler(script_); // Poco deletes it
    }

private:
    Script& script_;
};

} // namespace

struct ScriptedServer::Impl {
    Script script;
    Poco::Net::ServerSocket socket{Poco::Net::SocketAddress("127.0.0.1", 0)};
    std::unique_ptr<Poco::Net::HTTPServer> server;
};

ScriptedServer::ScriptedServer(std::function<Reaction(const Seen&)> answer)
    : impl_(std::make_unique<Impl>()) {
    std::signal(SIGPIPE, SIG_IGN); // as the program does
    impl_->script.answer = std::move(answer);
    Poco::Net::HTTPServerParams::Ptr parameters(new Poco::Net::HTTPServerParams);
    parameters->setKeepAlive(true);
    impl_->server = std::make_unique<Poco::Net::HTTPServer>(new Factory(impl_->script),
                                                            impl_->socket, parameters);
    impl_->server->start();
}

ScriptedServer::~ScriptedServer() {
    impl_->server->stopAll(true);
}

std::string ScriptedServer::url() const {
    return "http://127.0.0.1:" + std::to_string(impl_->socket.address().port());
}

std::vector<Seen> ScriptedServer::seen() const {
    const std::lock_guard lock(impl_->script.mutex);
    return impl_->script.seen;
}

Reaction drop_connection() {
    Reaction reaction;
    reaction.drop = true;
    return reaction;
}

Reaction cut_answer(std::string body) {
    Reaction reaction;
    reaction.body = std::move(body);
    reaction.cut = true;
    return reaction;
}

std::function<Reaction(const Seen&)> in_order(std::vector<Reaction> reactions) {
    return [reactions = std::move(reactions), next = std::size_t{0}](const Seen&) mutable {
        const std::size_t at = std::min(next++, reactions.size() - 1);
        return reactions[at];
    };
}

Reaction all_messages(const Seen& seen, const std::string& status) {
    const auto document = json::Document::parse(seen.body);
    const std::size_t count = document ? document->root()["items"].size() : 0;
    std::string body = "[";
    for (std::size_t i = 0; i < count; ++i) {
        body += (i == 0 ? "" : ",") + std::string("{\"index\":") + std::to_string(i) +
                ",\"status\":\"" + status + "\"}";
    }
    return {201, body + "]", {}, false};
}

} // namespace queen::ctl::testing
