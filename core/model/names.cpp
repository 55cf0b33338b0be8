#include "model/names.hpp"

#include "base/text.hpp"

namespace queen {
namespace {

/// Unicode's control characters: U+0000 to U+001F, U+007F to U+009F. `text` is valid UTF-8.
/// Also keeps the key separator out of names (DM-7).
bool has_control(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto c = static_cast<unsigned char>(text[i]);
        if (c < 0x20 || c == 0x7F) {
            return true;
        }
        if (c == 0xC2 && static_cast<unsigned char>(text[i + 1]) < 0xA0) {
            return true;
        }
    }
    return false;
}

Result<void> check_characters(std::string_view field, std::string_view text) {
    if (!valid_utf8(text)) {
        return fail(Errc::invalid_argument, std::string(field) + " is not valid UTF-8");
    }
    if (has_control(text)) {
        return fail(Errc::invalid_argument,
                    std::string(field) + " must not contain control characters");
    }
    return {};
}

std::string over(std::string_view field, std::size_t limit, std::size_t size) {
    return std::string(field) + " is longer than " + std::to_string(limit) + " bytes (" +
           std::to_string(size) + ")";
}

} // namespace

Result<void> check_name(std::string_view field, std::string_view name) {
    if (name.empty()) {
        return fail(Errc::invalid_argument, std::string(field) + " must not be empty");
    }
    if (name.size() > kMaxNameBytes) {
        return fail(Errc::name_too_long, over(field, kMaxNameBytes, name.size()));
    }
    if (name == "." || name == "..") {
        return fail(Errc::invalid_argument, std::string(field) + " must not be \".\" or \"..\"");
    }
    return check_characters(field, name);
}

Result<void> check_names_fit(std::string_view tenant, std::string_view queue,
                             std::string_view group_or_partition) {
    const std::size_t size = tenant.size() + queue.size() + group_or_partition.size();
    if (size > kMaxNamesBytes) {
        return fail(Errc::name_too_long,
                    over("tenant, queue and group or partition together", kMaxNamesBytes, size));
    }
    return {};
}

Result<void> check_transaction_id(std::string_view field, std::string_view id) {
    if (id.empty()) {
        return fail(Errc::invalid_argument, std::string(field) + " must not be empty");
    }
    if (id.size() > kMaxTransactionIdBytes) {
        return fail(Errc::invalid_argument, over(field, kMaxTransactionIdBytes, id.size()));
    }
    return check_characters(field, id);
}

std::string queue_key(std::string_view tenant, std::string_view queue) {
    std::string key;
    key.reserve(tenant.size() + 1 + queue.size());
    key += tenant;
    key += kKeySeparator;
    key += queue;
    return key;
}

} // namespace queen
