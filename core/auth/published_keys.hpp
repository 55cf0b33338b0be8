#pragma once
#include "auth/verifier.hpp"
#include "base/workers.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace queen::auth {

/// The keys of a JWKS address: read at the start, again at an interval, and soon after a token
/// named one that is not there, at most once in `floor`. Reading blocks, so it happens on a ticker
/// of its own; no request waits for it. What cannot be read later on leaves the keys as they are.
/// Invariant: exactly one look is pending, or runs.
/// Locks: `mutex_` -> the ticker.
/// @source AUTH-4
class PublishedKeys final : public KeySource, public std::enable_shared_from_this<PublishedKeys> {
public:
    using Fetch = std::function<Result<std::string>()>; ///< the set's text; may take seconds
    struct Options {
        std::chrono::milliseconds refresh{std::chrono::hours(1)};
        std::chrono::milliseconds floor{std::chrono::minutes(1)};
        std::function<void(const std::string&)> warn{}; ///< one line; null: nobody
    };

    /// Reads them for the first time, on this thread.
    /// @param ticker its thread is kept for this alone; outlived by nothing that is pending on it
    /// @errors of the fetch, or invalid_argument: what is there is of no use
    static Result<std::shared_ptr<PublishedKeys>> start(Fetch fetch, Ticker& ticker,
                                                        const Clock& clock, Options options);

    std::shared_ptr<const std::vector<NamedKey>> keys() const override;
    void missed() override;

private:
    PublishedKeys(Fetch fetch, Ticker& ticker, const Clock& clock, Options options)
        : fetch_(std::move(fetch)), ticker_(ticker), clock_(clock), options_(std::move(options)) {}

    Result<void> read();
    void look();
    void plan(SteadyTime when); // Requires mutex_.

    const Fetch fetch_;
    Ticker& ticker_;
    const Clock& clock_;
    const Options options_;

    mutable std::mutex mutex_;
    std::shared_ptr<const std::vector<NamedKey>> keys_;
    SteadyTime last_{};    ///< when the last look began
    SteadyTime planned_{}; ///< when the pending one does
    Ticker::Id pending_ = 0;
};

} // namespace queen::auth
