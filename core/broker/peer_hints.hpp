// broker/peer_hints.hpp - what other brokers said through a mesh, and what is made of it here.
//
//   mesh's thread:  heard() -> checked, copied into a bounded queue -> returns
//   a worker:       takes a batch -> whose tenant -> told here, some at a time -> the next batch
//
// Nothing that a peer says is believed; it says where to look:
//
//   stored      every source gets a mark, and who waits is woken at once
//   moved       who waits for the group is woken, and the repairs are read now (repairs.hpp)
//   configured  what is remembered of the queue is dropped, its settings are read and told to
//               sources
//   deleted     what is remembered of the queue is dropped, by sources too, and who waits is woken
//   switched    the switches are read now
//
// What a mesh itself knows to have lost, it says: then everything is looked at once
// (missed_hints.hpp).
//
// Who is woken looks, and a look that is not needed costs one claim. What is lost here, dropped or
// left out costs what a lost frame costs: the time until brokers look for themselves. And nothing
// goes on from here to other brokers (ME-12): the announcer publishes nothing of a peer's.
#pragma once
#include "base/workers.hpp"
#include "broker/announce.hpp"
#include "broker/encryption.hpp"
#include "broker/pop.hpp"
#include "broker/queue_holders.hpp"
#include "ports/store.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace queen::broker {

/// A hint that names no tenant is told to all who hold the queue, and one frame may hold thousands
/// of them: beyond a limit the queue's holders are told once, that all of it is to be looked at.
///
/// Invariant: at most one batch is worked at a time, so that a slow source has at most one worker
/// held up; while it is, exactly one task is posted or runs, whatever that throws.
/// Locks: `mutex_` is a leaf; nothing is called while it is held. `work_` belongs to that task.
/// @source ME-12, ME-13, ME-14, ME-15, F-42, MESH-1, MESH-2
class PeerHints {
public:
    struct Options {
        bool tenants = false;                   ///< whether requests name tenants (tenancy.header)
        std::size_t waiting = 200'000;          ///< hints; ME-10's bound of a sender's set
        std::size_t waiting_bytes = 32u << 20;  ///< of their names. A guess
        std::size_t fan_out = 16'384;           ///< hints of a queue times its holders. A guess
        std::size_t config_reads = 10'000;      ///< queues whose settings wait to be read. A guess
        std::chrono::milliseconds wait{30'000}; ///< for a session
    };
    /// What hints are told to.
    struct Told {
        std::function<void()> moved;    ///< repairs are to be read
        std::function<void()> switched; ///< switches are to be read
        std::function<void()> missed{}; ///< hints may have been lost; on the mesh's thread
    };
    struct Stats {
        HintCounts heard;   ///< all, by kind
        Counter malformed;  ///< names that break our limits, or are missing
        Counter foreign;    ///< of a tenant whom nobody here can be
        Counter nobody;     ///< no tenant was named, and none holds such a queue here
        Counter overflowed; ///< more than may wait
        Counter missed;     ///< times that a mesh may have lost some
        Counter fanned_out; ///< no tenant was named: taken for each that holds the queue
        Counter config_reads_done;
        Counter config_reads_failed;
    };

    PeerHints(Store& store, Pop& pop, Announcer& announcer, const Parking& parking,
              Encryption& encryption, Workers& workers, const Clock& clock, Told told,
              Options options);

    /// Takes a copy and returns. @thread any, a mesh's own
    void heard(std::span<const plugin::Hint> hints);
    /// Some may have been lost on their way here. @thread any, a mesh's own
    void missed();
    /// What is heard from now on is dropped. @thread any
    void stop();

    const Stats& stats() const noexcept { return stats_; }
    std::size_t waiting() const;

private:
    /// Hints and, one behind the other, their names.
    struct Batch {
        struct Item {
            plugin::HintKind kind;
            std::size_t at; ///< of the names
            std::uint16_t tenant, queue, partition, group;
        };
        void add(const plugin::Hint& hint);
        plugin::Hint hint(const Item& item) const;
        std::vector<Item> items;
        std::string names;
        std::size_t bytes = 0; ///< of the items' names
    };
    using QueueName = std::pair<std::string, std::string>; ///< tenant, queue
    /// What is told of one queue, to one tenant or to each that holds it. Names are the batch's.
    struct Step {
        plugin::HintKind kind;
        const std::set<std::string>* holders; ///< null: `tenant` alone
        std::string tenant;
        std::string_view queue, group, partition;
        std::vector<std::string_view> partitions; ///< of stored; none: all of them
    };
    /// A batch that is being told.
    struct Work {
        Batch batch;
        QueueHolders holders; ///< of queues that were hinted without a tenant
        std::vector<Step> steps;
        std::size_t at = 0;                                       ///< the step that is next
        std::optional<std::set<std::string>::const_iterator> who; ///< of its holders
        bool moved = false, switched = false;                     ///< to be told of at the end
    };

    static constexpr std::size_t kBatch =
        4'096; ///< hints of a batch, names told by a task. A guess

    static bool well_formed(const plugin::Hint& hint);
    void post(void (PeerHints::*task)(), bool& under_way) noexcept;
    void post_work() noexcept;
    void work();
    void go_on() noexcept;
    std::unique_ptr<Work> plan(Batch&& batch);
    QueueHolders holders_of(const Batch& batch) const;
    bool tell_some(Work& work); ///< @return whether that was all
    void tell(const Step& step, const std::string& tenant);
    void read_config(QueueName name);
    void post_config_read() noexcept;
    void read_next_config();
    void got_config(const QueueName& name, SteadyTime asked, const Result<ReseedPage>& page);

    Store& store_;
    Pop& pop_;
    Announcer& announcer_;
    const Parking& parking_;
    Encryption& encryption_;
    Workers& workers_;
    const Clock& clock_;
    const Told told_;
    const Options options_;
    Stats stats_;

    mutable std::mutex mutex_;
    std::deque<Batch> waiting_;
    std::size_t waiting_hints_ = 0, waiting_bytes_ = 0;
    bool working_ = false; ///< a task is posted or runs
    std::unique_ptr<Work> work_;
    bool stopped_ = false;
    std::set<QueueName> configs_; ///< to be read
    bool reading_config_ = false;
};

} // namespace queen::broker
