// settings/layers.hpp - one value per option, from layers that are read one after the other: the
// built-in default, the file, the environment, the command line. A later layer replaces.
#pragma once
#include "settings/table.hpp"
#include "settings/yaml.hpp"

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace queen::settings {

/// The value an option has so far.
struct Held {
    Value value;
    Place place;
    bool built_in = true;  ///< nobody wrote it
    std::string reference; ///< `file:PATH` the value was read from
};

class Layers {
public:
    /// Reads the built-in default; a fault in it is a broken promise of ours and ends the program.
    Layers();

    /// @param folder where relative `file:` references start
    void add_file(const std::string& name, const std::string& text, const std::string& folder);
    void add_environment(const Environment& env);
    void add_overrides(const std::map<std::string, std::string>& overrides);

    const Held& held(std::string_view option) const;
    Held& held(std::string_view option);
    Problems& problems() { return problems_; }
    std::vector<std::string>& warnings() { return warnings_; }

    /// Adds the problem `place: option: what`.
    void complain(const Place& place, std::string_view option, const std::string& what);
    /// Something was wrong with the option, so what it holds is not what was meant.
    bool faulty(std::string_view option) const;

private:
    void read_section(const yaml::Node& map, const std::string& prefix);
    void read_member(const yaml::Node& member, const std::string& name, const std::string& prefix);
    void read_option(const Option& option, const yaml::Node& node);
    void read_secret(const Option& option, const Place& place, const std::string& text);
    void read_connection(const yaml::Node& node, std::string text);
    std::vector<PluginSettings> read_plugins(const yaml::Node& list);
    PluginSettings read_plugin(const yaml::Node& map);
    void unknown(const yaml::Node& member, const std::string& name, const std::string& prefix);
    void read_variable(const Option& option, std::string_view variable, const std::string& text);
    /// The port of an address alone; its host stays what it was.
    void read_port(const Option& option, const Place& place, const std::string& text);
    void read_database_variables(const Environment& env);
    void put(std::string_view option, Value value, const Place& place);

    std::map<std::string, Held, std::less<>> held_;
    std::set<std::string, std::less<>> faulty_;
    Problems problems_;
    std::vector<std::string> warnings_;
    std::string folder_;
    bool built_in_ = true; ///< the layer being read
};

} // namespace queen::settings
