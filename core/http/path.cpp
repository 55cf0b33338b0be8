#include "http/path.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace queen::http {

Result<std::vector<std::string>> decode_path(std::string_view path) {
    std::vector<std::string> segments;
    if (path.empty() || path.front() != '/') {
        return fail(Errc::invalid_argument, "the path does not begin with '/'");
    }
    path.remove_prefix(1);
    segments.reserve(8);
    while (true) {
        const std::size_t slash = path.find('/');
        const std::string_view raw = path.substr(0, slash);
        auto decoded = percent_decode(raw, false);
        if (!decoded) {
            return fail(Errc::invalid_argument,
                        "segment " + std::to_string(segments.size() + 1) +
                            " of the path has a bad percent escape; allowed: % and two hex digits");
        }
        if (!valid_utf8(*decoded)) {
            return fail(Errc::invalid_argument, "segment " + std::to_string(segments.size() + 1) +
                                                    " of the path is not UTF-8");
        }
        segments.push_back(std::move(*decoded));
        if (slash == std::string_view::npos) {
            return segments;
        }
        path.remove_prefix(slash + 1);
    }
}

} // namespace queen::http
