// Encrypted queues over two brokers of one database, of which one has the key.
#include "http/broker/security_fixture.hpp"

namespace queen::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::string kKey(64, '7');

/// A broker with the key and one without.
class EncryptedBrokers : public SecurityTest {
protected:
    EncryptedBrokers()
        : with_(start({"QUEEN_ENCRYPTION_KEY=" + kKey})), without_(start({})), a(with_->port()),
          b(without_->port()) {}

    static std::string push_of(const std::string& queue, const std::string& txn,
                               const std::string& payload) {
        return R"({"type":"push","items":[{"queue":")" + queue +
               R"(","partition":"p","transactionId":")" + txn + R"(","payload":)" + payload + "}]}";
    }
    static std::string ack_of(const Message& message, const std::string& status) {
        return R"({"type":"ack","transactionId":")" + message.transaction_id +
               R"(","partitionId":")" + message.partition_id + R"(","leaseId":")" +
               message.lease_id + R"(","consumerGroup":"g","status":")" + status + "\"}";
    }
    static HttpResponse transact(Api& api, const std::vector<std::string>& operations) {
        std::string body;
        for (const auto& operation : operations) {
            body += (body.empty() ? "" : ",") + operation;
        }
        return api.http.post("/api/v1/transaction", R"({"operations":[)" + body + "]}");
    }
    void encrypt(const std::string& queue, bool on) {
        ASSERT_EQ(a.configure(queue, on ? R"({"encryptionEnabled":true})"
                                        : R"({"encryptionEnabled":false})")
                      .status,
                  200);
    }
    /// Pushes a message to a queue as it is and gives it up. @return the letter's id
    std::string bury(const std::string& queue, const std::string& txn, const std::string& payload) {
        a.push(queue, {{"p", txn, payload}});
        const auto held = a.pop(queue, "consumerGroup=g");
        EXPECT_EQ(held.ids(), std::vector<std::string>{txn});
        EXPECT_EQ(a.ack(held.messages.at(0), "dlq", "g"), "true");
        auto session = sql();
        return session.one("select id from queen.log_dlq where transaction_id = $1", {txn});
    }
    static std::string text(const HttpResponse& response, std::string_view name) {
        const auto document = json::Document::parse(response.body);
        return document ? std::string(document->root()[name].string()) : response.body;
    }

    std::unique_ptr<BrokerProcess> with_, without_;
    Api a, b;
};

TEST_F(EncryptedBrokers, ENC5_ATransactionStoresInEachQueueAsItWants) {
    encrypt("vault", true);
    ASSERT_EQ(a.push("in", {{"p", "i1", "1"}}).status, 201);
    const auto held = a.pop("in", "consumerGroup=g");
    ASSERT_EQ(held.ids(), std::vector<std::string>{"i1"});
    const std::vector<std::string> both{push_of("plain", "t1", R"("open")"),
                                        push_of("vault", "t2", R"("sesame")"),
                                        ack_of(held.messages[0], "completed")};

    const auto refused = transact(b, both);
    EXPECT_EQ(refused.status, 400) << refused.body;
    EXPECT_EQ(text(refused, "reason"), "bad_request");
    EXPECT_THAT(text(refused, "error"), HasSubstr("no encryption key"));
    EXPECT_EQ(a.pop("plain", "consumerGroup=h").status, 204) << "all or nothing";
    const auto done = transact(a, both);
    EXPECT_THAT(done.body, HasSubstr(R"("success":true)")) << "the ack was still to be had";

    EXPECT_EQ(b.pop("plain", "consumerGroup=h").messages.at(0).data, R"("open")");
    EXPECT_EQ(a.pop("vault", "consumerGroup=h&autoAck=true").messages.at(0).data, R"("sesame")");
    const auto sealed = b.pop("vault", "consumerGroup=g").messages.at(0);
    EXPECT_THAT(sealed.data, HasSubstr(R"("authTag":)"));

    // As a dead letter of a transaction it stays what it is.
    EXPECT_THAT(transact(b, {ack_of(sealed, "dlq")}).body, HasSubstr(R"("dlq":true)"));
    EXPECT_THAT(a.http.get("/api/v1/dlq?queue=vault").body, HasSubstr(R"("data":"sesame")"));
    EXPECT_THAT(b.http.get("/api/v1/dlq?queue=vault").body, Not(HasSubstr("sesame")));

    encrypt("vault", false);
    EXPECT_THAT(transact(a, {push_of("vault", "t3", "3")}).body, HasSubstr(R"("success":true)"));
    encrypt("vault", true);
    EXPECT_THAT(transact(a, {push_of("vault", "t4", "4")}).body, HasSubstr(R"("success":true)"));
    const auto read = b.pop("vault", "consumerGroup=i");
    ASSERT_EQ(read.ids(), (std::vector<std::string>{"t2", "t3", "t4"}));
    EXPECT_EQ(read.messages[1].data, "3");
    EXPECT_THAT(read.messages[2].data, HasSubstr(R"("authTag":)"));
}

