// What consoles ask about whoever sits before them. Users, clusters and logins are a matter of what
// stands before the broker; the broker knows tokens and says that much.
#include "base/json.hpp"
#include "http/access.hpp"
#include "http/error_map.hpp"
#include "http/handlers.hpp"

namespace queen::http {
namespace {

constexpr std::string_view kSlug = "standalone";

std::string_view role_of(auth::Roles roles) {
    return roles.may(auth::Level::admin)        ? "admin"
           : roles.may(auth::Level::read_write) ? "read-write"
           : roles.has(auth::Role::read_only)   ? "read-only"
           : roles.has(auth::Role::write_only)  ? "write-only"
                                                : "none";
}

std::string render_me(std::string_view user, std::string_view role, bool standalone) {
    const bool rules = role == "admin";
    std::string body;
    json::Writer writer(body);
    writer.begin_object();
    writer.key("user_id").string(user).key("email").null().key("tenant_slug").string(kSlug);
    writer.key("is_operator").boolean(rules).key("operator_enabled").boolean(rules);
    writer.key("operator_live").boolean(rules);
    writer.key("acting_cluster").begin_object().key("id").string(kSlug).key("slug").string(kSlug);
    writer.end_object();
    writer.key("clusters").begin_array().begin_object();
    writer.key("id").string(kSlug).key("slug").string(kSlug).key("role").string(role);
    writer.key("tenant_slug").string(kSlug).key("tenant_id").string(kDefaultTenant);
    writer.key("status").string("active").key("cell_slug").string(kSlug);
    writer.end_object().end_array();
    writer.key("act_cluster_header").string("x-queen-act-cluster").key("role").string(role);
    writer.key("cluster").null().key("standalone").boolean(standalone);
    writer.end_object();
    return body;
}

} // namespace

void auth_me(const std::shared_ptr<Call>& call) {
    const auth::Verifier* verifier = call->services().verifier;
    if (verifier == nullptr) {
        call->reply(json_reply(render_me(kSlug, "admin", true)));
        return;
    }
    const auto identity = identity_of(call->request(), *verifier);
    if (!identity) {
        call->reply(error_reply(401, "auth_required", "auth_required"));
        return;
    }
    call->reply(json_reply(render_me(identity->subject, role_of(identity->roles), false)));
}

void auth_login(const std::shared_ptr<Call>& call) {
    Reply reply;
    if (call->services().verifier == nullptr) {
        reply.status = 302;
        reply.headers.emplace_back("Location", "/");
    } else {
        reply.content_type = "text/html; charset=utf-8";
        reply.body = "<!doctype html><title>Queen broker</title><p>This broker has no login of its "
                     "own: send a token, <code>Authorization: Bearer &hellip;</code>\n";
    }
    call->reply(std::move(reply));
}

void auth_logout(const std::shared_ptr<Call>& call) {
    call->reply(json_reply(R"({"ok":true})"));
}

} // namespace queen::http
