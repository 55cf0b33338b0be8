// shared/hint_list.hpp - what was read as the hints that the host takes.
#pragma once
#include "shared/hint_json.hpp"

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace queen::hint_json {

/// Views of the hints point into the Reading they were added from, and into this.
class HintList {
public:
    HintList() = default;
    HintList(const HintList&) = delete;
    HintList& operator=(const HintList&) = delete;

    /// @return false for names that cannot be: such an item is left out
    bool add(plugin::HintKind kind, const Item& item);
    /// @return false without a value
    bool add_switch(std::string_view subject, std::optional<bool> enabled);
    const std::vector<plugin::Hint>& hints() const noexcept { return hints_; }
    void clear(); ///< keeps the memory, unless there is much of it

private:
    std::string_view tenant(std::string_view text);

    std::vector<plugin::Hint> hints_;
    std::deque<std::string> tenants_; ///< a deque: hints_ point into it
    std::string_view last_tenant_;    ///< as it came
};

} // namespace queen::hint_json