TEST_F(EncryptedBrokers, ENC3_MessagesAndLettersAreShownOpenedToWhoAsksTheBrokerWithTheKey) {
    encrypt("vault", true);
    bury("vault", "t1", R"("sesame")");
    const auto held = a.pop("vault", "consumerGroup=h");
    const std::string detail = "/api/v1/messages/" + held.messages.at(0).partition_id + "/t1";
    for (const std::string& target :
         {std::string("/api/v1/messages?queue=vault"), detail, std::string("/api/v1/dlq")}) {
        const auto opened = a.http.get(target);
        EXPECT_EQ(opened.status, 200) << target;
        EXPECT_THAT(opened.body, HasSubstr(R"("data":"sesame","payload":"sesame",)"
                                           R"("payloadAvailable":true,"isEncrypted":true)"));
        const auto sealed = b.http.get(target);
        EXPECT_EQ(sealed.status, 200) << target;
        EXPECT_THAT(sealed.body, HasSubstr(R"("isEncrypted":true)"));
        EXPECT_THAT(sealed.body, HasSubstr(R"("authTag":)")) << target;
        EXPECT_THAT(sealed.body, Not(HasSubstr("sesame"))) << target;
    }
}

TEST_F(EncryptedBrokers, ENC5_AReplayGoesBackInTheFormThatItsQueueWantsByThen) {
    struct Case {
        std::string queue;
        bool then, now; ///< whether it is encrypted
    };
    for (const Case& each : {Case{"on", false, true}, {"off", true, false}, {"kept", true, true}}) {
        encrypt(each.queue, each.then);
        const auto letter = bury(each.queue, "txn-" + each.queue, R"("sesame")");
        encrypt(each.queue, each.now);
        const std::string target = "/api/v1/dlq/" + letter + "/replay";
        if (each.then != each.now) {
            const auto refused = b.http.post(target, "");
            EXPECT_EQ(refused.status, 409) << refused.body;
            EXPECT_EQ(text(refused, "reason"), "not_replayable");
            EXPECT_THAT(text(refused, "error"), HasSubstr("encryption key"));
            EXPECT_EQ(a.http.post(target, "").status, 200) << "it stayed";
        } else {
            EXPECT_EQ(b.http.post(target, "").status, 200) << "moved as it is stored";
        }
        const auto opened = a.pop(each.queue, "consumerGroup=g&autoAck=true");
        EXPECT_THAT(opened.ids(), ElementsAre("dlq:" + letter));
        EXPECT_EQ(opened.messages.at(0).data, R"("sesame")");
        const auto stored = b.pop(each.queue, "consumerGroup=h&autoAck=true");
        ASSERT_EQ(stored.messages.size(), 2u);
        EXPECT_EQ(stored.messages[1].data.find("authTag") != std::string::npos, each.now)
            << each.queue;
    }
}

TEST_F(SecurityTest, ENC5_PayloadsOfAnEncryptedQueueAreNeverStoredInClearTextByAnyBroker) {
    const auto with = start({"QUEEN_ENCRYPTION_KEY=" + kKey});
    const auto without = start({});
    EXPECT_TRUE(with->printed("encryption on", std::chrono::seconds(1)));
    EXPECT_TRUE(without->printed("encryption off", std::chrono::seconds(1)));
    Api a(with->port());
    Api b(without->port());

    // Off, on, off, on: what either broker remembers of the queue is out of date each time.
    ASSERT_EQ(a.push("vault", {{"p", "t0", R"("clear")"}}).status, 201);
    ASSERT_EQ(b.configure("vault", R"({"encryptionEnabled":true})").status, 400);
    ASSERT_EQ(a.configure("vault", R"({"encryptionEnabled":true})").status, 200);
    EXPECT_EQ(member(a.push("vault", {{"p", "t1", R"("sesame")"}}), 0, "status"), "queued");
    const auto refused = b.push("vault", {{"p", "t2", R"("sesame")"}});
    EXPECT_EQ(refused.status, 201);
    EXPECT_EQ(member(refused, 0, "status"), "error");
    EXPECT_THAT(member(refused, 0, "error"), HasSubstr("no encryption key"));
    ASSERT_EQ(b.configure("vault", R"({"encryptionEnabled":false})").status, 200);
    EXPECT_EQ(member(a.push("vault", {{"p", "t3", R"("clear too")"}}), 0, "status"), "queued");
    EXPECT_EQ(member(b.push("vault", {{"p", "t4", R"("clear as well")"}}), 0, "status"), "queued");
    ASSERT_EQ(a.configure("vault", R"({"encryptionEnabled":true})").status, 200);
    EXPECT_EQ(member(a.push("vault", {{"p", "t5", R"({"n":5})"}}), 0, "status"), "queued");

    const auto read = a.pop("vault", "consumerGroup=g&autoAck=true");
    ASSERT_THAT(read.ids(), ElementsAre("t0", "t1", "t3", "t4", "t5"));
    EXPECT_EQ(read.messages[1].data, R"("sesame")");
    EXPECT_EQ(read.messages[4].data, R"({"n":5})");
    const auto sealed = b.pop("vault", "consumerGroup=h&autoAck=true");
    ASSERT_EQ(sealed.messages.size(), 5u);
    EXPECT_EQ(sealed.messages[0].data, R"("clear")");
    for (const std::size_t i : {1u, 4u}) {
        EXPECT_THAT(sealed.messages[i].data, HasSubstr(R"("authTag":)"));
        EXPECT_THAT(sealed.messages[i].data, Not(HasSubstr("sesame")));
    }
}

} // namespace
} // namespace queen::test
