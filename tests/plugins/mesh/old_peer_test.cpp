// F-66: brokers of the old protocol, byte for byte, in both directions.
#include "plugins/mesh/mesh_fixture.hpp"

#include <gtest/gtest.h>

namespace queen::mesh {
namespace {

using namespace std::string_literals;

const std::string kT(kTenant);

OwnedHint hint(HintKind kind, std::string_view queue, std::string_view partition = {},
               std::string_view tenant = {}, std::string_view group = {}) {
    Hint made;
    made.kind = kind;
    made.queue = queue;
    made.partition = partition;
    made.tenant = tenant;
    made.group = group;
    return OwnedHint(made);
}

class OldPeer : public MeshBed {
protected:
    Options mixed(std::string_view secret) {
        Options made = options("new", {"old"}, secret);
        made.require_challenge = false;
        return made;
    }
    /// Length, type and JSON as an old broker wrote them.
    static std::string frame(char type, const std::string& json) {
        const std::size_t length = 1 + json.size();
        std::string out;
        for (const int shift : {24, 16, 8, 0}) {
            out += static_cast<char>(length >> shift);
        }
        return out + type + json;
    }
    std::vector<OwnedHint> heard(Node& node, const std::string& frames, std::size_t count) {
        RawPeer peer(node.network.port());
        EXPECT_TRUE(until([&] { return node.network.figures().accepted == 1; }));
        const std::string bytes =
            "\0\0\0\x88\4"
            R"({"server_id":"old","nonce":"0123456789abcdef0123456789abcdef",)"
            R"("mac":")"s +
            hello_mac(kSecret, "0123456789abcdef0123456789abcdef") + "\"}" + frames;
        EXPECT_EQ(peer.send(bytes), static_cast<ssize_t>(bytes.size()));
        EXPECT_TRUE(until([&] { return node.host.hints().size() >= count; }));
        settle();
        EXPECT_EQ(peer.received(), "");
        EXPECT_FALSE(peer.closed());
        return node.host.hints();
    }
};

TEST_F(OldPeer, F66_EveryFrameOfAnOldBrokerIsRead) {
    Node& node = add(mixed(kSecret));
    const std::string item = R"({"queue":"q","partition":"p"})";
    const std::string owned = R"({"queue":"q","partition":"p","tenant":")" + kT + "\"}";
    EXPECT_EQ(heard(node,
                    "\0\0\0\x1e\1{\"queue\":\"q\",\"partition\":\"p\"}"s + frame(1, owned) +
                        frame(2, "{\"items\":[" + item + "," + owned + "]}") +
                        "\0\0\0\x14\3{\"server_id\":\"old\"}"s +
                        frame(5, "{\"items\":[" + owned +
                                     R"(,{"queue":"q","partition":"p","group":"g"}]})") +
                        frame(10, R"({"queue":"q","tenant":")" + kT + "\"}") +
                        frame(11, R"({"queue":"q","tenant":")" + kT + "\"}") +
                        "\0\0\0\x11\x28{\"enabled\":true}"s + "\0\0\0\x12\x29{\"enabled\":false}"s,
                    10),
              (std::vector<OwnedHint>{
                  hint(HintKind::stored, "q", "p"), hint(HintKind::stored, "q", "p", kT),
                  hint(HintKind::stored, "q", "p"), hint(HintKind::stored, "q", "p", kT),
                  hint(HintKind::stored, "q", "p", kT), hint(HintKind::moved, "q", "p", "", "g"),
                  hint(HintKind::configured, "q", "", kT), hint(HintKind::deleted, "q", "", kT),
                  OwnedHint(switched("maintenance", true)),
                  OwnedHint(switched("pop_maintenance", false))}));
    EXPECT_EQ(node.network.figures().frames_bad.value(), 0u);
}

TEST_F(OldPeer, ME13_ATenantThatIsNoUuidIsNobodys) {
    Node& node = add(mixed(kSecret));
    EXPECT_EQ(
        heard(node,
              frame(1, R"({"queue":"q","partition":"p","tenant":"default"})") +
                  frame(1, R"({"queue":"q","partition":"p","tenant":null})") +
                  frame(10, R"({"queue":"q","tenant":""})"),
              3),
        (std::vector<OwnedHint>{hint(HintKind::stored, "q", "p"), hint(HintKind::stored, "q", "p"),
                                hint(HintKind::configured, "q")}));
}

