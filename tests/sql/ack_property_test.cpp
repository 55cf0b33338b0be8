// Random ack calls against a model in a few lines: F-36 and the rules around it.
#include "sql/sql_fixture.hpp"

#include <algorithm>
#include <map>
#include <random>

namespace queen::test {
namespace {

/// One (partition, group) as the rules have it. Every message has its own id, "m<offset>".
struct Model {
    std::int64_t messages;
    int retry_limit;
    bool dead_letters;
    std::int64_t committed = -1;
    std::int64_t batch_end = -1;
    bool leased = false;
    int charged = 0;
    std::int64_t charged_head = -1; ///< highest head a charge was for

    struct Answer {
        std::int64_t acked = 0;
        std::int64_t head = -1;
        bool dlq = false, dropped = false, released = false, covered = false;
        std::size_t noop = 0, stale = 0, unresolved = 0;
    };

    Answer ack(const std::vector<std::pair<std::int64_t, std::string>>& items) {
        Answer answer;
        std::int64_t highest = -1;
        std::map<std::int64_t, int> signals; // position -> 3 dlq, 2 failed, 1 retry
        for (const auto& [position, status] : items) {
            if (position >= messages) {
                ++answer.unresolved;
            } else if (position <= committed) {
                ++answer.noop;
            } else if (position > batch_end) {
                ++answer.stale;
            } else if (status == "completed") {
                highest = std::max(highest, position);
            } else {
                const int weight = status == "dlq" ? 3 : status == "failed" ? 2 : 1;
                signals[position] = std::max(signals[position], weight);
            }
        }
        std::int64_t to = std::max(committed, highest);
        if (!signals.empty()) {
            const auto [head, word] = *signals.begin();
            answer.head = head;
            answer.released = true;
            to = highest < 0 ? committed : std::max(committed, std::min(highest, head - 1));
            if (to >= charged_head) {
                charged = 0;
            }
            if (word == 2 && charged < retry_limit) {
                ++charged;
                charged_head = to >= charged_head ? head : std::max(charged_head, head);
            } else if (word == 3 || (word == 2 && dead_letters)) {
                answer.dlq = true;
            } else if (word == 2) {
                answer.dropped = true;
                to = head;
                charged = 0;
                charged_head = -1;
            }
        } else if (to == batch_end) {
            answer.released = answer.covered = true;
            charged = 0;
            charged_head = -1;
        } else if (to >= charged_head) {
            charged = 0;
        }
        if (to >= charged_head) {
            charged_head = -1;
        }
        answer.acked = to - committed;
        committed = to;
        leased = leased && !answer.released;
        return answer;
    }
};

class AckProperty : public SqlTest, public ::testing::WithParamInterface<unsigned> {};

TEST_P(AckProperty, RandomStatusVectorsMoveTheCursorAsTheModelSays) {
    std::mt19937 random(GetParam());
    const auto pick = [&](int low, int high) {
        return std::uniform_int_distribution<int>(low, high)(random);
    };
    const std::string partition = "p";
    Model model{.messages = 0, .retry_limit = pick(0, 3), .dead_letters = pick(0, 1) == 1};
    configure("q", R"({"dlqAfterMaxRetries": false, "deadLetterQueue": )" +
                       std::string(model.dead_letters ? "true" : "false") + R"(, "retryLimit": )" +
                       std::to_string(model.retry_limit) + "}");
    const char* const words[] = {"completed", "completed", "completed", "failed", "retry", "dlq"};
    std::string story;
    for (int step = 0; step < 60; ++step) {
        while (model.messages < model.committed + 8) {
            std::vector<std::string> ids;
            for (int i = pick(1, 4); i > 0; --i) {
                ids.push_back("m" + std::to_string(model.messages++));
            }
            push("q", partition, ids);
        }
        if (!model.leased) {
            const int budget = pick(1, 6);
            ASSERT_NE(pop({.budget = budget}), "") << story;
            model.batch_end = std::stoll(cursor("batch_end"));
            ASSERT_EQ(model.batch_end, model.committed + budget) << story;
            model.leased = true;
        }
        std::vector<std::pair<std::int64_t, std::string>> items;
        std::vector<std::pair<std::string, std::string>> wire;
        story +=
            "\n(" + std::to_string(model.committed) + "," + std::to_string(model.batch_end) + "]:";
        for (int i = pick(1, 5); i > 0; --i) {
            std::int64_t position = model.committed + pick(-1, 7);
            position = std::clamp<std::int64_t>(position, 0, model.messages);
            const auto seen = [&](const auto& item) { return item.first == position; };
            if (std::ranges::any_of(items, seen) && pick(0, 3) > 0) {
                continue;
            }
            items.emplace_back(position, words[pick(0, 5)]);
            wire.emplace_back("m" + std::to_string(position), items.back().second);
            story += " " + wire.back().first + "=" + wire.back().second;
        }
        const Model::Answer want = model.ack(items);
        const std::string got = ack(wire);
        ASSERT_EQ(sql.one("select concat_ws(' ', a ->> 'acked', coalesce(a ->> 'off', '-1'), "
                          "a ->> 'dlq', a ->> 'dropped', a ->> 'leaseReleased', a ->> 'covered', "
                          "jsonb_array_length(a -> 'noopHashes'), "
                          "jsonb_array_length(a -> 'staleHashes'), "
                          "jsonb_array_length(a -> 'unresolvedHashes')) from (select $1::jsonb) "
                          "t (a)",
                          {got}),
                  std::to_string(want.acked) + " " + std::to_string(want.head) + " " +
                      (want.dlq ? "true " : "false ") + (want.dropped ? "true " : "false ") +
                      (want.released ? "true " : "false ") + (want.covered ? "true " : "false ") +
                      std::to_string(want.noop) + " " + std::to_string(want.stale) + " " +
                      std::to_string(want.unresolved))
            << "seed " << GetParam() << story << "\n"
            << got;
        ASSERT_EQ(cursor("concat_ws(' ', committed, worker_id is not null, batch_retry_count)"),
                  std::to_string(model.committed) + (model.leased ? " t " : " f ") +
                      std::to_string(model.charged))
            << "seed " << GetParam() << story;
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, AckProperty, ::testing::Range(1u, 25u));

} // namespace
} // namespace queen::test
