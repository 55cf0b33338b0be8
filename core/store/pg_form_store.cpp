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
            std::vector<bool> encrypted;
            for (int i = 0; i < wanted; ++i) {
                Row row(rows, i);
                encrypted.push_back(row.boolean(0));
                if (auto status = row.status(); !status) {
                    return fail(std::move(status.error()));
                }
            }
            return encrypted;
        },
        std::move(done), Repeat::once);
}

} // namespace queen::store
