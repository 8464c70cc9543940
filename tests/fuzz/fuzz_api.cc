// Any bytes as the body of a request: refused with OpenAI's error object, or answered to the end.
// The first byte chooses the endpoint.
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/fuzz/served.h"

namespace {

using namespace gauntlet;

void check_answer(int status, const std::string& body) {
  if (body.starts_with("data: ") || body.starts_with("event: ")) {
    tests::demand(body.ends_with("\n\n"), "a stream ends within an event");
    return;
  }
  const auto json = nlohmann::json::parse(body, nullptr, false);
  tests::demand(json.is_object(), "an answer is no JSON object: " + body);
  tests::demand((status == 200) != json.contains("error"), "status and answer disagree: " + body);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static tests::Served served;
  constexpr const char* kTargets[] = {"/v1/completions", "/v1/chat/completions", "/tokenize",
                                      "/detokenize", "/v1/responses"};
  if (size == 0) return 0;
  const char* target = kTargets[static_cast<std::uint8_t>(data[0] - '0') % std::size(kTargets)];
  const auto reply =
      served.handle({.id = "fuzz",
                     .method = "POST",
                     .target = target,
                     .body = std::string(reinterpret_cast<const char*>(data) + 1, size - 1)});
  int status = 0;
  std::string body;
  bool is_over = false;
  while (auto piece = is_over ? std::nullopt : reply->take()) {
    if (piece->head) status = piece->head->status;
    body += piece->body;
    is_over = piece->is_last;
  }
  tests::demand(is_over, "a reply has no end");
  tests::demand(status == 200 || (status >= 400 && status < 500), "status of " + body);
  check_answer(status, body);
  reply->abandon();
  served.check_left_clean();
  return 0;
}
