#include "mesh/wire.hpp"
#include "plugins/mesh/mesh_fixture.hpp"
#include "shared/hint_json.hpp"

#include <gtest/gtest.h>

#include <random>

namespace queen::mesh {
namespace {

using namespace std::string_literals;
using State = FrameReader::State;

/// Feeds `bytes` in pieces of the sizes that `next_size` says. @return type and JSON of each frame
template <class Sizes>
std::vector<std::string> cut(std::string_view bytes, Sizes&& next_size, State& end) {
    FrameReader reader(kMaxFrame);
    std::vector<std::string> out;
    while (true) {
        FrameReader::Frame frame;
        while ((end = reader.next(frame)) == State::frame) {
            out.push_back(static_cast<char>(frame.type) + std::string(frame.json));
        }
        if (end != State::more || bytes.empty()) {
            return out;
        }
        const std::span<char> room = reader.room();
        EXPECT_FALSE(room.empty());
        const std::size_t size = std::min({room.size(), bytes.size(), next_size()});
        std::copy_n(bytes.begin(), size, room.begin());
        reader.take(size);
        bytes.remove_prefix(size);
    }
}

TEST(Wire, ME4_AFrameIsLengthTypeAndJson) {
    EXPECT_EQ(make_frame(FrameType::heartbeat, "{}"), "\0\0\0\3\3{}"s);
    EXPECT_EQ(heartbeat_frame("a\"b"),
              make_frame(FrameType::heartbeat, "{\"server_id\":\"a\\\"b\"}"));
}

TEST(Wire, EveryCutOfAStreamGivesTheSameFrames) {
    const std::string stream = make_frame(FrameType::hello, "{\"a\":1}") +
                               make_frame(static_cast<FrameType>(200), "") +
                               make_frame(FrameType::dirty_batch, std::string(300, 'x'));
    const std::vector<std::string> whole{"\4{\"a\":1}", "\xc8", "\5" + std::string(300, 'x')};
    for (std::size_t first = 1; first < stream.size(); ++first) {
        State end{};
        bool once = true;
        const auto got = cut(
            stream, [&] { return std::exchange(once, false) ? first : stream.size(); }, end);
        EXPECT_EQ(got, whole) << first;
        EXPECT_EQ(end, State::more);
    }
    State end{};
    EXPECT_EQ(cut(
                  stream, [] { return std::size_t{1}; }, end),
              whole);
    for (std::size_t size = 0; size < stream.size(); ++size) { // cut short: never a frame too many
        const auto got = cut(
            std::string_view(stream).substr(0, size), [] { return std::size_t{7}; }, end);
        EXPECT_LE(got.size(), whole.size());
        EXPECT_EQ(end, State::more);
    }
}

TEST(Wire, RandomStreamsReadTheSameHoweverTheyAreSplit) {
    std::mt19937 random(20261130);
    for (int round = 0; round < 60; ++round) {
        std::string stream;
        std::vector<std::string> sent;
        for (int i = 0; i < 20; ++i) {
            const std::size_t size = random() % 4 == 0 ? random() % 200'000 : random() % 50;
            std::string json(size, static_cast<char>('a' + i));
            const auto type = static_cast<std::uint8_t>(random());
            sent.push_back(static_cast<char>(type) + json);
            stream += make_frame(static_cast<FrameType>(type), json);
        }
        State end{};
        EXPECT_EQ(
            cut(
                stream, [&] { return 1 + random() % (round % 2 == 0 ? 100'000 : 3'000); }, end),
            sent);
        EXPECT_EQ(end, State::more);
    }
}

TEST(Wire, RandomBytesNeverReadBeyondTheirEnd) {
    std::mt19937 random(7);
    for (int round = 0; round < 2'000; ++round) {
        std::string bytes(random() % 64, '\0');
        for (char& c : bytes) {
            c = static_cast<char>(random() % 3 == 0 ? random() : random() % 4);
        }
        State end{};
        std::size_t total = 0;
        for (const std::string& frame : cut(
                 bytes, [&] { return 1 + random() % 9; }, end)) {
            total += 4 + frame.size();
        }
        EXPECT_LE(total, bytes.size());
    }
}

TEST(Wire, ME4_ZeroAndTooLongAreErrorsBeforeAnythingIsAllocated) {
    for (const auto& [head, expected] :
         {std::pair("\0\0\0\0"s, State::empty_frame), std::pair("\1\0\0\1"s, State::too_long),
          std::pair("\xff\xff\xff\xff"s, State::too_long), std::pair("\1\0\0\0"s, State::more)}) {
        FrameReader reader(kMaxFrame);
        const std::span<char> room = reader.room();
        std::copy(head.begin(), head.end(), room.begin());
        reader.take(head.size());
        FrameReader::Frame frame;
        EXPECT_EQ(reader.next(frame), expected);
        EXPECT_LE(reader.memory(), std::size_t{64} << 10) << "what a length says is not believed";
    }
}

TEST(Wire, AnUnprovenPeerGetsFourKilobytes) {
    FrameReader reader(kMaxUnproven);
    const std::string head = "\0\0\x10\1"s; // 4097
    std::copy(head.begin(), head.end(), reader.room().begin());
    reader.take(head.size());
    FrameReader::Frame frame;
    EXPECT_EQ(reader.next(frame), State::too_long);
    EXPECT_EQ(reader.memory(), kMaxUnproven + 4);
}

TEST(Wire, MemoryIsGivenBackAfterALargeFrame) {
    FrameReader reader(kMaxFrame);
    const std::string stream = make_frame(FrameType::dirty_batch, std::string(3'000'000, 'x'));
    std::string_view rest = stream;
    FrameReader::Frame frame;
    while (!rest.empty()) {
        EXPECT_EQ(reader.next(frame), State::more);
        const std::span<char> room = reader.room();
        const std::size_t size = std::min(room.size(), rest.size());
        std::copy_n(rest.begin(), size, room.begin());
        reader.take(size);
        rest.remove_prefix(size);
    }
    EXPECT_EQ(reader.next(frame), State::frame);
    EXPECT_LT(reader.memory(), 2 * stream.size() + 8) << "memory follows what came";
    EXPECT_FALSE(reader.room().empty());
    EXPECT_LE(reader.memory(), std::size_t{256} << 10);
}

std::vector<std::string> frames(const std::vector<Hint>& hints) {
    std::vector<std::string> out;
    for (const OutFrame& frame : frames_of(hints)) {
        out.push_back(frame.bytes->substr(4));
    }
    return out;
}

TEST(Wire, ME5_EachKindOfHintHasItsFrame) {
    const std::string tenant = ",\"tenant\":\"" + std::string(kTenant) + "\"";
    EXPECT_EQ(
        frames({configured("q"), deleted("q"), switched("maintenance", true),
                switched("pop_maintenance", false), switched("timers_fire", false),
                moved("q", "", "g"), moved("q", "p", "g"), stored("q", "p1"), stored("q", "p2")}),
        (std::vector<std::string>{
            "\x0a{\"queue\":\"q\"" + tenant + "}", "\x0b{\"queue\":\"q\"" + tenant + "}",
            "\x28{\"enabled\":true}", "\x29{\"enabled\":false}",
            "\x43{\"subject\":\"timers_fire\",\"enabled\":false}",
            "\x40{\"queue\":\"q\"" + tenant + ",\"group\":\"g\"}",
            "\x40{\"queue\":\"q\",\"partition\":\"p\"" + tenant + ",\"group\":\"g\"}",
            "\2{\"items\":[{\"queue\":\"q\",\"partition\":\"p1\"" + tenant +
                "},{\"queue\":\"q\",\"partition\":\"p2\"" + tenant + "}]}"}));
}

TEST(Wire, AFrameStaysFarBelowWhatPeersTake) {
    const std::string wide(255, '\x01'); // six bytes each when escaped
    const std::vector<Hint> many(5'000, stored(wide, wide));
    std::size_t hints = 0;
    for (const OutFrame& frame : frames_of(many)) {
        EXPECT_LT(frame.bytes->size(), kFrameTarget + 8'192);
        hints += frame.hints;
    }
    EXPECT_EQ(hints, many.size());
}

} // namespace
} // namespace queen::mesh
