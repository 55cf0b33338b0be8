// queenctl - the operator's command line over HTTP, and checks of settings and plugins.
#include "queenctl/queenctl.hpp"

#include <Poco/Event.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <iostream>

namespace {

/// An event that nobody sets: waits without reading a clock.
void pause_for(std::chrono::milliseconds time) {
    Poco::Event never;
    never.tryWait(static_cast<long>(time.count()));
}

} // namespace

int main(int argc, char** argv) {
    std::signal(SIGPIPE,
                SIG_IGN); // `queenctl ... | head`: a failed write is noticed where it matters
    std::ios::sync_with_stdio(false);
    const std::vector<std::string> words(argv + 1, argv + argc);
    queen::ctl::Terminal terminal{std::cin,
                                  std::cout,
                                  std::cerr,
                                  isatty(STDOUT_FILENO) != 0,
                                  isatty(STDERR_FILENO) != 0,
                                  queen::SystemClock::instance(),
                                  pause_for,
                                  queen::settings::process_environment()};
    try {
        const auto exit = queen::ctl::run(words, terminal);
        if (!std::cout.flush() && exit == queen::ctl::Exit::ok) {
            std::cerr << "queenctl: the output could not be written\n";
            return static_cast<int>(queen::ctl::Exit::failed);
        }
        return static_cast<int>(exit);
    } catch (const std::exception& e) { // lost memory and broken promises of libraries
        std::cerr << "queenctl: " << e.what() << "\n";
        return static_cast<int>(queen::ctl::Exit::failed);
    }
}
