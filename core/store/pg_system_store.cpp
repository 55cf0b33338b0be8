#include "store/pg_system_store.hpp"

#include "base/json.hpp"
#include "store/parameters.hpp"
#include "store/statements.hpp"

#include <charconv>
#include <string_view>

namespace queen::store {
namespace {

namespace sql = statements;

std::string_view key_of(SwitchKey key) noexcept {
    switch (key) {
    case SwitchKey::maintenance:
        return "maintenance_mode";
    case SwitchKey::pop_maintenance:
        return "pop_maintenance_mode";
    case SwitchKey::timers_schedule:
        return "timers_schedule_enabled";
    case SwitchKey::timers_fire:
        return "timers_fire_enabled";
    }
    return {};
}

Result<void> decode_nothing(const Rows&) {
    return {};
}

Result<SwitchStates> decode_switches(const Rows& rows) {
    Row row(rows, 0);
    SwitchStates states{.maintenance = row.boolean(0),
                        .pop_maintenance = row.boolean(1),
                        .timers_schedule = row.boolean(2),
                        .timers_fire = row.boolean(3)};
    return checked(row, states);
}

Result<StatisticsState> decode_state(const Rows& rows) {
    Row row(rows, 0);
    StatisticsState state;
    if (!row.null(0)) {
        state.age = std::chrono::milliseconds(row.integer(0));
    }
    state.took = std::chrono::milliseconds(row.integer(1));
    return checked(row, state);
}

Result<StatisticsStep> decode_step(const Rows& rows) {
    Row row(rows, 0);
    StatisticsStep step{.queues = row.integer(0),
                        .partitions = row.integer(1),
                        .written = row.integer(2),
                        .next = std::nullopt};
    if (!row.null(3)) {
        step.next = row.uuid(3);
    }
    return checked(row, step);
}

/// Digits and a point, as the server writes a number of seconds; 0 for what is none.
double seconds_of(json::Value value) {
    const auto text = value.raw_number();
    double seconds = 0;
    std::from_chars(text.data(), text.data() + text.size(), seconds);
    return seconds;
}

Result<ClusterFigures> decode_figures(const Rows& rows) {
    const auto text = only_text(rows);
    if (!text) {
        return fail(text.error());
    }
    const auto document = json::Document::parse(*text);
    if (!document) {
        return fail(Errc::internal, "cluster figures: " + document.error().message);
    }
    const auto root = document->root();
    ClusterFigures figures;
    const auto counts = root["counts"];
    for (std::size_t i = 0; i < counts.size(); ++i) {
        figures.counts.emplace_back(counts.key_at(i), counts.value_at(i).integer().value_or(0));
    }
    figures.dead_letters = root["deadLetters"].integer().value_or(0);
    const auto queues = root["queues"];
    for (std::size_t i = 0; i < queues.size(); ++i) {
        figures.queues.push_back({std::string(queues.at(i)["queue"].string()),
                                  queues.at(i)["deadLetters"].integer().value_or(0)});
    }
    const auto groups = root["groups"];
    for (std::size_t i = 0; i < groups.size(); ++i) {
        const auto group = groups.at(i);
        figures.groups.push_back({std::string(group["queue"].string()),
                                  std::string(group["group"].string()),
                                  group["behind"].integer().value_or(0),
                                  std::chrono::duration<double>(seconds_of(group["age"]))});
    }
    if (const auto age = root["age"]; age.is(json::Kind::number)) {
        figures.age = std::chrono::duration<double>(seconds_of(age));
    }
    return figures;
}

} // namespace

void PgSystemStore::read_switches(Deadline deadline, Done<SwitchStates> done) {
    asker_.ask<SwitchStates>(
        Lane::admin, deadline,
        [](Session& session) { return session.run(sql::kReadSwitches, Parameters{}); },
        decode_switches, std::move(done), Repeat::once);
}

void PgSystemStore::set_switch(Deadline deadline, SwitchKey key, bool enabled, Done<void> done) {
    asker_.ask<void>(
        Lane::admin, deadline,
        [key, enabled](Session& session) {
            Parameters parameters;
            parameters.text(key_of(key)).boolean(enabled);
            return session.run(sql::kSetSwitch, parameters);
        },
        decode_nothing, std::move(done));
}

void PgSystemStore::statistics_state(Deadline deadline, Done<StatisticsState> done) {
    asker_.ask<StatisticsState>(
        Lane::admin, deadline,
        [](Session& session) { return session.run(sql::kStatsState, Parameters{}); }, decode_state,
        std::move(done), Repeat::once);
}

void PgSystemStore::refresh_statistics(Deadline deadline, std::optional<Uuid> after,
                                       std::int32_t queues, Done<StatisticsStep> done) {
    asker_.ask<StatisticsStep>(
        Lane::admin, deadline,
        [after, queues](Session& session) {
            Parameters parameters;
            parameters.uuid_or_null(after).int4(queues);
            return session.run(sql::kStatsRefresh, parameters);
        },
        decode_step, std::move(done));
}

void PgSystemStore::statistics_refreshed(Deadline deadline, std::chrono::milliseconds took,
                                         Done<void> done) {
    asker_.ask<void>(
        Lane::admin, deadline,
        [took](Session& session) {
            Parameters parameters;
            parameters.int8(took.count());
            return session.run(sql::kStatsRefreshed, parameters);
        },
        decode_nothing, std::move(done));
}

void PgSystemStore::refresh_timer_statistics(Deadline deadline, Done<void> done) {
    asker_.ask<void>(
        Lane::admin, deadline,
        [](Session& session) { return session.run(sql::kStatsTimers, Parameters{}); },
        decode_nothing, std::move(done));
}

void PgSystemStore::ask_text(const Statement& statement, Deadline deadline, std::string tenant,
                             Done<std::string> done) {
    asker_.ask<std::string>(
        Lane::admin, deadline,
        [&statement, tenant = std::move(tenant)](Session& session) -> Result<Rows> {
            const auto id = tenant_id(tenant);
            if (!id) {
                return fail(id.error());
            }
            Parameters parameters;
            parameters.uuid(*id);
            return session.run(statement, parameters);
        },
        decode_text, std::move(done), Repeat::once);
}

void PgSystemStore::cached_queues(Deadline deadline, std::string tenant, Done<std::string> done) {
    ask_text(sql::kStatsQueues, deadline, std::move(tenant), std::move(done));
}

void PgSystemStore::cached_overview(Deadline deadline, std::string tenant, Done<std::string> done) {
    ask_text(sql::kStatsOverview, deadline, std::move(tenant), std::move(done));
}

/// May be tried again whatever became of it: a delta counts once (CNT-1).
void PgSystemStore::add_counts(Deadline deadline, CountDelta delta, Done<void> done) {
    asker_.ask<void>(
        Lane::admin, deadline,
        [delta = std::move(delta)](Session& session) {
            std::vector<std::string_view> names;
            std::vector<std::int64_t> values;
            for (const auto& [name, value] : delta.counts) {
                names.push_back(name);
                values.push_back(value);
            }
            Parameters parameters;
            parameters.uuid(delta.source).int8(delta.number).text_array(names).int8_array(values);
            return session.run(sql::kAddCounts, parameters);
        },
        decode_nothing, std::move(done), Repeat::once);
}

void PgSystemStore::cluster_figures(Deadline deadline, std::int32_t most,
                                    Done<ClusterFigures> done) {
    asker_.ask<ClusterFigures>(
        Lane::admin, deadline,
        [most](Session& session) {
            Parameters parameters;
            parameters.int4(most);
            return session.run(sql::kClusterFigures, parameters);
        },
        decode_figures, std::move(done), Repeat::once);
}

} // namespace queen::store
