#include "app/stop_signal.hpp"

namespace queen::app {

StopSignal::StopSignal() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    struct sigaction hang_up {};
    if (sigaction(SIGHUP, nullptr, &hang_up) == 0 && hang_up.sa_handler != SIG_IGN) {
        sigaddset(&signals_, SIGHUP);
    }
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    thread_ = std::thread([this] {
        int number = 0;
        sigwait(&signals_, &number);
        source_.request_stop();
        came_.set_value(number);
    });
}

StopSignal::~StopSignal() {
    // Ends the wait of a thread that is still there; one that has returned does not see it.
    pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
}

} // namespace queen::app
