// queen/plugin/mesh.hpp - what a mesh implements: it carries hints between brokers over one
// database. No ABI in sight; entry.hpp turns the class into the C table of abi.h, and the plugin
// host turns a loaded table back into it. Thread tags and memory rules stand in abi.h.
#pragma once
#include <queen/plugin/common.hpp>
#include <queen/plugin/types.hpp>

#include <cstdint>
#include <span>
#include <string_view>

namespace queen::plugin {

enum class HintKind { stored = 1, moved, configured, deleted, switched };

/// One thing that other brokers may want to look at. Never the truth: whoever hears it looks in the
/// database. Names that do not apply are empty.
struct Hint {
    HintKind kind = HintKind::stored;
    bool enabled = false;    ///< of switched: what it was set to
    std::string_view tenant; ///< uuid text; empty from a peer that did not say: every tenant's
    std::string_view queue;
    std::string_view partition; ///< of stored and moved; empty: all
    std::string_view group;     ///< of moved
    /// Of switched: "maintenance" (pushes), "pop_maintenance", "timers_schedule", "timers_fire";
    /// others may come, and are carried like these.
    std::string_view subject;
};

/// What a mesh knows of another broker.
struct Peer {
    std::string_view address;                ///< as configured, or as it came
    std::string_view server_id;              ///< empty until it said hello
    bool connected = false;                  ///< hints can be sent to it
    bool alive = false;                      ///< it was heard of within the dead threshold
    Nanoseconds silent = Nanoseconds::max(); ///< since it was heard of last; max(): never
    std::uint64_t sent = 0, received = 0, dropped = 0; ///< frames
    std::uint64_t queued = 0;                          ///< frames waiting to be sent
};

class Peers {
public:
    virtual ~Peers() = default;
    virtual void add(const Peer& peer) = 0;
};

/// What a mesh may ask of the broker. @thread any, the mesh's own too
class MeshHost {
public:
    virtual ~MeshHost() = default;
    /// Hints of a peer; takes a copy and returns at once. From start() to stop() only.
    virtual void heard(std::span<const Hint> hints) = 0;
    /// Hints of peers may have been lost: a link on which they come was made, for the first time or
    /// again, or what had come was dropped. The broker looks in the database soon. Returns at once;
    /// from start() to stop() only.
    virtual void missed() = 0;
};

/// A lost hint costs at most the time in which brokers look for themselves, so nothing here waits
/// and nothing is sent twice. What a peer said is never published again.
class MeshLink {
public:
    virtual ~MeshLink() = default;
    /// Once, when the broker is ready to hear. A port that is taken is no failure: it is logged and
    /// counted. @thread main. @errors an exception stops the boot; no stop() follows
    virtual void start() = 0;
    /// Ends the mesh's threads. @thread main, once, perhaps while other calls run
    virtual void stop() = 0;
    /// Whether hints would go anywhere. Takes no lock: it is asked for each push. @thread worker
    virtual bool listened() const noexcept = 0;
    /// Queues hints for every peer, or drops and counts them; never waits. @thread worker
    virtual void publish(std::span<const Hint> hints) = 0;
    virtual void stats(Stats&) {} ///< @thread any
    virtual void peers(Peers&) {} ///< @thread any
};

} // namespace queen::plugin
