// shared/hint_json.hpp - hints as the JSON that brokers write to each other. Readers skip what they
// do not know, so fields can be added while brokers of two versions run side by side (ME-16).
#pragma once
#include <queen/plugin/mesh.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace queen::hint_json {

inline constexpr std::size_t kMaxItems = 100'000; ///< of one text; more are skipped
inline constexpr std::size_t kMaxDepth = 32;
inline constexpr std::size_t kMaxName = 255; ///< bytes of a name, as everywhere in the broker

/// Appends the text as a JSON string, quotes included.
void append_text(std::string& out, std::string_view text);

/// Appends `,"instance":…`; nothing when there is none.
void append_instance(std::string& out, std::string_view instance);

/// Appends `"queue":…,"partition":…,"tenant":…,"group":…` without braces. The queue is always
/// there, so is the partition with `partition` set; the others only when they are not empty.
void append_names(std::string& out, const plugin::Hint& hint, bool partition);

/// The names of one thing. What was absent, or no text, is empty.
struct Item {
    std::string_view queue, partition, tenant, group;
    std::string_view kind; ///< of the transport over NOTIFY alone
    std::string_view subject;
    std::optional<bool> enabled;
};

/// One text that was read. Views live until the next read.
class Reading {
public:
    Reading() = default;
    Reading(const Reading&) = delete; // its views point into itself
    Reading& operator=(const Reading&) = delete;

    /// @return false when it is no JSON object, or nests too deeply
    bool read(std::string_view text);
    void clear(); ///< gives the memory back

    const Item& top() const noexcept { return top_; } ///< fields beside `items`
    const std::vector<Item>& items() const noexcept { return items_; }
    std::size_t skipped() const noexcept { return skipped_; } ///< items beyond kMaxItems
    std::string_view server_id() const noexcept { return server_id_; }
    std::string_view nonce() const noexcept { return nonce_; }
    std::string_view mac() const noexcept { return mac_; }
    std::string_view instance() const noexcept; ///< empty also when it is no name
    bool challenge() const noexcept { return challenge_; }

private:
    friend class ReadingBuilder;
    Reading& operator=(Reading&&) = default;
    std::string texts_; ///< what the views point into
    Item top_;
    std::vector<Item> items_;
    std::size_t skipped_ = 0;
    std::string_view server_id_, nonce_, mac_, instance_;
    bool challenge_ = false;
};

/// 1 to kMaxName bytes of UTF-8 without control characters. @source NAME-1
bool is_name(std::string_view text) noexcept;

/// A name that comes back as it was from the JSON in which brokers say it: a server id.
bool is_server_id(std::string_view text);
inline constexpr std::string_view kNoServerId =
    "is no name that brokers can tell each other; allowed: 1 to 255 bytes of UTF-8 without control "
    "characters";

/// A tenant as the broker writes it, or empty for what is no UUID: then every tenant's queue of
/// that name is meant. @source ME-13
std::string tenant_of(std::string_view text);

} // namespace queen::hint_json
