#pragma once
#include "base/json.hpp"
#include "base/workers.hpp"
#include "broker/ack.hpp"
#include "broker/admin.hpp"
#include "broker/dead_letters.hpp"
#include "broker/groups.hpp"
#include "broker/message_browser.hpp"
#include "broker/pop.hpp"
#include "broker/push.hpp"
#include "broker/statistics.hpp"
#include "broker/switches.hpp"
#include "broker/timers.hpp"
#include "broker/transaction.hpp"
#include "http/access.hpp"
#include "http/message.hpp"
#include "http/query.hpp"
#include "model/names.hpp"
#include "settings/settings.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace queen::http {

/// What the routes work with. Everything outlives the Routes.
struct Services {
    broker::Push& push;
    broker::Pop& pop;
    broker::Acks& acks;
    broker::Transactions& transactions;
    broker::Timers& timers;
    broker::Admin& admin;
    broker::Statistics& statistics;
    broker::Switches& switches;
    broker::Groups& groups;
    broker::DeadLetters& letters;
    broker::MessageBrowser& messages;
    Workers& workers;
    const settings::Settings& settings;
    std::string version;
    /// Writes the value of `plugins` in GET /status: an array, one object a plugin.
    std::function<void(json::Writer&)> plugins;
    /// Writes the whole answer of GET /api/v1/system/candidates.
    std::function<void(json::Writer&)> candidates;
    /// Writes the whole answer of GET /internal/api/inter-instance/stats.
    std::function<void(json::Writer&)> mesh;
    /// Whether this broker fires timers; null: it does not.
    std::function<bool()> timers_fired{};
    /// Writes the value of GET /metrics.
    std::function<void(json::Writer&)> metrics;
    /// Body and type of GET /metrics/prometheus; the answer comes on a worker.
    std::function<void(std::function<void(Reply)>)> prometheus;
    /// Opens encrypted payloads; null: the broker has no key.
    const Cipher* cipher = nullptr;
    /// Checks tokens; null: authentication is off.
    const auth::Verifier* verifier = nullptr;
};

/// One request on its way through a route: owes the answer, gives it at most once.
class Call : public std::enable_shared_from_this<Call> {
public:
    Call(const Services& services, Request request, std::shared_ptr<Exchange> exchange,
         Parameters parameters);

    const Services& services() const noexcept { return services_; }
    Request& request() noexcept { return request_; }
    Exchange& exchange() noexcept { return *exchange_; }
    /// "" when the route has none of that name.
    std::string_view parameter(std::string_view name) const noexcept;
    /// As check_query() read it; empty before.
    const Query& query() const noexcept { return query_; }
    /// Of the whole request: the default tenant until admit().
    std::string_view tenant() const noexcept { return admitted_.tenant; }
    /// The subject of the token that the request came with; "" without one (PUSH-6).
    const std::string& subject() const noexcept { return admitted_.identity.subject; }
    /// Whose request it is, before anything else is done with it.
    void admit(Admitted admitted) { admitted_ = std::move(admitted); }

    /// @thread any. A second answer is dropped.
    void reply(Reply reply, std::function<void()> undelivered = {});
    /// Puts queue, partition and group of the path through the one rule for names.
    /// @errors invalid_argument, name_too_long
    Result<void> check_parameters();
    /// Decodes the query, on routes that know no parameter as well: a bad escape is an error there
    /// too.
    /// @errors invalid_argument
    Result<void> check_query();
    /// Runs what renders an answer. An exception out of it is a fault of ours: logged, 500.
    void guard(const std::function<void()>& render) noexcept;
    /// Sends the store's JSON as it is, for it may have megabytes and holds no error; nothing is
    /// 404 with `missing` as its text. Both texts outlive the call.
    Done<std::optional<std::string>> figures(std::string_view context, std::string_view missing);

private:
    const Services& services_;
    Request request_;
    std::shared_ptr<Exchange> exchange_;
    Parameters parameters_;
    Admitted admitted_{{}, std::string(kDefaultTenant)};
    Query query_;
    std::atomic<bool> replied_{false};
};

} // namespace queen::http
