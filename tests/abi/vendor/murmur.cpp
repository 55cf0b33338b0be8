#include "murmur.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

namespace acme::murmur {
namespace {

std::mutex mutex;
std::vector<Murmur*> links; // under mutex, as all that follows
std::atomic<std::size_t> started = 0;

} // namespace

void Murmur::start() {
    const std::lock_guard lock(mutex);
    links.push_back(this);
    started = links.size();
    for (Murmur* link : links) {
        link->host_.missed(); // what one said before the other listened
    }
}

void Murmur::stop() {
    const std::lock_guard lock(mutex);
    std::erase(links, this);
    started = links.size();
}

bool Murmur::listened() const noexcept {
    return started > 1;
}

void Murmur::publish(std::span<const queen::plugin::Hint> hints) {
    const std::lock_guard lock(mutex);
    if (std::find(links.begin(), links.end(), this) == links.end()) {
        return;
    }
    published_ += hints.size();
    for (Murmur* other : links) {
        if (other != this && other->channel_ == channel_) {
            other->host_.heard(hints);
        }
    }
}

void Murmur::stats(queen::plugin::Stats& out) {
    out.add("published_total", static_cast<double>(published_));
}

void Murmur::peers(queen::plugin::Peers& out) {
    const std::lock_guard lock(mutex);
    if (std::find(links.begin(), links.end(), this) == links.end()) {
        return;
    }
    for (const Murmur* other : links) {
        if (other != this && other->channel_ == channel_) {
            queen::plugin::Peer peer;
            peer.address = "this process";
            peer.connected = peer.alive = true;
            peer.silent = queen::Nanoseconds(0);
            out.add(peer);
        }
    }
}

} // namespace acme::murmur
