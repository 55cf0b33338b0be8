#include "app/logging.hpp"

#include "base/json.hpp"
#include "base/text.hpp"

#include <Poco/AutoPtr.h>
#include <Poco/ConsoleChannel.h>
#include <Poco/Formatter.h>
#include <Poco/FormattingChannel.h>
#include <Poco/Logger.h>
#include <Poco/Message.h>

#include <array>
#include <iostream>

namespace queen::app {
namespace {

const char* level_name(Poco::Message::Priority priority) {
    static constexpr std::array<const char*, 9> kNames{
        "", "fatal", "critical", "error", "warning", "notice", "info", "debug", "trace"};
    return kNames.at(static_cast<std::size_t>(priority));
}

std::string time_of(const Poco::Message& message) {
    return format_micros(
        WallTime(std::chrono::microseconds(message.getTime().epochMicroseconds())));
}

class KeyValueFormatter final : public Poco::Formatter {
public:
    void format(const Poco::Message& message, std::string& out) override {
        out.append("time=").append(time_of(message));
        out.append(" level=").append(level_name(message.getPriority()));
        out.append(" source=").append(message.getSource());
        out.append(" ");
        for (const char c : message.getText()) { // one message, one line
            out.append(c == '\n' ? "\\n" : std::string(1, c));
        }
    }
};

class JsonFormatter final : public Poco::Formatter {
public:
    void format(const Poco::Message& message, std::string& out) override {
        json::Writer(out)
            .begin_object()
            .key("time")
            .string(time_of(message))
            .key("level")
            .string(level_name(message.getPriority()))
            .key("source")
            .string(message.getSource())
            .key("text")
            .string(valid_utf8(message.getText()) ? message.getText() : "(not UTF-8)")
            .end_object();
    }
};

} // namespace

void start_logging(const std::string& level, bool json) {
    const Poco::AutoPtr<Poco::Channel> console(new Poco::ConsoleChannel(std::cerr));
    const Poco::AutoPtr<Poco::Formatter> formatter(
        json ? static_cast<Poco::Formatter*>(new JsonFormatter) : new KeyValueFormatter);
    const Poco::AutoPtr<Poco::Channel> channel(new Poco::FormattingChannel(formatter, console));
    Poco::Logger::root().setChannel(channel);
    Poco::Logger::root().setLevel(level);
}

} // namespace queen::app
