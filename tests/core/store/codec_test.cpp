#include "base/text.hpp"
#include "store/conninfo.hpp"
#include "store/pg_session.hpp"
#include "support/postgres.hpp"

#include <gmock/gmock.h>

#include <limits>

namespace queen::store {
namespace {

using namespace std::literals;
using queen::test::TestPostgres;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Values go to a live server and come back.
class Codec : public testing::Test {
protected:
    PgSession session{*complete_conninfo(TestPostgres::shared().conninfo()), StatementLimits{}};

    void SetUp() override {
        const auto connected = session.connect();
        ASSERT_TRUE(connected) << connected.error().message;
    }
    /// Runs a text that is named by itself.
    Rows run(const char* sql, const Parameters& parameters) {
        auto rows = session.run({sql, sql}, parameters);
        EXPECT_TRUE(rows) << rows.error().message;
        return rows ? std::move(*rows) : Rows{};
    }
};

TEST_F(Codec, ScalarsComeBackAsTheyWent) {
    Parameters parameters;
    Uuid id;
    id.bytes[0] = 0xff;
    id.bytes[15] = 1;
    parameters.int4(std::numeric_limits<std::int32_t>::min());
    parameters.int8(std::numeric_limits<std::int64_t>::min());
    parameters.int8(std::numeric_limits<std::int64_t>::max());
    parameters.boolean(true).boolean(false).uuid(id).text("naïve\n'\"\\ 日本");
    parameters.jsonb(R"({"n": 9007199254740993})");
    const Rows rows = run("select $1, $2, $3, $4, $5, $6, $7, $8, -3::int2, 'x'::varchar, "
                          "'[1]'::json, $6::text",
                          parameters);
    Row row(rows, 0);
    EXPECT_EQ(row.integer(0), std::numeric_limits<std::int32_t>::min());
    EXPECT_EQ(row.integer(1), std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(row.integer(2), std::numeric_limits<std::int64_t>::max());
    EXPECT_TRUE(row.boolean(3));
    EXPECT_FALSE(row.boolean(4));
    EXPECT_EQ(row.uuid(5), id);
    EXPECT_EQ(row.text(6), "naïve\n'\"\\ 日本");
    EXPECT_EQ(row.text(7), R"({"n": 9007199254740993})");
    EXPECT_EQ(row.integer(8), -3);
    EXPECT_EQ(row.text(9), "x");
    EXPECT_EQ(row.text(10), "[1]");
    EXPECT_EQ(row.text(11), to_string(id));
    EXPECT_TRUE(row.status());
}

TEST_F(Codec, TimesAndTheirInfinitiesComeBackAsTheyWent) {
    const WallTime early{-1us}, late{std::chrono::microseconds{4'000'000'000'000'001}};
    Parameters parameters;
    parameters.timestamptz_or_null(early).timestamptz_or_null(late);
    parameters.timestamptz_or_null(WallTime::max()).timestamptz_or_null(WallTime::min());
    parameters.timestamptz_or_null(std::nullopt).uuid_or_null(std::nullopt).uuid_or_null(Uuid{});
    const Rows rows =
        run("select $1, $2, $3, $4, $5, $6, $7, $1::text, $3::text, $4::text", parameters);
    Row row(rows, 0);
    EXPECT_EQ(row.timestamptz(0), early);
    EXPECT_EQ(row.timestamptz(1), late);
    EXPECT_EQ(row.timestamptz(2), WallTime::max());
    EXPECT_EQ(row.timestamptz(3), WallTime::min());
    EXPECT_TRUE(row.null(4));
    EXPECT_TRUE(row.null(5));
    EXPECT_EQ(row.uuid(6), Uuid{});
    EXPECT_THAT(row.text(7), HasSubstr("59:59.999999"));
    EXPECT_EQ(row.text(8), "infinity");
    EXPECT_EQ(row.text(9), "-infinity");
    EXPECT_TRUE(row.status());
}

TEST_F(Codec, ArraysOfIdsComeBackAsTheyWent) {
    Uuid first, second;
    first.bytes[0] = 1;
    second.bytes[15] = 0xff;
    Parameters parameters;
    parameters.uuid_array(std::vector<Uuid>{first, second}).uuid_array(std::vector<Uuid>{});
    const Rows rows = run("select $1, $2, '{x}'::text[], array[null::uuid]", parameters);
    Row row(rows, 0);
    EXPECT_THAT(row.uuid_array(0), ElementsAre(first, second));
    EXPECT_THAT(row.uuid_array(1), IsEmpty());
    EXPECT_TRUE(row.status());
    row.uuid_array(3);
    EXPECT_FALSE(row.status()) << "a NULL element";
    Row other(rows, 0);
    other.uuid_array(2);
    EXPECT_FALSE(other.status()) << "texts";
}

TEST_F(Codec, EveryByteOfABytea) {
    std::string all;
    for (int i = 0; i < 256; ++i) {
        all.push_back(static_cast<char>(i));
    }
    std::string large;
    for (int i = 0; i < 4096; ++i) {
        large += all;
    }
    Parameters parameters;
    parameters.bytea(all).bytea(large);
    const Rows rows = run("select $1, $2, length($2), md5($2)", parameters);
    Row row(rows, 0);
    EXPECT_EQ(row.bytea(0), all);
    EXPECT_EQ(row.bytea(1), large);
    EXPECT_EQ(row.integer(2), 1 << 20);
    EXPECT_TRUE(row.status());
}

TEST_F(Codec, EmptyIsNotNull) {
    Parameters parameters;
    parameters.bytea({}).text({}).null(oid::kBytea).text_or_null(std::nullopt);
    const Rows rows = run("select $1, $2, $3, $4, $1 is null, $2 is null, $3 is null, $4 is null, "
                          "''::bytea",
                          parameters);
    Row row(rows, 0);
    EXPECT_FALSE(row.null(0));
    EXPECT_EQ(row.bytea(0), "");
    EXPECT_EQ(row.text(1), "");
    EXPECT_TRUE(row.null(2));
    EXPECT_TRUE(row.null(3));
    EXPECT_FALSE(row.boolean(4));
    EXPECT_FALSE(row.boolean(5));
    EXPECT_TRUE(row.boolean(6));
    EXPECT_TRUE(row.boolean(7));
    EXPECT_EQ(row.bytea(8), "");
    EXPECT_TRUE(row.status());
}

TEST_F(Codec, ANulInTextIsTheCallersFaultAndHarmsNothing) {
    const std::string text = "a\0b"s;
    Parameters bad;
    bad.text(text);
    const auto rows = session.run({"nul_text", "select $1"}, bad);
    ASSERT_FALSE(rows);
    EXPECT_EQ(rows.error().sqlstate, "22021");
    EXPECT_EQ(rows.error().code, Errc::invalid_argument);

    Parameters json;
    json.jsonb(R"("\u0000")");
    const auto escaped = session.run({"nul_json", "select $1"}, json);
    ASSERT_FALSE(escaped);
    EXPECT_EQ(escaped.error().sqlstate, "22P05");
    EXPECT_EQ(escaped.error().code, Errc::invalid_argument);
    EXPECT_TRUE(session.open());

    Parameters bytes;
    bytes.bytea(text);
    EXPECT_EQ(Row(run("select $1::bytea", bytes), 0).bytea(0), text);
}

TEST_F(Codec, ArraysOfEachType) {
    const std::vector<std::string_view> texts{"", "a,b", "\"q\" \\ {x}", "NULL", "日本"};
    const std::vector<std::int32_t> ints{0, -1, std::numeric_limits<std::int32_t>::max()};
    const std::vector<std::int64_t> bigs{std::numeric_limits<std::int64_t>::min(), 7};
    const std::vector<std::string_view> bytes{""sv, "\0"sv, "\xff\0\x01"sv};
    std::vector<Uuid> ids(2);
    ids[1].bytes.fill(0xab);
    Parameters parameters;
    parameters.text_array(texts).int4_array(ints).int8_array(bigs).bytea_array(bytes);
    parameters.uuid_array(ids).boolean_array({true, false, true});
    const Rows rows = run("select $1, $4, $2::text, $3::text, $5::text, $4[2] = '\\x00', "
                          "array_lower($1, 1), array_length($4, 1), $6::text",
                          parameters);
    Row row(rows, 0);
    EXPECT_EQ(row.text_array(0), texts);
    EXPECT_EQ(row.bytea_array(1), bytes);
    EXPECT_EQ(row.text(2), "{0,-1,2147483647}");
    EXPECT_EQ(row.text(3), "{-9223372036854775808,7}");
    EXPECT_EQ(row.text(4), "{00000000-0000-0000-0000-000000000000,"
                           "abababab-abab-abab-abab-abababababab}");
    EXPECT_TRUE(row.boolean(5));
    EXPECT_EQ(row.integer(6), 1);
    EXPECT_EQ(row.integer(7), 3);
    EXPECT_EQ(row.text(8), "{t,f,t}");
    EXPECT_TRUE(row.status());
}

TEST_F(Codec, EmptyArraysOfEachType) {
    Parameters parameters;
    parameters.text_array({}).int4_array({}).int8_array({}).bytea_array({}).uuid_array({});
    parameters.boolean_array({});
    const Rows rows = run("select $1, $4, cardinality($1) + cardinality($2) + cardinality($3) + "
                          "cardinality($4) + cardinality($5) + cardinality($6)",
                          parameters);
    Row row(rows, 0);
    EXPECT_THAT(row.text_array(0), IsEmpty());
    EXPECT_THAT(row.bytea_array(1), IsEmpty());
    EXPECT_EQ(row.integer(2), 0);
    EXPECT_TRUE(row.status());
}

TEST_F(Codec, TimestampsToTheMicrosecond) {
    const Rows rows = run("select '2026-01-02 03:04:05.000006+00'::timestamptz, "
                          "'1969-12-31 23:59:59.999999+00'::timestamptz, 'infinity'::timestamptz, "
                          "'-infinity'::timestamptz",
                          {});
    Row row(rows, 0);
    EXPECT_EQ(format_micros(row.timestamptz(0)), "2026-01-02T03:04:05.000006Z");
    EXPECT_EQ(row.timestamptz(1).time_since_epoch(), -1us);
    EXPECT_EQ(row.timestamptz(2), WallTime::max());
    EXPECT_EQ(row.timestamptz(3), WallTime::min());
    EXPECT_TRUE(row.status());
}

TEST_F(Codec, AWrongColumnIsNamedAndReadsGoOn) {
    const Rows rows = run("select 1::int4, null::text, '{NULL}'::bytea[], '{{a},{b}}'::text[]", {});
    const auto fault = [&](auto read) {
        Row row(rows, 0);
        read(row);
        return row.status() ? std::string("none") : row.status().error().message;
    };
    EXPECT_THAT(fault([](Row& row) { row.text(0); }), HasSubstr("column 0"));
    EXPECT_THAT(fault([](Row& row) { row.text(1); }), HasSubstr("found NULL"));
    EXPECT_THAT(fault([](Row& row) { row.bytea_array(2); }), HasSubstr("NULL element"));
    EXPECT_THAT(fault([](Row& row) { row.text_array(3); }), HasSubstr("another shape"));
    EXPECT_THAT(fault([](Row& row) { row.integer(4); }), HasSubstr("no such row or column"));
    EXPECT_EQ(fault([](Row& row) { row.integer(0); }), "none");
}

} // namespace
} // namespace queen::store
