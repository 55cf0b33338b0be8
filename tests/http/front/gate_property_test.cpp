// Properties of everything between the bytes and a Request, over generated streams.
#include "http/front/reader.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace queen::http {
namespace {

/// What a stream came to: requests in order, then perhaps a refusal.
struct Outcomes {
    std::vector<std::string> requests;
    int refused = 0;
    bool operator==(const Outcomes&) const = default;
};
void showValue(const Outcomes& outcomes, std::ostream& out) {
    for (const std::string& request : outcomes.requests) {
        out << "[" << request << "] ";
    }
    out << "refused " << outcomes.refused;
}

std::string shown(const Request& request) {
    std::string text = request.method + " " + request.path + "?" + request.query;
    for (const auto& [name, value] : request.headers) {
        text += "|" + name + "=" + value;
    }
    return text + "|" + request.body;
}

/// Runs a stream through a reader, in pieces whose sizes repeat `cuts`.
Outcomes run(const std::string& stream, const std::vector<std::size_t>& cuts) {
    Limits limits;
    limits.head_bytes = 400;
    limits.uri_bytes = 60;
    limits.fields = 8;
    limits.body_bytes = 300;
    const HeadLimits head_limits{limits.head_bytes, limits.uri_bytes, limits.fields};
    BodyBudget budget(1 << 20);
    Outcomes outcomes;
    {
        RequestReader reader(limits, head_limits, budget);
        std::size_t at = 0, cut = 0;
        while (at < stream.size() && outcomes.refused == 0) {
            const std::span<char> space = reader.body_space();
            std::size_t size = std::min(cuts[cut++ % cuts.size()], stream.size() - at);
            RequestReader::Outcome outcome{};
            if (space.empty()) {
                outcome = reader.feed(std::string_view(stream).substr(at, size));
            } else {
                size = std::min(size, space.size());
                stream.copy(space.data(), size, at);
                outcome = reader.received(size);
            }
            at += size;
            while (outcome == RequestReader::Outcome::whole) {
                Whole whole = reader.take();
                budget.give(whole.charge);
                outcomes.requests.push_back(shown(whole.request));
                outcome = reader.next();
            }
            if (outcome == RequestReader::Outcome::refused) {
                outcomes.refused = reader.take_refusal().status;
            }
        }
    }
    RC_ASSERT(budget.used() == 0u);
    return outcomes;
}

std::string as_chunks(const std::string& body, std::size_t size) {
    std::string text;
    for (std::size_t at = 0; at < body.size(); at += size) {
        const std::string part = body.substr(at, size);
        char digits[20];
        std::snprintf(digits, sizeof digits, "%zx", part.size());
        text += digits + std::string(at % 2 == 0 ? "" : ";e=1") + "\r\n" + part + "\r\n";
    }
    return text + "0\r\n\r\n";
}

/// Fragments of which requests and attacks on them are made.
rc::Gen<std::string> fragment() {
    return rc::gen::weightedOneOf<std::string>(
        {{6, rc::gen::element<std::string>(
                 "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "POST /p HTTP/1.1\r\nHost: h\r\n",
                 "Content-Length: 5\r\n", "Content-Length: 0\r\n", "Transfer-Encoding: chunked\r\n",
                 "Connection: close\r\n", "A: b\r\n")},
         {4, rc::gen::element<std::string>("\r\n", "5\r\nhello\r\n", "0\r\n\r\n", "hello", "0\r\n",
                                           "\r\n\r\n")},
         {2, rc::gen::element<std::string>(" ", "\t", "\n", "\r", ":", ";", std::string(1, '\0'),
                                           "Content-Length : 3\r\n", "Content-Length: +3\r\n",
                                           "Transfer-Encoding: x\r\n", " folded\r\n",
                                           "HTTP/1.0\r\n", "ffffffffffffffff\r\n")},
         {1, rc::gen::container<std::string>(rc::gen::arbitrary<char>())}});
}

rc::Gen<std::vector<std::size_t>> cut_sizes() {
    return rc::gen::nonEmpty(rc::gen::container<std::vector<std::size_t>>(
        rc::gen::weightedOneOf<std::size_t>({{3, rc::gen::inRange<std::size_t>(1, 4)},
                                             {1, rc::gen::inRange<std::size_t>(1, 200)}})));
}

RC_GTEST_PROP(ReaderProperty, TheVerdictDoesNotDependOnHowBytesAreCut, ()) {
    const auto parts = *rc::gen::container<std::vector<std::string>>(fragment());
    std::string stream;
    for (const std::string& part : parts) {
        stream += part;
    }
    const Outcomes whole = run(stream, {stream.size() + 1});
    RC_ASSERT(run(stream, {1}) == whole);
    RC_ASSERT(run(stream, *cut_sizes()) == whole);
}

RC_GTEST_PROP(ReaderProperty, ExactlyTheRequestsSentComeOutWhateverTheirBodiesHold, ()) {
    const auto bodies = *rc::gen::container<std::vector<std::vector<std::string>>>(
        rc::gen::container<std::vector<std::string>>(fragment()));
    std::string stream;
    std::vector<std::string> sent;
    for (std::size_t i = 0; i < bodies.size(); ++i) {
        std::string body;
        for (const std::string& part : bodies[i]) {
            body += part;
        }
        body.resize(std::min<std::size_t>(body.size(), 300));
        const std::string number = std::to_string(i);
        const std::string head = "POST /n?" + number + " HTTP/1.1\r\nHost: h\r\n";
        const bool chunked = *rc::gen::arbitrary<bool>();
        const std::string field =
            chunked ? "Transfer-Encoding=chunked" : "Content-Length=" + std::to_string(body.size());
        std::string line = field;
        line.replace(line.find('='), 1, ": ");
        stream += head + line + "\r\n\r\n" +
                  (chunked ? as_chunks(body, *rc::gen::inRange<std::size_t>(1, 40)) : body);
        sent.push_back("POST /n?" + number + "|Host=h|" + field + "|" + body);
    }
    const Outcomes outcomes = run(stream, *cut_sizes());
    RC_ASSERT(outcomes.refused == 0);
    RC_ASSERT(outcomes.requests == sent);
}

/// A second, naive reading of a head, for comparison: nullopt when it finds anything doubtful.
struct Naive {
    bool chunked = false;
    std::optional<std::size_t> length;
    std::size_t end = 0;
};
std::optional<Naive> read_naively(const std::string& stream) {
    const std::size_t end = stream.find("\r\n\r\n");
    if (end == std::string::npos) {
        return std::nullopt;
    }
    Naive naive{.end = end + 4};
    const std::string head = stream.substr(0, end + 2);
    for (std::size_t i = 0; i < head.size(); ++i) {
        const bool crlf = (head[i] == '\r' && head[i + 1] == '\n') ||
                          (head[i] == '\n' && i > 0 && head[i - 1] == '\r');
        if (!crlf && head[i] != '\t' && static_cast<unsigned char>(head[i]) < 0x20) {
            return std::nullopt;
        }
    }
    std::map<std::string, std::vector<std::string>> fields;
    for (std::size_t at = head.find("\r\n") + 2; at < head.size();) {
        const std::size_t stop = head.find("\r\n", at);
        const std::string line = head.substr(at, stop - at);
        at = stop + 2;
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos || line.find_first_of(" \t") < colon) {
            return std::nullopt;
        }
        std::string name = line.substr(0, colon);
        std::transform(name.begin(), name.end(), name.begin(),
                       [](unsigned char byte) { return static_cast<char>(std::tolower(byte)); });
        const std::size_t first = line.find_first_not_of(" \t", colon + 1);
        const std::size_t last = line.find_last_not_of(" \t");
        fields[name].push_back(first == std::string::npos ? ""
                                                          : line.substr(first, last - first + 1));
    }
    const auto& lengths = fields["content-length"];
    const auto& codings = fields["transfer-encoding"];
    if (lengths.size() + codings.size() > 1 || fields["host"].size() > 1) {
        return std::nullopt;
    }
    if (!codings.empty()) {
        if (codings[0] != "chunked") {
            return std::nullopt;
        }
        naive.chunked = true;
    }
    if (!lengths.empty()) {
        if (lengths[0].empty() || lengths[0].find_first_not_of("0123456789") != std::string::npos) {
            return std::nullopt;
        }
        naive.length = std::stoull(lengths[0]);
    }
    return naive;
}

RC_GTEST_PROP(GateProperty, WhatPassesHasNoSecondReading, ()) {
    std::string stream = "POST /p HTTP/1.1\r\nHost: h\r\n";
    for (const std::string& part : *rc::gen::container<std::vector<std::string>>(fragment())) {
        stream += part;
    }
    stream += "\r\n\r\n";
    const HeadLimits limits;
    Gate gate(limits);
    if (gate.scan(stream) != Gate::Verdict::passed) {
        RC_DISCARD("refused");
    }
    const std::optional<Naive> naive = read_naively(stream);
    RC_ASSERT(naive.has_value());
    RC_ASSERT(gate.head().end == naive->end);
    RC_ASSERT((gate.head().framing == Framing::chunked) == naive->chunked);
    RC_ASSERT((gate.head().framing == Framing::length) == naive->length.has_value());
    RC_ASSERT(!naive->length || gate.head().content_length == *naive->length);
}

} // namespace
} // namespace queen::http
