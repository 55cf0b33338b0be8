#include "settings/connection.hpp"

#include "settings/values.hpp"

#include <libpq-fe.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>

namespace queen::settings {
namespace {

constexpr std::string_view kSystemCertificates = "/etc/ssl/certs/ca-certificates.crt";
constexpr std::size_t kLargestReference = 64 * 1024;

struct FreeOptions {
    void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
};
using Options = std::unique_ptr<PQconninfoOption, FreeOptions>;

Options parse(const std::string& text) {
    char* why = nullptr;
    Options options(PQconninfoParse(text.c_str(), &why));
    PQfreemem(why); // may quote a password; not shown
    return options;
}

std::string value_of(const Environment& env, const char* name) {
    const auto found = env.find(name);
    return found == env.end() ? std::string() : found->second;
}

std::string quoted_keyword(std::string_view value) {
    std::string out = "'";
    for (const char c : value) {
        if (c == '\'' || c == '\\') {
            out += '\\';
        }
        out += c;
    }
    return out + "'";
}

bool secret(std::string_view keyword) {
    return keyword == "password" || keyword == "sslpassword";
}

int base64_value(char c) {
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/// The bytes of one PEM body, or nullopt when it is not base64.
std::optional<std::string> decode_base64(std::string_view body) {
    std::string out;
    std::uint32_t bits = 0;
    int have = 0;
    bool padded = false;
    for (const char c : body) {
        if (c == '\n' || c == '\r' || c == ' ' || c == '\t') {
            continue;
        }
        if (c == '=') {
            padded = true;
            continue;
        }
        const int value = base64_value(c);
        if (value < 0 || padded) {
            return std::nullopt;
        }
        bits = (bits << 6 | static_cast<std::uint32_t>(value)) & 0xffffff;
        have += 6;
        if (have >= 8) {
            have -= 8;
            out += static_cast<char>(bits >> have & 0xff);
        }
    }
    return out;
}

/// A certificate is one ASN.1 sequence that fills its bytes: enough to see a cut or mixed-up text.
bool whole_sequence(std::string_view der) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(der[i]); };
    if (der.size() < 4 || byte(0) != 0x30) {
        return false;
    }
    if (byte(1) < 0x80) {
        return der.size() == 2u + byte(1);
    }
    const std::size_t count = byte(1) & 0x7f;
    if (count == 0 || count > 4 || der.size() < 2 + count) {
        return false;
    }
    std::size_t length = 0;
    for (std::size_t i = 0; i < count; ++i) {
        length = length << 8 | byte(2 + i);
    }
    return der.size() == 2 + count + length;
}

/// libpq takes root certificates as a file only. An anonymous file of this process holds them: no
/// path to clean up, nothing another user could exchange. Open until exit, as sessions reconnect;
/// the same content keeps its file, so that a reload opens no second one.
Result<std::string> anonymous_file(const std::string& certificates) {
    static std::mutex mutex;
    static std::map<std::string, std::string> files;
    const std::lock_guard lock(mutex);
    if (const auto known = files.find(certificates); known != files.end()) {
        return known->second;
    }
    std::string_view content = certificates;
    const int descriptor = memfd_create("queen-root-certificate", MFD_CLOEXEC);
    if (descriptor < 0) {
        return fail(Errc::internal, "no memory file for the certificate");
    }
    while (!content.empty()) {
        const ssize_t written = write(descriptor, content.data(), content.size());
        if (written <= 0) {
            close(descriptor);
            return fail(Errc::internal, "no memory file for the certificate");
        }
        content.remove_prefix(static_cast<std::size_t>(written));
    }
    return files[certificates] = "/proc/self/fd/" + std::to_string(descriptor);
}

bool flag(const Environment& env, const char* name, bool fallback, Problems& problems) {
    const std::string text = value_of(env, name);
    if (text.empty()) {
        return fallback;
    }
    const auto value = parse_env_boolean(text);
    if (!value) {
        problems.push_back("environment " + std::string(name) +
                           ": database.url: " + value.error().message);
        return fallback;
    }
    return *value;
}

} // namespace

Result<void> check_connection(const std::string& text) {
    const Options options = parse(text);
    if (!options) {
        return fail(
            Errc::invalid_argument,
            "is neither a connection URI nor a keyword list (the text is not repeated here, "
            "it may hold a password)");
    }
    return {};
}

std::string masked_connection(const std::string& text) {
    const Options options = parse(text);
    if (!options) {
        return "***";
    }
    std::string out;
    for (const PQconninfoOption* o = options.get(); o->keyword != nullptr; ++o) {
        if (o->val == nullptr || *o->val == '\0') {
            continue;
        }
        const std::string_view value = o->val;
        // An unescaped @ in a URI's password ends up in the host's name, an unescaped : or / of one
        // in the port's or the database's.
        const std::string_view keyword = o->keyword;
        const bool stray = (keyword == "host" || keyword == "port" || keyword == "dbname") &&
                           value.find('@') != std::string_view::npos;
        const bool plain = value.find_first_of(" '\\") == std::string_view::npos;
        out += out.empty() ? "" : " ";
        out += std::string(keyword) + "=";
        out += secret(keyword) || stray ? "***"
               : plain                  ? std::string(value)
                                        : quoted_keyword(value);
    }
    return out;
}

