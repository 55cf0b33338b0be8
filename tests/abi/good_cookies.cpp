// Counts the cookies it has out. take() fails with a cookie made in round 9; settle() fails on a
// verdict of a partition named "boom".
#include <queen/plugin/entry.hpp>

#include <atomic>

namespace {

namespace plugin = queen::plugin;

class Cookies final : public plugin::CandidateSource {
public:
    plugin::Readiness peek(const plugin::Scope&) override {
        return {plugin::ReadyState::ready, 1, 1, queen::SteadyTime::max()};
    }
    plugin::Selection take(const plugin::Take& take, plugin::Names& out) override {
        plugin::Selection selection;
        selection.pick = plugin::Pick::names;
        selection.holds_window = true;
        selection.window = std::chrono::seconds(5);
        selection.cookie = std::make_unique<Counted>(out_);
        out.add("p1", 7);
        if (take.round == 9) {
            throw std::runtime_error("after the cookie was made");
        }
        return selection;
    }
    void settle(const plugin::Scope& scope, std::unique_ptr<plugin::Cookie> cookie,
                std::span<const plugin::Verdict> verdicts) override {
        returned_ += dynamic_cast<Counted*>(cookie.get()) != nullptr ? 1 : 0;
        scope_ = scope.queue.key == "tenant\x1forders" && scope.group == "workers" ? 1 : 0;
        for (const plugin::Verdict& verdict : verdicts) {
            if (verdict.partition == "boom") {
                throw std::runtime_error("boom");
            }
        }
    }
    void stats(plugin::Stats& out) override {
        out.add("cookies_out", out_);
        out.add("cookies_returned", returned_);
        out.add("scope_was_right", scope_);
    }

private:
    struct Counted final : plugin::Cookie {
        explicit Counted(std::atomic<int>& counter) : out(counter) { ++out; }
        ~Counted() override { --out; }
        std::atomic<int>& out;
    };
    std::atomic<int> out_{0}, returned_{0}, scope_{0};
};

std::unique_ptr<plugin::CandidateSource> make(plugin::Host&) {
    return std::make_unique<Cookies>();
}

} // namespace

QUEEN_PLUGIN("test.cookies", "1.0.0", plugin::kNoOptions, QUEEN_CANDIDATES,
             plugin::candidates<make>)
