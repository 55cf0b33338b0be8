#include "incoming.hpp"

#include "proof.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace queen::mesh {
namespace {

using hint_json::is_name;
using plugin::HintKind;

constexpr std::size_t kNonce = 32;
constexpr int kReadsInARow = 4;                           // then others have a turn
constexpr std::size_t kKeptTexts = std::size_t{64} << 10; // more is given back after a frame

bool is_nonce(std::string_view text) {
    return text.size() == kNonce && std::all_of(text.begin(), text.end(), [](char c) {
               return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
           });
}

} // namespace

Incoming::Incoming(Context& context, Accepted accepted, SteadyTime now)
    : context_(context), socket_(std::move(accepted.socket)), from_(std::move(accepted.from)),
      host_(std::move(accepted.host)), since_(now), reader_(kMaxUnproven), heard_(now),
      resume_(now) {
    key_ = context_.poller.add(socket_, Poller::kRead);
}

SteadyTime Incoming::due() const noexcept {
    if (state_ != State::proven) {
        return since_ + context_.options.dead_threshold;
    }
    return paused_ ? resume_ : heard_ + context_.options.dead_threshold;
}

bool Incoming::tick(SteadyTime now) {
    if (now < due()) {
        return true;
    }
    if (paused_) {
        paused_ = false;
        heard_ = now; // it was we who did not listen
        context_.poller.change(socket_, key_, Poller::kRead);
        return cut(now); // frames that came before the pause
    }
    if (state_ == State::proven) {
        return reject(context_.figures.silent, "was silent for too long", now);
    }
    if (state_ == State::ourselves) {
        return false;
    }
    return reject(context_.figures.failed_late, "did not say who it is in time", now);
}

bool Incoming::event(SteadyTime now) {
    if (paused_) {
        return false; // nothing is asked for, so this is the end of the connection
    }
    for (int i = 0; i < kReadsInARow && !paused_; ++i) {
        std::size_t size = 0;
        const Flow flow = receive(socket_, reader_.room(), size);
        if (flow == Flow::closed) {
            return false;
        }
        if (flow == Flow::blocked) {
            break;
        }
        reader_.take(size);
        context_.figures.bytes_received.add(size);
        heard_ = now;
        if (!cut(now)) {
            return false;
        }
    }
    return true;
}

bool Incoming::cut(SteadyTime now) {
    FrameReader::Frame frame;
    std::uint64_t frames = 0;
    FrameReader::State state = FrameReader::State::more;
    bool keep = true;
    while (keep && !paused_) {
        state = reader_.next(frame);
        if (state != FrameReader::State::frame) {
            break;
        }
        ++frames;
        keep = handle(frame, now);
    }
    context_.figures.frames_received.add(frames);
    if (proven()) {
        context_.roster.heard(server_id_, from_, frames, now);
        if (frames > 0 && !rival_.empty()) {
            tell_of_namesakes(rival_instance_,
                              "the brokers at " + from_ + " and at " + rival_ +
                                  " both have the server id " + server_id_ +
                                  ": each needs one of its own",
                              now);
            rival_.clear();
        }
    }
    if (state == FrameReader::State::empty_frame || state == FrameReader::State::too_long) {
        return reject(context_.figures.frames_bad,
                      state == FrameReader::State::empty_frame ? "sent a frame without a type"
                                                               : "announced a frame too long",
                      now);
    }
    return keep;
}

bool Incoming::handle(const FrameReader::Frame& frame, SteadyTime now) {
    switch (state_) {
    case State::fresh:
        if (frame.type != static_cast<std::uint8_t>(FrameType::hello)) {
            return reject(context_.figures.failed_hello, "did not begin with a hello", now);
        }
        return hello(frame.json, now);
    case State::challenged:
        if (frame.type == static_cast<std::uint8_t>(FrameType::answer)) {
            return answered(frame.json, now);
        }
        context_.figures.frames_early.add();
        return true;
    case State::ourselves:
        return true;
    case State::proven:
        break;
    }
    // The peer writes its first frame once it sends us what it says, whatever protocol it is of:
    // what it said before then is lost, what it says from then on comes.
    if (!told_missed_) {
        told_missed_ = true;
        context_.host.missed();
    }
    if (!hints(frame)) {
        return reject(context_.figures.frames_bad, "sent a frame that is no JSON object", now);
    }
    const std::size_t count = hints_.hints().size();
    if (count > 0) {
        context_.figures.hints_received.add(count);
        context_.host.heard(hints_.hints());
    }
    hints_.clear();
    if (frame.json.size() > kKeptTexts) {
        reading_.clear();
    }
    if (!pay(std::max<std::size_t>(count, 1), frame.json.size(), now)) {
        context_.figures.throttled.add();
        paused_ = true;
        context_.poller.change(socket_, key_, 0);
    }
    return true;
}

bool Incoming::hello(std::string_view json, SteadyTime now) {
    const Options& options = context_.options;
    if (!reading_.read(json) || !is_name(reading_.server_id())) {
        return reject(context_.figures.failed_hello, "sent a hello without a server id", now);
    }
    const bool open = options.secret.empty();
    if (!open && (!is_nonce(reading_.nonce()) ||
                  !same_mac(reading_.mac(), hello_mac(options.secret, reading_.nonce())))) {
        return reject(context_.figures.failed_mac, "has another secret", now);
    }
    const bool knows_challenges = reading_.challenge();
    if (!open && options.require_challenge && !knows_challenges) {
        return reject(context_.figures.failed_hello,
                      "speaks the old protocol, which require_challenge refuses", now);
    }
    server_id_ = reading_.server_id();
    instance_ = reading_.instance();
    hello_nonce_ = reading_.nonce();
    const bool ourselves = kin_of(reading_, options) == Kin::ourselves;
    if (knows_challenges && !send_challenge()) {
        return false;
    }
    if (ourselves) {
        state_ = State::ourselves;
    } else if (!open && options.require_challenge) {
        state_ = State::challenged;
    } else {
        become_proven(now);
    }
    return true;
}

