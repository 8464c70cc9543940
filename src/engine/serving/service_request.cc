#include "engine/serving/service_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace gauntlet::engine::inline serving {

std::string_view name_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::eos:
      return "eos";
    case FinishReason::stop:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::cancelled:
      return "cancelled";
    case FinishReason::expired:
      return "expired";
    case FinishReason::failed:
      return "failed";
  }
  fail("no such finish reason");
}

Expected<void> validate(const ServiceRequest& request, const RequestLimits& limits) {
  const auto wrong = [](std::string message) {
    return Error{std::move(message), ErrorKind::wrong_use};
  };
  if (request.prompt.empty()) return wrong("the prompt has no tokens: give at least one");
  if (std::ssize(request.prompt) > limits.positions) {
    return wrong(fmt::format("the prompt has {} tokens, but at most {} fit: shorten it",
                             request.prompt.size(), limits.positions));
  }
  const auto unknown = std::ranges::find_if(
      request.prompt, [&](std::int32_t id) { return id < 0 || id >= limits.vocab; });
  if (unknown != request.prompt.end()) {
    return wrong(fmt::format("token {} of the prompt is not in the vocabulary (0 to {})", *unknown,
                             limits.vocab - 1));
  }
  if (request.max_tokens < 0) {
    return wrong(fmt::format("{} tokens cannot be made", request.max_tokens));
  }
  if (request.num_choices < 1 || request.num_choices > limits.choices) {
    return wrong(fmt::format("the number of choices is between 1 and {}, not {}", limits.choices,
                             request.num_choices));
  }
  for (const auto& asked : {request.top_log_probs, request.prompt_log_probs}) {
    const int shown = asked.value_or(0);
    if (shown < 0 || shown > limits.vocab) {
      return wrong(fmt::format("between 0 and {} log-probabilities can be shown, not {}",
                               limits.vocab, shown));
    }
  }
  if (auto valid = validate(request.adjustments, limits.vocab); !valid) return valid;
  return validate(request.sampling);
}

}  // namespace gauntlet::engine::inline serving
