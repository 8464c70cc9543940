// Which ranks of a stage share what, as one of them sees it: what every kind of sum needs to know.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/steps/cuda_rank.h"
#include "engine/steps/rank_sum.h"
#include "model/slice.h"

namespace gauntlet::engine::cuda::inline gpu_ranks {

struct RankGroups {
  int rank = 0;                     // of all of them
  std::vector<model::Range> vocab;  // each rank's columns of logits
  std::vector<int> attention;       // the ranks that divide attention with this one, and itself
  std::vector<int> experts;         // likewise; together they hold every expert
  std::int64_t layers = 0;
  std::int64_t tokens = 0;  // of one step, at most
  std::int64_t hidden = 0;
  std::int64_t logit_rows = 0;  // that are gathered at once, at most
  double timeout_s = 30;
  RankMeeting meeting = RankMeeting::on_streams;

  int size() const { return static_cast<int>(vocab.size()); }
  const std::vector<int>& of(SumOf sum) const {
    return sum == SumOf::attention ? attention : experts;
  }
  std::int64_t widest_vocab() const {
    std::int64_t widest = 0;
    for (const model::Range& part : vocab) widest = part.size() > widest ? part.size() : widest;
    return widest;
  }
};

}  // namespace gauntlet::engine::cuda::inline gpu_ranks
