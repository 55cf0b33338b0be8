// broker/groups.hpp - consumer groups listed, moved and removed by hand.
//
// What a source keeps in memory says nothing of cursors that go back: it would go on believing that
// there is nothing until its next walk. So whoever moves cursors tells every source, then wakes who
// waits, and both before the answer goes out (GRP-8). Other brokers read of it (repairs.hpp), and
// at once where a mesh tells them to.
//
//   one partition of a queue without delay and window: that partition is marked for the group and
//       what waits for its lease is let go
//   all others: the group's candidates are forgotten. A source that has none lets the store look,
//       so what was uncovered is offered at once; a mark would wait for a delay that is over
#pragma once
#include "broker/announce.hpp"
#include "broker/figure_reads.hpp"
#include "broker/pop.hpp"
#include "ports/group_store.hpp"

namespace queen::broker {

/// Makes what this broker believes of moved cursors true again, and wakes who waits for them.
/// @thread worker
/// @source GRP-8, HL-14
class MovedCursors {
public:
    MovedCursors(Pop& pop, Announcer& announcer) : pop_(pop), announcer_(announcer) {}
    void tell(const Repair& repair);
    /// The same, of cursors that this broker moved: other brokers hear of it.
    void made(const Repair& repair);

private:
    Pop& pop_;
    Announcer& announcer_;
};

/// @thread worker
class Groups {
public:
    /// @param figures whom all that is counted goes through
    /// @param wait longest for a session
    Groups(GroupStore& store, MovedCursors& moved, FigureReads& figures, const Clock& clock,
           std::chrono::milliseconds wait)
        : store_(store), moved_(moved), figures_(figures), clock_(clock), wait_(wait) {}

    // JSON of the store; docs/http-api.md shows it. They are counted, so they go through
    // FigureReads (K30).
    void list(const std::string& tenant, Done<std::optional<std::string>> done);
    void lagging(const std::string& tenant, std::chrono::seconds more_than, std::int32_t limit,
                 Done<std::optional<std::string>> done);
    /// Nothing: nobody knows the group, or not in that queue.
    void detail(const std::string& tenant, const std::string& group,
                const std::optional<std::string>& queue, Done<std::optional<std::string>> done);

    /// @errors not_found: queue, partition or group
    void seek(Seek seek, Done<SeekOutcome> done);
    /// @param queue nullopt: everywhere
    void remove(std::string tenant, std::string group, std::optional<std::string> queue,
                bool subscriptions, Done<RemovedGroup> done);
    /// Moves no cursor and wakes nobody.
    void subscribe(std::string tenant, std::string group, WallTime from, Done<std::int64_t> done);

private:
    GroupStore& store_;
    MovedCursors& moved_;
    FigureReads& figures_;
    const Clock& clock_;
    const std::chrono::milliseconds wait_;
};

} // namespace queen::broker
