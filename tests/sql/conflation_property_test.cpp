// Random lives of one partition of a conflating group against a model in a few lines: what is
// delivered, what an ack moves and counts, and whose budget a failure spends (CF-2). The broken
// procedures below have to be caught at every run.
#include "sql/sql_fixture.hpp"

#include <optional>
#include <random>

namespace queen::test {
namespace {

constexpr unsigned kSeeds = 60;
constexpr int kSteps = 40;

/// One partition and one group, as the rules have it. Offsets are indexes.
struct Model {
    struct Message {
        std::string id;
        int stored;
    };
    int delay, window, retry_limit;
    bool dead_letters;
    std::vector<Message> messages;
    std::int64_t committed = -1, consumed = 0;
    struct Lease {
        std::int64_t offset;
        int until;
        std::string worker;
    };
    std::optional<Lease> lease;
    std::int64_t attempt_of = -1;
    int attempts = 0;
    std::int64_t charged_head = -1;
    int charges = 0;

    bool held(int now) const { return lease && lease->until >= now; }

    /// @return "offset#attempt", or "" for nothing
    std::string pop(int now, const std::string& worker) {
        if (held(now) || messages.empty() || messages.back().stored > now - window) {
            return "";
        }
        auto newest = static_cast<std::int64_t>(messages.size()) - 1;
        while (newest > committed &&
               messages[static_cast<std::size_t>(newest)].stored > now - delay) {
            --newest;
        }
        if (newest <= committed) {
            return "";
        }
        attempts = attempt_of == newest ? attempts + 1 : 1;
        attempt_of = newest;
        lease = Lease{newest, now + 10, worker};
        return std::to_string(newest) + "#" + std::to_string(attempts);
    }

    void complete() {
        committed = lease->offset;
        consumed += 1;
        attempt_of = -1;
        attempts = 0;
        charges = 0;
        charged_head = -1;
        lease.reset();
    }

    /// @return "conflated dlq dropped" of an ack of the delivered message
    std::string ack(const std::string& status) {
        const auto skipped = lease->offset - committed - 1;
        const std::string tail = skipped > 0 ? std::to_string(skipped) : "-";
        if (status == "completed") {
            complete();
            return tail + " false false";
        }
        if (lease->offset > charged_head) { // nobody asks for the old one any more
            charges = 0;
        }
        if (status == "failed" && charges < retry_limit) {
            ++charges;
            charged_head = lease->offset;
        } else if (status == "dlq" || (status == "failed" && dead_letters)) {
            lease.reset();
            return "- true false";
        } else if (status == "failed") {
            complete();
            return tail + " false true";
        }
        lease.reset();
        return "- false false";
    }
};

class ConflationProperty : public SqlTest {
protected:
    ConflationProperty() : SqlTest(Database::own) {}

