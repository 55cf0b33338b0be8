#include "shared/hint_list.hpp"

namespace queen::hint_json {

using plugin::Hint;
using plugin::HintKind;

bool HintList::add(HintKind kind, const Item& item) {
    const bool with_partition = kind == HintKind::stored || kind == HintKind::moved;
    if (!is_name(item.queue) ||
        (with_partition && !item.partition.empty() && !is_name(item.partition)) ||
        (kind == HintKind::moved && !is_name(item.group))) {
        return false;
    }
    Hint hint;
    hint.kind = kind;
    hint.tenant = tenant(item.tenant);
    hint.queue = item.queue;
    hint.partition = with_partition ? item.partition : std::string_view{};
    hint.group = kind == HintKind::moved ? item.group : std::string_view{};
    hints_.push_back(hint);
    return true;
}

bool HintList::add_switch(std::string_view subject, std::optional<bool> enabled) {
    if (!enabled || !is_name(subject)) {
        return false;
    }
    Hint hint;
    hint.kind = HintKind::switched;
    hint.enabled = *enabled;
    hint.subject = subject;
    hints_.push_back(hint);
    return true;
}

void HintList::clear() {
    constexpr std::size_t kKept = 1'024;
    if (hints_.capacity() > kKept) {
        std::vector<Hint>().swap(hints_);
    }
    hints_.clear();
    tenants_.clear();
    last_tenant_ = {};
}

std::string_view HintList::tenant(std::string_view text) {
    if (tenants_.empty() || text != last_tenant_) { // most texts are of one tenant
        tenants_.push_back(tenant_of(text));
        last_tenant_ = text;
    }
    return tenants_.back();
}

} // namespace queen::hint_json
