// Guesses by the target itself with fewer experts for each token. What that leaves in the pages is
// not what the model would have: it lies behind all that is committed, in the very positions that
// verification writes again, so that there is no second cache.
#pragma once
#include "engine/speculation/drafter.h"
#include "engine/steps/executor.h"

namespace gauntlet::engine::inline speculation {

class SelfDrafter final : public Drafter {
 public:
  /// The target has one step under way at most when it is asked: between its own.
  SelfDrafter(Executor& target, int experts) : target_(target), experts_(experts) {}
  std::string_view name() const override { return "experts"; }
  std::vector<Draft> propose(std::span<const DraftWish> wishes) override;

 private:
  Executor& target_;
  const int experts_;  // for each token
};

}  // namespace gauntlet::engine::inline speculation
