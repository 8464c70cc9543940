// The experts that one executor chose, played back to another that runs the same steps; and what
// the layers left, for comparison.
#pragma once
#include <vector>

#include "core/check.h"
#include "engine/steps/executor.h"

namespace gauntlet::engine::inline steps {

class RoutingTape final : public LayerProbe {
 public:
  /// What `executor` chooses from now on is remembered; what was on the tape is gone.
  void record(Executor& executor) {
    choices_.clear();
    start(executor, false);
  }
  /// `executor` gets the recorded choices, step by step.
  void replay(Executor& executor) { start(executor, true); }
  /// The same for who has no executor to watch, one of several ranks: from its first step on.
  LayerProbe* replayed() {
    rewind(true);
    return this;
  }

  /// The residuals after each layer of each step since the last start.
  const std::vector<std::vector<float>>& layers() const { return layers_; }

 private:
  struct Choices {
    std::vector<std::int32_t> chosen;
    std::vector<float> weights;
  };

  void start(Executor& executor, bool replaying) {
    rewind(replaying);
    executor.watch(this);
  }
  void rewind(bool replaying) {
    replaying_ = replaying;
    at_ = 0;
    layers_.clear();
  }

  void routed(std::int64_t, std::span<std::int32_t> chosen, std::span<float> weights) override {
    if (!replaying_) {
      choices_.push_back({{chosen.begin(), chosen.end()}, {weights.begin(), weights.end()}});
      return;
    }
    check(at_ < choices_.size() && choices_[at_].chosen.size() == chosen.size(),
          "the steps played back are not those recorded");
    std::copy(choices_[at_].chosen.begin(), choices_[at_].chosen.end(), chosen.begin());
    std::copy(choices_[at_].weights.begin(), choices_[at_].weights.end(), weights.begin());
    ++at_;
  }
  void finished(std::int64_t, std::span<const float> x) override {
    layers_.emplace_back(x.begin(), x.end());
  }

  std::vector<Choices> choices_;
  std::size_t at_ = 0;
  bool replaying_ = false;
  std::vector<std::vector<float>> layers_;
};

}  // namespace gauntlet::engine::inline steps
