#pragma once
#include "auth/verifier.hpp"
#include "base/json.hpp"
#include "broker/announce.hpp"
#include "http/router.hpp"
#include "http/routes/fake_group_store.hpp"
#include "http/routes/fake_store.hpp"
#include "support/manual_clock.hpp"
#include "support/manual_ticker.hpp"
#include "support/manual_workers.hpp"
#include "support/scripted_letter_store.hpp"
#include "support/scripted_message_store.hpp"
#include "support/scripted_system_store.hpp"
#include "support/scripted_timer_store.hpp"
#include "support/scripted_transaction_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace queen::test {

/// A connection that is only looked at.
class FakeExchange final : public http::Exchange {
public:
    void reply(http::Reply reply, std::function<void()> undelivered) override;
    bool gone() const noexcept override { return gone_; }
    void watch(std::function<void()> on_gone) override;

    /// The peer closes. Runs what watches it.
    void leave();

    std::optional<http::Reply> answer;
    std::function<void()> undelivered;
    std::size_t replies = 0;

private:
    bool gone_ = false;
    std::function<void()> on_gone_;
};

using Headers = std::vector<std::pair<std::string, std::string>>;

/// The routes over the real broker over a store in memory, on one thread: nothing happens that the
/// test does not run.
class Api {
public:
    /// What a broker may have to protect itself with.
    struct Security {
        std::shared_ptr<const Cipher> cipher{};
        std::shared_ptr<const auth::Verifier> verifier{};
        std::vector<std::string> skip_paths{"/health", "/metrics/prometheus", "/metrics", "/"};
        bool tenants = false;
    };
    Api();
    explicit Api(Security security);
    ~Api();

    /// Hands a request over, as the front does. `target` is path and query as sent.
    std::shared_ptr<FakeExchange> send(std::string_view method, std::string_view target,
                                       std::string body = {}, Headers headers = {});
    /// Sends it and runs the workers until nothing is left to do.
    http::Reply ask(std::string_view method, std::string_view target, std::string body = {},
                    Headers headers = {});

    const Security security;
    settings::Settings settings;
    ManualClock clock;
    ManualTicker ticker{clock};
    ManualWorkers workers;
    const std::shared_ptr<metrics::Activity> activity =
        std::make_shared<metrics::Activity>(clock); ///< of timers
    FakeStore store{workers};
    ScriptedSystemStore system; ///< a question that the test did not script fails
    FakeGroupStore group_store{workers};
    ScriptedTransactionStore transactions;
    ScriptedTimerStore timers;
    ScriptedFormStore forms;
    std::vector<SteadyTime> rung; ///< what was told of timers that were set
    ScriptedLetterStore letters;
    ScriptedMessageStore messages;

private:
    struct Broker;
    std::unique_ptr<Broker> broker_;
};

/// A member of a JSON object by a path such as "messages.0.id"; "<missing>" when there is none.
/// Strings come without quotes, numbers as written, null, true and false as words, containers as
/// "[n]" and "{n}".
std::string at(const std::string& json, std::string_view path);
std::string header(const http::Reply& reply, std::string_view name);

inline constexpr std::string_view kPartitionId = "0199f0aa-0000-7000-8000-0000000000f1";
inline constexpr std::string_view kLeaseId = "0199f0d1-0000-7000-8000-000000000777";

} // namespace queen::test
