#pragma once
#include "base/result.hpp"
#include "settings/settings.hpp"

#include <chrono>
#include <memory>
#include <stop_token>

namespace queen::app {

/// The whole broker: database, plugins, pop path, network. start() to stop(), once.
class BrokerApp {
public:
    /// @param stop asked for: the start ends as soon as it can, what it began is taken down
    /// @errors one clear line each, joined by newlines when several plugins do not fit;
    /// shutting_down when `stop` ended it
    static Result<std::unique_ptr<BrokerApp>> start(const settings::Loaded& loaded,
                                                    const std::stop_token& stop);
    ~BrokerApp(); ///< stop() with no grace when it was not called
    BrokerApp(const BrokerApp&) = delete;
    BrokerApp& operator=(const BrokerApp&) = delete;

    std::uint16_t port() const noexcept;
    /// Parked pops are answered empty, answers in flight go out, statements that run end; then the
    /// threads and an embedded database stop. What takes longer than `grace` is cut off.
    void stop(std::chrono::milliseconds grace);

private:
    struct Parts;
    explicit BrokerApp(std::unique_ptr<Parts> parts);
    std::unique_ptr<Parts> parts_;
};

} // namespace queen::app
