#include "queenctl/queenctl.hpp"

#include "queenctl/command.hpp"
#include "queenctl/text_table.hpp"
#include "settings/values.hpp"

#include <algorithm>
#include <exception>
#include <ostream>

namespace queen::ctl {
namespace {

void print_flags(std::ostream& out, std::span<const Flag> flags) {
    TextTable table({{""}, {""}, {""}});
    std::size_t width = 0;
    const auto left = [](const Flag& flag) {
        return "  --" + std::string(flag.name) +
               (flag.value.empty() ? "" : " " + std::string(flag.value));
    };
    for (const Flag& flag : flags) {
        width = std::max(width, left(flag).size());
    }
    for (const Flag& flag : flags) {
        const std::string start = left(flag);
        out << start << std::string(width - start.size() + 2, ' ') << flag.meaning << "\n";
    }
}

void print_overview(std::ostream& out) {
    out << "Usage: queenctl [OPTIONS] COMMAND ...\n\n";
    std::size_t width = 0;
    const auto left = [](const Command& command) {
        return "  " + std::string(command.name) +
               (command.words.empty() ? "" : " " + std::string(command.words));
    };
    for (const Command& command : commands()) {
        width = std::max(width, left(command).size());
    }
    for (const Command& command : commands()) {
        const std::string start = left(command);
        out << start << std::string(width - start.size() + 2, ' ') << command.summary << "\n";
    }
    out << "\nOptions of every command:\n";
    print_flags(out, global_flags());
    out << "\nqueenctl help COMMAND tells more. Exit: 0 ok, 1 failed, 2 usage, 3 no broker, 4 "
           "empty "
           "pop.\n";
}

void print_help(std::ostream& out, const Command& command) {
    out << "Usage: queenctl " << command.name << (command.words.empty() ? "" : " ") << command.words
        << (command.flags.empty() ? "" : " [OPTIONS]") << "\n\n"
        << command.summary << "\n";
    if (!command.details.empty()) {
        out << "\n" << command.details << "\n";
    }
    if (!command.flags.empty()) {
        out << "\nOptions:\n";
        print_flags(out, command.flags);
    }
    out << "\nOptions of every command:\n";
    print_flags(out, global_flags());
}

Exit complain(Terminal& terminal, std::string_view where, const std::string& message, Exit exit) {
    terminal.err << "queenctl" << (where.empty() ? "" : " ") << where << ": " << printable(message)
                 << "\n";
    return exit;
}

/// The command's words taken off the line, wherever options stand. Options' values are skipped by
/// the help of all tables, so a value that is a command's name is not taken for it.
const Command* take_command(std::vector<std::string>& words, std::string& asked) {
    const auto takes_value = [](std::string_view name) {
        const auto global = global_flags();
        return std::any_of(global.begin(), global.end(), [&](const Flag& flag) {
            return flag.name == name && !flag.value.empty();
        });
    };
    std::size_t at = 0;
    while (at < words.size() && words[at].starts_with('-') && words[at] != "-") {
        const bool value =
            words[at].starts_with("--") && takes_value(std::string_view(words[at]).substr(2));
        at += value ? 2 : 1;
    }
    if (at >= words.size()) {
        return nullptr;
    }
    asked = words[at];
    std::size_t count = 1;
    const auto find = [&](const std::string& name) -> const Command* {
        for (const Command& command : commands()) {
            if (command.name == name) {
                return &command;
            }
        }
        return nullptr;
    };
    // Two words first: `groups delete` is no look at a group called "delete".
    const Command* command = nullptr;
    if (at + 1 < words.size() && !words[at + 1].starts_with('-')) {
        command = find(asked + " " + words[at + 1]);
        count = 2;
    }
    if (command == nullptr) {
        command = find(asked);
        count = 1;
    }
    if (command != nullptr) {
        const auto first = words.begin() + static_cast<std::ptrdiff_t>(at);
        words.erase(first, first + static_cast<std::ptrdiff_t>(count));
    }
    return command;
}

std::string unknown_command(const std::string& asked) {
    std::vector<std::string> names;
    std::string members;
    for (const Command& command : commands()) {
        names.emplace_back(command.name.substr(0, command.name.find(' ')));
        if (command.name.starts_with(asked + " ")) {
            members += (members.empty() ? "" : ", ") + std::string(command.name);
        }
    }
    if (!members.empty()) {
        return asked + " needs one more word: " + members;
    }
    const std::string meant = settings::nearest(asked, names);
    return "unknown command " + settings::shown(asked) +
           (meant.empty() ? "; see queenctl help" : "; did you mean " + meant + "?");
}

Exit help(std::vector<std::string> words, Terminal& terminal) {
    if (words.empty()) {
        print_overview(terminal.out);
        return Exit::ok;
    }
    std::string asked;
    if (const Command* command = take_command(words, asked)) {
        print_help(terminal.out, *command);
        return Exit::ok;
    }
    return complain(terminal, "help", unknown_command(asked), Exit::usage);
}

} // namespace

Exit run(std::span<const std::string> words, Terminal& terminal) {
    std::vector<std::string> rest(words.begin(), words.end());
    if (!rest.empty() && rest.front() == "help") {
        rest.erase(rest.begin());
        return help(std::move(rest), terminal);
    }
    const auto end = std::find(rest.begin(), rest.end(), "--");
    if (std::any_of(rest.begin(), end,
                    [](const std::string& word) { return word == "--help" || word == "-h"; })) {
        std::erase_if(rest,
                      [](const std::string& word) { return word == "--help" || word == "-h"; });
        return help(std::move(rest), terminal);
    }
    std::string asked;
    const Command* command = take_command(rest, asked);
    if (command == nullptr) {
        return complain(terminal, "",
                        asked.empty() ? "a command is missing; see queenctl help"
                                      : unknown_command(asked),
                        Exit::usage);
    }
    std::vector<Flag> flags(command->flags.begin(), command->flags.end());
    flags.insert(flags.end(), global_flags().begin(), global_flags().end());
    auto arguments = Arguments::parse(rest, flags);
    if (!arguments) {
        return complain(terminal, command->name, arguments.error().message, Exit::usage);
    }
    Session session{std::move(*arguments), terminal};
    const auto result = command->run(session);
    terminal.out.flush();
    if (result) {
        return *result;
    }
    const Errc code = result.error().code;
    return complain(terminal, command->name, result.error().message,
                    code == Errc::invalid_argument ? Exit::usage
                    : code == Errc::unavailable    ? Exit::unreachable
                                                   : Exit::failed);
}

} // namespace queen::ctl
