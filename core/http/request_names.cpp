#include "http/request_names.hpp"

#include "model/names.hpp"

namespace queen::http {
namespace {

Result<std::string> checked(std::string_view field, std::string_view text) {
    if (auto ok = check_name(field, text); !ok) {
        return fail(ok.error());
    }
    return std::string(text);
}

} // namespace

Result<std::string> read_queue(std::string_view text) {
    return checked("queue", text);
}

Result<std::string> read_partition(std::string_view text) {
    return text.empty() ? std::string(kDefaultPartition) : checked("partition", text);
}

Result<std::string> read_group(std::string_view text) {
    return text.empty() ? std::string(kQueueModeGroup) : checked("consumerGroup", text);
}

Result<std::string> read_label(std::string_view field, std::string_view text) {
    return text.empty() ? std::string() : checked(field, text);
}

Result<void> check_fit(std::string_view tenant, std::string_view queue, std::string_view group,
                       std::string_view partition) {
    return check_names_fit(tenant, queue, group.size() > partition.size() ? group : partition);
}

} // namespace queen::http
