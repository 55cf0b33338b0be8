// Every call of the Store port against the schema that the installer made.
#include "base/text.hpp"
#include "core/store/pg_port_fixture.hpp"
#include "store/pg_store.hpp"
#include "support/sql_session.hpp"

#include <gmock/gmock.h>

#include <future>
#include <map>

namespace queen::store {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// A segment of frames that nobody will look into: the store takes blobs as they are.
PushSegment segment(std::string queue, std::string partition, std::vector<std::string> ids,
                    std::string blob) {
    PushSegment out{
        .tenant = kTenant, .queue = std::move(queue), .partition = std::move(partition)};
    out.count = static_cast<std::uint32_t>(ids.size());
    for (const std::string& id : ids) {
        out.hashes += hash_transaction_id(id).view();
    }
    out.blob = std::move(blob);
    return out;
}

PopArgs pop_args(std::string queue, std::string worker, std::string group = "g") {
    PopArgs args;
    args.tenant = kTenant;
    args.queue = std::move(queue);
    args.group = std::move(group);
    args.budget = 100;
    args.worker = std::move(worker);
    args.max_partitions = 10;
    return args;
}

class PgStoreTest : public testing::Test {
protected:
    static inline std::string conninfo; ///< of one database for all tests
    const std::unique_ptr<Executor> executor = sessions_of(conninfo);
    const std::unique_ptr<PgStore> store = std::make_unique<PgStore>(Asker(*executor));

    static void SetUpTestSuite() { conninfo = installed_database(); }

