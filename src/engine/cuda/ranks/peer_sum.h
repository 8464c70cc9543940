// Sums over ranks that share one GPU: each leaves its part in its window, they meet, and each adds
// all parts in the order of ranks.
#pragma once
#include <array>
#include <memory>
#include <mutex>
#include <string>

#include "core/ranks/channel.h"
#include "core/ranks/process_watch.h"
#include "engine/cuda/ranks/peer_window.h"
#include "engine/cuda/ranks/rank_groups.h"
#include "engine/steps/rank_sum.h"

namespace gauntlet::engine::cuda::inline gpu_ranks {

class PeerSum final : public RankSum {
 public:
  /// All ranks of the group call it; each has its part of `groups`.
  static Expected<std::shared_ptr<PeerSum>> make(ranks::Group& group, RankGroups groups);

  void add_up(const PartialRows& part, void* stream) override;
  void gather(const PartialColumns& part, void* stream) override;
  std::unique_lock<std::mutex> turn() override;
  void wait(const std::function<bool()>& is_done) override;

 private:
  /// Slots of a window: three for the sums of attention, as many for those of experts, two for
  /// columns. A slot is written again only when all that read it have met this rank elsewhere.
  static constexpr int kSumSlots = 3, kGatherSlots = 2, kSlots = 2 * kSumSlots + kGatherSlots;
  struct Layout {
    std::array<std::int64_t, kSlots> begins = {};
    std::int64_t bytes = 0;
  };
  static Layout lay_out(const RankGroups& groups);

  PeerSum(RankGroups groups, const Layout& layout, std::unique_ptr<PeerWindow> window,
          std::unique_ptr<ranks::ProcessWatch> processes, std::unique_ptr<ranks::Channel> messages)
      : groups_(std::move(groups)),
        layout_(layout),
        window_(std::move(window)),
        processes_(std::move(processes)),
        messages_(std::move(messages)) {}

  float* slot_of(int rank, int slot) const;
  /// Layers take two slots in turns; of an odd number the last takes a third, since the first of
  /// the next step, which may be a replay, begins with the first slot again.
  int next_slot(SumOf of);
  [[noreturn]] void give_up(const std::string& why, const std::function<bool()>& is_done);

  const RankGroups groups_;
  const Layout layout_;
  const std::unique_ptr<PeerWindow> window_;
  const std::unique_ptr<ranks::ProcessWatch> processes_;
  const std::unique_ptr<ranks::Channel> messages_;  // carries none: what was sent moves on with it
  std::array<std::int64_t, 2> layer_ = {};          // of the next sum of each kind
  int gathers_ = 0;                                 // of this step so far
  std::string lost_;                                // why a step was given up
};

}  // namespace gauntlet::engine::cuda::inline gpu_ranks
