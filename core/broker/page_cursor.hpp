#pragma once
#include "ports/letter_store.hpp"
#include "ports/message_store.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace queen::broker {

/// Places in lists as a client holds them: opaque to him, read back by whichever broker he asks
/// next. @return of the readers: nullopt for what no writer made
std::string write_cursor(const MessageKey& key);
std::string write_cursor(const LetterKey& key);
std::optional<MessageKey> read_message_cursor(std::string_view text);
std::optional<LetterKey> read_letter_cursor(std::string_view text);

} // namespace queen::broker
