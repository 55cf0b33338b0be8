#include "http/routes/api.hpp"
#include "model/frame.hpp"
#include "model/segment.hpp"

namespace queen::test {
namespace {

std::shared_ptr<const Cipher> key(char digit) {
    return std::make_shared<const Cipher>(std::move(*Cipher::from_hex(std::string(64, digit))));
}

/// A broker whose store holds one message, encrypted under key 7, and then one in clear text that
/// looks like an envelope.
struct Stored {
    explicit Stored(std::shared_ptr<const Cipher> cipher) : api({.cipher = std::move(cipher)}) {
        api.ask("POST", "/api/v1/push",
                R"({"items":[{"queue":"q","payload":1},{"queue":"q","payload":2}]})");
        api.store.spoil_pop = [this](PopResult& result) {
            std::string frames;
            (void)append_frame(frames,
                               {.transaction_id = "a", .payload = sealed, .encrypted = true});
            (void)append_frame(frames, {.transaction_id = "b", .payload = sealed});
            result.partitions.at(0).segments.at(0).blob = compress_segment(frames);
        };
    }
    const std::string sealed = key('7')->seal(R"({"card":42})");
    Api api;
};

TEST(EncryptionRoutes, ENC3_APopDecryptsWhatIsMarkedAndNothingElse) {
    Stored stored(key('7'));
    const auto popped = stored.api.ask("GET", "/api/v1/pop/queue/q");
    EXPECT_EQ(at(popped.body, "messages.0.data.card"), "42");
    EXPECT_EQ(at(popped.body, "messages.1.data.card"), "<missing>") << "no oracle for envelopes";
    EXPECT_NE(at(popped.body, "messages.1.data.authTag"), "<missing>");
}

TEST(EncryptionRoutes, ENC3_WithoutTheKeyTheEnvelopeIsDelivered) {
    for (const auto& cipher : {std::shared_ptr<const Cipher>(), key('8')}) {
        Stored stored(cipher);
        const auto popped = stored.api.ask("GET", "/api/v1/pop/queue/q");
        EXPECT_EQ(popped.status, 200);
        EXPECT_THAT(popped.body, testing::HasSubstr("\"data\":" + stored.sealed));
    }
}

TEST(EncryptionRoutes, ENC1_ConfigureTakesEncryptionWithAKeyAlone) {
    const std::string body = R"({"queue":"q","options":{"encryptionEnabled":true}})";
    Api with({.cipher = key('7')});
    EXPECT_EQ(with.ask("POST", "/api/v1/configure", body).status, 200);
    EXPECT_THAT(with.store.configured.at(0).options,
                testing::HasSubstr("\"encryptionEnabled\":true"));
    Api without;
    const auto refused = without.ask("POST", "/api/v1/configure", body);
    EXPECT_EQ(refused.status, 400);
    EXPECT_EQ(at(refused.body, "invalid"), "encryptionEnabled");
    EXPECT_EQ(without.store.calls, 0u);
    EXPECT_EQ(without
                  .ask("POST", "/api/v1/configure",
                       R"({"queue":"q","options":{"encryptionEnabled":false}})")
                  .status,
              200);
}

TEST(EncryptionRoutes, ENC1_APushToAnEncryptedQueueIsAnItemErrorWithoutAKey) {
    Api api;
    api.store.spoil_push = [](std::vector<PushOutcome>& outcomes) {
        for (auto& outcome : outcomes) {
            outcome.wants_encrypted = true;
        }
    };
    const auto answer =
        api.ask("POST", "/api/v1/push", R"({"items":[{"queue":"q","payload":"clear"}]})");
    EXPECT_EQ(answer.status, 201);
    EXPECT_EQ(at(answer.body, "0.status"), "error");
    EXPECT_EQ(at(answer.body, "0.error"),
              "the queue is encrypted and this broker has no encryption key");
}

} // namespace
} // namespace queen::test
