// A workbench over a random model of a few thousand weights that CPU executors run in microseconds,
// for tests of cells and whole studies.
#pragma once
#include <utility>

#include "core/random.h"
#include "study/bench/sizes.h"
#include "study/bench/workbench.h"

namespace gauntlet::study::inline bench {

struct SmallBench {
  model::ModelWeights weights;
  Workbench bench;

  explicit SmallBench(const EnergyMeter* energy = nullptr)
      : weights(model::random_model({.name = "small",
                                     .num_layers = 2,
                                     .hidden = 64,
                                     .intermediate = 64,
                                     .num_heads = 2,
                                     .num_kv_heads = 1,
                                     .head_dim = 32,
                                     .num_experts = 16,
                                     .experts_per_token = 4,
                                     .vocab = 128,
                                     .max_positions = 512,
                                     .sliding_window = 32,
                                     .attention = model::alternating_attention(2),
                                     .bos_id = 0},
                                    1)),
        bench({.weights = weights,
               .text = text(),
               .ladder = ladder_for(engine::Backend::cpu),
               .ceilings = {},
               .cpu = {},
               .energy = energy}) {}

  /// As little of everything as a study can do with.
  Sizes sizes() const {
    Sizes few = sizes_for(Depth::quick, engine::Backend::cpu, weights.config, 1);
    few.most_sequences = few.most_served = 2;
    few.batches = {1, 2};
    few.requests = 4;
    few.mix = {.shared_tokens = 16, .own_tokens = {4, 8}, .output_tokens = {2, 4}};
    return few;
  }

 private:
  static std::vector<std::int32_t> text() {
    Random random(1);
    std::vector<std::int32_t> tokens(4096);
    for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(random.next_below(128));
    return tokens;
  }
};

}  // namespace gauntlet::study::inline bench
