#include "queenctl/command.hpp"
#include "queenctl/pusher.hpp"

#include <array>
#include <filesystem>
#include <fstream>
#include <istream>
#include <ostream>

namespace queen::ctl {
namespace {

constexpr std::size_t kBatchBytes = 4u << 20; ///< of payload: well below a broker's body limit
constexpr std::chrono::seconds kProgressEvery{1};

constexpr std::array kFlags{
    Flag{"partition", "NAME", "Partition of every message; the broker's default without."},
    Flag{"partition-field", "A.B", "Take the partition from a field of the JSON line."},
    Flag{"partition-regex", "RE", "Take the partition from the line by an expression."},
    Flag{"partition-default", "NAME", "For lines without that field or match; else they fail."},
    Flag{"txn-field", "A.B", "Take the transaction id from a field of the JSON line."},
    Flag{"txn-regex", "RE", "Take the transaction id from the line by an expression."},
    Flag{"txn-line", "", "Use the line's number, after --txn-prefix, as transaction id."},
    Flag{"txn-prefix", "TEXT", "Before the line's number; the file's name and a colon without."},
    Flag{"batch", "N", "Messages in a request; 100."},
    Flag{"raw", "", "Every line is a string, even when it is JSON."},
    Flag{"retries", "N", "Tries after the first one; 5."},
    Flag{"keep-going", "", "Go on after a batch that failed whole."},
    Flag{"progress", "", "Report progress even when standard error is no terminal."},
};

Result<MessageRules> rules_of(const Arguments& arguments, const std::string& file) {
    MessageRules rules;
    const auto partition = arguments.exclusive({"partition", "partition-field", "partition-regex"});
    const auto transaction = arguments.exclusive({"txn-field", "txn-regex", "txn-line"});
    if (const Error* error = first_error(partition, transaction)) {
        return fail(*error);
    }
    for (const char* name : {"partition-field", "partition-regex", "txn-field", "txn-regex"}) {
        if (arguments.has(name) && arguments.text(name).empty()) {
            return fail(Errc::invalid_argument, "--" + std::string(name) + " is empty");
        }
    }
    rules.raw = arguments.has("raw");
    rules.partition = arguments.text("partition");
    rules.partition_field = arguments.text("partition-field");
    rules.partition_regex = arguments.text("partition-regex");
    if (arguments.has("partition-default")) {
        if (rules.partition_field.empty() && rules.partition_regex.empty()) {
            return fail(Errc::invalid_argument,
                        "--partition-default needs --partition-field or --partition-regex");
        }
        rules.partition_default = arguments.text("partition-default");
    }
    rules.transaction_field = arguments.text("txn-field");
    rules.transaction_regex = arguments.text("txn-regex");
    rules.transaction_line = arguments.has("txn-line");
    if (arguments.has("txn-prefix") && !rules.transaction_line) {
        return fail(Errc::invalid_argument, "--txn-prefix needs --txn-line");
    }
    const std::string name =
        file == "-" ? "" : std::filesystem::path(file).filename().string() + ":";
    rules.transaction_prefix = arguments.text("txn-prefix", name);
    return rules;
}

/// Reports how far a long input is, at most once a second.
class Progress {
public:
    Progress(Terminal& terminal, bool on)
        : terminal_(terminal), on_(on), start_(terminal.clock.now()), last_(start_) {}

