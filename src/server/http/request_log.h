// One line per request: what was asked, what came of it, and how long it took.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "server/http/http.h"

namespace gauntlet::server::inline http {

struct RequestLine {
  std::string id;
  std::string method;
  std::string target;
  int status = 0;  // 0: nothing was sent
  std::int64_t bytes = 0;
  double duration_ms = 0;
  std::string outcome = "done";  // "abandoned": the client went, or was too slow
  std::optional<ReplySummary> summary;
};

/// A JSON object without a newline. Never holds a body, a key or a query.
std::string to_json(const RequestLine& line);

}  // namespace gauntlet::server::inline http
