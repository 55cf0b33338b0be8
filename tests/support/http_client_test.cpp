// The client that other suites trust, against a peer that says exactly what it is told.
#include "support/http_client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace queen::test {
namespace {

/// Listens on a free port, takes one connection, and sends `answer` once `request` bytes came.
class Peer {
public:
    Peer() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
            listen(listener_, 1) != 0 ||
            getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
            ADD_FAILURE() << "cannot listen";
        }
        port_ = ntohs(address.sin_port);
    }
    ~Peer() {
        close_connection();
        close(listener_);
    }
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    std::uint16_t port() const { return port_; }
    void take() { connection_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC); }
    void say(const std::string& bytes) const {
        ASSERT_EQ(::send(connection_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(bytes.size()));
    }
    std::string hear(std::size_t size) const {
        std::string bytes(size, '\0');
        const ssize_t got = recv(connection_, bytes.data(), size, MSG_WAITALL);
        bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
        return bytes;
    }
    /// 0: the client closed in order; ECONNRESET: it reset.
    int ending() const {
        char c = 0;
        return recv(connection_, &c, 1, 0) == 0 ? 0 : errno;
    }
    void close_connection() {
        if (connection_ >= 0) {
            close(std::exchange(connection_, -1));
        }
    }

private:
    int listener_;
    int connection_ = -1;
    std::uint16_t port_ = 0;
};

class HttpClientTest : public testing::Test {
protected:
    HttpClientTest() : client(peer.port()) { peer.take(); }
    Peer peer;
    HttpClient client;
};

TEST_F(HttpClientTest, ABodyIsAsLongAsItsHeaderSaysAndTheRestIsKept) {
    peer.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: 1\r\nx-a:2\r\n\r\nhello"
             "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    const HttpResponse first = client.read();
    EXPECT_EQ(first.status, 200);
    EXPECT_EQ(first.reason, "OK");
    EXPECT_EQ(first.body, "hello");
    EXPECT_EQ(first.header("X-a"), "1");
    EXPECT_EQ(first.count("X-A"), 2U);
    EXPECT_EQ(first.headers.back().second, "2");
    EXPECT_EQ(client.read().status, 404);
}

TEST_F(HttpClientTest, ChunksAreJoined) {
    peer.say(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA\r\n0123456789\r\n"
        "0\r\nTrailer: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n");
    EXPECT_EQ(client.read().body, "hello0123456789");
    EXPECT_EQ(client.read().status, 204);
}

TEST_F(HttpClientTest, AnswersWithoutABodyHaveNone) {
    peer.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
             "HTTP/1.1 200 OK\r\n\r\nto the end");
    EXPECT_EQ(client.read(true).body, "");
    EXPECT_EQ(client.read().status, 100);
    peer.close_connection();
    EXPECT_EQ(client.read().body, "to the end");
}

TEST_F(HttpClientTest, AnAnswerCutShortIsToldFromAWholeOne) {
    peer.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel");
    peer.close_connection();
    EXPECT_THROW(client.read(), HttpClosed);
}

TEST_F(HttpClientTest, WhatIsNoResponseIsAFailure) {
    peer.say("HTTQ/9.9 200 OK\r\n\r\n");
    EXPECT_THROW(client.read(), HttpFailure);
    peer.say("HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\nhello");
    EXPECT_THROW(client.read(), HttpFailure);
}

TEST_F(HttpClientTest, ARequestIsSentAsAsked) {
    client.start("POST", "/api/v1/push", "{}", {{"X-A", "1"}});
    const std::string expected = "POST /api/v1/push HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                                 "Content-Type: application/json\r\nContent-Length: 2\r\n"
                                 "X-A: 1\r\n\r\n{}";
    EXPECT_EQ(peer.hear(expected.size()), expected);
    client.half_close();
    EXPECT_EQ(peer.ending(), 0);
    peer.say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    EXPECT_EQ(client.read().status, 200) << "after FIN the answer is still read";
}

TEST_F(HttpClientTest, AResetIsNoOrderlyEnd) {
    client.reset();
    EXPECT_EQ(peer.ending(), ECONNRESET);
}

TEST_F(HttpClientTest, TheEndOfThePeerIsSeen) {
    EXPECT_FALSE(client.readable(std::chrono::milliseconds(0)));
    peer.close_connection();
    EXPECT_TRUE(client.closed_by_peer());
}

} // namespace
} // namespace queen::test
