#include "study/sizes.h"

#include <algorithm>
#include <set>

namespace gauntlet::study {

Sizes sizes_for(Depth depth, engine::Backend backend, const model::ModelConfig& model,
                double budget_seconds) {
  Sizes sizes{.batches = {1, 2, 4, 8, 16, 32, 64},
              .contexts = {512, 2048, 8192, 32768},
              .context_batches = {1, 8},
              .prompt_lengths = {16, 64, 256},
              .prompt_batches = {1, 4, 8},
              .loads = {0.5, 1.0, 1.5},
              .mix = {},
              .budget_seconds = 100};
  if (depth == Depth::full) {
    sizes.context = 128;
    sizes.verify_prompts = 9;
    sizes.verify_tokens = 48;
    sizes.score_tokens = 16384;
    sizes.router_tokens = 16384;
    sizes.context_batches = {1, 4, 16};
    sizes.prompt_lengths = {16, 32, 64, 128, 256, 512};
    sizes.prompt_batches = {1, 2, 4, 8, 16};
    sizes.loads = {0.5, 0.75, 1.0, 1.25, 1.5};
    sizes.requests = 64;
    sizes.least_blocks = 6;
    sizes.budget_seconds = 900;
  }
  if (backend == engine::Backend::cuda) {
    sizes.prompt_tokens = 2048;
    sizes.context = 512;
    sizes.score_tokens = std::max<std::int64_t>(sizes.score_tokens, 8192);
    sizes.mix = {.shared_tokens = 512, .own_tokens = {64, 512}, .output_tokens = {16, 96}};
    sizes.requests *= 4;
    for (std::int64_t& length : sizes.prompt_lengths) length *= 4;
  }
  if (budget_seconds > 0) {
    // Little time: fewer of everything that is not repeated until its time is up.
    if (budget_seconds < 30) {
      sizes.prompt_tokens = 32;
      sizes.verify_prompts = 3;
      sizes.verify_tokens = 8;
      sizes.score_tokens = sizes.score_window = sizes.router_tokens = 256;
      sizes.batches = {1, 8};
      sizes.contexts = {128, 32768};
      sizes.context_batches = {1};
      sizes.prompt_lengths = {16, 64};
      sizes.prompt_batches = {1, 4};
      sizes.loads = {0.5, 1.5};
      sizes.requests = 8;
      sizes.most_sequences = 16;
      sizes.least_blocks = 2;
    }
    sizes.budget_seconds = budget_seconds;
  }
  const std::int64_t positions = model.max_positions;
  sizes.prompt_tokens = std::min(sizes.prompt_tokens, positions / 2);
  sizes.context = std::min(sizes.context, positions / 2);
  sizes.score_window = std::min(sizes.score_window, positions - 1);
  return sizes;
}

std::vector<Workload> layer_workloads(const Sizes& sizes) {
  std::vector<Workload> workloads = {
      {"prompt", {.kind = engine::SpeedKind::prefill, .batch = 1, .tokens = sizes.prompt_tokens}}};
  for (const std::int64_t batch : std::set<std::int64_t>{1, 8, sizes.most_sequences}) {
    workloads.push_back(
        {"decode_" + std::to_string(batch),
         {.kind = engine::SpeedKind::decode, .batch = batch, .context = sizes.context}});
  }
  return workloads;
}

}  // namespace gauntlet::study
