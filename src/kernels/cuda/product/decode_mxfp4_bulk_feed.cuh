// How a product of stripes is shared out: which stripes of 64 rows a team takes, in which order,
// and the copies that bring them to its ring in shared memory.
#pragma once
#include "kernels/cuda/product/decode_schedule.cuh"
#include "kernels/cuda/product/ring_place.cuh"
#include "ptx/bulk_copy.cuh"
#include "ptx/mbarrier.cuh"

namespace gauntlet::kernels::cuda::inline product {

constexpr int kStripeTeamWarps = kTilesPerBlock;
constexpr int kStripeTeamThreads = kStripeTeamWarps * 32;
constexpr int kStripeShares = 5;       // of a stripe
constexpr int kStripeStageBlocks = 3;  // of 64 columns
constexpr int kStripeStageBytes = kStripeStageBlocks * kMxfp4BlockBytes;

/// How a block is made up: tokens of two tiles leave registers for fewer warps.
template <int kTiles>
struct StripeConfig {
  static constexpr int kTokenTiles = kTiles;
  static constexpr int kTeams = kTiles == 1 ? 6 : 5;
  static constexpr int kWorkers = kTeams * kStripeTeamThreads;
  /// Warps that copy, a lane for a team. Five would leave those that multiply two tiles too few
  /// registers.
  static constexpr int kCopiers = kTiles == 1 ? 6 : 4;
  static constexpr int kTeamsPerCopier = (kTeams + kCopiers - 1) / kCopiers;
  static constexpr int kThreads = kWorkers + kCopiers * 32;
  static_assert(kTeams >= kStripeShares);
};

/// What lies in shared memory in front of x.
template <class C>
struct StripeMemory {
  static constexpr int kTokenTiles = C::kTokenTiles;
  static constexpr int kStages = kTokenTiles == 1 ? 4 : 3;  // as many as leave room for x
  /// Two save a barrier; of two token tiles they would take a stage's room.
  static constexpr int kPartials = kTokenTiles == 1 ? 2 : 1;
  alignas(128) std::uint8_t rings[C::kTeams][kStages][kStripeStageBytes];
  float partial[kPartials][kStripeShares][kStripeTeamWarps][kTokenTiles][4][32];
  std::uint64_t full[C::kTeams][kStages];
  std::uint64_t empty[C::kTeams][kStages];
  ColumnGroups column_groups;
  DecodeItem run;  // the columns being multiplied
};

/// Shares of a stripe are whole stages, one after the other, the last ones perhaps shorter. A sum
/// is made of the sums of shares, added in their order, whether a team makes them all or one each.
__device__ __forceinline__ int share_blocks(int col_blocks) {
  const int stages = (col_blocks + kStripeStageBlocks - 1) / kStripeStageBlocks;
  return (stages + kStripeShares - 1) / kStripeShares * kStripeStageBlocks;
}

/// Goes over the stripes of one team: whole ones, then the few that teams share, in every run of
/// stripes with the same columns.
template <int kTeams>
struct StripeWalk {
  int team;
  int group;  // of columns
  int stripe;
  int whole_end;  // stripes before this one are taken whole
  int run_end;
  int end;  // of the block, counted through all groups

  __device__ __forceinline__ StripeWalk(int own, int begin, int block_end, int row_blocks)
      : team(own), group(begin / row_blocks), end(block_end) {
    enter(begin - group * row_blocks, row_blocks);
  }
  __device__ __forceinline__ bool in_run() const { return stripe < run_end; }
  __device__ __forceinline__ bool whole() const { return stripe < whole_end; }
  __device__ __forceinline__ void advance() {
    if (!whole()) {
      ++stripe;
    } else if ((stripe += kTeams) >= whole_end) {
      stripe = whole_end;
    }
  }
  __device__ __forceinline__ bool next_run(int row_blocks) {
    if ((group + 1) * row_blocks >= end) return false;
    ++group;
    enter(0, row_blocks);
    return true;
  }

 private:
  __device__ __forceinline__ void enter(int first, int row_blocks) {
    run_end = min(row_blocks, end - group * row_blocks);
    const int left = (run_end - first) % kTeams;
    whole_end = left < kStripeShares ? run_end - left : run_end;
    stripe = min(first + team, whole_end);
  }
};

/// The copies of one team, by one thread: what its warps will want, in that order.
template <class C>
class StripeFeed {
 public:
  using Memory = StripeMemory<C>;

  __device__ __forceinline__ StripeFeed(const Product& p, Memory& shared,
                                        const StripeWalk<C::kTeams>& walk)
      : p_(p),
        shared_(shared),
        walk_(walk),
        row_blocks_(static_cast<int>(p.weights.row_blocks())),
        col_blocks_(static_cast<int>(p.weights.col_blocks())) {
    enter_run();
    enter_stripe();
  }

  __device__ __forceinline__ bool has_more() const { return more_; }

  /// The next stage's copy, once its place is free.
  __device__ __forceinline__ void load() {
    std::uint64_t& empty = shared_.empty[walk_.team][place_.stage];
    while (!ptx::mbarrier_try_wait(empty, place_.parity ^ 1)) {
    }
    const int blocks = min(kStripeStageBlocks, end_ - block_);
    std::uint64_t& full = shared_.full[walk_.team][place_.stage];
    ptx::mbarrier_arrive_expect_tx(full, blocks * kMxfp4BlockBytes);
    ptx::bulk_load(shared_.rings[walk_.team][place_.stage],
                   p_.weights.data + std::int64_t{first_block_ + block_} * kMxfp4BlockBytes,
                   blocks * kMxfp4BlockBytes, full);
    place_.advance();
    block_ += kStripeStageBlocks;
    if (block_ >= end_) {
      walk_.advance();
      enter_run();
      enter_stripe();
    }
  }

 private:
  __device__ __forceinline__ int share_begin() const {
    return walk_.team * share_blocks(col_blocks_);
  }
  __device__ __forceinline__ bool has_share() const {
    return walk_.team < kStripeShares && share_begin() < col_blocks_;
  }
  __device__ __forceinline__ bool has_stripe() const {
    return walk_.in_run() && (walk_.whole() || has_share());
  }
  /// Goes on to a run in which this team has a stripe.
  __device__ __forceinline__ void enter_run() {
    while (more_ && !has_stripe()) more_ = walk_.next_run(row_blocks_);
  }
  __device__ __forceinline__ void enter_stripe() {
    if (!more_) return;
    while (p_.groups.num_experts > 0 && shared_.column_groups.group_end[expert_] <= walk_.group) {
      ++expert_;
    }
    const bool whole = walk_.whole();
    block_ = whole ? 0 : share_begin();
    end_ = whole ? col_blocks_ : min(col_blocks_, block_ + share_blocks(col_blocks_));
    first_block_ = (expert_ * row_blocks_ + walk_.stripe) * col_blocks_;
  }

  const Product& p_;
  Memory& shared_;
  StripeWalk<C::kTeams> walk_;
  const int row_blocks_;
  const int col_blocks_;
  RingPlace<Memory::kStages> place_;
  bool more_ = true;
  int expert_ = 0;
  int block_ = 0, end_ = 0;  // the stage's first, and the last stage's end
  int first_block_ = 0;      // of the stripe
};

}  // namespace gauntlet::kernels::cuda::inline product
