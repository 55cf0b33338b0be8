#pragma once
#include <csignal>
#include <future>
#include <stop_token>
#include <thread>

namespace queen::app {

/// The signals that end the program: INT, TERM and, unless it is ignored, HUP (a terminal that
/// closes must not leave the database behind). A thread waits for the first of them from before the
/// start, so that a start that takes long, as for other installers of the schema, can be stopped
/// too.
///
/// Made before any other thread: they inherit the mask, so that only ours sees the signals.
class StopSignal {
public:
    StopSignal();
    ~StopSignal();
    StopSignal(const StopSignal&) = delete;
    StopSignal& operator=(const StopSignal&) = delete;

    /// Asked to stop once the signal came.
    std::stop_token token() const noexcept { return source_.get_token(); }
    /// Blocks until it comes. @return its number
    int wait() { return number_.get(); }

private:
    sigset_t signals_{};
    std::stop_source source_;
    std::promise<int> came_;
    std::future<int> number_ = came_.get_future();
    std::thread thread_;
};

} // namespace queen::app
