// Sums over ranks with a GPU each, by NCCL.
#pragma once
#include <memory>
#include <string>

#include "core/cuda/memory.h"
#include "core/cuda/nccl.h"
#include "core/ranks/channel.h"
#include "core/ranks/process_watch.h"
#include "engine/cuda/ranks/rank_groups.h"
#include "engine/steps/rank_sum.h"

namespace gauntlet::engine::cuda::inline gpu_ranks {

class NcclSum final : public RankSum {
 public:
  /// All ranks of the group call it; each has its part of `groups`. The error of two ranks with one
  /// GPU says how many they need.
  static Expected<std::shared_ptr<NcclSum>> make(ranks::Group& group, RankGroups groups);

  void add_up(const PartialRows& part, void* stream) override;
  void gather(const PartialColumns& part, void* stream) override;
  void wait(const std::function<bool()>& is_done) override;

 private:
  explicit NcclSum(RankGroups groups);
  [[noreturn]] void give_up(const std::string& why);

  const RankGroups groups_;
  DeviceMemory own_columns_;              // [logit rows, widest part]
  DeviceMemory all_columns_;              // of each rank
  std::unique_ptr<NcclRanks> all_;        // the stage's
  std::unique_ptr<NcclRanks> attention_;  // null where attention is not divided, or by all
  std::unique_ptr<ranks::ProcessWatch> processes_;
  std::unique_ptr<ranks::Channel> messages_;  // carries none: what was sent moves on with it
  std::string lost_;
};

}  // namespace gauntlet::engine::cuda::inline gpu_ranks
