// The truth of the hot-list's schedules: what PostgreSQL decides, in memory. Cursors, leases,
// delays and windows on a clock of its own, and the verdicts of a claim that names partitions. No
// locking: one step at a time, or the caller's mutex.
#pragma once
#include <queen/plugin/types.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace queen::hotlist::schedule {

/// A time of the database. It cannot be compared with ours: only what is left of a lease crosses.
struct DbClock {};
using DbTime = std::chrono::time_point<DbClock, Nanoseconds>;

enum class Found { took, empty, leased };

/// What one claim says of one partition.
struct Claimed {
    std::string partition;
    Uuid id; ///< not known for a name that nobody knows
    Found found = Found::empty;
    std::int64_t first = 0, last = -1; ///< took: the offsets
    bool drained = false;
    Nanoseconds left{0}; ///< leased, and took with a lease

    std::uint64_t frames() const { return static_cast<std::uint64_t>(last - first + 1); }
};

struct ClaimArgs {
    std::uint64_t worker = 0; ///< the lease's id
    std::uint64_t messages = 10;
    std::uint32_t partitions = 1;
    Nanoseconds lease = std::chrono::seconds(5);
    bool auto_ack = false;
    bool skip_window = false;
};

class Store {
public:
    struct Partition;
    struct Queue;

    Store();
    ~Store();
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    /// @return the index that the other calls take
    std::size_t add_queue(std::string tenant, std::string name);
    void configure(std::size_t queue, Nanoseconds delay, Nanoseconds window);
    Nanoseconds delay(std::size_t queue) const;
    Nanoseconds window(std::size_t queue) const;

    void advance(Nanoseconds by) { now_ += by; } ///< may go back
    DbTime now() const { return now_; }

    /// Commits frames behind the last offset; creates the partition. @return its id
    Uuid push(std::size_t queue, std::string_view partition, std::uint64_t frames);

    Uuid id_of(std::size_t queue, std::string_view partition) const; ///< not known: there is none

    /// What a statement that begins now sees of the names, without locks.
    struct Look {
        std::optional<Uuid> id;
        std::int64_t committed = -1, last_offset = -1;
        std::optional<Nanoseconds> left; ///< of a live lease
    };
    using Snapshot = std::vector<Look>; ///< one for each name
    Snapshot look(std::size_t queue, std::string_view group,
                  const std::vector<std::string>& names) const;
    /// Claims among the names, in order, until the messages or partitions are taken; names after
    /// that get no answer. The look may be older: a lease or an emptiness it saw is the answer.
    std::vector<Claimed> claim_list(std::size_t queue, std::string_view group,
                                    const ClaimArgs& args, const std::vector<std::string>& names,
                                    const Snapshot& seen);
    /// Finds candidates itself. Only what it took is in the answer.
    std::vector<Claimed> scan(std::size_t queue, std::string_view group, const ClaimArgs& args);

    struct Acked {
        bool released = false; ///< a lease ended
        bool covered = false;  ///< and its whole batch was completed
    };
    /// Completes the first `done` of the lease's messages and gives the rest back; `keep` leaves
    /// the lease as it is. Nothing happens when the worker does not hold it any more.
    Acked ack(std::size_t queue, std::string_view group, const Uuid& partition,
              std::uint64_t worker, std::int64_t done, bool keep = false);

    /// Another session holds the row: whoever claims meanwhile skips it.
    void lock_row(std::size_t queue, std::string_view group, std::string_view partition);
    void unlock_rows() { locked_.clear(); }

    /// One page of a walk: the next `limit` partitions in the order of their ids, those that may
    /// have something.
    struct Row {
        std::string partition;
        Uuid id;
    };
    struct Page {
        std::vector<Row> rows;
        Uuid after; ///< where the next page goes on
        bool last = false;
    };
    Page page(std::size_t queue, std::string_view group, Uuid after, std::size_t limit,
              DbTime written_since) const;

    void delete_group(std::size_t queue, std::string_view group); ///< its cursors are gone
    void delete_queue(std::size_t queue);                         ///< its partitions are gone

    /// Nothing is left to deliver to the group.
    bool drained(std::size_t queue, std::string_view group) const;
    /// A claim would get something of this partition at this moment.
    bool claimable(std::size_t queue, std::string_view group, std::string_view partition) const;
    std::string describe(std::size_t queue, std::string_view group) const; ///< what is left

private:
    struct Cursor;
    Claimed claim(Queue& queue, Partition& partition, std::string_view group, const ClaimArgs& args,
                  std::uint64_t messages, std::int64_t last_offset);
    const Cursor* cursor(const Partition& partition, std::string_view group) const;
    std::int64_t visible(const Queue& queue, const Partition& partition, bool skip_window) const;
    static std::string row_key(const Queue& queue, std::string_view group,
                               std::string_view partition);
    bool is_locked(const Queue& queue, std::string_view group, std::string_view partition) const;

    std::vector<Queue> queues_;
    std::set<std::string> locked_;
    DbTime now_{std::chrono::hours(1)};
    std::uint64_t ids_ = 0;
};

} // namespace queen::hotlist::schedule
