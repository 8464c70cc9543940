// How much a study measures: sizes by depth, backend and model, and how its time is shared out.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/options.h"
#include "model/config.h"
#include "study/bench/duel.h"
#include "study/serving.h"

namespace gauntlet::study::inline bench {

enum class Depth { quick, full };
const char* name_of(Depth depth);

struct Sizes {
  std::int64_t prompt_tokens = 128;  // of the prompt whose first token is waited for
  std::int64_t context = 16;         // positions before a decode
  std::int64_t most_sequences = 64;  // halved where they do not fit
  std::int64_t verify_prompts = 6;
  std::int64_t verify_prompt_tokens = 24;
  std::int64_t verify_tokens = 24;
  std::int64_t score_tokens = 2048;
  std::int64_t score_window = 512;
  std::int64_t router_tokens = 4096;
  std::vector<std::int64_t> batches;
  std::vector<std::int64_t> contexts;
  std::vector<std::int64_t> context_batches;
  std::vector<std::int64_t> prompt_lengths;
  std::vector<std::int64_t> prompt_batches;
  std::vector<double> loads;  // of saturation
  std::int64_t requests = 32;
  std::int64_t most_served = 64;  // requests at once
  RequestMix mix;
  int least_blocks = 4;
  double budget_seconds = 0;  // to share out among the cells that repeat until their time is up
  double stack_seconds = 0;   // that making an executor will take, roughly
  double end_seconds = 0;     // when a study must be over; 0: whenever it is
};

/// `budget_seconds` 0: what suits the depth.
Sizes sizes_for(Depth depth, engine::Backend backend, const model::ModelConfig& model,
                double budget_seconds);

/// Half as many sequences, for stacks that leave little memory.
Sizes halved(Sizes sizes);

/// Room for every cell but those of long contexts, so that a stack is made once for all of them.
Room study_room(const Sizes& sizes);

/// The workloads that every layer runs: a prompt, and decoding at batch 1, 8 and the most.
std::vector<Workload> layer_workloads(const Sizes& sizes);

}  // namespace gauntlet::study::inline bench
