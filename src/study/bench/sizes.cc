#include "study/bench/sizes.h"

#include <algorithm>
#include <set>

namespace gauntlet::study::inline bench {
namespace {

/// Expanding all weights to 16 bits, at what a GPU and a few CPU cores manage.
double stack_seconds(const model::ModelConfig& model, engine::Backend backend) {
  const double rate = backend == engine::Backend::cuda ? 15e9 : 1e9;
  const auto per_layer =
      model.num_experts * 3 * model.intermediate + 2 * (model.query_width() + model.kv_width());
  return 2 * static_cast<double>((model.num_layers * per_layer + 2 * model.vocab) * model.hidden) /
         rate;
}

}  // namespace

const char* name_of(Depth depth) { return depth == Depth::quick ? "quick" : "full"; }

Sizes sizes_for(Depth depth, engine::Backend backend, const model::ModelConfig& model,
                double budget_seconds) {
  Sizes sizes{.batches = {1, 2, 4, 8, 16, 32, 64},
              .contexts = {512, 2048, 8192, 32768},
              .context_batches = {1, 8},
              .prompt_lengths = {16, 64, 256},
              .prompt_batches = {1, 4, 8},
              .loads = {0.5, 1.0, 1.5},
              .mix = {},
              .budget_seconds = 100,
              .end_seconds = backend == engine::Backend::cuda ? 275.0 : 165.0};
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
    sizes.end_seconds = 0;
  }
  if (backend == engine::Backend::cuda) {
    const bool quick = depth == Depth::quick;
    sizes.prompt_tokens = quick ? 1024 : 2048;
    sizes.context = quick ? 128 : 512;
    sizes.score_tokens = std::max<std::int64_t>(sizes.score_tokens, 4096);
    sizes.contexts = {2048, 8192, 32768};
    if (quick) {
      sizes.context_batches = {1, 4};
      sizes.budget_seconds = 60;  // a GPU repeats itself better, and making stacks takes the rest
    }
    sizes.mix = quick ? RequestMix{256, {32, 256}, {16, 64}} : RequestMix{512, {64, 512}, {16, 96}};
    sizes.requests *= quick ? 2 : 4;
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
    sizes.end_seconds = 0;
  }
  sizes.stack_seconds = stack_seconds(model, backend);
  const std::int64_t positions = model.max_positions;
  sizes.prompt_tokens = std::min(sizes.prompt_tokens, positions / 2);
  sizes.context = std::min(sizes.context, positions / 2);
  sizes.score_window = std::min(sizes.score_window, positions - 1);
  return sizes;
}

Sizes halved(Sizes sizes) {
  sizes.most_sequences /= 2;
  sizes.most_served = std::min(sizes.most_served, sizes.most_sequences);
  std::erase_if(sizes.batches, [&](std::int64_t batch) { return batch > sizes.most_sequences; });
  return sizes;
}

Room study_room(const Sizes& sizes) {
  constexpr std::int64_t kPageTokens = 16;
  const auto most = [](const std::vector<std::int64_t>& of) {
    return *std::ranges::max_element(of);
  };
  Room room = room_for(layer_workloads(sizes));
  // So many sequences of so many positions at once, beside what a cell holds of others.
  const auto hold = [&](std::int64_t sequences, std::int64_t positions) {
    room.sequences = std::max(room.sequences, sequences);
    room.positions = std::max(room.positions, sequences * (positions + kPageTokens));
    room.longest = std::max(room.longest, positions);
  };
  hold(2 * most(sizes.batches), sizes.context + kForkTokens);
  hold(2 * most(sizes.prompt_batches), most(sizes.prompt_lengths));
  hold(sizes.most_sequences, sizes.context + 2 * kForkTokens);
  hold(sizes.verify_prompts, sizes.verify_prompt_tokens + sizes.verify_tokens);
  hold(1, sizes.score_window + 1);
  hold(sizes.most_served + 1,
       2 * sizes.mix.shared_tokens + sizes.mix.own_tokens[1] + sizes.mix.output_tokens[1]);
  return room;
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

}  // namespace gauntlet::study::inline bench
