#include "store/pg_form_store.hpp"

#include "store/parameters.hpp"
#include "store/statements.hpp"

#include <string_view>

namespace queen::store {

void PgFormStore::encrypted(SteadyTime deadline, std::string tenant,
                            std::vector<std::string> queues, Done<std::vector<bool>> done) {
    const auto wanted = static_cast<int>(queues.size());
    asker_.ask<std::vector<bool>>(
        Lane::push, deadline,
        [tenant = std::move(tenant), queues = std::move(queues)](Session& session) -> Result<Rows> {
            const auto id = tenant_id(tenant);
            if (!id) {
                return fail(id.error());
            }
            const std::vector<std::string_view> names(queues.begin(), queues.end());
            Parameters parameters;
            parameters.uuid(*id).text_array(names);
            return session.run(statements::kQueuesEncrypted, parameters);
        },
        [wanted](const Rows& rows) -> Result<std::vector<bool>> {
            if (rows.count() != wanted) {
                return fail(Errc::internal, "the store answered for another number of queues");
            }
            return read_each<bool>(rows, [](Row& row) { return row.boolean(0); });
        },
        std::move(done), Repeat::once);
}

} // namespace queen::store
