// One (partition, group) as the rules of acks have it, and what can happen to it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace queen::test {

using Offsets = std::vector<std::int64_t>;
constexpr std::int64_t kNone = -9; ///< null, where offsets are

enum class Word { completed, failed, retry, dlq };
inline const char* text_of(Word word) {
    const char* const texts[] = {"completed", "failed", "retry", "dlq"};
    return texts[static_cast<int>(word)];
}

enum class Who { holder, nobody, stranger };

struct Push {
    int messages;
};
struct Take {
    int budget, lease;
    bool auto_ack;
};
/// One item per pair: an offset from the cursor, and its status.
struct Vector {
    std::vector<std::pair<int, Word>> items;
    Who who;
    int unbrought; ///< the letter with this number cannot be brought; negative: all can
};
struct Positional {
    int upto, first; ///< from the cursor
    bool ok;
    Who who;
};
struct Wait {
    int seconds;
};
struct Seek {
    int back;
};
struct Settings {
    int retries, delay;
    bool dead_letters;
};
struct HandBack {};
struct Extend {
    int seconds;
};
using Step = std::variant<Push, Take, Vector, Positional, Wait, Seek, Settings, HandBack, Extend>;

inline std::ostream& operator<<(std::ostream& out, Who who) {
    const char* const texts[] = {"holder", "nobody", "stranger"};
    return out << texts[static_cast<int>(who)];
}
inline void showValue(const Step& step, std::ostream& out) {
    struct Show {
        std::ostream& out;
        void operator()(const Push& s) const { out << "push " << s.messages; }
        void operator()(const Take& s) const {
            out << "pop " << s.budget << (s.auto_ack ? " auto" : " lease ") << s.lease;
        }
        void operator()(const Vector& s) const {
            out << "ack by " << s.who << (s.unbrought < 0 ? "" : " without letter ");
            if (s.unbrought >= 0) {
                out << s.unbrought;
            }
            for (const auto& [at, word] : s.items) {
                out << " +" << at << "=" << text_of(word);
            }
        }
        void operator()(const Positional& s) const {
            out << (s.ok ? "ack up to +" : "give back +") << s.upto << " from +" << s.first
                << " by " << s.who;
        }
        void operator()(const Wait& s) const { out << "wait " << s.seconds; }
        void operator()(const Seek& s) const { out << "seek back " << s.back; }
        void operator()(const Settings& s) const {
            out << "retries " << s.retries << " delay " << s.delay << " letters " << s.dead_letters;
        }
        void operator()(const HandBack&) const { out << "hand back"; }
        void operator()(const Extend& s) const { out << "extend " << s.seconds; }
    };
    std::visit(Show{out}, step);
}

/// What the rules make of the cursor, walking over the positions one at a time.
struct Model {
    std::int64_t messages = 0;
    int now = 0;
    int retries = 3, delay = 0;
    bool dead_letters = true;

    bool known = false; ///< the cursor row
    std::int64_t committed = -1, batch_end = kNone, retry_offset = kNone, attempt_at = kNone,
                 prior_at = kNone, consumed = 0;
    std::optional<std::string> worker; ///< "": a retry delay
    int until = 0, charged = 0, attempts = 0, prior_attempts = 0;
    std::string letters; ///< "offset x retries", in the order of filing

    bool live() const { return worker && until > now; }
    bool held() const { return live() && batch_end != kNone; }

    std::string row() const {
        const auto number = [](std::int64_t n) { return n == kNone ? "-" : std::to_string(n); };
        return std::to_string(committed) + " " + number(batch_end) + " " +
               (worker ? "'" + *worker + "' " + std::to_string(until) : "- -") + " " +
               std::to_string(charged) + "@" + number(retry_offset) + " " +
               std::to_string(attempts) + "@" + number(attempt_at) + " " +
               std::to_string(prior_attempts) + "@" + number(prior_at) + " " +
               std::to_string(consumed);
    }

    void end_lease() {
        worker.reset();
        until = 0;
        batch_end = kNone;
    }

    std::int64_t pop(const Take& take, const std::string& by) {
        known = true;
        if ((worker && until >= now) || committed == messages - 1) {
            return 0;
        }
        const auto end = std::min(committed + take.budget, messages - 1);
        const auto taken = end - committed;
        if (take.auto_ack) {
            end_lease();
            committed = end;
            consumed += taken;
            return taken;
        }
        prior_at = attempt_at;
        prior_attempts = attempts;
        attempts = attempt_at == committed + 1 ? attempts + 1 : 1;
        attempt_at = committed + 1;
        worker = by;
        until = now + take.lease;
        batch_end = end;
        return taken;
    }

    /// Moves the cursor there and takes down what that settles.
    void settle(std::int64_t to, bool release, bool given_up, std::int64_t charge) {
        bool fresh = given_up;
        if (to >= batch_end && batch_end != kNone) {
            fresh = true;
        }
        if (to >= retry_offset && retry_offset != kNone) {
            fresh = true;
        }
        if (to > committed) {
            const bool within = !given_up && batch_end != kNone && to < batch_end;
            attempt_at = within ? to + 1 : kNone;
            attempts = within ? attempts : 0;
        }
        prior_at = kNone;
        prior_attempts = 0;
        if (fresh) {
            charged = 0;
            retry_offset = kNone;
        }
        consumed += to - committed;
        committed = to;
        if (release) {
            end_lease();
        }
        if (charge != kNone) {
            ++charged;
            retry_offset = std::max(retry_offset, charge);
            if (delay > 0) {
                worker = "";
                until = now + delay;
            }
        }
    }

