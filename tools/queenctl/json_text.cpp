#include "queenctl/json_text.hpp"

namespace queen::ctl {
namespace {

void write(json::Writer& out, json::Value value) {
    switch (value.kind()) {
    case json::Kind::missing:
    case json::Kind::null:
        out.null();
        return;
    case json::Kind::boolean:
        out.boolean(value.boolean().value_or(false));
        return;
    case json::Kind::number:
        out.raw(value.raw_number());
        return;
    case json::Kind::string:
        out.string(value.string());
        return;
    case json::Kind::array:
        out.begin_array();
        for (std::size_t i = 0; i < value.size(); ++i) {
            write(out, value.at(i));
        }
        out.end_array();
        return;
    case json::Kind::object:
        out.begin_object();
        for (std::size_t i = 0; i < value.size(); ++i) {
            out.key(value.key_at(i));
            write(out, value.value_at(i));
        }
        out.end_object();
        return;
    }
}

} // namespace

std::string to_json(json::Value value) {
    std::string text;
    json::Writer out(text);
    write(out, value); // the reader bounds the depth (json::kMaxDepth)
    return text;
}

std::string to_plain(json::Value value) {
    switch (value.kind()) {
    case json::Kind::missing:
    case json::Kind::null:
        return {};
    case json::Kind::string:
        return std::string(value.string());
    case json::Kind::boolean:
    case json::Kind::number:
    case json::Kind::array:
    case json::Kind::object:
        break;
    }
    return to_json(value);
}

std::string on_or_off(json::Value value) {
    return value.boolean() == true ? "on" : "off";
}

json::Value at_path(json::Value value, std::string_view path) {
    while (true) {
        const std::size_t dot = path.find('.');
        value = value[path.substr(0, dot)];
        if (dot == std::string_view::npos) {
            return value;
        }
        path.remove_prefix(dot + 1);
    }
}

bool is_json(std::string_view text) {
    return json::check(text).has_value();
}

} // namespace queen::ctl
