#include "queenctl/pusher.hpp"

#include "base/json.hpp"
#include "queenctl/text_table.hpp"

#include <algorithm>
#include <ostream>

namespace queen::ctl {
namespace {

constexpr std::chrono::milliseconds kFirstPause{100};
constexpr std::chrono::milliseconds kLongestPause{5'000};
constexpr std::chrono::seconds kLongestAsked{30}; ///< of a Retry-After
constexpr std::int64_t kReportedLines = 20;       ///< the rest is in the totals

bool try_again(int status) {
    return status == 429 || status >= 500;
}

} // namespace

void Pusher::count_failed(std::int64_t line, const std::string& why) {
    ++totals_.failed;
    if (++reported_ <= kReportedLines) {
        terminal_.err << "line " << line << ": " << printable(why) << "\n";
    } else if (reported_ == kReportedLines + 1) {
        terminal_.err << "more lines failed; they are in the totals\n";
    }
}

Result<void> Pusher::send(std::span<const Message> batch) {
    Batch all;
    for (const Message& message : batch) {
        all.push_back(&message);
    }
    return send_all(std::move(all), false);
}

Result<void> Pusher::send_all(Batch batch, bool again) {
    std::string why;
    Errc code = Errc::store_failed;
    const std::size_t first_size = batch.size();
    auto pause = kFirstPause;
    for (std::int64_t attempt = 0; !batch.empty() && attempt <= options_.retries; ++attempt) {
        if (attempt > 0) {
            terminal_.pause(pause);
            pause = std::min(pause * 2, kLongestPause);
        }
        const auto answer = client_.call("POST", "/api/v1/push", {}, body_of(batch));
        if (!answer) {
            why = answer.error().message;
            code = Errc::unavailable;
            again = true; // whether the request was carried out is not known
            continue;
        }
        code = Errc::store_failed;
        if (answer->status == 201) {
            auto rest = read_results(batch, again, answer->body, why);
            if (!rest) {
                return fail(rest.error());
            }
            batch = std::move(*rest);
        } else if (try_again(answer->status)) {
            why = refusal(*answer);
            if (answer->retry_after.count() > 0) {
                pause = std::min(answer->retry_after, kLongestAsked);
            }
        } else {
            return halve(batch, again, *answer);
        }
        again = true;
    }
    if (batch.empty()) {
        return {};
    }
    if (code == Errc::unavailable) {
        return fail(code, why); // not counted: nobody knows
    }
    for (const Message* message : batch) {
        count_failed(message->line, why);
    }
    if (batch.size() < first_size || options_.keep_going) {
        return {}; // some of it went through, so the broker works
    }
    return fail(code, why);
}

Result<void> Pusher::halve(const Batch& batch, bool again, const Answer& answer) {
    const bool of_a_message = answer.status == 400 || answer.status == 413;
    if (batch.size() == 1 && of_a_message) {
        count_failed(batch.front()->line, refusal(answer));
        return {};
    }
    if (!of_a_message) {
        for (const Message* message : batch) {
            count_failed(message->line, refusal(answer));
        }
        return fail(Errc::store_failed, refusal(answer));
    }
    const auto middle = batch.begin() + static_cast<std::ptrdiff_t>(batch.size() / 2);
    if (auto first = send_all({batch.begin(), middle}, again); !first) {
        return first;
    }
    return send_all({middle, batch.end()}, again);
}

Result<Pusher::Batch> Pusher::read_results(const Batch& batch, bool again, const std::string& body,
                                           std::string& why) {
    const auto document = json::Document::parse(body);
    if (!document || !document->root().is(json::Kind::array) ||
        document->root().size() != batch.size()) {
        return fail(Errc::store_failed,
                    "the answer to the push is not one result for each message; is this a broker?");
    }
    Batch rest;
    for (std::size_t i = 0; i < batch.size(); ++i) {
        const json::Value result = document->root().at(i);
        const std::string_view status = result["status"].string();
        if (status == "queued") {
            ++totals_.queued;
        } else if (status == "duplicate") {
            ++(again && options_.own_ids ? totals_.queued : totals_.duplicate);
        } else if (status == "buffered") {
            ++totals_.buffered;
        } else {
            const std::string_view error = result["error"].string();
            why = error.empty() ? "the broker answered " + std::string(status) : std::string(error);
            rest.push_back(batch[i]);
        }
    }
    return rest;
}

std::string Pusher::body_of(const Batch& batch) const {
    std::string body;
    json::Writer out(body);
    out.begin_object().key("items").begin_array();
    for (const Message* message : batch) {
        out.begin_object();
        out.key("queue").string(options_.queue);
        if (!message->partition.empty()) {
            out.key("partition").string(message->partition);
        }
        out.key("transactionId").string(message->transaction);
        out.key("payload").raw(message->payload);
        out.end_object();
    }
    out.end_array().end_object();
    return body;
}

} // namespace queen::ctl
