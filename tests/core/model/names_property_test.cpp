#include "base/text.hpp"
#include "model/names.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

namespace queen {
namespace {

std::string some_pieces(const std::vector<std::string>& pieces) {
    std::string name;
    for (const auto& piece : *rc::gen::container<std::vector<std::string>>(
             *rc::gen::inRange<std::size_t>(0, 5), rc::gen::elementOf(pieces))) {
        name += piece;
    }
    return name;
}

const std::vector<std::string> kGood{"a",        "Z",  " ",  "..", "/",  "%",
                                     "+",        "\"", "\\", "é",  "日", "\xF0\x9F\x98\x80",
                                     "\xC2\xA0", "%2F"};
const std::vector<std::string> kOdd{"a",
                                    ".",
                                    "é",
                                    "\xC2\x80",
                                    "\xC2\xA0",
                                    "\x7F",
                                    "\x1F",
                                    "\n",
                                    std::string(1, '\0'),
                                    "\xC3",
                                    "\x80",
                                    std::string(120, 'x'),
                                    std::string(63, 'y')};

/// Near the edges of the rule: control characters, broken UTF-8, about the limit long.
std::string odd_name() {
    return some_pieces(kOdd);
}

/// Within the rule, with what paths and queries treat specially.
std::string good_name() {
    return "x" + some_pieces(kGood);
}

/// The rule by Unicode: decoded, no code point of category Cc.
bool has_control_by_definition(const std::string& name) {
    for (std::size_t at = 0; at < name.size();) {
        const std::size_t size = utf8_length(std::string_view(name).substr(at));
        const auto lead = static_cast<unsigned char>(name[at]);
        const std::uint32_t code =
            size == 1   ? lead
            : size == 2 ? (lead & 0x1Fu) << 6 | (static_cast<unsigned char>(name[at + 1]) & 0x3Fu)
                        : 0xFFFF;
        if (code <= 0x1F || (code >= 0x7F && code <= 0x9F)) {
            return true;
        }
        at += size;
    }
    return false;
}

RC_GTEST_PROP(NamesProperty, ANameIsAcceptedExactlyByTheRule, ()) {
    const std::string name = odd_name();
    const bool expected = !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
                          valid_utf8(name) && !has_control_by_definition(name);
    RC_ASSERT(check_name("queue", name).has_value() == expected);
}

RC_GTEST_PROP(NamesProperty, AnAcceptedNameSurvivesAPathAndAQuery, ()) {
    const std::string name = good_name();
    RC_ASSERT(check_name("queue", name).has_value());
    RC_ASSERT(percent_decode(percent_encode(name), false) == name);
    RC_ASSERT(percent_decode(percent_encode(name), true) == name);
}

RC_GTEST_PROP(NamesProperty, AKeyHoldsTenantAndQueueApart, ()) {
    const std::string tenant = good_name();
    const std::string queue = good_name();
    const std::string key = queue_key(tenant, queue);
    const std::size_t separator = key.find(kKeySeparator);
    RC_ASSERT(separator != std::string::npos);
    RC_ASSERT(key.substr(0, separator) == tenant);
    RC_ASSERT(key.substr(separator + 1) == queue);
}

} // namespace
} // namespace queen
