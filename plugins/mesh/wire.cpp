#include "wire.hpp"

#include "shared/hint_json.hpp"

#include <algorithm>
#include <cstring>

namespace queen::mesh {
namespace {

using plugin::Hint;
using plugin::HintKind;

constexpr std::size_t kHead = 4;                         // of a frame: its length
constexpr std::size_t kFirstRoom = kMaxUnproven + kHead; // all that an unproven peer ever gets
constexpr std::size_t kPeerRoom = std::size_t{64} << 10;
constexpr std::size_t kKeptRoom = std::size_t{256} << 10; // more is given back when it is empty
constexpr std::string_view kItems = "{\"items\":[";

void write_length(std::string& frame) {
    const auto length = static_cast<std::uint32_t>(frame.size() - kHead);
    for (std::size_t i = 0; i < kHead; ++i) {
        frame[i] = static_cast<char>(length >> (8 * (kHead - 1 - i)));
    }
}

std::string begin_frame(FrameType type) {
    std::string frame(kHead, '\0');
    frame += static_cast<char>(type);
    return frame;
}

OutFrame share(std::string frame, std::size_t hints) {
    write_length(frame);
    return {std::make_shared<const std::string>(std::move(frame)), hints};
}

OutFrame names_frame(FrameType type, const Hint& hint, bool partition) {
    std::string frame = begin_frame(type);
    frame += '{';
    hint_json::append_names(frame, hint, partition);
    frame += '}';
    return share(std::move(frame), 1);
}

/// Old brokers have a type for each of two switches, and believe it: of another switch they must
/// not hear there. They skip ours.
OutFrame switch_frame(const Hint& hint) {
    const bool pushes = hint.subject == "maintenance";
    const bool pops = hint.subject == "pop_maintenance";
    std::string frame = begin_frame(pushes ? FrameType::maintenance
                                    : pops ? FrameType::pop_maintenance
                                           : FrameType::switched);
    frame += '{';
    if (!pushes && !pops) {
        frame += "\"subject\":";
        hint_json::append_text(frame, hint.subject);
        frame += ',';
    }
    frame += hint.enabled ? "\"enabled\":true}" : "\"enabled\":false}";
    return share(std::move(frame), 1);
}

} // namespace

std::string make_frame(FrameType type, std::string_view json) {
    std::string frame = begin_frame(type);
    frame += json;
    write_length(frame);
    return frame;
}

std::string heartbeat_frame(std::string_view server_id) {
    std::string json = "{\"server_id\":";
    hint_json::append_text(json, server_id);
    json += '}';
    return make_frame(FrameType::heartbeat, json);
}

std::vector<OutFrame> frames_of(std::span<const Hint> hints) {
    std::vector<OutFrame> out;
    BatchFrame batch(FrameType::message_available_batch, hints.size());
    for (const Hint& hint : hints) {
        switch (hint.kind) {
        case HintKind::stored: {
            Hint plain = hint;
            plain.group = {}; // old brokers know no group here
            batch.add(plain);
            if (batch.full()) {
                out.push_back(batch.finish());
            }
            break;
        }
        case HintKind::moved:
            out.push_back(names_frame(FrameType::group_moved, hint, !hint.partition.empty()));
            break;
        case HintKind::configured:
            out.push_back(names_frame(FrameType::config_set, hint, false));
            break;
        case HintKind::deleted:
            out.push_back(names_frame(FrameType::config_deleted, hint, false));
            break;
        case HintKind::switched:
            out.push_back(switch_frame(hint));
            break;
        }
    }
    if (!batch.empty()) {
        out.push_back(batch.finish());
    }
    return out;
}

BatchFrame::BatchFrame(FrameType type, std::size_t most) : type_(type), most_(most) {
    begin();
}

void BatchFrame::begin() {
    items_ = 0;
    bytes_ = begin_frame(type_);
    bytes_ += kItems;
}

void BatchFrame::add(const Hint& hint) {
    bytes_ += items_ == 0 ? "{" : ",{";
    hint_json::append_names(bytes_, hint, true);
    bytes_ += '}';
    ++items_;
}

OutFrame BatchFrame::finish() {
    bytes_ += "]}";
    OutFrame frame = share(std::move(bytes_), items_);
    begin();
    return frame;
}

std::span<char> FrameReader::room() {
    if (begin_ == end_) {
        begin_ = end_ = 0;
        if (buffer_.size() > kKeptRoom) {
            std::vector<char>().swap(buffer_);
        }
    } else if (begin_ > 0 && end_ == buffer_.size()) {
        std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
    }
    if (end_ == buffer_.size()) {
        const std::size_t least = limit_ > kMaxUnproven ? kPeerRoom : kFirstRoom;
        buffer_.resize(std::min(std::max(least, 2 * buffer_.size()), kHead + limit_));
    }
    return std::span(buffer_).subspan(end_);
}

FrameReader::State FrameReader::next(Frame& out) {
    if (end_ - begin_ < kHead) {
        return State::more;
    }
    std::size_t length = 0;
    for (std::size_t i = 0; i < kHead; ++i) {
        length = length << 8 | static_cast<unsigned char>(buffer_[begin_ + i]);
    }
    if (length == 0) {
        return State::empty_frame;
    }
    if (length > limit_) {
        return State::too_long;
    }
    if (end_ - begin_ < kHead + length) {
        return State::more;
    }
    const char* body = buffer_.data() + begin_ + kHead;
    out.type = static_cast<std::uint8_t>(*body);
    out.json = {body + 1, length - 1};
    begin_ += kHead + length;
    return State::frame;
}

} // namespace queen::mesh
