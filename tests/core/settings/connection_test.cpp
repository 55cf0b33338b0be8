#include "load_support.hpp"
#include "settings/connection.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace queen::settings::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A self-signed certificate made for this test; its key was thrown away.
const std::string kCertificate = R"(-----BEGIN CERTIFICATE-----
MIIBgTCCASegAwIBAgIUWvgfv6QA+BGxAQvwNKBLpJoINwswCgYIKoZIzj0EAwIw
FTETMBEGA1UEAwwKcXVlZW4tdGVzdDAgFw0yNjExMjkxOTQ5NDJaGA8yMTI2MTEw
NTE5NDk0MlowFTETMBEGA1UEAwwKcXVlZW4tdGVzdDBZMBMGByqGSM49AgEGCCqG
SM49AwEHA0IABH0Hbp5sfH7Ek1I3S3tPqf/b/21DjxDojz/HgdowgbHHu/khA+FC
1aWO1aVROIwQ2W/cVppH4PVXTyP9TNVSiOyjUzBRMB0GA1UdDgQWBBSE/dGpK/kl
0+pQAv971wes9caqGDAfBgNVHSMEGDAWgBSE/dGpK/kl0+pQAv971wes9caqGDAP
BgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIQCYvYgpprnsrraLtSdP
VXs/iVLX+VYzgIlMEwUAMC6FWAIgQj+Qhf2EiG5drUVaN7UqUkd7zyWT89giNqiH
MLzduVI=
-----END CERTIFICATE-----
)";

/// A folder of its own that goes away with the test.
class ConnectionFiles : public ::testing::Test {
protected:
    ConnectionFiles() {
        std::string pattern = ::testing::TempDir() + "queen-settings-XXXXXX";
        folder_ = mkdtemp(pattern.data());
    }
    ~ConnectionFiles() override { std::filesystem::remove_all(folder_); }

    std::string write(const std::string& name, const std::string& content) const {
        const std::string path = folder_ / name;
        std::ofstream(path, std::ios::binary) << content;
        return path;
    }

    std::filesystem::path folder_;
};

TEST(Connection, UrisAndKeywordListsAreCheckedByTheirOwnParser) {
    for (const char* text : {"postgres://joe:pw@db:5432/x?sslmode=require",
                             "postgresql://a,b/x?target_session_attrs=read-write",
                             "host=/run/pg dbname=queen", "host=a password='p w'"}) {
        EXPECT_TRUE(check_connection(text).has_value()) << text;
    }
    for (const char* text : {"mysql://joe@db/x", "db.example", "hots=x", "host='x",
                             "postgres://joe@db/x?sslmodes=1", "host"}) {
        const auto result = check_connection(text);
        ASSERT_FALSE(result.has_value()) << text;
        EXPECT_EQ(result.error().code, Errc::invalid_argument);
    }
}

TEST(Connection, NoFaultRepeatsAPassword) {
    for (const char* text :
         {"postgres://joe:hunter2@db/x?nonsense=1", "password=hunter2 host='x", "joe:hunter2@db"}) {
        const std::string problems = faults("database: \"" + std::string(text) + "\"\n");
        EXPECT_THAT(problems, HasSubstr("q.yaml:1:11: database.url: is neither")) << text;
        EXPECT_THAT(problems, Not(HasSubstr("hunter2"))) << text;
    }
}

TEST(Connection, ShownValuesHoldNoSecret) {
    EXPECT_EQ(masked_connection("postgres://joe:hunter2@db/x?sslmode=require"),
              "user=joe password=*** dbname=x host=db sslmode=require");
    EXPECT_EQ(masked_connection("host=db password='hunter 2' sslpassword=hunter3"),
              "password=*** host=db sslpassword=***");
    EXPECT_EQ(masked_connection("postgres://db/x?password=hunter2"),
              "password=*** dbname=x host=db");
    // The unescaped @ cuts the password in two; the rest of it would be the host's name.
    EXPECT_THAT(masked_connection("postgres://joe:hun@ter2@db/x"), Not(HasSubstr("ter2")));
    EXPECT_EQ(masked_connection("nonsense hunter2"), "***");
    const Loaded loaded = accepted("database: postgres://joe:hunter2@db/x\n");
    EXPECT_EQ(loaded.settings.database.url, "postgres://joe:hunter2@db/x");
    for (const Effective& entry : loaded.effective) {
        EXPECT_THAT(entry.value, Not(HasSubstr("hunter2")));
    }
}

TEST(Connection, OptionsOfPluginsThatLookSecretAreMasked) {
    const Loaded loaded = accepted(
        "plugins: [{name: hotlist, path: s.so, options: {api_token: hunter2, shards: 4}}]\n");
    EXPECT_EQ(effective(loaded, "plugins.hotlist.options.api_token").value, "***");
    EXPECT_EQ(effective(loaded, "plugins.hotlist.options.shards").value, "4");
    EXPECT_EQ(loaded.settings.plugins.at(0).options.at(0).second.text, "hunter2");
}