Result<std::string> read_reference(std::string_view reference, const std::string& folder) {
    std::filesystem::path path(reference.substr(std::string_view("file:").size()));
    if (path.empty()) {
        return fail(Errc::invalid_argument, "file: names no file");
    }
    if (path.is_relative()) {
        path = std::filesystem::path(folder) / path;
    }
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored)) {
        return fail(Errc::invalid_argument, shown(path.string()) + " is not a readable file");
    }
    std::ifstream in(path, std::ios::binary);
    std::string content(kLargestReference + 1, '\0');
    in.read(content.data(), static_cast<std::streamsize>(content.size()));
    content.resize(static_cast<std::size_t>(in.gcount()));
    if (in.bad() || (!in.eof() && !in)) {
        return fail(Errc::invalid_argument, shown(path.string()) + " cannot be read");
    }
    if (content.size() > kLargestReference) {
        return fail(Errc::invalid_argument, shown(path.string()) + " is larger than 64 KiB");
    }
    while (!content.empty() &&
           std::string_view(" \t\r\n").find(content.back()) != std::string::npos) {
        content.pop_back();
    }
    if (content.empty()) {
        return fail(Errc::invalid_argument, shown(path.string()) + " is empty or cannot be read");
    }
    return content;
}

Result<void> check_certificates(std::string_view pem) {
    constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----";
    constexpr std::string_view kEnd = "-----END CERTIFICATE-----";
    std::size_t found = 0;
    std::size_t at = pem.find(kBegin);
    while (at != std::string_view::npos) {
        const std::size_t body = at + kBegin.size();
        const std::size_t end = pem.find(kEnd, body);
        const auto der = end == std::string_view::npos
                             ? std::nullopt
                             : decode_base64(pem.substr(body, end - body));
        ++found;
        if (!der || !whole_sequence(*der)) {
            return fail(Errc::invalid_argument,
                        "certificate " + std::to_string(found) + " of the text is damaged or cut");
        }
        at = pem.find(kBegin, end);
    }
    if (found == 0) {
        return fail(Errc::invalid_argument, "holds no certificate; allowed: PEM text that begins "
                                            "with -----BEGIN CERTIFICATE-----");
    }
    return {};
}

std::optional<EnvironmentConnection> environment_connection(const Environment& env,
                                                            Problems& problems) {
    static constexpr std::array kVariables{
        "PG_HOST",         "PG_PORT", "PG_USER",    "PG_PASSWORD",
        "PG_DATABASE",     "PG_DB",   "PG_USE_SSL", "PG_SSL_REJECT_UNAUTHORIZED",
        "PG_SSL_ROOT_CERT"};
    EnvironmentConnection connection;
    for (const char* name : kVariables) {
        if (connection.variable.empty() && !value_of(env, name).empty()) {
            connection.variable = name;
        }
    }
    if (connection.variable.empty()) {
        return std::nullopt;
    }
    const auto add = [&](std::string_view keyword, const std::string& value) {
        connection.keywords += connection.keywords.empty() ? "" : " ";
        connection.keywords += std::string(keyword) + "=" + quoted_keyword(value);
    };
    const auto text = [&](const char* name, const char* fallback) {
        const std::string value = value_of(env, name);
        return value.empty() ? std::string(fallback) : value;
    };
    const std::string port = text("PG_PORT", "5432");
    const auto number = parse_whole(port);
    if (!number || *number < 1 || *number > 65535) {
        problems.push_back("environment PG_PORT: database.url: " + shown(port) +
                           " is no port; allowed: 1 to 65535");
    }
    add("host", text("PG_HOST", "localhost"));
    add("port", port);
    add("user", text("PG_USER", "postgres"));
    add("password", text("PG_PASSWORD", "postgres"));
    const std::string database = text("PG_DATABASE", "");
    add("dbname", database.empty() ? text("PG_DB", "postgres") : database);

    const bool verify = flag(env, "PG_SSL_REJECT_UNAUTHORIZED", true, problems);
    const std::string certificates = value_of(env, "PG_SSL_ROOT_CERT");
    if (!certificates.empty()) {
        if (const auto checked = check_certificates(certificates); !checked) {
            problems.push_back("environment PG_SSL_ROOT_CERT: database.url: " +
                               checked.error().message);
        }
    }
    if (!flag(env, "PG_USE_SSL", false, problems)) {
        return connection;
    }
    if (!verify) {
        add("sslmode", "require");
        return connection;
    }
    add("sslmode", "verify-full");
    std::error_code ignored;
    if (!certificates.empty()) {
        const auto file = anonymous_file(certificates);
        if (file) {
            add("sslrootcert", *file);
        } else {
            problems.push_back("environment PG_SSL_ROOT_CERT: database.url: " +
                               file.error().message);
        }
    } else if (std::filesystem::exists(kSystemCertificates, ignored)) {
        add("sslrootcert", std::string(kSystemCertificates));
    } else {
        problems.push_back(
            "environment PG_USE_SSL: database.url: the server's certificate cannot be "
            "checked, " +
            std::string(kSystemCertificates) +
            " is missing; give PG_SSL_ROOT_CERT or set "
            "PG_SSL_REJECT_UNAUTHORIZED=false");
    }
    return connection;
}

} // namespace queen::settings
