// plugins/sqlscan - candidates from the store's own scan, sharpened by the partitions that were
// just pushed to. It keeps no picture of the backlog: SQL does (partitions written lately, ahead of
// the group's cursor, without a live lease). What it keeps is a short ring of hints per queue, so
// that a pop woken by a push claims the pushed partition by name instead of scanning for it.
//
// Life of a hint, per group: marked -> unseen -> offered once in a round 0 -> settled. Empty drops
// it. Not evaluated, or not drained, offers it again at once; leased by someone else, when that
// lease ends or is released. A later push makes it unseen again. All of it may be lost at any time
// (ring full, queue evicted): then a scan finds the partition, later by one round.
#pragma once
#include <queen/plugin/candidates.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace queen::sqlscan {

struct Options {
    std::size_t hints = 64;    ///< hinted partitions kept per queue, and per group to offer again
    std::size_t queues = 1024; ///< queues with hints; the one used least lately goes first
    Nanoseconds scan_every = std::chrono::seconds(1); ///< between scans while hints keep coming
};

/// Hints only: the store alone decides who gets a lease, so a stale hint costs one empty claim.
///
/// Invariant: at most `queues` queues, of each at most `hints` hints and kMostGroups groups; in all
/// at most kMostAgain names to offer again. So no choice of names by a client grows memory.
/// Locks: `mutex_` is a leaf; the host is never called while it is held.
/// @source LP-2, LP-4, SC-3
class SqlScan final : public plugin::CandidateSource {
public:
    /// `host` is asked to wake pops when a held partition is released; nullptr to ask nobody.
    SqlScan(Options options, const Clock& clock, plugin::CandidateHost* host = nullptr);
    ~SqlScan() override;

    /// Ready while the group has a hint to look at, else the store must be asked.
    /// @thread worker, creates nothing
    plugin::Readiness peek(const plugin::Scope& scope) override;
    /// Round 0 names the group's hints; without any, and in later rounds, the store scans. It also
    /// scans after kNamesInARow answers with names, once per `scan_every`: hinted partitions must
    /// not starve one that nobody hinted at.
    /// @thread worker
    plugin::Selection take(const plugin::Take& take, plugin::Names& out) override;
    /// @thread worker
    void settle(const plugin::Scope& scope, std::unique_ptr<plugin::Cookie> cookie,
                std::span<const plugin::Verdict> verdicts) override;
    /// @thread worker
    void mark(const plugin::Queue& queue, std::string_view group, plugin::Origin origin,
              std::span<const plugin::Mark> marks) override;
    /// @thread worker
    void released(const plugin::Queue& queue, std::string_view group, const Uuid& partition_id,
                  bool covered) override;
    /// @thread worker
    void forget(std::string_view tenant, std::string_view queue, std::string_view group) override;
    /// The store is asked each time: there is nothing to look at again. @thread worker
    bool missed() override { return true; }
    /// @thread any
    void stats(plugin::Stats& out) override;

    /// Answers with names after which a scan is due. Fewer would make a parked consumer scan for
    /// what it was just told. A guess.
    static constexpr std::uint32_t kNamesInARow = 8;
    /// Groups remembered per queue; the one that took least lately goes first and sees all hints
    /// anew when it returns. A guess: few queues have more than a handful.
    static constexpr std::size_t kMostGroups = 64;
    /// Names to offer again, over all queues: 20 MB if every name has the full 255 bytes.
    static constexpr std::size_t kMostAgain = 65'536;

private:
    struct Hint {
        std::uint64_t sequence; ///< rises with each mark; hints lie in its order
        std::size_t hash;       ///< of the name: most of a search needs no more
        std::string partition;
    };
    /// A name that a group was offered and that has, or may have, more for it.
    struct Again {
        std::string partition;
        Uuid partition_id;
        SteadyTime due; ///< not offered before: someone's lease runs until then
    };
    struct Group {
        std::uint64_t seen = 0; ///< sequence of the last hint offered
        std::uint64_t used = 0; ///< turn of the last use, for eviction
        SteadyTime last_scan{};
        std::uint32_t names_in_a_row = 0; ///< answers with names since the last scan
        std::vector<Again> again;
    };
    struct TextHash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const noexcept {
            return std::hash<std::string_view>{}(text);
        }
    };
    using Groups = std::unordered_map<std::string, Group, TextHash, std::equal_to<>>;
    struct Hints {
        std::string tenant, name;
        std::deque<Hint> ring; ///< oldest first
        Groups groups;
        std::list<std::string_view>::iterator age;
    };
    struct OfferedNames;

    // All below require mutex_.
    Hints& hints_of(const plugin::Queue& queue);
    Group& group_of(Hints& hints, std::string_view group);
    void touch(Hints& hints);
    plugin::Selection scan(Group* group, SteadyTime now);
    void drop_queue(std::string_view key);
    void drop_again(Group& group);
    void hint(Hints& hints, std::string_view partition);
    void offer_again(Group& group, std::string_view partition, const Uuid& id, SteadyTime due);
    bool held_back(const Group* group, std::string_view partition, SteadyTime now) const;
    Group* find_group(Hints& hints, std::string_view group);

    const Options options_;
    const Clock& clock_;
    plugin::CandidateHost* const host_;

    std::mutex mutex_;
    std::unordered_map<std::string, Hints, TextHash, std::equal_to<>> queues_; ///< by queue key
    std::list<std::string_view> ages_; ///< keys of queues_, least lately used first
    std::uint64_t sequence_ = 0;
    std::uint64_t turn_ = 0;
    std::size_t again_count_ = 0;
    std::uint64_t offered_ = 0, scans_ = 0, evicted_ = 0;
};

} // namespace queen::sqlscan
