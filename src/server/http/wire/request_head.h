// The first lines of a request, read strictly: wherever two readers could disagree on where a
// request ends, or on whom it is for, it is refused (RFC 9112).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http/api_error.h"

namespace gauntlet::server::inline http {

struct RequestHead {
  std::string method;
  std::string target;  // origin-form: without the scheme and host that a client may put before it
  unsigned version = 11;  // 10 or 11
  std::string host;  // in small letters, without port and brackets; empty: HTTP/1.0 without one
  std::vector<std::pair<std::string, std::string>> fields;  // names in small letters
  std::optional<std::uint64_t> content_length;
  bool is_chunked = false;
  bool keep_alive = true;
  bool expects_continue = false;

  bool has_body() const { return is_chunked || content_length.value_or(0) > 0; }
  /// The first of that name (in small letters); empty where there is none.
  std::string_view field(std::string_view name) const;
};

/// From the request line to the empty line, both ends of lines included.
ApiResult<RequestHead> parse_request_head(std::string_view text);

/// `name: value` as a header or a trailer may have it; nothing when it may not.
struct FieldLine {
  std::string_view name;
  std::string_view value;
};
std::optional<FieldLine> parse_field_line(std::string_view line);

/// No control characters but tabs; bytes beyond ASCII are let through as they are.
bool is_field_text(std::string_view text);

/// What an authority ("localhost:8000", "[::1]") names: small letters, no port, no brackets.
std::optional<std::string> host_of(std::string_view authority);

/// The part before the query, escapes undone; nothing where one is malformed.
std::optional<std::string> path_of(std::string_view target);

}  // namespace gauntlet::server::inline http
