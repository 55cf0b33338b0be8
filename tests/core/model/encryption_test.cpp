#include "base/base64.hpp"
#include "base/json.hpp"
#include "model/encryption.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace queen {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kKey =
    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

Cipher cipher(std::string_view key = kKey) {
    auto made = Cipher::from_hex(key);
    EXPECT_TRUE(made.has_value());
    return std::move(*made);
}

std::string envelope(std::string_view encrypted, std::string_view iv, std::string_view tag) {
    std::string out;
    json::Writer writer(out);
    writer.begin_object().key("encrypted").string(encrypted).key("iv").string(iv);
    writer.key("authTag").string(tag).end_object();
    return out;
}

/// A member of an envelope as bytes.
std::string member(const std::string& envelope, std::string_view name) {
    const auto document = json::Document::parse(envelope);
    EXPECT_TRUE(document.has_value()) << envelope;
    return from_base64(document->root()[name].string()).value_or("<not base64>");
}

// Made by AESGCM of Python's cryptography: key 00..1f, iv a0..af of which a0..ab is the nonce.
TEST(Encryption, ENC2_GoldenEnvelopesOpen) {
    const Cipher with = cipher();
    EXPECT_EQ(with.open(R"({"encrypted":"nToSD3//fw==","iv":"oKGio6SlpqeoqaqrrK2urw==",)"
                        R"("authTag":"h7r8drsLIfRbAo2s727wmw=="})"),
              R"({"n":4})");
    EXPECT_EQ(with.open(R"({"encrypted":"iG0QQQ==","iv":"oKGio6SlpqeoqaqrrK2urw==",)"
                        R"("authTag":"DUMCtcxgyOr5p44YCGUFkQ=="})"),
              "null");
    EXPECT_EQ(with.open(R"({ "authTag": "I0lU5PhSn7pS/FMxPwFQ6A==", "iv":)"
                        R"( "oKGio6SlpqeoqaqrrK2urw==", "encrypted": "xH8O7vkIndpORWFEopxcclI="})"),
              "\"gr\u00fc\u00dfe, \u65e5\u672c\"");
}

// Test case 14 of McGrew and Viega's specification of GCM: key, nonce and 16 bytes of zeros.
TEST(Encryption, ENC2_TheVectorOfTheSpecificationOpens) {
    EXPECT_EQ(cipher(std::string(64, '0'))
                  .open(envelope("zqdAPU1ga24HTsXTuvOdGA==", "AAAAAAAAAAAAAAAAAAAAAA==",
                                 "0NHIp5mZa/AmW5i11Iq5GQ==")),
              std::string(16, '\0'));
}

