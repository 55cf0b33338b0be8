// Two brokers over one partition, one step at a time: pushes, commits, answers told in any order or
// lost, pages read, time, windows, retention, queues made again, a database that was set back.
// Shared by the property over a database in memory and the one over the real procedures.
#pragma once
#include "broker/announce.hpp"
#include "broker/dedup_cache.hpp"
#include "broker/parking.hpp"
#include "broker/push.hpp"
#include "broker/sources.hpp"
#include "model/names.hpp"
#include "support/manual_clock.hpp"
#include "support/manual_ticker.hpp"
#include "support/recording_source.hpp"
#include "support/scripted_store.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <ostream>
#include <string>
#include <variant>
#include <vector>

namespace queen::broker {

/// The partition that everybody pushes to.
class DedupDatabase {
public:
    virtual ~DedupDatabase() = default;
    virtual PushOutcome push(const PushSegment& segment) = 0; ///< made if need be
    virtual std::vector<HashRow> page(const HashPage& page) = 0;
    virtual void clock(std::chrono::microseconds now) = 0;
    virtual void window(std::chrono::seconds window) = 0;
    virtual void remove() = 0; ///< the queue; the next push makes it again
    virtual void purge(std::chrono::microseconds before) = 0;
    virtual void set_back() = 0; ///< the last segment was never committed
};

/// The rules of `_append` in a few lines.
class DedupModel final : public DedupDatabase {
public:
    PushOutcome push(const PushSegment& segment) override {
        if (!id_.known()) {
            id_.bytes[0] = ++made_;
            rows_.clear();
            last_ = -1;
            txns_start_ = 0;
            newest_ = {};
        }
        PushOutcome out;
        out.partition_id = id_;
        out.window = window_;
        const auto now = std::max(WallTime{now_}, newest_);
        if (window_.count() > 0) {
            const auto start = now - window_;
            auto bound = std::max(segment.verified, txns_start_ - 1);
            if (segment.vouch && believed(*segment.vouch, start)) {
                bound = std::max(bound, segment.vouch->upto.value());
            }
            for (const auto& row : rows_) {
                for (auto at = row.base.value(); row.created_at >= start && at <= row.end.value();
                     ++at) {
                    out.probed += at > bound ? 1 : 0;
                }
            }
            for (std::uint32_t frame = 0; frame < segment.count; ++frame) {
                if (const auto first = find(segment.hashes.substr(frame * 16, 16), bound, start)) {
                    out.repeats.push_back({frame, *first});
                }
            }
        }
        if (!out.repeats.empty()) {
            out.duplicate = true;
            return out;
        }
        out.base = Offset{last_ + 1};
        out.after = newest_;
        out.created_at = newest_ = now;
        last_ += segment.count;
        rows_.push_back({out.base, Offset{last_}, now, segment.hashes});
        return out;
    }
    std::vector<HashRow> page(const HashPage& page) override {
        std::vector<HashRow> out;
        std::int64_t left = page.bytes;
        const auto take = [&](const HashRow& row, bool inside) {
            if (inside && left > 0) {
                left -= out.empty() ? 0 : static_cast<std::int64_t>(row.hashes.size());
                out.push_back(row);
            }
        };
        if (page.partition_id != id_) {
            return out;
        }
        if (page.downwards) {
            const auto start = WallTime{now_} - window_;
            std::for_each(rows_.rbegin(), rows_.rend(), [&](const HashRow& row) {
                take(row, row.base <= page.edge && row.created_at >= start);
            });
        } else {
            for (const auto& row : rows_) {
                take(row, row.end >= page.edge);
            }
        }
        return out;
    }
    void clock(std::chrono::microseconds now) override { now_ = now; }
    void window(std::chrono::seconds window) override { window_ = window; }
    void remove() override { id_ = {}; }
    void purge(std::chrono::microseconds before) override {
        while (!rows_.empty() && rows_.front().created_at < WallTime{before}) {
            rows_.pop_front();
        }
        if (id_.known()) {
            txns_start_ = rows_.empty() ? last_ + 1 : rows_.front().base.value();
        }
    }
    void set_back() override {
        if (id_.known() && rows_.size() > 1) {
            rows_.pop_back();
            last_ = rows_.back().end.value();
            newest_ = rows_.back().created_at;
        }
    }

private:
    const HashRow* holding(std::int64_t offset) const {
        const auto row = std::find_if(rows_.begin(), rows_.end(), [offset](const HashRow& r) {
            return r.base.value() <= offset && offset <= r.end.value();
        });
        return row == rows_.end() ? nullptr : &*row;
    }
    bool believed(const Vouch& vouch, WallTime start) const {
        const auto* from = holding(vouch.from.value());
        const auto* upto = holding(vouch.upto.value());
        return vouch.partition_id == id_ && vouch.upto.value() <= last_ &&
               (upto != nullptr ? upto->created_at == vouch.at
                                : vouch.upto.value() == last_ && newest_ == vouch.at) &&
               (vouch.from.value() < txns_start_ || (from != nullptr && from->created_at < start));
    }
    std::optional<Offset> find(const std::string& hash, std::int64_t bound, WallTime start) const {
        for (const auto& row : rows_) {
            for (auto at = row.base.value(); at <= row.end.value(); ++at) {
                const auto place = static_cast<std::size_t>(at - row.base.value()) * 16;
                if (at > bound && row.created_at >= start &&
                    row.hashes.compare(place, 16, hash) == 0) {
                    return Offset{at};
                }
            }
        }
        return std::nullopt;
    }

