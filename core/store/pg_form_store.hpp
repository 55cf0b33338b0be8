#pragma once
#include "ports/form_store.hpp"
#include "store/asker.hpp"

namespace queen::store {

/// The FormStore port on PostgreSQL. Keeps no state.
class PgFormStore final : public FormStore {
public:
    explicit PgFormStore(Asker asker) : asker_(std::move(asker)) {}

    void encrypted(SteadyTime deadline, std::string tenant, std::vector<std::string> queues,
                   Done<std::vector<bool>> done) override;

private:
    const Asker asker_;
};

} // namespace queen::store
