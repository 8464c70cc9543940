#include "server/response_head.h"

#include <fmt/format.h>

#include <boost/beast/http/status.hpp>
#include <string_view>

namespace gauntlet::server {

std::string response_head(const HttpHead& head, const std::string& request_id,
                          const ResponseForm& form) {
  const auto status = static_cast<boost::beast::http::status>(head.status);
  const std::string_view reason = boost::beast::http::obsolete_reason(status);
  std::string lines =
      fmt::format("HTTP/1.{} {} {}\r\nServer: gauntlet\r\nContent-Type: {}\r\nx-request-id: {}\r\n",
                  form.version - 10, head.status, reason, head.content_type, request_id);
  for (const auto& [name, value] : head.headers) lines += fmt::format("{}: {}\r\n", name, value);
  // What is not said is the version's default.
  if (form.version >= 11 && !form.keep_alive) lines += "Connection: close\r\n";
  if (form.version < 11 && form.keep_alive) lines += "Connection: keep-alive\r\n";
  if (form.body_bytes) {
    lines += fmt::format("Content-Length: {}\r\n", *form.body_bytes);
  } else if (form.version >= 11) {
    lines += "Transfer-Encoding: chunked\r\n";
  }
  return lines + "\r\n";
}

}  // namespace gauntlet::server
