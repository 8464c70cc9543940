// The first lines of a reply as they go over the wire.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include "server/http/http.h"

namespace gauntlet::server::inline http {

struct ResponseForm {
  unsigned version = 11;  // 10 or 11
  bool keep_alive = true;
  /// None: the body comes in chunks (HTTP/1.1), or ends with the connection (HTTP/1.0).
  std::optional<std::size_t> body_bytes;
};

/// From the status line to the empty line.
std::string response_head(const HttpHead& head, const std::string& request_id,
                          const ResponseForm& form);

}  // namespace gauntlet::server::inline http
