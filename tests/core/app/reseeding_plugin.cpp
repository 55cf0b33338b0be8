// A source that asks for a walk whenever it is looked at, and for one while it is being made; its
// figures tell what became of them.
#include <queen/plugin/entry.hpp>

#include <atomic>

namespace {

namespace plugin = queen::plugin;

class Reseeding final : public plugin::CandidateSource {
public:
    explicit Reseeding(plugin::Host& host) : host_(host) {
        ask({{"t\x1f"
              "early",
              "t", "early"},
             "g"});
    }
    plugin::Readiness peek(const plugin::Scope& scope) override {
        ask(scope);
        return {plugin::ReadyState::cold, 0, 0, queen::SteadyTime::max()};
    }
    plugin::Selection take(const plugin::Take&, plugin::Names&) override {
        return {plugin::Pick::scan, false, {}, nullptr};
    }
    void settle(const plugin::Scope&, std::unique_ptr<plugin::Cookie>,
                std::span<const plugin::Verdict>) override {}
    void configured(const plugin::Queue&, const plugin::QueueConfig& config) override {
        delay_ = config.delay / std::chrono::seconds(1);
    }
    bool reseed_page(const plugin::Scope&, plugin::Ticket,
                     std::span<const plugin::ReseedRow> rows) override {
        ++pages_;
        rows_ += rows.size();
        return true;
    }
    void reseed_done(const plugin::Scope&, plugin::Ticket, bool complete) override {
        ++(complete ? complete_ : incomplete_);
    }
    void stats(plugin::Stats& out) override {
        out.add("asked", static_cast<double>(asked_));
        out.add("delay", static_cast<double>(delay_));
        out.add("pages", static_cast<double>(pages_));
        out.add("rows", static_cast<double>(rows_));
        out.add("complete", static_cast<double>(complete_));
        out.add("incomplete", static_cast<double>(incomplete_));
    }

private:
    void ask(const plugin::Scope& scope) { host_.reseed(scope, ++asked_, {}); }

    plugin::Host& host_;
    std::atomic<std::uint64_t> asked_{0}, pages_{0}, rows_{0}, complete_{0}, incomplete_{0};
    std::atomic<std::int64_t> delay_{0};
};

std::unique_ptr<plugin::CandidateSource> make(plugin::Host& host) {
    return std::make_unique<Reseeding>(host);
}

} // namespace

QUEEN_PLUGIN("test.reseeding", "1.0.0", plugin::kNoOptions, QUEEN_CANDIDATES,
             plugin::candidates<make>)
