// What a study measures with: the model, its text, and executors of any stack, of which the last
// few are kept so that neighbours can be measured in turns.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/machine/energy.h"
#include "engine/steps/executor.h"
#include "lab/measure/turns.h"
#include "model/weights.h"
#include "study/bench/limits.h"
#include "study/ladder.h"

namespace gauntlet::study::inline bench {

struct Room {
  std::int64_t sequences = 2;
  std::int64_t positions = 0;  // of all of them
  std::int64_t longest = 0;    // of one, where KV is contiguous; 0: an equal share

  friend bool operator==(const Room&, const Room&) = default;
};

struct WorkbenchConfig {
  const model::ModelWeights& weights;
  std::vector<std::int32_t> text;  // tokens of something real, or random ones with random weights
  Ladder ladder;
  std::optional<lab::Ceilings> ceilings;
  CpuInfo cpu;
  double gpu_memory = 0.9;              // share of the free memory to use
  const EnergyMeter* energy = nullptr;  // null: this machine does not tell
  std::string no_energy;                // why
  lab::ReadSensors sensors;             // of the GPU that is measured; empty: there are none
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(const std::string&)> progress;  // what is being done now
};

class Workbench {
 public:
  explicit Workbench(WorkbenchConfig config) : config_(std::move(config)) {}

  const Ladder& ladder() const { return config_.ladder; }
  const model::ModelConfig& model() const { return config_.weights.config; }
  const std::vector<std::int32_t>& text() const { return config_.text; }
  bool is_gpu() const { return config_.ladder.backend == engine::Backend::cuda; }
  bool is_cancelled() const { return config_.cancel && config_.cancel->load(); }
  void show(const std::string& what) const {
    if (config_.progress) config_.progress(what);
  }
  std::optional<GpuState> read_sensors() const {
    return config_.sensors ? config_.sensors() : std::nullopt;
  }
  /// An error says why this machine does not tell.
  Expected<const EnergyMeter*> energy() const;
  /// Empty rates without ceilings.
  Limits limits(const engine::Executor& executor) const;

  /// With those options of `on` that change it. An error where it does not fit this machine.
  Expected<std::shared_ptr<engine::Executor>> executor(const OptionIds& on, const Room& room);
  /// Lets go of all that are kept.
  void clear() { kept_.clear(); }

 private:
  struct Kept {
    OptionIds options;
    Room room;
    std::shared_ptr<engine::Executor> executor;
  };
  Expected<std::unique_ptr<engine::Executor>> make(const Stack& stack, const Room& room) const;

  WorkbenchConfig config_;
  std::list<Kept> kept_;  // the last used first
};

/// Tokens of one step that suit a backend.
std::int64_t step_tokens(engine::Backend backend);

}  // namespace gauntlet::study::inline bench