TEST(Encryption, WhatIsSealedOpensAgainAndNeverLooksTheSame) {
    const Cipher with = cipher();
    std::set<std::string> seen;
    for (const std::string& payload : {std::string("{\"n\":4}"), std::string("null"), std::string(),
                                       std::string(100'000, 'x')}) {
        for (int i = 0; i < 3; ++i) {
            const auto sealed = with.seal(payload);
            EXPECT_TRUE(seen.insert(sealed).second) << "a nonce came twice";
            EXPECT_EQ(member(sealed, "iv").size(), 16u);
            EXPECT_EQ(member(sealed, "authTag").size(), 16u);
            EXPECT_EQ(member(sealed, "encrypted").size(), payload.size());
            EXPECT_EQ(with.open(sealed), payload);
        }
    }
}

// ENC-2: whoever takes all 16 bytes of the iv for the nonce opens nothing of other brokers.
TEST(Encryption, ENC2_TheNonceIsTheFirstTwelveBytesOfTheIv) {
    const Cipher with = cipher();
    const std::string sealed = with.seal("1");
    for (std::size_t i = 0; i < 16; ++i) {
        std::string iv = member(sealed, "iv");
        iv[i] = static_cast<char>(iv[i] ^ 1);
        const auto opened =
            with.open(envelope(to_base64(member(sealed, "encrypted")), to_base64(iv),
                               to_base64(member(sealed, "authTag"))));
        EXPECT_EQ(opened.has_value(), i >= 12) << "byte " << i;
    }
}

TEST(Encryption, AChangedEnvelopeAndAnotherKeyOpenNothing) {
    const Cipher with = cipher();
    const std::string sealed = with.seal("\"secret\"");
    for (const std::string_view name : {"encrypted", "authTag"}) {
        for (std::size_t i = 0; i < member(sealed, name).size(); ++i) {
            std::string parts[] = {member(sealed, "encrypted"), member(sealed, "authTag")};
            std::string& changed = parts[name == "encrypted" ? 0 : 1];
            changed[i] = static_cast<char>(changed[i] ^ 0x80);
            const auto opened = with.open(envelope(
                to_base64(parts[0]), to_base64(member(sealed, "iv")), to_base64(parts[1])));
            ASSERT_FALSE(opened.has_value());
            EXPECT_EQ(opened.error().code, Errc::corrupt);
        }
    }
    EXPECT_FALSE(cipher(std::string(64, 'f')).open(sealed).has_value());
}

TEST(Encryption, WhatIsNoEnvelopeOpensNothing) {
    const Cipher with = cipher();
    const std::string iv = to_base64(std::string(16, 'i'));
    for (const std::string& text :
         {std::string(), std::string("null"), std::string("{"), std::string("{}"),
          std::string(R"({"encrypted":"","iv":""})"), envelope("*", iv, iv),
          envelope("", iv, to_base64(std::string(12, 't'))),
          envelope("", to_base64(std::string(12, 'i')), iv), envelope("", iv, ""),
          std::string(R"({"encrypted":7,"iv":")") + iv + R"(","authTag":")" + iv + "\"}"}) {
        EXPECT_FALSE(with.open(text).has_value()) << text;
    }
}

TEST(Encryption, AKeyHas64HexDigitsAndIsNeverRepeatedInAFault) {
    EXPECT_TRUE(Cipher::from_hex(std::string(64, 'A')).has_value());
    for (const std::string& key : {std::string(), std::string(63, 'a'), std::string(66, 'a'),
                                   std::string(63, 'a') + "g", std::string(64, '!')}) {
        const auto made = Cipher::from_hex(key);
        ASSERT_FALSE(made.has_value());
        EXPECT_EQ(made.error().code, Errc::invalid_argument);
        EXPECT_THAT(made.error().message, HasSubstr("64 hex digits"));
        if (!key.empty()) {
            EXPECT_THAT(made.error().message, Not(HasSubstr(key)));
        }
    }
}

TEST(RenderPayload, ENC3_OnlyWhatIsMarkedAsEncryptedIsOpened) {
    const Cipher with = cipher();
    const std::string sealed = with.seal("{\"n\":4}");
    std::string scratch;
    auto shown = render_payload(sealed, true, &with, scratch);
    EXPECT_EQ(shown.json, "{\"n\":4}");
    EXPECT_FALSE(shown.sealed);
    // A producer's own payload, or an envelope that somebody copied: not for us to open.
    shown = render_payload(sealed, false, &with, scratch);
    EXPECT_EQ(shown.json, sealed);
    EXPECT_FALSE(shown.sealed);
}

TEST(RenderPayload, ENC3_WithoutTheRightKeyTheEnvelopeIsDeliveredUnchanged) {
    const Cipher with = cipher();
    const Cipher other = cipher(std::string(64, 'f'));
    const std::string sealed = with.seal("{\"n\":4}");
    std::string scratch;
    for (const Cipher* key : {static_cast<const Cipher*>(nullptr), &other}) {
        const auto shown = render_payload(sealed, true, key, scratch);
        EXPECT_EQ(shown.json, sealed);
        EXPECT_EQ(shown.json.data(), sealed.data()) << "not even copied";
        EXPECT_TRUE(shown.sealed);
    }
}

TEST(RenderPayload, NothingIsNull) {
    const Cipher with = cipher();
    std::string scratch;
    EXPECT_EQ(render_payload("", false, &with, scratch).json, "null");
    EXPECT_EQ(render_payload("", true, &with, scratch).json, "null");
    EXPECT_EQ(render_payload(with.seal(""), true, &with, scratch).json, "null");
}

} // namespace
} // namespace queen
