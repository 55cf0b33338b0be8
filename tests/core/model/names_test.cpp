#include "model/names.hpp"

#include <gtest/gtest.h>

#include <string>

namespace queen {
namespace {

/// nullopt when the name is accepted
std::optional<Errc> refusal_of(std::string_view name) {
    const auto checked = check_name("queue", name);
    if (checked) {
        return std::nullopt;
    }
    EXPECT_TRUE(checked.error().message.starts_with("queue ")) << checked.error().message;
    return checked.error().code;
}

// K24, K25: what a path, a query and a body can carry is a name; everything else is refused alike.
TEST(Names, OrdinaryAndOddNamesAreAccepted) {
    for (const std::string_view name : {"a",
                                        "orders",
                                        "Orders",
                                        " ",
                                        "a b",
                                        "a+b",
                                        "a%b",
                                        "a/b",
                                        "a\\b",
                                        "a\"b",
                                        "'",
                                        "<x>",
                                        "a&b",
                                        "../x",
                                        "...",
                                        ".a",
                                        "null",
                                        "undefined",
                                        "__QUEUE_MODE__",
                                        "Default",
                                        "é",
                                        "日本",
                                        "\xF0\x9F\x98\x80",
                                        "\xC2\xA0",
                                        "\xE2\x80\xA8",
                                        "\xC3\x80",
                                        "~"}) {
        EXPECT_EQ(refusal_of(name), std::nullopt) << name;
    }
    EXPECT_EQ(refusal_of(std::string(kMaxNameBytes, 'x')), std::nullopt);
}

TEST(Names, EmptyAndDotNamesAreRefused) {
    EXPECT_EQ(refusal_of(""), Errc::invalid_argument);
    EXPECT_EQ(refusal_of("."), Errc::invalid_argument);
    EXPECT_EQ(refusal_of(".."), Errc::invalid_argument);
}

TEST(Names, TheLimitIsInBytes) {
    EXPECT_EQ(refusal_of(std::string(kMaxNameBytes + 1, 'x')), Errc::name_too_long);
    std::string umlauts;
    for (int i = 0; i < 128; ++i) {
        umlauts += "ü";
    }
    EXPECT_EQ(refusal_of(umlauts), Errc::name_too_long); // 128 characters, 256 bytes
    EXPECT_EQ(refusal_of(umlauts.substr(2)), std::nullopt);
    EXPECT_EQ(check_name("queue", std::string(300, 'x')).error().message,
              "queue is longer than 255 bytes (300)");
}

// DM-7: 0x1f separates tenant and queue in every key in memory.
TEST(Names, ControlCharactersAreRefusedAnywhere) {
    for (int c = 0; c < 0x20; ++c) {
        const std::string control(1, static_cast<char>(c));
        EXPECT_EQ(refusal_of(control), Errc::invalid_argument) << c;
        EXPECT_EQ(refusal_of("a" + control), Errc::invalid_argument) << c;
        EXPECT_EQ(refusal_of(control + "a"), Errc::invalid_argument) << c;
    }
    EXPECT_EQ(refusal_of(std::string(1, kKeySeparator)), Errc::invalid_argument);
    EXPECT_EQ(refusal_of("\x7F"), Errc::invalid_argument);
    EXPECT_EQ(refusal_of("a\xC2\x80"), Errc::invalid_argument); // U+0080
    EXPECT_EQ(refusal_of("\xC2\x9F"), Errc::invalid_argument);  // U+009F
}

TEST(Names, NamesMustBeUtf8) {
    for (const std::string_view name : {"\x80", "a\xC3", "\xED\xA0\x80", "\xC0\xAF", "a\xC2"}) {
        EXPECT_EQ(refusal_of(name), Errc::invalid_argument);
    }
}

TEST(Names, NamesUsedTogetherHaveABudget) {
    const std::string tenant(kDefaultTenant);
    const std::string queue(200, 'q');
    const std::string rest(kMaxNamesBytes - tenant.size() - queue.size(), 'p');
    EXPECT_TRUE(check_names_fit(tenant, queue, rest).has_value());
    const auto over = check_names_fit(tenant, queue, rest + "p");
    ASSERT_FALSE(over.has_value());
    EXPECT_EQ(over.error().code, Errc::name_too_long);
    EXPECT_EQ(over.error().message,
              "tenant, queue and group or partition together is longer than 447 bytes (448)");
}

TEST(Names, TransactionIdsMayBeLong) {
    const auto accepted = [](std::string_view id) {
        return check_transaction_id("transactionId", id).has_value();
    };
    EXPECT_TRUE(accepted("a"));
    EXPECT_TRUE(accepted("."));
    EXPECT_TRUE(accepted("a b/ü"));
    EXPECT_TRUE(accepted(std::string(65535, 'x')));
    EXPECT_FALSE(accepted(""));
    EXPECT_FALSE(accepted(std::string(65536, 'x')));
    EXPECT_FALSE(accepted("a\x1f"));
    EXPECT_FALSE(accepted(std::string_view("a\0b", 3)));
    EXPECT_FALSE(accepted("\xC3"));
    EXPECT_EQ(check_transaction_id("transactionId", std::string(65536, 'x')).error().code,
              Errc::invalid_argument);
}

TEST(Names, AQueueKeyIsTenantSeparatorQueue) {
    EXPECT_EQ(queue_key("t", "q"), "t\x1fq");
    EXPECT_EQ(queue_key("t", ""), "t\x1f");
}

TEST(Names, TheBuiltInNamesObeyTheRule) {
    EXPECT_EQ(refusal_of(kQueueModeGroup), std::nullopt);
    EXPECT_EQ(refusal_of(kDefaultPartition), std::nullopt);
    EXPECT_EQ(refusal_of(kDefaultTenant), std::nullopt);
}

} // namespace
} // namespace queen
