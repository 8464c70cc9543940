// Who may ask by name and from where: a web site can make its visitor's browser send requests to
// this machine, under a name of its own (DNS rebinding) or across origins.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/http/http.h"
#include "server/http/wire/request_head.h"

namespace gauntlet::server::inline http {

class AccessRules {
 public:
  /// `hosts`: names that requests may be for; "*" is any. None: on a loopback address the names of
  /// the loopback, elsewhere any. `origins`: of web pages that may read answers; "*" is any.
  AccessRules(const std::string& bound_address, std::vector<std::string> hosts,
              std::vector<std::string> origins);

  /// What is wrong with the host that a request is for.
  std::optional<ApiError> check_host(const RequestHead& head) const;
  using Headers = std::vector<std::pair<std::string, std::string>>;
  /// What every reply to this request carries.
  Headers reply_headers(const RequestHead& head) const;
  /// The answer to a browser that asks whether it may send a request; null where none does.
  std::shared_ptr<Reply> answer_preflight(const RequestHead& head) const;

 private:
  bool may_read(std::string_view origin) const;

  const std::vector<std::string> hosts_;
  const std::vector<std::string> origins_;
};

}  // namespace gauntlet::server::inline http
