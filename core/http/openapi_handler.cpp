#include "http/error_map.hpp"
#include "http/handlers.hpp"
#include "http/openapi.hpp"

namespace queen::http {

void openapi(const std::shared_ptr<Call>& call) {
    call->reply(json_reply(std::string(openapi_document())));
}

} // namespace queen::http