    void report(std::int64_t line) {
        const auto now = terminal_.clock.now();
        if (!on_ || now - last_ < kProgressEvery) {
            return;
        }
        last_ = now;
        const auto seconds = std::chrono::duration<double>(now - start_).count();
        terminal_.err << (terminal_.err_is_terminal ? "\r" : "") << line << " lines, "
                      << static_cast<std::int64_t>(static_cast<double>(line) / seconds) << "/s"
                      << (terminal_.err_is_terminal ? "  " : "\n") << std::flush;
        shown_ = true;
    }
    void end() {
        if (shown_ && terminal_.err_is_terminal) {
            terminal_.err << "\n";
        }
    }

private:
    Terminal& terminal_;
    bool on_, shown_ = false;
    SteadyTime start_, last_;
};

void print_totals(Session& session, const PushTotals& totals, std::int64_t lines) {
    std::ostream& out = session.terminal.out;
    if (session.json()) {
        std::string text;
        json::Writer(text)
            .begin_object()
            .key("lines")
            .integer(lines)
            .key("queued")
            .integer(totals.queued)
            .key("duplicate")
            .integer(totals.duplicate)
            .key("buffered")
            .integer(totals.buffered)
            .key("failed")
            .integer(totals.failed)
            .end_object();
        out << text << "\n";
        return;
    }
    out << "queued " << totals.queued << ", duplicate " << totals.duplicate;
    if (totals.buffered > 0) {
        out << ", buffered " << totals.buffered;
    }
    out << ", failed " << totals.failed << "\n";
}

/// Reads all lines and sends them.
Result<void> push_lines(std::istream& in, MessageMaker& maker, Pusher& pusher,
                        std::size_t batch_size, Progress& progress, std::int64_t& line) {
    std::vector<Message> batch;
    std::size_t bytes = 0;
    const auto flush = [&]() -> Result<void> {
        if (batch.empty()) {
            return {};
        }
        auto sent = pusher.send(batch);
        if (!sent) {
            sent.error().message = "stopped at line " + std::to_string(batch.front().line) + ": " +
                                   sent.error().message;
        }
        batch.clear();
        bytes = 0;
        progress.report(line);
        return sent;
    };
    std::string text;
    while (std::getline(in, text)) {
        ++line;
        auto message = maker.read(line, text);
        if (!message) {
            pusher.count_failed(line, message.error().message);
            continue;
        }
        if (!*message) {
            continue;
        }
        bytes += (*message)->payload.size();
        batch.push_back(std::move(**message));
        if (batch.size() >= batch_size || bytes >= kBatchBytes) {
            if (auto sent = flush(); !sent) {
                return sent;
            }
        }
    }
    if (in.bad()) {
        return fail(Errc::internal, "the input cannot be read to its end");
    }
    return flush();
}

} // namespace

constinit const std::span<const Flag> kPushFlags = kFlags;

Result<Exit> push(Session& session) {
    const Arguments& arguments = session.arguments;
    if (auto words = arguments.expect(1, 2, "QUEUE"); !words) {
        return fail(words.error());
    }
    const std::string file = arguments.words().size() > 1 ? arguments.words()[1] : "-";
    const auto batch = arguments.whole("batch", 100, 1, 10'000);
    const auto retries = arguments.whole("retries", 5, 0, 1'000);
    auto rules = rules_of(arguments, file);
    if (const Error* error = first_error(batch, retries, rules)) {
        return fail(*error);
    }
    const bool own_ids = !rules->transaction_line && rules->transaction_field.empty() &&
                         rules->transaction_regex.empty();
    auto maker = MessageMaker::make(std::move(*rules));
    if (!maker) {
        return fail(maker.error());
    }
    auto client = session.client();
    if (!client) {
        return fail(client.error());
    }
    std::ifstream opened;
    if (file != "-") {
        std::error_code ignored;
        opened.open(file, std::ios::binary);
        if (!opened || std::filesystem::is_directory(file, ignored)) {
            return fail(Errc::invalid_argument, file + " cannot be read");
        }
    }
    Terminal& terminal = session.terminal;
    Pusher pusher(*client, terminal,
                  {arguments.words()[0], *retries, own_ids, arguments.has("keep-going")});
    Progress progress(terminal, terminal.err_is_terminal || arguments.has("progress"));
    std::int64_t line = 0;
    const auto done = push_lines(file == "-" ? terminal.in : opened, *maker, pusher,
                                 static_cast<std::size_t>(*batch), progress, line);
    progress.end();
    print_totals(session, pusher.totals(), line);
    if (!done) {
        return fail(done.error());
    }
    return pusher.totals().failed > 0 ? Exit::failed : Exit::ok;
}

} // namespace queen::ctl
