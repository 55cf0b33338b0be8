#include "http/routes/api.hpp"

#include "broker/sources.hpp"

namespace queen::test {
namespace {

/// Knows nothing and lets the store look, each time.
class ColdSource final : public plugin::CandidateSource {
public:
    plugin::Readiness peek(const plugin::Scope&) override {
        return {.state = plugin::ReadyState::cold};
    }
    plugin::Selection take(const plugin::Take&, plugin::Names&) override {
        return {.pick = plugin::Pick::scan};
    }
    void settle(const plugin::Scope&, std::unique_ptr<plugin::Cookie>,
                std::span<const plugin::Verdict>) override {}
};

} // namespace

void FakeExchange::reply(http::Reply reply, std::function<void()> on_undelivered) {
    ++replies;
    answer = std::move(reply);
    undelivered = std::move(on_undelivered);
    on_gone_ = nullptr;
}

void FakeExchange::watch(std::function<void()> on_gone) {
    if (gone_) {
        on_gone();
    } else if (!answer) {
        on_gone_ = std::move(on_gone);
    }
}

void FakeExchange::leave() {
    gone_ = true;
    if (const auto on_gone = std::exchange(on_gone_, nullptr)) {
        on_gone();
    }
}

struct Api::Broker {
    explicit Broker(Api& api)
        : sources({{"cold", std::make_shared<ColdSource>()}}, "cold"),
          parking(api.ticker, api.clock, {}), announcer(sources, parking),
          push(api.store, announcer, api.clock,
               {.encryption = std::make_shared<broker::Encryption>(api.security.cipher)}),
          switches(api.system, parking, api.ticker, api.clock, {}),
          pop(api.store, sources, announcer, parking, api.workers, api.ticker, api.clock,
              {.paused = [this] { return switches.pops_paused(); }}),
          ack_registry(api.clock, {}),
          acks(api.store, announcer, api.clock, std::chrono::seconds(30), {}, &ack_registry),
          transactions(api.transactions, api.store, announcer, api.clock,
                       {.encryption = std::make_shared<broker::Encryption>(api.security.cipher)}),
          timers(api.timers, api.forms, api.clock,
                 {.activity = api.activity,
                  .encryption = std::make_shared<broker::Encryption>(api.security.cipher),
                  .taken = [this] { return switches.timers_schedule(); },
                  .scheduled = [&api](SteadyTime earliest) { api.rung.push_back(earliest); }}),
          admin(api.store, pop, announcer, api.clock, std::chrono::seconds(30)),
          statistics(api.system, admin.figures(), api.clock, {}), moved(pop, announcer),
          groups(api.group_store, moved, admin.figures(), api.clock, std::chrono::seconds(30)),
          browsing(api.clock, std::chrono::seconds(30)),
          letters(api.letters, announcer, browsing, api.clock,
                  {.encryption = std::make_shared<broker::Encryption>(api.security.cipher)}),
          messages(api.messages, api.letters, browsing, api.clock, api.security.cipher.get()),
          routes(
              {.push = push,
               .pop = pop,
               .acks = acks,
               .transactions = transactions,
               .timers = timers,
               .admin = admin,
               .statistics = statistics,
               .switches = switches,
               .groups = groups,
               .letters = letters,
               .messages = messages,
               .workers = api.workers,
               .settings = api.settings,
               .version = "1.2.3",
               .plugins = [](json::Writer& writer) { writer.begin_array().integer(7).end_array(); },
               .candidates =
                   [](json::Writer& writer) { writer.raw(R"({"default":"cold","sources":[]})"); },
               .mesh = [](json::Writer& writer) { writer.raw(R"({"peers":[]})"); },
               .metrics =
                   [](json::Writer& writer) {
                       writer.begin_object().key("uptime").integer(5).end_object();
                   },
               .prometheus =
                   [](const std::function<void(http::Reply)>& reply) {
                       reply({.body = "queen_page 1\n",
                              .content_type = "text/plain; version=0.0.4",
                              .headers = {}});
                   },
               .cipher = api.security.cipher.get(),
               .verifier = api.security.verifier.get()}) {}

    broker::Sources sources;
    broker::Parking parking;
    broker::Announcer announcer;
    broker::Push push;
    broker::Switches switches;
    broker::Pop pop;
    broker::AckRegistry ack_registry;
    broker::Acks acks;
    broker::Transactions transactions;
    broker::Timers timers;
    broker::Admin admin;
    broker::Statistics statistics;
    broker::MovedCursors moved;
    broker::Groups groups;
    broker::FigureReads browsing;
    broker::DeadLetters letters;
    broker::MessageBrowser messages;
    http::Routes routes;
};

Api::Api() : Api(Security()) {}

Api::Api(Security given) : security(std::move(given)) {
    settings.auth.skip_paths = security.skip_paths;
    settings.tenancy.header = security.tenants;
    settings.limits = {};
    settings.limits.max_wait = std::chrono::seconds(60);
    settings.limits.answer_bytes = 64 << 20;
    broker_ = std::make_unique<Broker>(*this);
}

Api::~Api() {
    broker_->pop.close();
    workers.run_all();
}

std::shared_ptr<FakeExchange> Api::send(std::string_view method, std::string_view target,
                                        std::string body, Headers headers) {
    auto exchange = std::make_shared<FakeExchange>();
    http::Request request;
    request.method = method;
    const std::size_t question = target.find('?');
    request.path = target.substr(0, question);
    request.query = question == std::string_view::npos ? "" : target.substr(question + 1);
    request.body = std::move(body);
    request.headers = std::move(headers);
    broker_->routes.handle(std::move(request), exchange);
    return exchange;
}

http::Reply Api::ask(std::string_view method, std::string_view target, std::string body,
                     Headers headers) {
    const auto exchange = send(method, target, std::move(body), std::move(headers));
    workers.run_all();
    EXPECT_EQ(exchange->replies, 1u) << method << " " << target;
    http::Reply reply = exchange->answer.value_or(http::Reply{});
    if (reply.status != 204) {
        EXPECT_EQ(reply.content_type, "application/json");
        EXPECT_TRUE(json::Document::parse(reply.body)) << reply.body;
    } else {
        EXPECT_EQ(reply.body, "");
    }
    return reply;
}

std::string at(const std::string& json, std::string_view path) {
    const auto document = json::Document::parse(json);
    if (!document) {
        return "<not JSON>";
    }
    json::Value value = document->root();
    while (!path.empty()) {
        const std::size_t dot = path.find('.');
        const std::string step(path.substr(0, dot));
        path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
        value = value.is(json::Kind::array) ? value.at(std::stoul(step)) : value[step];
    }
    switch (value.kind()) {
    case json::Kind::missing:
        return "<missing>";
    case json::Kind::null:
        return "null";
    case json::Kind::boolean:
        return *value.boolean() ? "true" : "false";
    case json::Kind::number:
        return std::string(value.raw_number());
    case json::Kind::string:
        return std::string(value.string());
    case json::Kind::array:
        return "[" + std::to_string(value.size()) + "]";
    case json::Kind::object:
        return "{" + std::to_string(value.size()) + "}";
    }
    return {};
}

std::string header(const http::Reply& reply, std::string_view name) {
    for (const auto& [key, value] : reply.headers) {
        if (key == name) {
            return value;
        }
    }
    return {};
}

} // namespace queen::test
