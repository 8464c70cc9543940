// Sequences that are filled to a context and then decoded together, one step at a time.
#pragma once
#include <cstdint>
#include <vector>

#include "core/random.h"
#include "study/workbench.h"

namespace gauntlet::study {

class DecodeBatch {
 public:
  /// Bench and executor outlive it.
  DecodeBatch(const Workbench& bench, engine::Executor& executor, std::int64_t batch);
  ~DecodeBatch();
  DecodeBatch(const DecodeBatch&) = delete;
  DecodeBatch& operator=(const DecodeBatch&) = delete;

  /// Gives each sequence so many random tokens.
  Expected<void> fill(std::int64_t context);
  /// One token more of each; milliseconds that it took.
  Expected<double> step_ms();

  /// What an executor needs for this.
  static Room room(std::int64_t batch, std::int64_t positions);

 private:
  Expected<void> run(std::vector<engine::BatchItem> items);
  std::int32_t random_token();

  const Workbench& bench_;
  engine::Executor& executor_;
  Random random_;
  std::vector<engine::SequenceId> sequences_;
};

/// Milliseconds of each of at least `least` steps, more as time allows.
struct StepBudget {
  std::int64_t least = 20;
  std::int64_t most = 64;
  double seconds = 1;
};
Expected<std::vector<double>> time_steps(const Workbench& bench, DecodeBatch& batch,
                                         const StepBudget& budget);

}  // namespace gauntlet::study
