#include "study/bench/workbench.h"

#include <algorithm>

#include "engine/steps/cpu_executor.h"
#include "engine/steps/cuda_executor.h"

namespace gauntlet::study::inline bench {
namespace {

/// Two that are measured in turns; a third would only cost memory.
constexpr std::size_t kMostKept = 2;

}  // namespace

std::int64_t step_tokens(engine::Backend backend) {
  return backend == engine::Backend::cuda ? 8192 : 512;
}

Limits Workbench::limits(const engine::Executor& executor) const {
  return config_.ceilings ? limits_of(*config_.ceilings, config_.cpu, executor) : Limits{};
}

Expected<const EnergyMeter*> Workbench::energy() const {
  if (config_.energy != nullptr) return config_.energy;
  const std::string why = config_.no_energy.empty() ? "" : ": " + config_.no_energy;
  return Error{"not told by this machine" + why};
}

Expected<std::shared_ptr<engine::Executor>> Workbench::executor(const OptionIds& on,
                                                                const Room& room) {
  const OptionIds wanted = executor_options(ladder(), on);
  const auto found = std::ranges::find_if(
      kept_, [&](const Kept& kept) { return kept.options == wanted && kept.room == room; });
  if (found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
    return kept_.front().executor;
  }
  while (kept_.size() >= kMostKept) kept_.pop_back();
  auto made = make(ladder().stack(wanted), room);
  if (!made && !kept_.empty()) {
    kept_.clear();  // another stack's memory may be all that is missing
    made = make(ladder().stack(wanted), room);
  }
  if (!made) return made.error();
  kept_.push_front({wanted, room, std::move(*made)});
  return kept_.front().executor;
}

Expected<std::unique_ptr<engine::Executor>> Workbench::make(const Stack& stack,
                                                            const Room& room) const {
  if (is_gpu()) {
    return engine::make_cuda_executor(config_.weights,
                                      {.options = stack.engine,
                                       .max_sequences = room.sequences,
                                       .max_tokens = room.positions,
                                       .max_sequence_tokens = room.longest,
                                       .max_batch_tokens = step_tokens(ladder().backend),
                                       .gpu_memory = config_.gpu_memory});
  }
  return engine::make_cpu_executor(config_.weights,
                                   {.options = stack.engine,
                                    .max_sequences = room.sequences,
                                    .max_tokens = room.positions,
                                    .max_batch_tokens = step_tokens(ladder().backend)});
}

}  // namespace gauntlet::study::inline bench
