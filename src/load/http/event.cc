#include "load/http/event.h"

#include <array>
#include <nlohmann/json.hpp>

namespace gauntlet::load::inline http {
namespace {

constexpr std::size_t kMostWords = 200;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// Where `text`, which follows a quote, is `key" : x` with this x: what comes after x.
std::optional<std::string_view> value_of(std::string_view text, std::string_view key, char x) {
  if (!text.starts_with(key) || text.size() == key.size() || text[key.size()] != '"') {
    return std::nullopt;
  }
  text.remove_prefix(key.size() + 1);
  for (const char wanted : {':', x}) {
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    if (text.empty() || text.front() != wanted) return std::nullopt;
    text.remove_prefix(1);
  }
  return text;
}

bool is_text(std::string_view after_quote) {
  constexpr std::array<std::string_view, 5> kKeys = {"text", "content", "reasoning_content",
                                                     "reasoning", "arguments"};
  for (const std::string_view key : kKeys) {
    const auto value = value_of(after_quote, key, '"');
    if (value && !value->empty() && value->front() != '"') return true;
  }
  return false;
}

std::int64_t count_in(const nlohmann::json& usage, const char* name) {
  const auto found = usage.find(name);
  return found != usage.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

}  // namespace

EventScan scan_event(std::string_view data) {
  EventScan scan{.is_done = data == "[DONE]"};
  while (true) {
    const std::size_t quote = data.find('"');
    if (quote == std::string_view::npos || quote + 1 == data.size()) return scan;
    data.remove_prefix(quote + 1);
    switch (data.front()) {
      case 't':
      case 'c':
      case 'r':
      case 'a':
        scan.has_text = scan.has_text || is_text(data);
        break;
      case 'u':
        scan.has_usage = scan.has_usage || value_of(data, "usage", '{').has_value();
        break;
      case 'e':
        scan.has_error = scan.has_error || value_of(data, "error", '{').has_value();
        break;
      default:
        break;
    }
  }
}

std::optional<Usage> usage_of(std::string_view json_text) {
  const nlohmann::json body = nlohmann::json::parse(json_text, nullptr, false);
  if (!body.is_object()) return std::nullopt;
  const auto found = body.find("usage");
  if (found == body.end() || !found->is_object()) return std::nullopt;
  Usage usage{.prompt_tokens = count_in(*found, "prompt_tokens"),
              .completion_tokens = count_in(*found, "completion_tokens")};
  const auto details = found->find("prompt_tokens_details");
  if (details != found->end() && details->is_object()) {
    usage.cached_tokens = count_in(*details, "cached_tokens");
  }
  return usage;
}

std::string error_words(std::string_view json_text) {
  std::string words(json_text);
  const nlohmann::json body = nlohmann::json::parse(json_text, nullptr, false);
  if (body.is_object() && body.contains("error")) {
    const nlohmann::json& error = body["error"];
    if (error.is_string()) words = error.get<std::string>();
    if (error.is_object() && error.contains("message") && error["message"].is_string()) {
      words = error["message"].get<std::string>();
    }
  }
  for (char& c : words) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  if (words.size() > kMostWords) words = words.substr(0, kMostWords) + "...";
  return words;
}

}  // namespace gauntlet::load::inline http
