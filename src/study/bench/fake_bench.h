// A workbench for tests that bring their own executor: a small model's shape and a text of numbers.
#pragma once
#include <numeric>

#include "engine/steps/fake_executor.h"
#include "study/bench/workbench.h"

namespace gauntlet::study::inline bench {

struct FakeBench {
  model::ModelWeights weights;
  std::atomic<bool> cancel{false};
  lab::ReadSensors sensors = [] { return std::optional<GpuState>(); };
  engine::FakeExecutor executor;
  Workbench bench;

  FakeBench()
      : weights{.config = {.name = "fake",
                           .num_layers = 2,
                           .hidden = 8,
                           .intermediate = 16,
                           .num_heads = 2,
                           .num_kv_heads = 1,
                           .head_dim = 4,
                           .num_experts = 4,
                           .experts_per_token = 2,
                           .vocab = 100,
                           .max_positions = 4096,
                           .sliding_window = 8,
                           .attention = model::alternating_attention(2)}},
        executor(weights.config, 64),
        bench({.weights = weights,
               .text = numbers(),
               .ladder = ladder_for(engine::Backend::cpu),
               .ceilings = {},
               .cpu = {},
               .sensors = [this] { return sensors(); },
               .cancel = &cancel}) {}

 private:
  static std::vector<std::int32_t> numbers() {
    std::vector<std::int32_t> text(1000);
    std::iota(text.begin(), text.end(), 0);
    for (std::int32_t& token : text) token %= 100;
    return text;
  }
};

}  // namespace gauntlet::study::inline bench
