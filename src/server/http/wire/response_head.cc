#include "server/http/wire/response_head.h"

#include <fmt/format.h>

#include <boost/beast/http/status.hpp>
#include <string_view>

namespace gauntlet::server::inline http {

std::string response_head(const HttpHead& head, const std::string& request_id,
                          const ResponseForm& form) {
  const auto status = static_cast<boost::beast::http::status>(head.status);
  const std::string_view reason = boost::beast::http::obsolete_reason(status);
  std::string lines = fmt::format("HTTP/1.{} {} {}\r\nServer: gauntlet\r\n", form.version - 10,
                                  head.status, reason);
  if (!head.content_type.empty()) lines += fmt::format("Content-Type: {}\r\n", head.content_type);
  lines += fmt::format("x-request-id: {}\r\n", request_id);
  for (const auto& [name, value] : head.headers) lines += fmt::format("{}: {}\r\n", name, value);
  // What is not said is the version's default.
  if (form.version >= 11 && !form.keep_alive) lines += "Connection: close\r\n";
  if (form.version < 11 && form.keep_alive) lines += "Connection: keep-alive\r\n";
  if (head.status == 204) return lines + "\r\n";  // has no body, and must not say how long it is
  if (form.body_bytes) {
    lines += fmt::format("Content-Length: {}\r\n", *form.body_bytes);
  } else if (form.version >= 11) {
    lines += "Transfer-Encoding: chunked\r\n";
  }
  return lines + "\r\n";
}

}  // namespace gauntlet::server::inline http
