// Who guesses what follows. A guess may be anything: it costs time, never correctness.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/kv/kv_pool.h"
#include "engine/sampling/sampler.h"
#include "engine/speculation/draft.h"

namespace gauntlet::engine::inline speculation {

struct DraftWish {
  std::int64_t id = 0;  // of the request
  SequenceId sequence = 0;
  std::span<const std::int32_t> tokens;  // all that are known
  std::int64_t most = 0;                 // guesses; their positions are reserved
  SamplingParams sampling = {};  // of the token after them: who draws alike is right more often
  TreeShape tree = {};           // that who fans out may make of them
  bool may_be_late = false;      // late_guess() ids will do: nothing looks at them before the step
};

/// Of the token after so many guesses.
inline SamplingParams drawn_after(const DraftWish& wish, std::int64_t guesses) {
  SamplingParams sampling = wish.sampling;
  sampling.step += guesses;
  return sampling;
}

/// Positions that a step computed; of guesses those that were right.
struct ComputedTokens {
  std::int64_t id = 0;  // of the request
  std::int64_t begin = 0;
  std::int64_t count = 0;
  std::span<const float> residuals;  // [residuals_after(), count, hidden]
  /// Where these stayed on the device: the first one's row there, until the next step.
  std::optional<std::int64_t> device_row = {};
};

class Drafter {
 public:
  virtual ~Drafter() = default;
  virtual std::string_view name() const = 0;
  /// Whether it makes trees of guesses where a wish has room for them.
  virtual bool fans_out() const { return false; }
  /// One draft for each wish, maybe empty, together: a model drafts for all in one batch. Nothing
  /// else is under way.
  virtual std::vector<Draft> propose(std::span<const DraftWish> wishes) = 0;
  /// The target's layers, counted from 0, after which it wants the residuals of all tokens. The
  /// executor was made to export these.
  virtual std::vector<int> residuals_after() const { return {}; }
  /// After each step, where it wants any. What came through no step, from the prefix cache or after
  /// a fault, is never told, nor are steps while guessing does not pay.
  virtual void computed(std::span<const ComputedTokens> /*tokens*/) {}
  /// Whether it reads residuals where a step leaves them on the device.
  virtual bool reads_on_device() const { return false; }
  /// Behind the step that took late guesses of the last propose(): puts their ids in their place.
  virtual void reveal(Draft& /*draft*/) const {}
  /// Seconds of the last propose() that passed on the device after it had returned. Behind that
  /// step.
  virtual double late_seconds() const { return 0; }
  /// The request is over.
  virtual void end(std::int64_t /*id*/) {}
};

}  // namespace gauntlet::engine::inline speculation
