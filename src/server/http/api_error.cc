#include "server/http/api_error.h"

#include <nlohmann/json.hpp>

namespace gauntlet::server::inline http {
namespace {

const char* type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 429:
      return "rate_limit_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

/// Messages quote little of what they complain of; this holds where one forgot to.
constexpr std::size_t kMaxMessage = 800;
constexpr std::size_t kMaxParam = 200;

std::string cut(const std::string& text, std::size_t most) {
  return text.size() <= most ? text : text.substr(0, most) + "...";
}

}  // namespace

std::string to_json(const ApiError& error) {
  using json = nlohmann::ordered_json;
  const auto or_null = [](const std::string& text) { return text.empty() ? json() : json(text); };
  return json{{"error",
               {{"message", cut(error.message, kMaxMessage)},
                {"type", type_of(error.status)},
                {"param", or_null(cut(error.param, kMaxParam))},
                {"code", or_null(error.code)}}}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace gauntlet::server::inline http
