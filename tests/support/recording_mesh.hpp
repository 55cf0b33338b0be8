#pragma once
#include <queen/plugin/mesh.hpp>

#include <functional>
#include <string>
#include <vector>

namespace queen::test {

/// A mesh that goes nowhere: writes down what it is given, one line a hint.
struct RecordingMesh final : plugin::MeshLink {
    void start() override { ++starts; }
    void stop() override { ++stops; }
    bool listened() const noexcept override { return listening; }
    void publish(std::span<const plugin::Hint> hints) override {
        ++calls;
        for (const auto& hint : hints) {
            static constexpr const char* kKinds[] = {"?",          "stored",  "moved",
                                                     "configured", "deleted", "switched"};
            std::string line = kKinds[static_cast<int>(hint.kind)];
            for (const auto name : {hint.queue, hint.partition, hint.group, hint.subject}) {
                if (!name.empty()) {
                    line.append(" ").append(name);
                }
            }
            if (hint.kind == plugin::HintKind::switched) {
                line += hint.enabled ? " on" : " off";
            }
            tenants.emplace_back(hint.tenant);
            if (told) {
                told(line);
            }
            lines.push_back(std::move(line));
        }
    }
    void stats(plugin::Stats& out) override {
        for (const auto& [name, value] : figures) {
            out.add(name, value);
        }
    }
    void peers(plugin::Peers& out) override {
        for (const auto& peer : known) {
            out.add(peer);
        }
    }

    bool listening = true;
    int starts = 0, stops = 0, calls = 0;
    std::vector<std::string> lines, tenants;
    std::function<void(const std::string&)> told; ///< of each line
    std::vector<std::pair<std::string, double>> figures;
    std::vector<plugin::Peer> known;
};

} // namespace queen::test