    template <class X>
    static X value(Result<X> result) {
        EXPECT_TRUE(result) << result.error().message << " [" << result.error().sqlstate << "]";
        return result ? std::move(*result) : X{};
    }
    std::vector<PushOutcome> push(std::vector<PushSegment> segments) {
        return value(wait_for<std::vector<PushOutcome>>(
            [&](auto done) { store->push(kNever, std::move(segments), std::move(done)); }));
    }
    PopResult pop(PopArgs args) {
        return value(wait_for<PopResult>(
            [&](auto done) { store->pop_wildcard(kNever, std::move(args), std::move(done)); }));
    }
    PopResult pop_list(PopArgs args, std::vector<std::string> names) {
        return value(wait_for<PopResult>([&](auto done) {
            store->pop_list(kNever, std::move(args), std::move(names), std::move(done));
        }));
    }
    bool pending(PendingQuery query) {
        return value(wait_for<bool>(
            [&](auto done) { store->has_pending(kNever, std::move(query), std::move(done)); }));
    }
    HashAckOutcome ack(const PoppedPartition& from, const std::string& worker,
                       std::vector<std::pair<std::string, AckStatus>> items,
                       const std::string& tenant = kTenant) {
        std::vector<HashAck> acks;
        for (const auto& [id, status] : items) {
            acks.push_back({hash_transaction_id(id), status});
        }
        return value(wait_for<HashAckOutcome>([&](auto done) {
            store->ack_by_hash(kNever,
                               {.tenant = tenant,
                                .partition_id = from.partition_id,
                                .group = "g",
                                .worker = worker,
                                .items = acks,
                                .letters = {}},
                               done);
        }));
    }
    Result<ReseedPage> reseed(ReseedQuery query) {
        return wait_for<ReseedPage>(
            [&](auto done) { store->reseed_page(kNever, std::move(query), std::move(done)); });
    }
    std::string configure(const std::string& queue, const std::string& options) {
        return value(wait_for<std::string>(
            [&](auto done) { store->configure(kNever, kTenant, queue, options, done); }));
    }
};

TEST_F(PgStoreTest, PushThenPopThenAck) {
    const std::string blob("\x28\xb5\0\xff blob", 9);
    const auto pushed = push({segment("life", "b", {"t1", "t2"}, blob),
                              segment("life", "a", {"t3"}, ""), segment("life", "b", {"t4"}, "x")});
    ASSERT_THAT(pushed, SizeIs(3));
    EXPECT_EQ(pushed[0].base, Offset{0});
    EXPECT_EQ(pushed[1].base, Offset{0});
    EXPECT_EQ(pushed[2].base, Offset{2});
    EXPECT_TRUE(pushed[0].partition_id.known());
    EXPECT_EQ(pushed[0].partition_id, pushed[2].partition_id);
    EXPECT_GT(pushed[0].created_at.time_since_epoch(), 1'600'000'000s);

    EXPECT_TRUE(pending({kTenant, "life", "g", {}, {}}));
    const PopResult popped = pop(pop_args("life", "w1"));
    ASSERT_THAT(popped.partitions, SizeIs(2));
    const auto& b = popped.partitions[popped.partitions[0].partition == "b" ? 0 : 1];
    EXPECT_EQ(b.partition_id, pushed[0].partition_id);
    EXPECT_EQ(b.attempt, 1);
    ASSERT_TRUE(b.lease_left);
    EXPECT_GT(*b.lease_left, 30s);
    EXPECT_TRUE(b.drained);
    ASSERT_THAT(b.segments, SizeIs(2));
    EXPECT_EQ(b.segments[0].base, Offset{0});
    EXPECT_EQ(b.segments[0].start, 0u);
    EXPECT_EQ(b.segments[0].take, 2u);
    EXPECT_EQ(b.segments[0].blob, blob);
    EXPECT_EQ(b.segments[0].created_at, pushed[0].created_at);
    EXPECT_EQ(b.segments[1].base, Offset{2});
    EXPECT_EQ(b.segments[1].blob, "x");

    EXPECT_THAT(pop(pop_args("life", "w2")).partitions, IsEmpty()) << "all is leased";
    EXPECT_FALSE(pending({kTenant, "life", "g", {}, {}}));

    const auto part = ack(b, "w1", {{"t1", AckStatus::completed}, {"odd", AckStatus::completed}});
    EXPECT_TRUE(part.ok);
    EXPECT_EQ(part.acked, 1);
    EXPECT_FALSE(part.lease_released);
    EXPECT_FALSE(part.covered);
    EXPECT_THAT(part.unresolved, ElementsAre(hash_transaction_id("odd")));
    const auto all = ack(b, "w1", {{"t2", AckStatus::completed}, {"t4", AckStatus::completed}});
    EXPECT_EQ(all.acked, 2);
    EXPECT_TRUE(all.lease_released);
    EXPECT_TRUE(all.covered);
    EXPECT_EQ(all.queue, "life");
    EXPECT_EQ(all.partition, "b");
}

TEST_F(PgStoreTest, ADuplicateNamesItsFramesAndTheFirstOffset) {
    const auto first = push({segment("dup", "p", {"a", "b"}, "1")});
    const auto again =
        push({segment("dup", "p", {"c", "b"}, "2"), segment("dup", "q", {"b"}, "3")});
    ASSERT_THAT(again, SizeIs(2));
    EXPECT_TRUE(again[0].duplicate);
    ASSERT_THAT(again[0].repeats, SizeIs(1));
    EXPECT_EQ(again[0].repeats[0].frame, 1u);
    EXPECT_EQ(again[0].repeats[0].first, Offset{1});
    EXPECT_FALSE(again[1].duplicate) << "its sibling is stored";

    const auto at = [&](std::int64_t offset) {
        return value(wait_for<std::optional<StoredSegment>>([&](auto done) {
            store->segment_at(kNever, first[0].partition_id, Offset{offset}, done);
        }));
    };
    const auto stored = at(1);
    ASSERT_TRUE(stored);
    EXPECT_EQ(stored->base, Offset{0});
    EXPECT_EQ(stored->end, Offset{1});
    EXPECT_EQ(stored->blob, "1");
    EXPECT_EQ(stored->created_at, first[0].created_at);
    EXPECT_FALSE(at(2));
}

TEST_F(PgStoreTest, AVouchSparesTheProbeAndTheWindowIsReadInPages) {
    const auto first = push({segment("vouch", "p", {"a", "b"}, "1")});
    const auto second = push({segment("vouch", "p", {"c"}, "2")});
    EXPECT_EQ(first[0].after, WallTime{});
    EXPECT_EQ(second[0].after, first[0].created_at);
    EXPECT_EQ(second[0].window, 3600s);
    EXPECT_EQ(second[0].probed, 2);
    const Uuid id = first[0].partition_id;
    auto third = segment("vouch", "p", {"d"}, "3");
    third.vouch = Vouch{id, Offset{-1}, Offset{2}, second[0].created_at};
    EXPECT_EQ(push({segment("vouch", "other", {"d"}, "3"), third})[1].probed, 0);
    third.vouch = Vouch{id, Offset{-1}, Offset{2}, second[0].created_at + 1us};
    EXPECT_TRUE(push({third})[0].duplicate) << "not believed";

    const auto read = [&](HashPage page) {
        return value(wait_for<std::vector<HashRow>>(
            [&](auto done) { store->window_hashes(kNever, page, done); }));
    };
    const auto down = read({.partition_id = id, .edge = Offset{2}, .bytes = 1 << 20});
    ASSERT_THAT(down, SizeIs(2));
    EXPECT_EQ(down[1].base, Offset{0});
    EXPECT_EQ(down[1].end, Offset{1});
    EXPECT_EQ(down[1].created_at, first[0].created_at);
    EXPECT_EQ(down[1].hashes, segment("", "", {"a", "b"}, "").hashes);
    const auto up = read({.partition_id = id, .edge = Offset{1}, .downwards = false, .bytes = 16});
    ASSERT_THAT(up, SizeIs(2));
    EXPECT_EQ(up[1].base, Offset{2});
}

TEST_F(PgStoreTest, AListPopTellsTheStateOfEachName) {
    push({segment("list", "full", {"a"}, "1"), segment("list", "held", {"b"}, "2")});
    pop(pop_args("list", "first", "other")); // another group does not matter
    const PopResult unseeded = pop_list(pop_args("list", "w"), {"full"});
    EXPECT_FALSE(unseeded.seeded) << "nobody registered group g yet";
    PopArgs hold = pop_args("list", "w0");
    ASSERT_THAT(pop_list(hold, {"held"}).partitions, SizeIs(1));
    const PopResult result = pop_list(pop_args("list", "w1"), {"held", "none", "full"});
    std::map<std::string, CandidateState> states;
    for (const auto& state : result.states) {
        states[state.partition] = state;
    }
    ASSERT_THAT(states, SizeIs(3));
    EXPECT_EQ(states["held"].kind, CandidateState::Kind::leased);
    EXPECT_GT(states["held"].left, 10s);
    EXPECT_EQ(states["none"].kind, CandidateState::Kind::empty);
    EXPECT_EQ(states["full"].kind, CandidateState::Kind::leased) << "by the first list pop";
}

TEST_F(PgStoreTest, PinnedAndDiscoveryPops) {
    configure("disc", R"({"namespace":"ns","task":"tk","delayedProcessing":0})");
    push({segment("disc", "p1", {"a"}, "1"), segment("disc", "p2", {"b"}, "2")});
    const PopResult pinned = value(wait_for<PopResult>(
        [&](auto done) { store->pop_specific(kNever, pop_args("disc", "w1"), "p2", done); }));
    ASSERT_THAT(pinned.partitions, SizeIs(1));
    EXPECT_EQ(pinned.partitions[0].partition, "p2");
    EXPECT_FALSE(pending({kTenant, "disc", "g", "p2", {}}));
    EXPECT_TRUE(pending({kTenant, "disc", "g", "p1", {}}));
    EXPECT_TRUE(pending({kTenant, "", "g", {}, std::pair<std::string, std::string>{"ns", "tk"}}));

    PopArgs args = pop_args("", "w2");
    args.auto_ack = true;
    const PopResult found = value(
        wait_for<PopResult>([&](auto done) { store->pop_discover(kNever, args, "ns", "", done); }));
    ASSERT_THAT(found.partitions, SizeIs(1));
    EXPECT_EQ(found.partitions[0].queue, "disc");
    EXPECT_EQ(found.partitions[0].partition, "p1");
    EXPECT_FALSE(found.partitions[0].lease_left);
}

TEST_F(PgStoreTest, APartitionOfAnotherTenantCannotBeAcked) {
    push({segment("mine", "p", {"a"}, "1")});
    const auto popped = pop(pop_args("mine", "w"));
    ASSERT_THAT(popped.partitions, SizeIs(1));
    const auto foreign =
        ack(popped.partitions[0], "w", {{"a", AckStatus::completed}}, kOtherTenant);
    EXPECT_FALSE(foreign.ok);
    EXPECT_EQ(foreign.error, "partition not owned by tenant");
    EXPECT_TRUE(ack(popped.partitions[0], "w", {{"a", AckStatus::completed}}).covered);
    PoppedPartition gone;
    gone.partition_id = *parse_uuid("11111111-1111-1111-1111-111111111111");
    const auto missing = ack(gone, "w", {{"a", AckStatus::completed}}, kOtherTenant);
    EXPECT_FALSE(missing.ok);
    EXPECT_THAT(missing.error, HasSubstr("not found"));
}

// What is to become a dead letter is asked for, and filed once it is there, byte for byte.
TEST_F(PgStoreTest, DeadLettersAreAskedForAndFiled) {
    push({segment("letters", "p", {"a", "b", "c"}, "1")});
    const auto popped = pop(pop_args("letters", "w"));
    ASSERT_THAT(popped.partitions, SizeIs(1));
    HashAcks acks{.tenant = kTenant,
                  .partition_id = popped.partitions[0].partition_id,
                  .group = "g",
                  .worker = "w",
                  .items = {{hash_transaction_id("a"), AckStatus::dlq, "why"},
                            {hash_transaction_id("b"), AckStatus::completed},
                            {hash_transaction_id("c"), AckStatus::dlq}},
                  .letters = {}};
    const auto settle = [&] {
        return value(wait_for<HashAckOutcome>(
            [&](auto done) { store->ack_by_hash(kNever, acks, std::move(done)); }));
    };
    const auto asked = settle();
    EXPECT_THAT(asked.wanted, ElementsAre(Offset{0}, Offset{2}));
    EXPECT_EQ(asked.acked, 0);
    acks.letters = {{.offset = Offset{0},
                     .message_id = acks.partition_id,
                     .trace_id = {},
                     .transaction_id = "a",
                     .producer_sub = "sub",
                     .payload = std::string("\0\xff{", 3),
                     .encrypted = true,
                     .created_at = popped.partitions[0].segments[0].created_at}};
    EXPECT_THAT(settle().wanted, SizeIs(2)) << "one of them is not enough";
    acks.no_further_letters = true;
    const auto filed = settle();
    EXPECT_THAT(filed.wanted, IsEmpty());
    EXPECT_THAT(filed.filed, ElementsAre(0u));
    EXPECT_THAT(filed.rejected, ElementsAre(2u));
    EXPECT_EQ(filed.acked, 2);
    EXPECT_TRUE(filed.lease_released);
    EXPECT_FALSE(filed.covered);
    queen::test::SqlSession sql(conninfo);
    EXPECT_EQ(sql.one("select concat_ws(' ', l.message_id, l.transaction_id, l.trace_id, "
                      "l.producer_sub, encode(l.payload, 'hex'), l.encrypted, l.error, "
                      "l.retry_count, s.created_at = l.created_at) from queen.log_dlq l join "
                      "queen.queues q on q.id = l.queue_id join queen.log_segments s on "
                      "s.partition_id = l.partition_id where q.name = 'letters'"),
              to_string(acks.partition_id) + " a sub 00ff7b t why 0 t");
    EXPECT_THAT(pop(pop_args("letters", "w2")).partitions, SizeIs(1));
}

TEST_F(PgStoreTest, PositionsLeasesAndBatchesHandedBack) {
    push({segment("pos", "p", {"a", "b", "c"}, "1")});
    auto popped = pop(pop_args("pos", "pos1"));
    ASSERT_THAT(popped.partitions, SizeIs(1));
    const Uuid id = popped.partitions[0].partition_id;

    const auto renewed = value(wait_for<RenewOutcome>(
        [&](auto done) { store->renew_lease(kNever, kTenant, "pos1", 900s, done); }));
    EXPECT_EQ(renewed.renewed, 1);
    ASSERT_TRUE(renewed.expires_at);
    EXPECT_GT(*renewed.expires_at, popped.partitions[0].segments[0].created_at + 800s);

    const auto release = [&](const std::string& worker) {
        return value(wait_for<bool>(
            [&](auto done) { store->release_undelivered(kNever, id, "g", worker, done); }));
    };
    EXPECT_FALSE(release("somebody else"));
    EXPECT_TRUE(release("pos1"));
    EXPECT_FALSE(release("pos1"));
    popped = pop(pop_args("pos", "pos2"));
    ASSERT_THAT(popped.partitions, SizeIs(1));
    EXPECT_EQ(popped.partitions[0].attempt, 1) << "as if it had never been delivered";

    const auto whole = [&](const std::string& tenant) {
        return value(wait_for<std::vector<PositionAckOutcome>>([&](auto done) {
            store->ack_positions(
                kNever, tenant,
                {{id, "g", Offset{0}, Offset{2}, "pos1"}, {id, "g", Offset{0}, Offset{2}, "pos2"}},
                done);
        }));
    };
    EXPECT_EQ(whole(kOtherTenant).at(1).error, "partition not owned by tenant");
    const auto outcomes = whole(kTenant);
    ASSERT_THAT(outcomes, SizeIs(2));
    EXPECT_FALSE(outcomes[0].ok);
    EXPECT_EQ(outcomes[0].error, "invalid or expired lease");
    EXPECT_TRUE(outcomes[1].ok);
    EXPECT_EQ(outcomes[1].acked, 3);
    EXPECT_TRUE(outcomes[1].lease_released && outcomes[1].covered);
    EXPECT_EQ(outcomes[1].queue + "." + outcomes[1].partition, "pos.p");
}

TEST_F(PgStoreTest, QueuesAreConfiguredListedShownAndDeleted) {
    EXPECT_THAT(configure("conf", R"({"leaseTime":17})"), HasSubstr("\"leaseTime\": 17"));
    const auto detail = [&] {
        return value(wait_for<std::optional<std::string>>(
            [&](auto done) { store->queue_detail(kNever, kTenant, "conf", {}, done); }));
    };
    ASSERT_TRUE(detail());
    EXPECT_THAT(*detail(), HasSubstr("conf"));
    const auto list = [&](const std::string& tenant) {
        return value(
            wait_for<std::string>([&](auto done) { store->list_queues(kNever, tenant, done); }));
    };
    EXPECT_THAT(list(kTenant), HasSubstr("\"conf\""));
    EXPECT_THAT(list(kOtherTenant), testing::Not(HasSubstr("\"conf\"")));
    const auto remove = [&] {
        return value(
            wait_for<bool>([&](auto done) { store->delete_queue(kNever, kTenant, "conf", done); }));
    };
    EXPECT_TRUE(remove());
    EXPECT_FALSE(remove());
    EXPECT_FALSE(detail());
}

TEST_F(PgStoreTest, FiguresAreTheTenantsOwn) {
    configure("fig", R"({"namespace":"figures","task":"counting"})");
    push({segment("fig", "p1", {"a", "b"}, "1"), segment("fig", "p2", {"c"}, "2")});
    using Figures = std::optional<std::string>;
    const auto depth = [&](const std::string& tenant, const std::optional<std::string>& group,
                           const PartitionPage& page) {
        return value(wait_for<Figures>(
            [&](auto done) { store->queue_depth(kNever, tenant, "fig", group, page, done); }));
    };
    EXPECT_THAT(*depth(kTenant, std::nullopt, {}), HasSubstr("\"group\": null"));
    EXPECT_THAT(*depth(kTenant, "g", {}), HasSubstr("\"pending\": 3"));
    const auto second = depth(kTenant, "g", {.after = "p1", .limit = 1});
    EXPECT_THAT(*second, HasSubstr("\"partition\": \"p2\""));
    EXPECT_THAT(*second, testing::Not(HasSubstr("\"partition\": \"p1\"")));
    EXPECT_FALSE(depth(kOtherTenant, "g", {}));
    const auto sizes = [&](const std::string& tenant) {
        return value(wait_for<Figures>(
            [&](auto done) { store->queue_sizes(kNever, tenant, "fig", {}, done); }));
    };
    EXPECT_THAT(*sizes(kTenant), HasSubstr("\"p2\""));
    EXPECT_FALSE(sizes(kOtherTenant));
    const auto labels = [&](const std::string& tenant, Label label) {
        return value(wait_for<std::string>(
            [&](auto done) { store->list_labels(kNever, tenant, label, done); }));
    };
    EXPECT_THAT(labels(kTenant, Label::name_space), HasSubstr("\"namespace\": \"figures\""));
    EXPECT_THAT(labels(kTenant, Label::task), HasSubstr("\"task\": \"counting\""));
    EXPECT_THAT(labels(kOtherTenant, Label::task), testing::Not(HasSubstr("counting")));
    const auto overview = [&](const std::string& tenant) {
        return value(
            wait_for<std::string>([&](auto done) { store->overview(kNever, tenant, done); }));
    };
    EXPECT_THAT(overview(kTenant), testing::Not(HasSubstr("\"queues\": 0")));
    EXPECT_THAT(overview(kOtherTenant), HasSubstr("\"statsAge\": 0"));
}

TEST_F(PgStoreTest, AWalkCoversEachPartitionOncePageByPage) {
    std::vector<PushSegment> segments;
    for (int i = 0; i < 25; ++i) {
        segments.push_back(segment("walk", "p" + std::to_string(i), {"t"}, "x"));
    }
    const auto pushed = push(segments);
    configure("walk", R"({"delayedProcessing": 7, "windowBuffer": 3})");
    for (const auto window : {0min, 10min}) {
        std::map<std::string, Uuid> seen;
        ReseedQuery query{.tenant = kTenant, .queue = "walk", .group = "g"};
        query.window = window;
        query.partitions = 10;
        int pages = 0;
        do {
            const ReseedPage page = value(reseed(query));
            EXPECT_TRUE(page.exists);
            EXPECT_EQ(page.delay_seconds, 7);
            EXPECT_EQ(page.window_seconds, 3);
            for (const auto& row : page.rows) {
                EXPECT_TRUE(seen.emplace(row.partition, row.partition_id).second) << row.partition;
            }
            query.after = page.next;
        } while (++pages < 9 && query.after);
        EXPECT_EQ(pages, 3);
        ASSERT_THAT(seen, SizeIs(25));
        EXPECT_EQ(seen.at("p0"), pushed[0].partition_id);
        EXPECT_EQ(seen.at("p24"), pushed[24].partition_id);
    }
}

TEST_F(PgStoreTest, AWalkWithoutRowsStillTellsOfTheQueue) {
    configure("bare", R"({"delayedProcessing": 1})");
    const ReseedPage bare =
        value(reseed({.tenant = kTenant, .queue = "bare", .group = "g", .window = 0ms}));
    EXPECT_TRUE(bare.exists);
    EXPECT_EQ(bare.delay_seconds, 1);
    EXPECT_THAT(bare.rows, IsEmpty());
    EXPECT_FALSE(bare.next);
    for (const auto window : {0min, 10min}) {
        const ReseedPage none = value(
            reseed({.tenant = kOtherTenant, .queue = "bare", .group = "g", .window = window}));
        EXPECT_FALSE(none.exists);
        EXPECT_THAT(none.rows, IsEmpty());
    }
    const auto bad = reseed({.tenant = "nobody", .queue = "bare", .group = "g"});
    EXPECT_EQ(bad.error().code, Errc::invalid_argument);
}

/// Pages without a row but with more behind them keep the walk going.
TEST_F(PgStoreTest, AWalkPassesOverWhatIsCaughtUp) {
    std::vector<PushSegment> segments;
    for (int i = 0; i < 12; ++i) {
        segments.push_back(segment("done", "p" + std::to_string(i), {"t"}, "x"));
    }
    push(segments);
    PopArgs args = pop_args("done", "w");
    args.auto_ack = true;
    args.max_partitions = 100;
    ASSERT_THAT(pop(args).partitions, SizeIs(12));
    ReseedQuery query{.tenant = kTenant, .queue = "done", .group = "g"};
    query.partitions = 5;
    int pages = 0;
    do {
        const ReseedPage page = value(reseed(query));
        EXPECT_THAT(page.rows, IsEmpty());
        query.after = page.next;
    } while (++pages < 9 && query.after);
    EXPECT_EQ(pages, 3);
}

TEST_F(PgStoreTest, FaultsOfTheCallerAreNotFaultsOfTheStore) {
    const auto bad_tenant =
        wait_for<std::string>([&](auto done) { store->list_queues(kNever, "not a uuid", done); });
    EXPECT_EQ(bad_tenant.error().code, Errc::invalid_argument);

    PushSegment misaligned = segment("bad", "p", {"a"}, "1");
    misaligned.count = 2;
    const auto refused = wait_for<std::vector<PushOutcome>>(
        [&](auto done) { store->push(kNever, {misaligned}, done); });
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::store_failed);
    EXPECT_FALSE(refused.error().sqlstate.empty());

    const auto nul = wait_for<std::string>([&](auto done) {
        store->configure(kNever, kTenant, "q", R"({"namespace":"a\u0000b"})", done);
    });
    EXPECT_EQ(nul.error().code, Errc::invalid_argument);
    EXPECT_THAT(push({}), IsEmpty());
}

TEST_F(PgStoreTest, PingAnswers) {
    std::promise<Result<void>> pong;
    store->ping(kNever, [&](Result<void> answer) { pong.set_value(std::move(answer)); });
    EXPECT_TRUE(pong.get_future().get());
}

/// After this many runs the server may switch a prepared statement to a generic plan.
TEST_F(PgStoreTest, AnswersStayTheSameUnderAGenericPlan) {
    for (int i = 0; i < 12; ++i) {
        const std::string id = "t" + std::to_string(i);
        const auto pushed = push({segment("generic", "p", {id}, id)});
        ASSERT_EQ(pushed.at(0).base, Offset{i});
        PopArgs args = pop_args("generic", "w");
        args.auto_ack = true;
        const auto popped = pop_list(args, {"p"});
        ASSERT_THAT(popped.partitions, SizeIs(1));
        ASSERT_EQ(popped.partitions[0].segments.at(0).blob, id);
    }
}

} // namespace
} // namespace queen::store
