#include "load/workload/workload.h"

#include <fmt/format.h>

#include "load/numbers.h"

namespace gauntlet::load::inline workload {
namespace {

constexpr std::uint64_t kLengthStream = 0x1E57;

std::optional<double> share_of(std::string_view text) {
  const bool is_percent = text.ends_with('%');
  if (is_percent) text.remove_suffix(1);
  auto share = number<double>(text);
  if (share && is_percent) *share /= 100;
  return share;
}

}  // namespace

Expected<SharedPrefix> SharedPrefix::parse(const std::string& text) {
  const auto [first, rest] = cut(text, ":");
  const auto [second, third] = cut(rest, ":");
  const auto groups = number<std::int64_t>(first), tokens = number<std::int64_t>(second);
  const auto share = third.empty() ? 1.0 : share_of(third);
  if (!groups || *groups < 1 || !tokens || *tokens < 1 || *tokens > 1 << 22 || !share ||
      !(*share >= 0 && *share <= 1)) {
    return Error{fmt::format("--shared-prefix takes groups, tokens and the share of prompts that "
                             "have one, as in 4:256 or 4:256:80%; not '{}'",
                             text),
                 ErrorKind::wrong_use};
  }
  return SharedPrefix{.groups = *groups, .tokens = *tokens, .share = *share};
}

PlannedRequest plan_request(const WorkloadSpec& spec, std::int64_t index) {
  Variates variates(spec.seed, mix64(static_cast<std::uint64_t>(index)) ^ kLengthStream);
  PlannedRequest request;
  if (!spec.trace.empty()) {
    const TraceLine& line = spec.trace[static_cast<std::size_t>(index) % spec.trace.size()];
    request.prompt_tokens = line.prompt_tokens;
    request.prompt = line.prompt;
    request.output_tokens = line.output_tokens;
  } else {
    request.prompt_tokens = spec.prompt_tokens.draw(variates);
    request.output_tokens = spec.output_tokens.draw(variates);
  }
  if (spec.prefix.groups > 0 && request.prompt.empty()) {
    request.prompt_tokens += spec.prefix.tokens;
    const bool shares = variates.unit() < spec.prefix.share;
    request.group = variates.integer(0, spec.prefix.groups - 1);
    if (shares) request.prefix_tokens = spec.prefix.tokens;
  }
  request.seed = static_cast<std::uint64_t>(variates.integer(
      0, std::int64_t{1} << 62));  // after the lengths, whose variates it must not move
  return request;
}

}  // namespace gauntlet::load::inline workload
