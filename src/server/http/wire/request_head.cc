#include "server/http/wire/request_head.h"

#include <algorithm>
#include <charconv>

namespace gauntlet::server::inline http {
namespace {

constexpr std::string_view kLineEnd = "\r\n";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_visible(char c) { return c > ' ' && c < '\x7f'; }
bool is_space(char c) { return c == ' ' || c == '\t'; }
bool is_token_character(char c) {
  return is_digit(c) || is_letter(c) ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}
bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_token_character);
}

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  for (char& c : small) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return small;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find(kLineEnd);
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + kLineEnd.size());
  return line;
}

/// Of a list that is separated by commas, each in small letters.
template <class Visit>
void for_each_element(std::string_view list, const Visit& visit) {
  while (true) {
    const std::size_t comma = list.find(',');
    visit(in_small_letters(trimmed(list.substr(0, comma))));
    if (comma == list.npos) return;
    list.remove_prefix(comma + 1);
  }
}

std::optional<std::uint64_t> parse_length(std::string_view text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  // from_chars takes neither a plus sign nor space, and a minus sign is not one of the digits.
  const auto [at, failed] = std::from_chars(text.data(), end, value);
  if (text.empty() || failed != std::errc() || at != end) return std::nullopt;
  return value;
}

ApiError fault(std::string message) { return {.message = "this is not HTTP: " + message}; }

struct RequestLineParts {
  std::string_view method, target, version;
};

std::optional<RequestLineParts> split_request_line(std::string_view line) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == line.npos || first == last) return std::nullopt;
  const RequestLineParts parts{.method = line.substr(0, first),
                               .target = line.substr(first + 1, last - first - 1),
                               .version = line.substr(last + 1)};
  if (!is_token(parts.method) || parts.target.empty() ||
      !std::ranges::all_of(parts.target, is_visible)) {
    return std::nullopt;
  }
  return parts;
}

std::optional<ApiError> read_version(std::string_view version, RequestHead& head) {
  if (version == "HTTP/1.1" || version == "HTTP/1.0") {
    head.version = version.back() == '1' ? 11 : 10;
    head.keep_alive = head.version == 11;
    return std::nullopt;
  }
  const bool is_another = version.size() == 8 && version.starts_with("HTTP/") &&
                          is_digit(version[5]) && version[6] == '.' && is_digit(version[7]);
  if (is_another) return ApiError{.status = 505, .message = "this server speaks HTTP/1.1 and 1.0"};
  return fault("the request line names no version");
}

/// Sets target and, where the target names one, host.
std::optional<ApiError> read_target(std::string_view target, RequestHead& head) {
  if (target.front() == '/' || (target == "*" && head.method == "OPTIONS")) {
    head.target = target;
    return std::nullopt;
  }
  const std::string small = in_small_letters(target.substr(0, 8));
  const std::size_t scheme = small.starts_with("http://")    ? 7
                             : small.starts_with("https://") ? 8
                                                             : 0;
  if (scheme == 0) return fault("the request target must be a path, or a whole http address");
  target.remove_prefix(scheme);
  const std::size_t end = std::min(target.find_first_of("/?#"), target.size());
  const auto host = host_of(target.substr(0, end));
  if (!host) return fault("the request target names no host");
  head.host = *host;
  head.target = target.substr(end);
  if (!head.target.starts_with('/')) head.target.insert(0, "/");
  return std::nullopt;
}

std::optional<ApiError> read_fields(std::string_view text, RequestHead& head) {
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.empty()) break;
    if (is_space(line.front())) return fault("a header field goes on in a second line");
    const auto field = parse_field_line(line);
    if (!field) return fault("a header field is malformed");
    head.fields.emplace_back(in_small_letters(field->name), field->value);
  }
  // Two of these may be read as one or the other by whoever forwards a request.
  for (const char* name : {"host", "content-length", "transfer-encoding", "authorization", "expect",
                           "origin", "x-request-id"}) {
    if (std::ranges::count(head.fields, name, [](const auto& one) { return one.first; }) > 1) {
      return fault(std::string("the header field ") + name + " comes twice");
    }
  }
  return std::nullopt;
}

bool has_field(const RequestHead& head, std::string_view name) {
  return std::ranges::any_of(head.fields, [&](const auto& one) { return one.first == name; });
}

std::optional<ApiError> read_host(RequestHead& head) {
  if (!has_field(head, "host")) {
    if (head.version < 11) return std::nullopt;
    return fault("HTTP/1.1 needs a Host header field");
  }
  const auto host = host_of(head.field("host"));
  if (!host) return fault("the Host header field names no host");
  if (head.host.empty()) head.host = *host;  // the target's own goes first
  return std::nullopt;
}

