#include "server/http/request_log.h"

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

namespace gauntlet::server::inline http {
namespace {

double rounded(double value) { return std::round(value * 1e3) / 1e3; }

}  // namespace

std::string to_json(const RequestLine& line) {
  using json = nlohmann::ordered_json;
  constexpr std::size_t kMaxPath = 256;
  const double now_s =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  json object = {{"time_s", rounded(now_s)},
                 {"request_id", line.id},
                 {"method", line.method},
                 {"path", line.target.substr(0, std::min(line.target.find('?'), kMaxPath))},
                 {"status", line.status},
                 {"outcome", line.outcome},
                 {"duration_ms", rounded(line.duration_ms)},
                 {"bytes", line.bytes}};
  if (line.summary) {
    object["prompt_tokens"] = line.summary->prompt_tokens;
    object["output_tokens"] = line.summary->output_tokens;
    object["finish"] = line.summary->finish;
    if (line.summary->first_token_ms) {
      object["first_token_ms"] = rounded(*line.summary->first_token_ms);
    }
  }
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace gauntlet::server::inline http
