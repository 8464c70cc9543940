// Log-probabilities of a prompt's own tokens, gathered over the steps that compute it.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/serving/service.h"

namespace gauntlet::engine::inline serving {

bool Service::scores_prompt(const Choice& choice, const Work& work) {
  return choice.request->prompt_log_probs && !choice.prompt_is_done &&
         work.begin + 1 < std::ssize(choice.request->prompt);
}

void Service::score_prompt(const Work& work, BatchItem& item) const {
  if (choices_.at(work.id).request->prompt_log_probs > 0) {
    item.want = Want::logits;
    return;
  }
  const auto tokens = scheduler_.tokens(work.id);
  for (std::int64_t at = work.begin; at < work.begin + work.count; ++at) {
    // What follows the last is not known yet: its value is not read.
    item.targets.push_back(tokens[std::min(at + 1, std::ssize(tokens) - 1)]);
  }
}

void Service::note_prompt(const Work& work, const ItemResult& result) {
  Choice& choice = choices_.at(work.id);
  const auto& prompt = choice.request->prompt;
  if (choice.prompt.empty()) {
    for (const std::int32_t token : prompt) choice.prompt.push_back({.token = token});
  }
  const int num_top = *choice.request->prompt_log_probs;
  const std::int64_t end = std::min(work.begin + work.count, std::ssize(prompt) - 1);
  for (std::int64_t at = work.begin; at < end; ++at) {
    PromptToken& next = choice.prompt[at + 1];
    if (num_top == 0) {
      next.log_probability = static_cast<float>(result.target_log_probs[at - work.begin]);
      continue;
    }
    next.top = top_log_probs(result.logits, num_top);
    const auto own = std::ranges::find(next.top, next.token, &TokenLogProb::token);
    next.log_probability =
        own != next.top.end() ? own->log_probability : log_probability(result.logits, next.token);
  }
}

bool Service::tell_prompt(RequestId id, Choice& choice) {
  if (std::exchange(choice.prompt_is_done, true)) return true;
  live_.prompt_tokens += std::ssize(choice.request->prompt);
  try {
    if (choice.request->prompt_log_probs && choice.events->on_prompt) {
      if (choice.prompt.empty()) choice.prompt.push_back({.token = choice.request->prompt.front()});
      choice.events->on_prompt({.choice = choice.index, .tokens = std::move(choice.prompt)});
    }
  } catch (const std::exception& fault) {
    end(id, FinishReason::failed, fmt::format("its callback threw: {}", fault.what()));
    return false;
  }
  if (choice.limit > 0) return true;
  end(id, FinishReason::length);
  return false;
}

}  // namespace gauntlet::engine::inline serving
