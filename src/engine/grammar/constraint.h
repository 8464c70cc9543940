// What one request may still write: its output so far, seen through its grammar.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/grammar/masks.h"

namespace gauntlet::engine::grammar {

/// A function of the accepted tokens alone. A copy goes its own way from where it was copied.
class Constraint {
 public:
  explicit Constraint(std::shared_ptr<const Masks> masks);

  /// False, and nothing changes, for a token that mask() does not allow.
  bool accept(std::int32_t token);
  /// A bit per token id. After an end id was accepted: the end ids.
  Mask mask() const;
  bool can_end() const { return matcher_.can_end(); }
  bool ended() const { return ended_; }
  void restart();

  /// The mask after this output, by going on from the tokens accepted before where the output
  /// begins with them. All zeros for an output that breaks the grammar.
  Mask mask_after(std::span<const std::int32_t> output);

 private:
  std::shared_ptr<const Masks> masks_;
  Matcher matcher_;
  std::vector<std::int32_t> accepted_;
  bool ended_ = false;
};

}  // namespace gauntlet::engine::grammar