std::optional<ApiError> read_framing(RequestHead& head) {
  const bool has_length = has_field(head, "content-length");
  if (has_length) {
    head.content_length = parse_length(head.field("content-length"));
    if (!head.content_length) return fault("Content-Length must be a number of bytes");
  }
  if (has_field(head, "transfer-encoding")) {
    if (has_length) return fault("Content-Length and Transfer-Encoding contradict each other");
    if (head.version < 11) return fault("HTTP/1.0 has no Transfer-Encoding");
    if (in_small_letters(head.field("transfer-encoding")) != "chunked") {
      return fault("the only Transfer-Encoding that this server knows is chunked, once");
    }
    head.is_chunked = true;
  }
  for (const auto& [name, value] : head.fields) {
    if (name != "connection") continue;
    for_each_element(value, [&](const std::string& option) {
      if (option == "close") head.keep_alive = false;
      if (option == "keep-alive" && head.version < 11) head.keep_alive = true;
    });
  }
  if (has_field(head, "expect")) {
    head.expects_continue = in_small_letters(head.field("expect")) == "100-continue";
    if (!head.expects_continue) {
      return ApiError{.status = 417, .message = "the only Expect that is met is 100-continue"};
    }
    head.expects_continue &= head.version == 11 && head.has_body();
  }
  return std::nullopt;
}

std::optional<int> hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

}  // namespace

std::string_view RequestHead::field(std::string_view name) const {
  const auto found =
      std::ranges::find(fields, name, [](const auto& one) { return std::string_view(one.first); });
  return found == fields.end() ? std::string_view() : std::string_view(found->second);
}

bool is_field_text(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == '\t' || (byte >= ' ' && byte != 0x7f);
  });
}

std::optional<FieldLine> parse_field_line(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == line.npos) return std::nullopt;
  const FieldLine field{.name = line.substr(0, colon), .value = trimmed(line.substr(colon + 1))};
  // A space before the colon is no part of a token, and a name that is none is refused.
  if (!is_token(field.name) || !is_field_text(field.value)) {
    return std::nullopt;
  }
  return field;
}

std::optional<std::string> host_of(std::string_view authority) {
  std::string_view name = authority;
  std::string_view port;
  const bool is_bracketed = name.starts_with('[');
  if (is_bracketed) {
    const std::size_t close = name.find(']');
    if (close == name.npos) return std::nullopt;
    port = name.substr(close + 1);
    name = name.substr(1, close - 1);
    if (!std::ranges::all_of(name, [](char c) { return hex_digit(c) || c == ':' || c == '.'; })) {
      return std::nullopt;
    }
  } else {
    const std::size_t colon = std::min(name.find(':'), name.size());
    port = name.substr(colon);
    name = name.substr(0, colon);
    const auto fits = [](char c) {
      return is_letter(c) || is_digit(c) || c == '.' || c == '-' || c == '_';
    };
    if (!std::ranges::all_of(name, fits)) return std::nullopt;
  }
  if (name.empty() || port.size() > 6 || (!port.empty() && port.front() != ':'))
    return std::nullopt;
  if (!port.empty() && !std::ranges::all_of(port.substr(1), is_digit)) return std::nullopt;
  if (name.ends_with('.') && name.size() > 1) name.remove_suffix(1);  // the root of all names
  return in_small_letters(name);
}

std::optional<std::string> path_of(std::string_view target) {
  const std::string_view raw = target.substr(0, target.find_first_of("?#"));
  std::string path;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '%') {
      path += raw[i];
      continue;
    }
    const auto high = i + 2 < raw.size() ? hex_digit(raw[i + 1]) : std::nullopt;
    const auto low = i + 2 < raw.size() ? hex_digit(raw[i + 2]) : std::nullopt;
    if (!high || !low) return std::nullopt;
    path += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  return path;
}

ApiResult<RequestHead> parse_request_head(std::string_view text) {
  RequestHead head;
  const auto line = split_request_line(take_line(text));
  if (!line) return fault("the request line is malformed");
  head.method = line->method;
  if (auto error = read_version(line->version, head)) return *error;
  if (auto error = read_target(line->target, head)) return *error;
  if (auto error = read_fields(text, head)) return *error;
  if (auto error = read_host(head)) return *error;
  if (auto error = read_framing(head)) return *error;
  return head;
}

}  // namespace gauntlet::server::inline http
