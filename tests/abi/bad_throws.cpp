// Throws in every call, through entry.hpp: the exceptions end inside the library.
#include <queen/plugin/entry.hpp>

namespace {

namespace plugin = queen::plugin;

class Throws final : public plugin::CandidateSource {
public:
    plugin::Readiness peek(const plugin::Scope&) override { throw std::runtime_error("peek"); }
    plugin::Selection take(const plugin::Take&, plugin::Names& out) override {
        out.add("p1", 1);
        throw 42;
    }
    void settle(const plugin::Scope&, std::unique_ptr<plugin::Cookie>,
                std::span<const plugin::Verdict>) override {
        throw std::runtime_error("settle");
    }
    void mark(const plugin::Queue&, std::string_view, plugin::Origin,
              std::span<const plugin::Mark>) override {
        throw std::runtime_error("mark");
    }
    void released(const plugin::Queue&, std::string_view, const queen::Uuid&, bool) override {
        throw std::runtime_error("released");
    }
    void learn(const plugin::Queue&, std::string_view, const queen::Uuid&) override {
        throw std::runtime_error("learn");
    }
    void forget(std::string_view, std::string_view, std::string_view) override {
        throw std::runtime_error("forget");
    }
    void configured(const plugin::Queue&, const plugin::QueueConfig&) override {
        throw std::runtime_error("configured");
    }
    bool reseed_page(const plugin::Scope&, plugin::Ticket,
                     std::span<const plugin::ReseedRow>) override {
        throw std::runtime_error("reseed_page");
    }
    void reseed_done(const plugin::Scope&, plugin::Ticket, bool) override {
        throw std::runtime_error("reseed_done");
    }
    queen::SteadyTime tick(queen::SteadyTime) override { throw std::runtime_error("tick"); }
    void stats(plugin::Stats&) override { throw std::runtime_error("stats"); }
};

std::unique_ptr<plugin::CandidateSource> make(plugin::Host&) {
    return std::make_unique<Throws>();
}

} // namespace

QUEEN_PLUGIN("test.throws", "1.0.0", plugin::kNoOptions, QUEEN_CANDIDATES, plugin::candidates<make>)