    struct Answer {
        std::string error;
        std::int64_t acked = 0, head = kNone;
        bool dropped = false, released = false, freed = false, covered = false;
        std::size_t noop = 0, stale = 0, unresolved = 0;
        Offsets letters;  ///< that are due
        Offsets rejected; ///< places of items
    };

    /// `have`: whether a letter can be brought, by its number among those that are due.
    Answer ack(const std::vector<std::pair<std::int64_t, Word>>& items,
               const std::optional<std::string>& by, int unbrought) {
        Answer answer;
        if (!known) {
            answer.error = "consumer not found";
            return answer;
        }
        if (by && !(held() && worker == by)) {
            // Sent again: all of it was completed, lately.
            const bool repeated =
                !items.empty() && std::all_of(items.begin(), items.end(), [&](const auto& item) {
                    return item.second == Word::completed && item.first <= committed;
                });
            if (repeated) {
                answer.noop = items.size();
            } else {
                answer.error = "invalid or expired lease";
            }
            return answer;
        }
        const auto last = held() ? batch_end : messages - 1;
        std::map<std::int64_t, Word> named; // the strongest word of each position
        std::int64_t highest = committed;
        for (const auto& [at, word] : items) {
            if (at >= messages) {
                ++answer.unresolved;
            } else if (at <= committed) {
                ++answer.noop;
            } else if (at > last) {
                ++answer.stale;
            } else {
                const auto known_word = named.try_emplace(at, word).first;
                known_word->second = std::max(known_word->second, word, [](Word a, Word b) {
                    const auto rank = [](Word w) {
                        return w == Word::dlq ? 3 : w == Word::failed ? 2 : w == Word::retry;
                    };
                    return rank(a) < rank(b);
                });
                highest = word == Word::completed ? std::max(highest, at) : highest;
            }
        }
        bool passed = false, stopped = false;
        std::int64_t to = committed, charge = kNone;
        for (auto at = committed + 1; at <= last && !stopped; ++at) {
            const auto item = named.find(at);
            const bool signal = item != named.end() && item->second != Word::completed;
            if (!signal) {
                to = at <= highest ? at : to;
                stopped = at > highest && passed;
                continue;
            }
            answer.head = answer.head == kNone ? at : answer.head;
            const int spent = passed || (retry_offset != kNone && to >= retry_offset) ? 0 : charged;
            if (item->second == Word::retry) {
                stopped = true;
            } else if (item->second == Word::failed && spent < retries) {
                charge = at;
                stopped = true;
            } else if (item->second == Word::dlq || dead_letters) {
                if (unbrought == static_cast<int>(answer.letters.size())) {
                    for (std::size_t i = 0; i < items.size(); ++i) {
                        if (items[i].first == at &&
                            (items[i].second == Word::dlq || items[i].second == Word::failed)) {
                            answer.rejected.push_back(static_cast<std::int64_t>(i));
                        }
                    }
                    stopped = true;
                } else {
                    answer.letters.push_back(at);
                    letters += std::to_string(at) + "x" + std::to_string(spent) + " ";
                    to = at;
                    passed = true;
                }
            } else {
                answer.dropped = true;
                to = at;
                passed = true;
            }
        }
        // A later signal stops what was passed, whether or not somebody named what lies between.
        const bool waits = live() && *worker == "" && batch_end == kNone;
        const bool ends = waits ? charge != kNone || (retry_offset != kNone && to >= retry_offset)
                          : answer.head != kNone ? true
                                                 : batch_end != kNone && to >= batch_end;
        answer.covered = ends && answer.head == kNone && held();
        answer.released = ends && worker && *worker != "";
        answer.freed = waits && ends && (charge == kNone || delay == 0);
        answer.acked = to - committed;
        if (ends || to > committed) {
            settle(to, ends, passed, charge);
        }
        return answer;
    }

    std::string positional(std::int64_t upto, std::int64_t first, bool ok,
                           const std::optional<std::string>& by) {
        if (!known) {
            return "consumer not found";
        }
        if (by && !(live() && worker == by)) {
            return "invalid or expired lease";
        }
        if (batch_end == kNone) {
            return "no leased batch";
        }
        if (ok && upto > batch_end) {
            return "position beyond leased batch";
        }
        if (ok && committed >= first) {
            return "batch was begun";
        }
        const auto to = ok ? std::max(upto, committed) : committed;
        const bool ends = !ok || to >= batch_end;
        const auto acked = to - committed;
        settle(to, ends, false, kNone);
        return std::to_string(acked) + (ends ? " released" : " kept") + (ok && ends ? " all" : "");
    }

    bool hand_back(const std::string& by) {
        if (!live() || worker != by) {
            return false;
        }
        end_lease();
        attempt_at = prior_at;
        attempts = prior_attempts;
        prior_at = kNone;
        prior_attempts = 0;
        return true;
    }

    void seek(std::int64_t to) {
        end_lease();
        committed = to;
        charged = attempts = prior_attempts = 0;
        retry_offset = attempt_at = prior_at = kNone;
    }
};

} // namespace queen::test
