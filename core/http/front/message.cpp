#include "http/message.hpp"

#include "http/front/gate.hpp"

namespace queen::http {

std::string_view Request::header(std::string_view name) const noexcept {
    for (const auto& [field, value] : headers) {
        if (same_word(field, name)) {
            return value;
        }
    }
    return {};
}

} // namespace queen::http