bool Incoming::send_challenge() {
    const Options& options = context_.options;
    std::string json = "{\"server_id\":";
    hint_json::append_text(json, options.server_id);
    hint_json::append_instance(json, options.instance);
    if (!options.secret.empty()) {
        challenge_nonce_ = make_nonce();
        const Exchange exchange{server_id_,       options.server_id, hello_nonce_,
                                challenge_nonce_, instance_,         options.instance};
        json += ",\"nonce\":\"" + challenge_nonce_ + "\",\"mac\":\"" +
                challenge_mac(options.secret, exchange) + "\"";
    }
    json += '}';
    const std::string frame = make_frame(FrameType::challenge, json);
    const std::array<std::string_view, 1> pieces{frame};
    std::size_t size = 0;
    // The first bytes on a connection fit, unless somebody made its buffers absurdly small.
    return send(socket_, pieces, size) == Flow::done && size == frame.size();
}

bool Incoming::answered(std::string_view json, SteadyTime now) {
    const Options& options = context_.options;
    const Exchange exchange{server_id_,       options.server_id, hello_nonce_,
                            challenge_nonce_, instance_,         options.instance};
    if (!reading_.read(json) || !same_mac(reading_.mac(), answer_mac(options.secret, exchange))) {
        return reject(context_.figures.failed_mac,
                      "answered the challenge wrongly: its hello may have been recorded", now);
    }
    become_proven(now);
    return true;
}

void Incoming::become_proven(SteadyTime now) {
    // The answer covers the id; a hello does not, and says whatever it likes.
    budget_ = context_.budgets.of(
        state_ == State::challenged ? "id " + server_id_ : owner_at(host_), now);
    state_ = State::proven;
    heard_ = now;
    reader_.set_limit(kMaxFrame);
    if (server_id_ == context_.options.server_id) {
        tell_of_namesakes(instance_,
                          "the broker at " + from_ + " has our own server id " + server_id_ +
                              ", and we are another one, at " + context_.options.listen.text() +
                              ": each needs one of its own; its hints are heard all the same",
                          now);
    }
}

void Incoming::beware_of(const Incoming& other) {
    if (proven() && other.server_id_ == server_id_ && !instance_.empty() &&
        !other.instance_.empty() && other.instance_ != instance_) {
        rival_ = other.from_;
        rival_instance_ = other.instance_;
    }
}

void Incoming::tell_of_namesakes(const std::string& instance, const std::string& line,
                                 SteadyTime now) {
    if (!context_.namesakes.told(instance) && context_.complaints.add(now, line)) {
        context_.namesakes.add(instance);
    }
}

bool Incoming::hints(const FrameReader::Frame& frame) {
    hints_.clear();
    const auto type = static_cast<FrameType>(frame.type);
    switch (type) {
    case FrameType::heartbeat:
    case FrameType::hello:
    case FrameType::challenge:
    case FrameType::answer:
        return true; // it was heard of; there is nothing else in it
    case FrameType::missed:
        context_.host.missed();
        return true;
    case FrameType::message_available:
    case FrameType::message_available_batch:
    case FrameType::dirty_batch:
    case FrameType::config_set:
    case FrameType::config_deleted:
    case FrameType::maintenance:
    case FrameType::pop_maintenance:
    case FrameType::group_moved:
    case FrameType::switched:
        break;
    default:
        context_.figures.frames_unknown.add();
        return true;
    }
    if (!reading_.read(frame.json)) {
        return false;
    }
    context_.figures.items_skipped.add(reading_.skipped());
    switch (type) {
    case FrameType::message_available:
        add(HintKind::stored, reading_.top());
        break;
    case FrameType::message_available_batch:
        for (const hint_json::Item& item : reading_.items()) {
            add(HintKind::stored, item);
        }
        break;
    case FrameType::dirty_batch:
        for (const hint_json::Item& item : reading_.items()) {
            add(item.group.empty() ? HintKind::stored : HintKind::moved, item);
        }
        break;
    case FrameType::config_set:
        add(HintKind::configured, reading_.top());
        break;
    case FrameType::config_deleted:
        add(HintKind::deleted, reading_.top());
        break;
    case FrameType::group_moved:
        add(HintKind::moved, reading_.top());
        break;
    case FrameType::maintenance:
        add_switch("maintenance");
        break;
    case FrameType::pop_maintenance:
        add_switch("pop_maintenance");
        break;
    case FrameType::switched:
        add_switch(reading_.top().subject);
        break;
    case FrameType::heartbeat:
    case FrameType::hello:
    case FrameType::challenge:
    case FrameType::answer:
    case FrameType::missed:
        break;
    }
    return true;
}

void Incoming::add(HintKind kind, const hint_json::Item& item) {
    if (!hints_.add(kind, item)) {
        context_.figures.items_skipped.add();
    }
}

void Incoming::add_switch(std::string_view subject) {
    if (!hints_.add_switch(subject, reading_.top().enabled)) {
        context_.figures.items_skipped.add();
    }
}

bool Incoming::pay(std::size_t hints, std::size_t bytes, SteadyTime now) {
    resume_ = context_.budgets.pay(*budget_, hints, bytes, now);
    return resume_ <= now;
}

bool Incoming::reject(Counter& cause, const std::string& why, SteadyTime now) {
    cause.add();
    context_.complaints.add(now, "connection from " + from_ + " " + why);
    return false;
}

} // namespace queen::mesh