TEST_F(ConnectionFiles, AReferenceIsReadFromBesideTheFileThatNamesIt) {
    write("secret", "postgres://joe:hunter2@db/x\n\n");
    const std::string file = write("q.yaml", "database: {url: file:secret}\n");
    const auto loaded = load(file, quiet(), {});
    ASSERT_TRUE(loaded.has_value()) << loaded.error().front();
    EXPECT_EQ(loaded->settings.database.url, "postgres://joe:hunter2@db/x");
    EXPECT_FALSE(loaded->settings.database.embedded);
    const Effective shown = effective(*loaded, "database.url");
    EXPECT_EQ(shown.value, "user=joe password=*** dbname=x host=db");
    EXPECT_EQ(shown.source, file + ":1:17, file:secret");
}

TEST_F(ConnectionFiles, SecretsMayBeReferencesAndAreMasked) {
    write("key", std::string(64, 'b') + "\n");
    write("jwt.secret", std::string(40, 's') + "\n");
    write("wrong", "hunter2");
    const std::string file = write("q.yaml", "encryption: {key: file:key}\n"
                                             "auth: {enabled: true, secret: file:jwt.secret}\n");
    const auto loaded = load(file, quiet(), {});
    ASSERT_TRUE(loaded.has_value()) << loaded.error().front();
    EXPECT_EQ(loaded->settings.encryption.key, std::string(64, 'b'));
    EXPECT_EQ(loaded->settings.auth.secret, std::string(40, 's'));
    EXPECT_EQ(effective(*loaded, "encryption.key").value, "***");
    EXPECT_EQ(effective(*loaded, "encryption.key").source, file + ":1:19, file:key");
    EXPECT_EQ(effective(*loaded, "auth.public_key").value, "none");
    const auto refused = load(write("w.yaml", "encryption: {key: file:wrong}\n"), quiet(), {});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().front().find("hunter2"), std::string::npos);
}

TEST_F(ConnectionFiles, AReferenceThatCannotBeUsedIsAFault) {
    write("empty", "\n");
    write("large", std::string(70'000, 'x'));
    const std::string base = folder_.string() + "/";
    EXPECT_EQ(faults("database: file:" + base + "none\n"),
              "q.yaml:1:11: database.url: " + std::string("\"") + (base + "none").substr(0, 60) +
                  ((base + "none").size() > 60 ? "...\"" : "\"") + " is not a readable file\n");
    EXPECT_THAT(faults("database: file:" + base + "empty\n"), HasSubstr("is empty"));
    EXPECT_THAT(faults("database: file:" + base + "large\n"), HasSubstr("is larger than 64 KiB"));
    EXPECT_THAT(faults("database: 'file:'\n"), HasSubstr("file: names no file"));
    EXPECT_THAT(faults("database: file:" + base + "\n"), HasSubstr("is not a readable file"));
}

TEST(Connection, ACertificateInTheEnvironmentIsCheckedAndReachesLibpqAsAFile) {
    const Loaded loaded =
        accepted("", with({{"PG_USE_SSL", "1"}, {"PG_SSL_ROOT_CERT", kCertificate}}));
    const std::string& url = loaded.settings.database.url;
    EXPECT_THAT(url, HasSubstr("sslmode='verify-full'"));
    const std::size_t at = url.find("sslrootcert='");
    ASSERT_NE(at, std::string::npos) << url;
    std::string path = url.substr(at + 13);
    path = path.substr(0, path.find('\''));
    std::ifstream in(path);
    EXPECT_EQ((std::string{std::istreambuf_iterator<char>(in), {}}), kCertificate);
    // A reload opens no second file.
    EXPECT_EQ(accepted("", with({{"PG_USE_SSL", "1"}, {"PG_SSL_ROOT_CERT", kCertificate}}))
                  .settings.database.url,
              url);
}

TEST(Connection, ADamagedCertificateStopsTheBoot) {
    EXPECT_TRUE(check_certificates(kCertificate + kCertificate).has_value());
    const auto fault = [](const std::string& pem) {
        return faults("", with({{"PG_USE_SSL", "1"}, {"PG_SSL_ROOT_CERT", pem}}));
    };
    EXPECT_THAT(fault("/etc/ssl/ca.pem"), HasSubstr("environment PG_SSL_ROOT_CERT: database.url: "
                                                    "holds no certificate"));
    std::string cut = kCertificate;
    cut.erase(cut.find('\n', 60), 65); // one line of the body
    EXPECT_THAT(fault(cut), HasSubstr("certificate 1 of the text is damaged or cut"));
    EXPECT_THAT(fault(kCertificate + kCertificate.substr(0, 200)),
                HasSubstr("certificate 2 of the text is damaged or cut"));
    std::string odd = kCertificate;
    odd[100] = '*';
    EXPECT_THAT(fault(odd), HasSubstr("certificate 1 of the text is damaged or cut"));
}

} // namespace
} // namespace queen::settings::testing
