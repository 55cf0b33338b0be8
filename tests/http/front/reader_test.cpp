#include "http/front/reader.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace queen::http {
namespace {

using Outcome = RequestReader::Outcome;

struct Reader {
    explicit Reader(Limits wanted = {})
        : limits(wanted), head_limits{wanted.head_bytes, wanted.uri_bytes, wanted.fields},
          budget(wanted.bodies_in_flight_bytes), reader(limits, head_limits, budget) {}
    Limits limits;
    HeadLimits head_limits;
    BodyBudget budget;
    RequestReader reader;

    /// Feeds as the front does: into the body's own room when there is some.
    Outcome feed(std::string_view bytes) {
        Outcome outcome = Outcome::more;
        while (!bytes.empty()) {
            const std::span<char> space = reader.body_space();
            const std::size_t part =
                space.empty() ? bytes.size() : std::min(space.size(), bytes.size());
            if (space.empty()) {
                outcome = reader.feed(bytes.substr(0, part));
            } else {
                std::memcpy(space.data(), bytes.data(), part);
                outcome = reader.received(part);
            }
            bytes.remove_prefix(part);
        }
        return outcome;
    }
};

const std::string kGet = "GET /g?x=1 HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nx-b:  two words \r\n\r\n";
const std::string kPost =
    "POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 12\r\n\r\nhello\r\n\r\nGET";
const std::string kChunked = "PUT /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
                             "chunked\r\n\r\n5;x\r\nhello\r\n0\r\nT: t\r\n\r\n";

TEST(Reader, YieldsTheSameRequestsHoweverTheBytesAreCut) {
    const std::string stream = kGet + kPost + "\r\n" + kChunked;
    for (std::size_t first = 0; first <= stream.size(); ++first) {
        Reader r;
        std::vector<Request> requests;
        const auto collect = [&](Outcome outcome) {
            while (outcome == Outcome::whole) {
                Whole whole = r.reader.take();
                r.budget.give(whole.charge);
                requests.push_back(std::move(whole.request));
                outcome = r.reader.next();
            }
            ASSERT_EQ(outcome, Outcome::more) << "cut at " << first;
        };
        collect(r.feed(std::string_view(stream).substr(0, first)));
        collect(r.feed(std::string_view(stream).substr(first)));
        ASSERT_EQ(requests.size(), 3u) << "cut at " << first;
        EXPECT_EQ(requests[0].method, "GET");
        EXPECT_EQ(requests[0].path, "/g");
        EXPECT_EQ(requests[0].query, "x=1");
        EXPECT_EQ(requests[0].body, "");
        EXPECT_EQ(requests[0].header("x-a"), "1");
        EXPECT_EQ(requests[0].header("X-B"), "two words");
        EXPECT_EQ(requests[0].headers[1].first, "X-A");
        EXPECT_EQ(requests[1].body, "hello\r\n\r\nGET");
        EXPECT_EQ(requests[2].method, "PUT");
        EXPECT_EQ(requests[2].body, "hello");
        EXPECT_TRUE(r.reader.idle());
        EXPECT_EQ(r.budget.used(), 0u);
    }
}

TEST(Reader, TakesOneRequestAtATimeAndKeepsTheRest) {
    Reader r;
    EXPECT_EQ(r.feed(kGet + kGet + kGet.substr(0, 10)), Outcome::whole);
    EXPECT_EQ(r.reader.kept_bytes(), kGet.size() + 10);
    r.reader.take();
    EXPECT_EQ(r.reader.next(), Outcome::whole);
    r.reader.take();
    EXPECT_EQ(r.reader.next(), Outcome::more);
    EXPECT_FALSE(r.reader.idle());
    EXPECT_EQ(r.feed(kGet.substr(10)), Outcome::whole);
    r.reader.take();
    EXPECT_TRUE(r.reader.idle());
}

TEST(Reader, KeepsBytesThatComeBeforeAWholeRequestIsTaken) {
    Reader r;
    EXPECT_EQ(r.feed(kGet), Outcome::whole);
    EXPECT_EQ(r.feed(kPost.substr(0, 20)), Outcome::whole);
    EXPECT_EQ(r.reader.take().request.path, "/g");
    EXPECT_EQ(r.reader.next(), Outcome::more);
    EXPECT_EQ(r.feed(kPost.substr(20)), Outcome::whole);
    EXPECT_EQ(r.reader.take().request.body, "hello\r\n\r\nGET");
}

TEST(Reader, ReservesForAnAnnouncedBodyOnlyAsItArrives) {
    Reader r;
    const std::size_t length = 10 << 20;
    EXPECT_EQ(r.feed("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(length) +
                     "\r\n\r\n"),
              Outcome::more);
    EXPECT_EQ(r.budget.used(), RequestReader::kBodyStep);
    std::size_t sent = 0;
    while (sent < length) {
        const std::size_t room = r.reader.body_space().size();
        ASSERT_GT(room, 0u);
        std::memset(r.reader.body_space().data(), 'b', room);
        sent += room;
        const Outcome outcome = r.reader.received(room);
        ASSERT_EQ(outcome, sent == length ? Outcome::whole : Outcome::more);
        EXPECT_LE(r.budget.used(), 2 * sent);
    }
    const Whole whole = r.reader.take();
    EXPECT_EQ(whole.request.body, std::string(length, 'b'));
    EXPECT_EQ(whole.charge, length);
    EXPECT_EQ(r.budget.used(), length) << "charged until the answer";
}

TEST(Reader, RefusesABodyOverItsLimitByTheHeadAlone) {
    Reader r({.body_bytes = 100});
    EXPECT_EQ(r.feed("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 101\r\n\r\n"),
              Outcome::refused);
    const Refusal refusal = r.reader.take_refusal();
    EXPECT_EQ(refusal.status, 413);
    EXPECT_NE(refusal.text.find("100 bytes"), std::string::npos);
    EXPECT_EQ(r.feed(kGet), Outcome::refused) << "nothing behind a refusal is a request";
}

TEST(Reader, RefusesBodiesBeyondTheBudgetAndGivesBackWhatItTook) {
    Reader r({.body_bytes = 1000, .bodies_in_flight_bytes = 1500});
    ASSERT_TRUE(r.budget.take(600)); // somebody else's
    const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 901\r\n\r\n";
    EXPECT_EQ(r.feed(head), Outcome::refused);
    const Refusal refusal = r.reader.take_refusal();
    EXPECT_EQ(refusal.status, 503);
    EXPECT_TRUE(refusal.retry_later);
    EXPECT_EQ(r.budget.used(), 600u);

    Reader chunked({.body_bytes = 1000, .bodies_in_flight_bytes = 500});
    EXPECT_EQ(chunked.feed("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                           "190\r\n" +
                           std::string(400, 'x') + "\r\n"),
              Outcome::more);
    EXPECT_EQ(chunked.budget.used(), 400u);
    EXPECT_EQ(chunked.feed("190\r\n" + std::string(400, 'x') + "\r\n"), Outcome::refused);
    EXPECT_EQ(chunked.reader.take_refusal().status, 503);
    EXPECT_EQ(chunked.budget.used(), 0u);
}

TEST(Reader, GivesTheBudgetBackWhenItsConnectionEnds) {
    Limits limits;
    HeadLimits head_limits;
    BodyBudget budget(1 << 20);
    {
        RequestReader reader(limits, head_limits, budget);
        reader.feed("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5000\r\n\r\nabc");
        EXPECT_GT(budget.used(), 0u);
    }
    EXPECT_EQ(budget.used(), 0u);
}

TEST(Reader, AsksForABodyOnlyWhenTheClientWaitsWithIt) {
    const std::string fields = "Host: h\r\nExpect: 100-continue\r\n";
    Reader waits;
    EXPECT_EQ(waits.feed("POST / HTTP/1.1\r\n" + fields + "Content-Length: 2\r\n\r\n"),
              Outcome::more);
    EXPECT_TRUE(waits.reader.take_continue());
    EXPECT_FALSE(waits.reader.take_continue());
    EXPECT_EQ(waits.feed("{}"), Outcome::whole);

    Reader sends;
    EXPECT_EQ(sends.feed("POST / HTTP/1.1\r\n" + fields + "Content-Length: 2\r\n\r\n{"),
              Outcome::more);
    EXPECT_FALSE(sends.reader.take_continue());

    Reader none;
    EXPECT_EQ(none.feed("POST / HTTP/1.1\r\n" + fields + "Content-Length: 0\r\n\r\n"),
              Outcome::whole);
    EXPECT_FALSE(none.reader.take_continue());
}

TEST(Reader, TurnsAbsoluteTargetsIntoPaths) {
    const auto parse = [](const std::string& target) {
        Reader r;
        EXPECT_EQ(r.feed("GET " + target + " HTTP/1.1\r\nHost: h\r\n\r\n"), Outcome::whole);
        Request request = r.reader.take().request;
        return request.path + " " + request.query;
    };
    EXPECT_EQ(parse("http://broker:1/a/b?c=d"), "/a/b c=d");
    EXPECT_EQ(parse("http://broker"), "/ ");
    EXPECT_EQ(parse("http://broker?c=d"), "/ c=d");
    EXPECT_EQ(parse("/a?b?c"), "/a b?c");
    EXPECT_EQ(parse("/a%2Fb+c?"), "/a%2Fb+c ");
    EXPECT_EQ(parse("//a"), "//a ");
}

} // namespace
} // namespace queen::http
