#include "pluginhost/mesh_adapter.hpp"

#include "base/assert.hpp"

#include <stdexcept>
#include <utility>
#include <vector>

namespace queen::pluginhost {
namespace {

using plugin::Converted;

/// nullopt: none that the broker can use.
std::optional<plugin::Hint> sound_hint(const queen_hint& raw) noexcept {
    for (const queen_str* name :
         {&raw.tenant, &raw.queue, &raw.partition, &raw.group, &raw.subject}) {
        if (!sound_name(*name)) {
            return std::nullopt;
        }
    }
    auto hint = plugin::hint_from_c(raw);
    if (!hint) {
        return std::nullopt;
    }
    const std::string_view named =
        hint->kind == plugin::HintKind::switched ? hint->subject : hint->queue;
    return named.empty() ? std::nullopt : hint;
}

} // namespace

const queen_host_mesh MeshInstance::kHostMesh{sizeof(queen_host_mesh), 0, host_heard, host_missed};

MeshInstance::~MeshInstance() {
    stop();
    end(table_.destroy);
}

void MeshInstance::start() {
    QUEEN_ASSERT(!running_, "a mesh starts once");
    open_ = true; // a peer may be quicker than the return
    const auto refused = refusal_of("cannot start and gave no reason", [&](queen_error* error) {
        return table_.start(self(), error) == 0;
    });
    if (refused) {
        open_ = false;
        throw std::runtime_error(*refused);
    }
    running_ = true;
}

void MeshInstance::stop() noexcept {
    if (!running_.exchange(false)) {
        return;
    }
    unmeasured("stop: an exception of unknown type", [&] { table_.stop(self()); });
    open_ = false;
}

bool MeshInstance::listened() noexcept {
    if (!running_.load(std::memory_order_acquire)) {
        return false;
    }
    if (guard().paused()) {
        return listened_.load(std::memory_order_relaxed);
    }
    bool answer = false;
    guard().run(Call::listened, [&] {
        answer = table_.listened(self()) != 0;
        return 0;
    });
    if (listened_.load(std::memory_order_relaxed) != answer) { // else the line stays shared
        listened_.store(answer, std::memory_order_relaxed);
    }
    return answer;
}

void MeshInstance::publish(std::span<const plugin::Hint> hints) noexcept {
    if (hints.empty() || !running_.load(std::memory_order_acquire)) {
        return;
    }
    if (guard().paused()) {
        guard().count(Fault::dropped_hint, "publish", hints.size());
        return;
    }
    guard().run(
        Call::publish,
        [&] {
            const Converted<queen_hint> converted(hints);
            return table_.publish(self(), converted.data(), converted.size());
        },
        0, hints.size());
}

void MeshInstance::peers(plugin::Peers& out) {
    if (table_.peers == nullptr || guard().paused()) {
        return;
    }
    struct Sink {
        plugin::Peers& out;
        Guard& guard;
    } sink{out, guard()};
    guard().run(Call::peers, [&] {
        table_.peers(self(), &sink, [](void* to, const queen_peer* raw) noexcept {
            auto& [peers, guard] = *static_cast<Sink*>(to);
            if (raw == nullptr || !sound_name(raw->address) || !sound_name(raw->server_id)) {
                guard.count(Fault::bad_name, "peers");
                return;
            }
            plugin::Peer peer = plugin::from_c(*raw);
            peer.silent = std::max(peer.silent, Nanoseconds(0));
            try {
                peers.add(peer);
            } catch (const std::exception& e) {
                guard.count(Fault::exception, e.what());
            }
        });
        return 0;
    });
}

// ---- what the plugin calls ---------------------------------------------------------------------

const void* MeshInstance::extension(std::string_view id) const noexcept {
    return id == QUEEN_HOST_MESH ? &kHostMesh : nullptr;
}

void MeshInstance::hear(const queen_hint* hints, std::size_t count) {
    if (count == 0) {
        return;
    }
    if (!open_.load(std::memory_order_acquire)) {
        guard().count(Fault::out_of_turn, "heard");
        return;
    }
    if (hints == nullptr) {
        guard().count(Fault::bad_hint, "heard: no hints where some are promised");
        return;
    }
    std::vector<plugin::Hint> sound;
    sound.reserve(count);
    for (const queen_hint& raw : std::span(hints, count)) {
        if (const auto hint = sound_hint(raw)) {
            sound.push_back(*hint);
        } else {
            guard().count(Fault::bad_hint, "heard");
        }
    }
    if (!sound.empty() && services().heard) {
        services().heard(name(), sound);
    }
}

void MeshInstance::host_heard(const queen_host* host, const queen_hint* hints,
                              size_t count) noexcept {
    serve<MeshInstance>(host, [&](MeshInstance& self) { self.hear(hints, count); });
}

void MeshInstance::host_missed(const queen_host* host) noexcept {
    serve<MeshInstance>(host, [](MeshInstance& self) {
        if (!self.open_.load(std::memory_order_acquire)) {
            self.guard().count(Fault::out_of_turn, "missed");
        } else if (self.services().missed) {
            self.services().missed(self.name());
        }
    });
}

} // namespace queen::pluginhost
