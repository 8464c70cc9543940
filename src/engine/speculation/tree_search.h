// Which tree of guesses is expected to hold most right ones: of each level the likeliest are
// followed further, and of all that were made the likeliest are handed in, a path's probability
// being the product of the drafter's own.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "engine/speculation/draft.h"

namespace gauntlet::engine::inline speculation {

class TreeSearch {
 public:
  struct Guess {
    std::int32_t token = 0;
    std::int32_t parent = -1;  // a guess; -1: the last known token
    double log_probability = 0;
  };
  using IdOf = std::function<std::int32_t(std::int64_t)>;

  TreeSearch(const TreeShape& shape, std::int64_t most);

  const Guess& operator[](std::int32_t guess) const { return guesses_[guess]; }
  /// Those whose successors are asked for, of one level and in their order; at first the last known
  /// token, -1.
  const std::vector<std::int32_t>& followed() const { return followed_; }
  /// What follows the one at `index` of these. `normaliser`: log(sum(exp(logits))). `id_of`: the
  /// token of each logit; none: its index.
  void add(std::size_t index, std::span<const float> logits, double normaliser,
           const IdOf& id_of = {});
  /// Goes a level deeper; false where what is found there would not be handed in.
  bool descend();
  /// Guesses from the first to this one.
  std::vector<std::int32_t> path_to(std::int32_t guess) const;
  Draft draft() const;

 private:
  /// The likeliest from `begin` on, the earlier of equals first.
  std::vector<std::int32_t> likeliest(std::int32_t begin, std::int64_t most) const;

  const TreeShape shape_;
  const std::int64_t most_;
  std::int64_t level_ = 0;
  std::int32_t level_begin_ = 0;  // its first guess
  std::vector<Guess> guesses_;
  std::vector<std::int32_t> followed_ = {-1};
};

}  // namespace gauntlet::engine::inline speculation