    Uuid id_;
    std::uint8_t made_ = 0;
    std::deque<HashRow> rows_;
    std::int64_t last_ = -1;
    std::int64_t txns_start_ = 0;
    WallTime newest_{};
    std::chrono::microseconds now_{0};
    std::chrono::seconds window_{6};
};

/// What the scheduler may do next.
struct DedupStep {
    enum Kind {
        push,     ///< a request of one to three ids
        commit,   ///< a statement under way takes effect, or reads
        tell,     ///< its answer reaches the broker
        lose,     ///< the link breaks before the answer of a push that took effect
        settle,   ///< all that is under way ends, in order
        pass,     ///< time, of the database and of the brokers
        widen,    ///< or narrow: the window
        remove,   ///< the queue; the next push makes it again
        purge,    ///< retention
        set_back, ///< a standby takes over without the last commit
        kinds
    };
    int kind;
    std::uint8_t broker; ///< 0 or 1
    std::uint8_t pick;   ///< which of several
};

inline std::ostream& operator<<(std::ostream& out, const DedupStep& step) {
    static constexpr const char* kNames[] = {"push", "commit", "tell",   "lose",  "settle",
                                             "pass", "widen",  "remove", "purge", "set_back"};
    return out << kNames[step.kind] << int{step.broker} << '#' << int{step.pick};
}

inline rc::Gen<DedupStep> dedup_step() {
    return rc::gen::construct<DedupStep>(rc::gen::weightedElement<int>({{30, DedupStep::push},
                                                                        {14, DedupStep::commit},
                                                                        {14, DedupStep::tell},
                                                                        {2, DedupStep::lose},
                                                                        {20, DedupStep::settle},
                                                                        {8, DedupStep::pass},
                                                                        {3, DedupStep::widen},
                                                                        {2, DedupStep::remove},
                                                                        {2, DedupStep::purge},
                                                                        {2, DedupStep::set_back}}),
                                         rc::gen::resize(100, rc::gen::inRange<std::uint8_t>(0, 2)),
                                         rc::gen::resize(100, rc::gen::arbitrary<std::uint8_t>()));
}

/// A broker's push path and cache; its statements stand still until a step moves them.
class DedupBroker {
public:
    DedupBroker(test::ManualClock& clock, DedupCache::Options options)
        : ticker_(clock), parking_(ticker_, clock, {}), cache(store_, ticker_, clock, options),
          push_(store_, announcer_, clock, {.zstd_level = 1}, &cache) {
        store_.on_push = [this](std::vector<PushSegment> segments,
                                Done<std::vector<PushOutcome>> done) {
            calls.push_back(std::make_shared<Call>(std::move(segments.at(0)), std::move(done)));
        };
        store_.on_window_hashes = [this](HashPage page, Done<std::vector<HashRow>> done) {
            calls.push_back(std::make_shared<Call>(page, std::move(done)));
        };
        store_.on_segment_at = [](const auto&, const auto&, const auto& done) {
            done(std::nullopt);
        };
    }

    struct Call {
        Call(PushSegment segment, Done<std::vector<PushOutcome>> done)
            : asks(std::move(segment)), pushed(std::move(done)) {}
        Call(HashPage page, Done<std::vector<HashRow>> done) : asks(page), read(std::move(done)) {}
        bool is_push() const { return asks.index() == 0; }
        void tell() const { is_push() ? pushed(std::vector<PushOutcome>{outcome}) : read(rows); }

        std::variant<PushSegment, HashPage> asks;
        Done<std::vector<PushOutcome>> pushed;
        Done<std::vector<HashRow>> read;
        bool committed = false;
        PushOutcome outcome;
        std::vector<HashRow> rows;
    };

    void push(const std::vector<std::string>& ids) {
        PushRequest request{std::string(kDefaultTenant), {}, {}};
        for (const auto& id : ids) {
            request.items.push_back({"q", "p", id, "1"});
        }
        ++asked;
        push_.push(std::move(request), [this](const auto&) { ++answered; });
    }
    void tick() { ticker_.run_due(); }

    std::vector<std::shared_ptr<Call>> calls;
    int asked = 0, answered = 0;

private:
    test::ScriptedStore store_;
    test::ManualTicker ticker_;
    std::shared_ptr<test::RecordingSource> source_ = std::make_shared<test::RecordingSource>();
    Sources sources_{{{"recording", source_}}, "recording"};
    Parking parking_;
    Announcer announcer_{sources_, parking_};

public:
    DedupCache cache;

private:
    Push push_;
};

/// Feeds a database with what the brokers vouch for, and beside it one that hears of no vouch: both
/// must answer alike, to each push.
class DedupWorld {
public:
    explicit DedupWorld(DedupDatabase& database) : database_(database) {
        pass(std::chrono::seconds(1));
        window(std::chrono::seconds(6));
    }
    ~DedupWorld() {
        for (auto& broker : brokers) {
            broker->calls.clear();
        }
    }

