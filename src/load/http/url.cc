#include "load/http/url.h"

#include <fmt/format.h>

#include <algorithm>

#include "load/numbers.h"

namespace gauntlet::load::inline http {

Expected<Url> Url::parse(const std::string& text) {
  const Error refusal{
      fmt::format("--url takes an address as in http://127.0.0.1:8000, not '{}'", text),
      ErrorKind::wrong_use};
  Url url;
  std::string_view rest = text;
  if (rest.starts_with("https://")) {
    url.is_tls = true;
    url.port = 443;
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else {
    return refusal;
  }
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view authority = rest.substr(0, slash);
  url.path = rest.substr(slash);
  while (url.path.ends_with('/')) url.path.pop_back();
  if (url.path.ends_with("/v1")) url.path.resize(url.path.size() - 3);
  const std::size_t colon = authority.rfind(':');
  if (colon != std::string_view::npos && authority.find(']', colon) == std::string_view::npos) {
    const auto port = number<std::uint16_t>(authority.substr(colon + 1));
    if (!port || *port == 0) return refusal;
    url.port = *port;
    authority = authority.substr(0, colon);
  }
  if (authority.starts_with('[') && authority.ends_with(']')) {
    authority = authority.substr(1, authority.size() - 2);
  }
  const auto is_plain = [](char c) {
    return c > ' ' && c != '@' && c != '?' && c != '#' && c < 127;
  };
  if (authority.empty() || !std::ranges::all_of(authority, is_plain) ||
      !std::ranges::all_of(url.path, is_plain)) {
    return refusal;
  }
  url.host = authority;
  return url;
}

std::string Url::authority() const {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(is_ipv6 ? "[{}]:{}" : "{}:{}"), host, port);
}

}  // namespace gauntlet::load::inline http
