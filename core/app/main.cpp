// queend - the Queen broker.
#include "app/broker_app.hpp"
#include "app/logging.hpp"
#include "app/stop_signal.hpp"
#include "settings/settings.hpp"

#include <Poco/Exception.h>
#include <Poco/Logger.h>
#include <Poco/Util/HelpFormatter.h>
#include <Poco/Util/Option.h>
#include <Poco/Util/OptionException.h>
#include <Poco/Util/OptionProcessor.h>
#include <Poco/Util/OptionSet.h>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <map>
#include <optional>
#include <string>

#ifndef QUEEN_VERSION
#error "QUEEN_VERSION comes from CMake"
#endif

namespace queen::app {
namespace {

constexpr int kExitFailed = 1; ///< could not start
constexpr int kExitUsage = 2;  ///< command line or settings

/// How long answers in flight and statements may take when the broker stops.
constexpr std::chrono::seconds kGrace{10};

struct CommandLine {
    std::optional<std::string> config;
    std::map<std::string, std::string> overrides; ///< option of the settings to YAML text
    bool help = false;
    bool version = false;
};

Poco::Util::OptionSet option_set() {
    using Poco::Util::Option;
    Poco::Util::OptionSet set;
    set.addOption(Option("config", "c", "settings file (YAML)").argument("FILE"));
    set.addOption(Option("port", "p", "port to listen on, over the settings").argument("N"));
    set.addOption(Option("data", "d", "data directory, over the settings").argument("DIR"));
    set.addOption(Option("help", "h", "this text"));
    set.addOption(Option("version", "V", "the version"));
    return set;
}

/// @throws Poco::Util::OptionException
CommandLine parse(int argc, char** argv) {
    CommandLine line;
    const auto set = option_set();
    Poco::Util::OptionProcessor processor(set);
    processor.setUnixStyle(true);
    for (int i = 1; i < argc; ++i) {
        std::string name;
        std::string value;
        if (!processor.process(argv[i], name, value)) {
            throw Poco::Util::UnknownOptionException(argv[i]);
        }
        if (name == "config") {
            line.config = value;
        } else if (name == "port" || name == "data") {
            line.overrides[name] = value;
        } else if (name == "help") {
            line.help = true;
        } else if (name == "version") {
            line.version = true;
        }
    }
    processor.checkRequired();
    return line;
}

void print_help() {
    const auto set = option_set();
    Poco::Util::HelpFormatter formatter(set);
    formatter.setCommand("queend");
    formatter.setUsage("[--config FILE] [--port N] [--data DIR]");
    formatter.setHeader("The Queen broker: partitioned queues on PostgreSQL, over HTTP.");
    formatter.setUnixStyle(true);
    formatter.format(std::cout);
}

/// The line that scripts wait for, and an example to try. Flushed: it often goes into a pipe.
void print_ready(const settings::Settings& settings, std::uint16_t port) {
    const bool v6 = settings.listen_address.find(':') != std::string::npos;
    const auto host = v6 ? "[" + settings.listen_address + "]" : settings.listen_address;
    const auto url = "http://" + host + ":" + std::to_string(port);
    std::cout << "queend ready on " << url << "  try: curl -s " << url
              << R"(/api/v1/push -d '{"items":[{"queue":"hello","payload":"world"}]}')"
              << std::endl;
}

int run(const CommandLine& line) {
    auto loaded = settings::load(line.config, settings::process_environment(), line.overrides);
    if (!loaded) {
        for (const auto& problem : loaded.error()) {
            std::cerr << problem << '\n';
        }
        return kExitUsage;
    }
    const auto& settings = loaded->settings;
    start_logging(settings.log_level, settings.log_json);
    auto& logger = Poco::Logger::get("queend");
    for (const auto& warning : loaded->warnings) {
        logger.warning(warning);
    }

    std::signal(SIGPIPE, SIG_IGN);
    StopSignal stop;

    auto broker = BrokerApp::start(*loaded, stop.token());
    if (!broker && broker.error().code == Errc::shutting_down) {
        logger.information("stopped before it was ready");
        return 0;
    }
    if (!broker) {
        std::cerr << "queend: " << broker.error().message << '\n';
        return kExitFailed;
    }
    print_ready(settings, (*broker)->port());

    logger.information("stopping on signal " + std::to_string(stop.wait()));
    (*broker)->stop(kGrace);
    logger.information("stopped");
    return 0;
}

} // namespace
} // namespace queen::app

int main(int argc, char** argv) {
    try {
        const auto line = queen::app::parse(argc, argv);
        if (line.help) {
            queen::app::print_help();
            return 0;
        }
        if (line.version) {
            std::cout << "queend " QUEEN_VERSION "\n";
            return 0;
        }
        return queen::app::run(line);
    } catch (const Poco::Util::OptionException& e) {
        std::cerr << "queend: " << e.displayText() << "; see queend --help\n";
        return queen::app::kExitUsage;
    } catch (const Poco::Exception& e) {
        std::cerr << "queend: " << e.displayText() << '\n';
    } catch (const std::exception& e) {
        std::cerr << "queend: " << e.what() << '\n';
    }
    return queen::app::kExitFailed;
}