    void run(const DedupStep& step) {
        auto& broker = *brokers.at(step.broker);
        const auto pick = [&](bool committed, bool push) {
            std::vector<std::shared_ptr<DedupBroker::Call>> fit;
            for (const auto& call : broker.calls) {
                if (call->committed == committed && (!push || call->is_push())) {
                    fit.push_back(call);
                }
            }
            return fit.empty() ? nullptr : fit[step.pick % fit.size()];
        };
        switch (step.kind) {
        case DedupStep::push: {
            static constexpr std::size_t kIds = 17;
            std::vector<std::string> ids;
            for (std::size_t i = 0; i <= step.pick % 3u; ++i) {
                ids.push_back("t" + std::to_string((step.pick / 3u + i * 2) % kIds));
            }
            broker.push(ids);
            break;
        }
        case DedupStep::commit:
            if (const auto call = pick(false, false)) {
                commit(*call);
            }
            break;
        case DedupStep::tell:
            if (const auto call = pick(true, false)) {
                std::erase(broker.calls, call);
                call->tell();
            }
            break;
        case DedupStep::lose:
            if (const auto call = pick(true, true)) {
                std::erase(broker.calls, call);
                call->pushed(fail(Errc::transient, "the link broke"));
            }
            break;
        case DedupStep::settle:
            settle(broker);
            break;
        case DedupStep::pass:
            pass(std::chrono::milliseconds(step.pick % 8 == 0 ? 40'000 : 100 * step.pick % 3'000));
            break;
        case DedupStep::widen: {
            static constexpr std::array<int, 6> kWindows{3, 6, 6, 20, 60, 0};
            window(std::chrono::seconds(kWindows.at(step.pick % kWindows.size())));
            break;
        }
        case DedupStep::remove:
            database_.remove();
            truth_.remove();
            break;
        case DedupStep::purge: {
            const auto before =
                now_ - std::max<std::chrono::microseconds>(window_, std::chrono::seconds(10));
            database_.purge(before);
            truth_.purge(before);
            break;
        }
        case DedupStep::set_back:
            database_.set_back();
            truth_.set_back();
            break;
        default:
            break;
        }
    }

    void settle(DedupBroker& broker) {
        while (!broker.calls.empty()) {
            const auto call = broker.calls.front();
            broker.calls.erase(broker.calls.begin());
            if (!call->committed) {
                commit(*call);
            }
            call->tell();
        }
    }

    void end() {
        for (auto& broker : brokers) {
            settle(*broker);
            RC_ASSERT(broker->answered == broker->asked);
            const auto stats = broker->cache.stats();
            RC_ASSERT(stats.bytes < (std::size_t{1} << 20));
            RC_ASSERT((stats.bytes > 0) == (stats.partitions > 0));
            RC_ASSERT(stats.hashes == 0u || stats.partitions > 0);
        }
    }

    test::ManualClock clock;
    std::array<std::unique_ptr<DedupBroker>, 2> brokers{
        std::make_unique<DedupBroker>(clock, kTiny), std::make_unique<DedupBroker>(clock, kTiny)};

private:
    static inline const DedupCache::Options kTiny{.worth = 1, .page_bytes = 48};

    void commit(DedupBroker::Call& call) {
        call.committed = true;
        if (!call.is_push()) {
            call.rows = database_.page(std::get<HashPage>(call.asks));
            return;
        }
        tick(std::chrono::microseconds(1)); // no two segments with one stamp
        auto segment = std::get<PushSegment>(call.asks);
        call.outcome = database_.push(segment);
        segment.vouch.reset();
        const auto truth = truth_.push(segment);
        RC_ASSERT(call.outcome.duplicate == truth.duplicate);
        RC_ASSERT(call.outcome.base == truth.base);
        RC_ASSERT(call.outcome.repeats.size() == truth.repeats.size());
        for (std::size_t i = 0; i < truth.repeats.size(); ++i) {
            RC_ASSERT(call.outcome.repeats[i].frame == truth.repeats[i].frame);
            RC_ASSERT(call.outcome.repeats[i].first == truth.repeats[i].first);
        }
    }
    void pass(std::chrono::microseconds by) {
        tick(by);
        clock.advance(by);
        for (auto& broker : brokers) {
            if (broker) {
                broker->tick();
            }
        }
    }
    void tick(std::chrono::microseconds by) {
        now_ += by;
        database_.clock(now_);
        truth_.clock(now_);
    }
    void window(std::chrono::seconds window) {
        window_ = window;
        database_.window(window);
        truth_.window(window);
    }

    DedupDatabase& database_;
    DedupModel truth_;
    std::chrono::microseconds now_{0};
    std::chrono::seconds window_{0};
};

} // namespace queen::broker