    /// "" when the procedures lived as the model did.
    std::string difference(unsigned seed) {
        std::mt19937 engine(seed);
        const auto pick = [&](int low, int high) {
            return std::uniform_int_distribution<int>(low, high)(engine);
        };
        sql.script("delete from queen.queues");
        Model model{.delay = pick(0, 1) * 4,
                    .window = pick(0, 3) == 0 ? 2 : 0,
                    .retry_limit = pick(0, 2),
                    .dead_letters = pick(0, 1) == 0};
        int now = 0;
        clock(now);
        configure("q", R"({"dedupWindowSeconds": 0, "deadLetterQueue": )" +
                           std::string(model.dead_letters ? "true" : "false") +
                           R"(, "dlqAfterMaxRetries": false, "delayedProcessing": )" +
                           std::to_string(model.delay) + R"(, "windowBuffer": )" +
                           std::to_string(model.window) + R"(, "retryLimit": )" +
                           std::to_string(model.retry_limit) + "}");
        sql.query("select queen.log_pop_wildcard_bin_v1('q', 'g', 9, 10, 'w', p_conflate => true)");
        std::string told;
        const auto differs = [&](const std::string& what, const std::string& want,
                                 const std::string& got) {
            told += what + ": " + got + "\n";
            return want == got
                       ? ""
                       : "seed " + std::to_string(seed) + "\n" + told + "the model: " + want;
        };
        for (int step = 0; step < kSteps; ++step) {
            const std::string when = std::to_string(now) + " s, ";
            std::string found;
            switch (pick(0, 7)) {
            case 0:
            case 1: {
                std::vector<std::string> ids;
                for (int i = pick(1, 3); i > 0; --i) {
                    ids.push_back(std::string(1, static_cast<char>('a' + pick(0, 3))));
                    model.messages.push_back({ids.back(), now});
                }
                push("q", "p", ids);
                told += when + "push of " + std::to_string(ids.size()) + "\n";
                break;
            }
            case 2:
                now += pick(1, 6);
                clock(now);
                break;
            case 3:
            case 4: {
                const std::string worker = "w" + std::to_string(step);
                const std::string want = model.pop(now, worker);
                const SqlRows rows = sql.query(
                    "select ((s ->> 'seq')::int + (s ->> 'startOff')::int) || '#' || (p ->> "
                    "'deliveryAttempt') from queen.log_pop_list_v1('q', 'g', '{p}', 9, 10, $1) b, "
                    "jsonb_array_elements(b.meta -> 'partitions') p, jsonb_array_elements(p -> "
                    "'segments') s",
                    {worker});
                found = differs(when + "pop", want, rows.column(0));
                break;
            }
            case 5: // by position
                if (model.held(now) && model.lease->until > now) {
                    const auto skipped = model.lease->offset - model.committed - 1;
                    const std::string got =
                        sql.one("select r ->> 'ok' || ' ' || coalesce(r ->> 'conflated', '0') from "
                                "queen.log_ack_at_v1($1, 'g', $2, $3) r",
                                {pid(), model.lease->worker, model.lease->offset});
                    model.complete();
                    found =
                        differs(when + "ack by position", "true " + std::to_string(skipped), got);
                }
                break;
            default: // by id
                if (model.held(now) && model.lease->until > now) {
                    static const char* const kWords[] = {"completed", "failed", "retry", "dlq"};
                    const std::string word = kWords[std::min(pick(0, 5), 3)];
                    const auto offset = static_cast<std::size_t>(model.lease->offset);
                    const std::string answer =
                        ack({{model.messages[offset].id, word}}, model.lease->worker);
                    found =
                        differs(when + word, model.ack(word),
                                (sql.one("select $1::jsonb ? 'conflated'", {answer}) == "t"
                                     ? member(answer, "conflated")
                                     : "-") +
                                    " " + member(answer, "dlq") + " " + member(answer, "dropped"));
                }
                break;
            }
            if (found.empty() && !model.messages.empty() && step % 4 == 3 &&
                sql.integer("select count(*) from queen.log_consumers") > 0) {
                found =
                    differs(when + "cursor, consumed, budget",
                            std::to_string(model.committed) + " " + std::to_string(model.consumed) +
                                " " + std::to_string(model.charges),
                            cursor("committed || ' ' || total_consumed || ' ' || "
                                   "batch_retry_count"));
            }
            if (!found.empty()) {
                return found;
            }
        }
        return "";
    }
};

TEST_F(ConflationProperty, TheProceduresLiveAsTheModelDoes) {
    for (unsigned seed = 1; seed <= kSeeds; ++seed) {
        ASSERT_EQ(difference(seed), "");
    }
}

struct Broken {
    const char* what;
    const char* function;
    const char* from;
    const char* to;
};

class BrokenConflation : public ConflationProperty, public ::testing::WithParamInterface<Broken> {};

TEST_P(BrokenConflation, IsCaught) {
    mutate({GetParam().function, GetParam().from, GetParam().to});
    bool caught = false;
    for (unsigned seed = 1; seed <= kSeeds && !caught; ++seed) {
        caught = !difference(seed).empty();
    }
    EXPECT_TRUE(caught) << "the property holds for a procedure that is wrong";
}

INSTANTIATE_TEST_SUITE_P(
    Procedures, BrokenConflation,
    ::testing::Values(Broken{"DeliversTheOldest", "_claim",
                             "ORDER BY g.base_offset DESC LIMIT 1)\n"
                             "                OFFSET 0",
                             "ORDER BY g.base_offset LIMIT 1)\n                OFFSET 0"},
                      Broken{"DeliversWhatTheDelayWithholds", "_claim",
                             "ELSE queen._offset_until(u.pid, u.ripe, f.base - 1, u.tail) END\n"
                             "                   AND g.created_at <= u.ripe",
                             "ELSE u.tail END"},
                      Broken{"FindsAnEarlierTwin", "log_ack_by_hash_v1",
                             "CASE WHEN v_alone THEN v_row.batch_end",
                             "CASE WHEN false THEN v_row.batch_end"},
                      Broken{"CountsWhatItSkipped", "log_ack_by_hash_v1",
                             "v_to - v_row.committed - v_skipped, v_hold);",
                             "v_to - v_row.committed, v_hold);"},
                      Broken{"ChargesTheNewForTheOld", "log_ack_by_hash_v1",
                             "OR v_alone AND v_signal.pos > v_row.retry_offset", ""},
                      Broken{"ForgetsWhoseLeaseItIs", "_claim", "v_alone[n], v_firsts[n],",
                             "false, v_firsts[n],"},
                      Broken{"CountsAttemptsOfTheSpan", "_claim", "v_firsts[v_n] := v_first;\n",
                             "v_firsts[v_n] := v_row.committed + 1;\n"}),
    [](const auto& info) { return std::string(info.param.what); });

} // namespace
} // namespace queen::test
