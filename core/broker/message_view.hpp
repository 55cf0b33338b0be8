// broker/message_view.hpp - messages and dead letters as JSON. The answers of lists are whole
// bodies because those who ask the same share them (FigureReads).
#pragma once
#include "base/json.hpp"
#include "broker/message_status.hpp"
#include "model/encryption.hpp"
#include "model/frame.hpp"
#include "ports/letter_store.hpp"
#include "ports/message_store.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace queen::broker {

/// UTC with milliseconds and Z: the times of administrative answers.
/// @source FMT-14
std::string format_millis(WallTime at);

/// `data` and `payload`, the same stored bytes twice, spliced in unchanged unless encrypted; null
/// when empty or left behind; and what is known about them. A payload that `cipher` opens is shown
/// so; isEncrypted says how it is stored.
/// @param cipher null: the broker has no key, and envelopes are shown; so below
/// @source FMT-8, FMT-10, ENC-3
void write_payload(json::Writer& writer, std::string_view stored, bool encrypted, bool available,
                   const Cipher* cipher);

void write_letter(json::Writer& writer, const DeadLetter& letter, const Cipher* cipher);

/// One row of GET /messages. Views into what the caller holds.
struct MessageRow {
    const MessagePlace& place;
    Offset base{-1};
    Offset offset{-1};
    WallTime created_at{};
    Standing standing;
    const Frame* frame = nullptr; ///< null: the segment cannot be read
    bool available = true;        ///< false: the page has bytes enough without this payload
};
void write_message(json::Writer& writer, const MessageRow& row, const Cipher* cipher);

/// GET /messages/:partitionId/:transactionId: of the stored message, of its letter, or of both.
struct MessageDetail {
    const FoundMessage* found = nullptr; ///< of the partition; null when it is gone
    const Frame* frame = nullptr;        ///< null: only the letter is left
    const DeadLetter* letter = nullptr;  ///< null: none
};
std::string render_detail(const MessageDetail& detail, const Cipher* cipher);

void write_mode(json::Writer& writer, const ConsumerMode& mode);

} // namespace queen::broker
