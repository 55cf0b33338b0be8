#pragma once
#include <queen/plugin/candidates.hpp>

#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace queen::test {

/// A candidate source that writes down what it is told and answers what the test says.
struct RecordingSource final : plugin::CandidateSource {
    struct Owned final : plugin::Cookie {
        explicit Owned(int& counter) : live(counter) { ++live; }
        ~Owned() override { --live; }
        int& live;
    };

    plugin::Readiness peek(const plugin::Scope&) override { return readiness; }
    plugin::Selection take(const plugin::Take& take, plugin::Names& out) override {
        takes.push_back(take.round);
        limits.push_back(take.limit);
        plugin::Selection selection;
        const auto names = offers ? offers(take.round) : std::vector<std::string>{};
        std::uint64_t token = 100;
        for (const auto& name : names) {
            out.add(name, token++);
        }
        selection.pick = names.empty() ? empty_pick : plugin::Pick::names;
        selection.holds_window = held_window > Nanoseconds{0};
        selection.window = held_window;
        selection.cookie = std::make_unique<Owned>(live_cookies);
        return selection;
    }
    void settle(const plugin::Scope& scope, std::unique_ptr<plugin::Cookie>,
                std::span<const plugin::Verdict> verdicts) override {
        std::string line(scope.group);
        for (const auto& verdict : verdicts) {
            static constexpr const char* kKinds[] = {"?",     "leased-by-us", "acked",
                                                     "empty", "leased",       "requeue"};
            line += " " + std::string(verdict.partition) + "#" + std::to_string(verdict.token) +
                    "=" + kKinds[static_cast<int>(verdict.kind)];
        }
        settles.push_back(std::move(line));
    }
    void mark(const plugin::Queue& queue, std::string_view, plugin::Origin origin,
              std::span<const plugin::Mark> all) override {
        if (throws) {
            throw std::bad_alloc();
        }
        origins.push_back(origin);
        for (const auto& mark : all) {
            marks.push_back(std::string(queue.name) + "/" + std::string(mark.partition) + "*" +
                            std::to_string(mark.frames));
        }
    }
    void released(const plugin::Queue& queue, std::string_view group, const Uuid&,
                  bool covered) override {
        releases.push_back(std::string(queue.name) + " " + std::string(group) +
                           (covered ? " covered" : ""));
    }
    void learn(const plugin::Queue&, std::string_view partition, const Uuid&) override {
        learnt.emplace_back(partition);
    }
    void forget(std::string_view, std::string_view queue, std::string_view) override {
        forgotten.emplace_back(queue);
    }
    void configured(const plugin::Queue&, const plugin::QueueConfig& config) override {
        configs.push_back(config);
        configured_before_settle = settles.empty();
    }

    plugin::Readiness readiness;
    bool throws = false;                          ///< marks find no memory
    plugin::Pick empty_pick = plugin::Pick::none; ///< when no names are offered
    Nanoseconds held_window{0}; ///< claimed to have been waited for, when not zero
    std::function<std::vector<std::string>(std::uint32_t round)> offers;
    std::vector<std::uint32_t> takes;
    std::vector<std::uint64_t> limits;
    std::vector<std::string> settles, marks, releases, learnt, forgotten;
    std::vector<plugin::Origin> origins; ///< of calls with marks
    std::vector<plugin::QueueConfig> configs;
    bool configured_before_settle = false;
    int live_cookies = 0;
};

inline Uuid uuid_of(std::uint8_t last) {
    Uuid id;
    id.bytes[15] = last;
    return id;
}

} // namespace queen::test
