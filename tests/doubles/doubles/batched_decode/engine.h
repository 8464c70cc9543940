// A model of a few thousand weights, made when the first run asks for it: workers of other targets
// never do.
#pragma once
#include <memory>

#include "engine/steps/executor.h"
#include "model/weights.h"
#include "tests/doubles/doubles/batched_decode/pair.h"

namespace gauntlet::doubles::batched_decode {

class Engine {
 public:
  explicit Engine(int threads) : threads_(threads) {}

  /// Greedy tokens after each prompt, with so many sequences in a step.
  void generate(const std::int32_t* prompts, std::int32_t* tokens, std::int64_t sequences,
                std::int64_t together);
  std::int64_t steps() const { return steps_; }

 private:
  engine::Executor& executor();

  int threads_;
  std::int64_t steps_ = 0;
  std::unique_ptr<engine::Executor> executor_;
};

}  // namespace gauntlet::doubles::batched_decode
