// Sequences that are filled to a context and then decoded together, one step at a time.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "core/random.h"
#include "engine/measure/speed.h"
#include "study/bench/workbench.h"

namespace gauntlet::study::inline bench {

class DecodeBatch {
 public:
  /// Bench and executor outlive it.
  DecodeBatch(const Workbench& bench, engine::Executor& executor, std::int64_t batch);
  ~DecodeBatch();
  DecodeBatch(const DecodeBatch&) = delete;
  DecodeBatch& operator=(const DecodeBatch&) = delete;

  std::int64_t size() const { return std::ssize(sequences_); }
  /// Gives each sequence so many random tokens, in steps as full as they may be.
  Expected<void> fill(std::int64_t context);
  /// The first `batch` sequences once more, after a step that nobody times: it copies what forks
  /// must not share, which is set-up and differs by layout. These stay as they are.
  Expected<std::unique_ptr<DecodeBatch>> fork(std::int64_t batch) const;
  /// One token more of each; milliseconds that it took.
  Expected<double> step_ms();
  /// So many tokens more of each.
  Expected<engine::SpeedSample> sample(std::int64_t tokens);

  /// What an executor needs for this.
  static Room room(std::int64_t batch, std::int64_t positions);

 private:
  Expected<void> run(std::vector<engine::BatchItem> items);
  std::int32_t random_token();

  const Workbench& bench_;
  engine::Executor& executor_;
  Random random_;
  std::vector<engine::SequenceId> sequences_;
  std::vector<std::int32_t> next_;  // of each sequence; random at first, then what it chose
};

/// Milliseconds of each of at least `least` steps, more as time allows.
struct StepBudget {
  std::int64_t least = 20;
  std::int64_t most = 64;
  double seconds = 1;
};
Expected<std::vector<double>> time_steps(const Workbench& bench, DecodeBatch& batch,
                                         const StepBudget& budget);

}  // namespace gauntlet::study::inline bench