TEST_F(OldPeer, ME16_NewerFieldsAndTypesAreSkipped) {
    Node& node = add(mixed(kSecret));
    EXPECT_EQ(heard(node,
                    frame(77, "not even JSON") + frame(12, "") +
                        frame(1, R"({"version":2,"queue":"q","partition":"p","ids":[1,{"a":[]}]})"),
                    1),
              (std::vector<OwnedHint>{hint(HintKind::stored, "q", "p")}));
    EXPECT_EQ(node.network.figures().frames_unknown.value(), 2u);
}

TEST_F(OldPeer, NamesThatCannotBeAreSkippedAlone) {
    Node& node = add(mixed(kSecret));
    EXPECT_EQ(
        heard(node,
              frame(2, R"({"items":[{"partition":"p"},{"queue":"","partition":"p"},)"
                       R"({"queue":"a\u001fb","partition":"p"},{"queue":7,"partition":"p"},)"
                       R"({"queue":"q","partition":"\u0000"},{"queue":"q","partition":"good"}]})") +
                  frame(40, "{}") + frame(40, R"({"enabled":"yes"})"),
              1),
        (std::vector<OwnedHint>{hint(HintKind::stored, "q", "good")}));
    EXPECT_EQ(node.network.figures().items_skipped.value(), 7u);
}

TEST_F(OldPeer, F66_AnOldBrokerHearsItsOwnFormat) {
    for (const std::string_view secret : {kSecret, std::string_view{}}) {
        nodes_.clear();
        const RawListener listener;
        names_.set("old", listener.port());
        Node& node = add(mixed(secret));
        std::unique_ptr<RawPeer> old;
        ASSERT_TRUE(until([&] { return (old = listener.accept()) != nullptr; }));
        ASSERT_TRUE(until([&] { return !old->frames().empty(); }));
        const std::string hello = old->frames()[0];
        const std::string nonce = text_field(hello, "nonce");
        EXPECT_EQ(hello, "\4{\"server_id\":\"new\",\"nonce\":\"" + nonce + "\",\"mac\":\"" +
                             hello_mac(secret, nonce) + "\",\"challenge\":1,\"instance\":\"" +
                             node.options.instance + "\"}");
        advance(secret.empty() ? 0ms : 1'000ms); // it says nothing: then it is an old one
        ASSERT_TRUE(until([&] { return node.listened(); }));

        for (const Hint& each : {stored("q", "p"), configured("q"), deleted("q"),
                                 switched("maintenance", true), switched("pop_maintenance", false),
                                 switched("timers_schedule", false), moved("q", "p", "g")}) {
            node.network.outbox().publish(std::span(&each, 1));
        }
        ASSERT_TRUE(until([&] { return old->frames().size() >= 9; }));
        advance(20ms);
        ASSERT_TRUE(until([&] { return old->frames().size() >= 10; }));
        std::vector<std::string> got = old->frames();
        got.erase(got.begin()); // the hello
        const std::string names = R"("queue":"q","partition":"p","tenant":")" + kT + "\"";
        const std::string plain = "{" + names + "}";
        const std::string grouped = "{" + names + ",\"group\":\"g\"}";
        const std::string dirty = got.back();
        got.pop_back();
        EXPECT_EQ(got, (std::vector<std::string>{
                           "\3{\"server_id\":\"new\"}", "\2{\"items\":[" + plain + "]}",
                           "\x0a{\"queue\":\"q\",\"tenant\":\"" + kT + "\"}",
                           "\x0b{\"queue\":\"q\",\"tenant\":\"" + kT + "\"}",
                           "\x28{\"enabled\":true}", "\x29{\"enabled\":false}",
                           "C{\"subject\":\"timers_schedule\",\"enabled\":false}", // it skips both
                           "@" + grouped}));
        EXPECT_TRUE(dirty == "\5{\"items\":[" + plain + "," + grouped + "]}" ||
                    dirty == "\5{\"items\":[" + grouped + "," + plain + "]}")
            << dirty;
    }
}

} // namespace
} // namespace queen::mesh
