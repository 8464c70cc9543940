#include "server/api_error.h"

#include <nlohmann/json.hpp>

namespace gauntlet::server {
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

}  // namespace

std::string to_json(const ApiError& error) {
  using json = nlohmann::ordered_json;
  const auto or_null = [](const std::string& text) { return text.empty() ? json() : json(text); };
  return json{{"error",
               {{"message", error.message},
                {"type", type_of(error.status)},
                {"param", or_null(error.param)},
                {"code", or_null(error.code)}}}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace gauntlet::server
