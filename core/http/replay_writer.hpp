#pragma once
#include "broker/dead_letters.hpp"
#include "http/message.hpp"

#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace queen::http {

/// Members that say which letter was meant, as the path named it.
using LetterAddress = std::span<const std::pair<std::string_view, std::string>>;

/// The answer to a replay, by whichever route.
/// @source DQ-4
Reply render_replay(const broker::Replay& replay, LetterAddress address);

} // namespace queen::http
