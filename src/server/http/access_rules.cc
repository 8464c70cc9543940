#include "server/http/access_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>

namespace gauntlet::server::inline http {
namespace {

bool is_loopback(const std::string& name) {
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(name, error);
  return !error && address.is_loopback();
}

/// RFC 6761: names below .localhost mean this machine, whoever is asked for them.
bool is_local_name(const std::string& host) {
  return host == "localhost" || host.ends_with(".localhost") || is_loopback(host);
}

bool contains(const std::vector<std::string>& list, std::string_view one) {
  return std::ranges::find(list, one) != list.end();
}

std::vector<std::string> known_hosts(const std::string& bound, std::vector<std::string> given) {
  if (given.empty() && !is_loopback(bound)) return {"*"};
  for (std::string& name : given) {
    if (auto host = host_of(name)) name = *host;
  }
  return given;
}

}  // namespace

AccessRules::AccessRules(const std::string& bound_address, std::vector<std::string> hosts,
                         std::vector<std::string> origins)
    : hosts_(known_hosts(bound_address, std::move(hosts))), origins_(std::move(origins)) {}

std::optional<ApiError> AccessRules::check_host(const RequestHead& head) const {
  if (head.host.empty() || contains(hosts_, "*")) return std::nullopt;
  if (hosts_.empty() ? is_local_name(head.host) : contains(hosts_, head.host)) return std::nullopt;
  return ApiError{.status = 421,
                  .message = fmt::format("this server does not answer for the host '{}': the names "
                                         "that it answers for are set by --allowed-hosts",
                                         head.host.substr(0, 100)),
                  .code = "unknown_host"};
}

bool AccessRules::may_read(std::string_view origin) const {
  return !origin.empty() && (contains(origins_, "*") || contains(origins_, origin));
}

AccessRules::Headers AccessRules::reply_headers(const RequestHead& head) const {
  if (origins_.empty()) return {};
  // Whatever the answer is, another origin's would be another one: caches have to know.
  Headers headers = {{"Vary", "Origin"}};
  const std::string_view origin = head.field("origin");
  if (may_read(origin)) {
    headers.emplace_back("Access-Control-Allow-Origin",
                         contains(origins_, "*") ? "*" : std::string(origin));
    headers.emplace_back("Access-Control-Expose-Headers", "x-request-id, Retry-After");
  }
  return headers;
}

std::shared_ptr<Reply> AccessRules::answer_preflight(const RequestHead& head) const {
  if (origins_.empty() || head.method != "OPTIONS" ||
      head.field("access-control-request-method").empty()) {
    return nullptr;
  }
  if (!may_read(head.field("origin"))) {
    return make_reply(ApiError{.status = 403,
                               .message = "pages of this origin may not ask: those that may are "
                                          "set by --allowed-origins"});
  }
  HttpHead answer{.status = 204, .content_type = ""};
  answer.headers = {{"Access-Control-Allow-Methods", "GET, HEAD, POST"},
                    {"Access-Control-Allow-Headers", "authorization, content-type, x-request-id"},
                    {"Access-Control-Max-Age", "600"}};
  return make_reply(std::move(answer), "");
}

}  // namespace gauntlet::server::inline http
