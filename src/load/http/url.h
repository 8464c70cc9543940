// Where the server is.
#pragma once
#include <cstdint>
#include <string>

#include "core/expected.h"

namespace gauntlet::load::inline http {

struct Url {
  bool is_tls = false;
  std::string host;
  std::uint16_t port = 80;
  std::string path;  // before /v1/..., without a slash at its end

  /// "http://127.0.0.1:8000", "https://example.org/api", "http://[::1]:80"; a trailing /v1 is
  /// dropped, because clients of OpenAI's API are told their base URL with it.
  static Expected<Url> parse(const std::string& text);
  /// As a Host header says it.
  std::string authority() const;
};

}  // namespace gauntlet::load::inline http
