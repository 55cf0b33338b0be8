#include "http/ack_fields.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cctype>

namespace queen::http {
namespace {

constexpr std::string_view kAllowedWords =
    "completed, success, acked, ok, failed, retry, dlq or left out";
// Stands for a leaseId that is not an id: no pop ever mints it, so no lease fits it.
constexpr std::string_view kNobodysLease = "00000000-0000-0000-0000-000000000000";

std::optional<AckStatus> status_of(std::string_view word) {
    std::string lower(word);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (lower == "completed" || lower == "success" || lower == "acked" || lower == "ok") {
        return AckStatus::completed;
    }
    if (lower == "failed") {
        return AckStatus::failed;
    }
    if (lower == "retry") {
        return AckStatus::retry;
    }
    if (lower == "dlq") {
        return AckStatus::dlq;
    }
    return std::nullopt;
}

} // namespace

std::string read_lease_id(std::string_view text) {
    const auto lease = parse_uuid(text);
    return lease ? to_string(*lease) : std::string(kNobodysLease);
}

Error bad_ack_status() {
    return {Errc::invalid_argument, "status must be one of " + std::string(kAllowedWords), {}};
}

Result<void> read_ack_status(std::string_view word, broker::AckItem& item) {
    if (word.empty()) {
        return fail(bad_ack_status());
    }
    if (const auto status = status_of(word)) {
        item.status = *status;
    } else {
        item.status = AckStatus::failed; // never loses a message; the item's error names the word
        item.unknown_word = word;
    }
    return {};
}

} // namespace queen::http
