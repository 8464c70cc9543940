// Attention by warpgroups with roles: one warp copies tiles of queries, keys and values into shared
// memory, each consuming warpgroup attends for 64 queries by wgmma.
#pragma once
#include <cuda.h>

#include "catalog/labs/attention_ladder/wgmma_tiles.cuh"
#include "ptx/bulk_copy.cuh"
#include "ptx/fence.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/stmatrix.cuh"
#include "ptx/tensor_copy.cuh"
#include "ptx/wgmma_descriptor.h"

namespace gauntlet::labs::attention_ladder::cuda {

enum class Turns { free, ping_pong };
enum class Softmax { alone, beside_products };

template <int kHeadDim_, int kGroups_, Turns kTurns_, Softmax kSoftmax_,
          Element kElement_ = Element::bf16>
struct Config {
  static constexpr int kHeadDim = kHeadDim_;
  static constexpr int kKeys = 128;         // of a block
  static constexpr int kGroups = kGroups_;  // warpgroups that attend
  static constexpr Turns kTurns = kTurns_;
  static constexpr Softmax kSoftmax = kSoftmax_;
  static constexpr Element kElement = kElement_;
  static constexpr int kElementBytes = kElement == Element::bf16 ? 2 : 1;
  static constexpr int kRaised = kElement == Element::bf16 ? 0 : 8;
  static constexpr int kRows = kGroups * kGroupRows;
  static constexpr int kStages = 2;
  static constexpr int kQStages = 1;  // tiles whose queries are there
  /// Queries and keys lie in atoms of rows as wide as a swizzle.
  static constexpr int kRowBytes = kHeadDim * kElementBytes < 128 ? kHeadDim * kElementBytes : 128;
  static constexpr int kAtoms = kHeadDim * kElementBytes / kRowBytes;
  static constexpr int kThreads = (kGroups + 1) * kGroupThreads;
  static constexpr int kProducerRegisters = kGroups == 2 ? 40 : 32;
  static constexpr int kConsumerRegisters = kGroups == 2 ? 232 : 160;
  static constexpr int kGroupQBytes = kGroupRows * kHeadDim * kElementBytes;
  static constexpr int kGroupOutBytes = kGroupRows * kHeadDim * 2;
  static constexpr int kBlockBytes = kKeys * kHeadDim * kElementBytes;
  static_assert(kHeadDim == 64 || kHeadDim == 128);
  static_assert(kKeys % kGroupRows == 0, "a group's queries see part of one block only");
  static_assert(kGroups == 2 || kGroups == 3);
  static_assert(kElement == Element::bf16 || kKeys == 128, "a row of 8-bit values is a swizzle's");
};

struct AttentionMaps {
  CUtensorMap q;    // boxes of 64 queries, as wide as a swizzle
  CUtensorMap k;    // of a block's keys
  CUtensorMap v;    // likewise; of 8 bits [heads, head_dim, keys], boxes of a head's dimensions
  CUtensorMap out;  // of 64 queries and 64 dimensions
};

struct AttentionWork {
  TileOrder tiles;
  float scale;     // log2(e) / √head_dim
  unsigned* next;  // [2] tiles given out, blocks that have ended; zero between launches
};

template <class C>
struct AttentionShared {
  alignas(1024) std::uint8_t q[C::kQStages][C::kGroups][C::kGroupQBytes];
  alignas(1024) std::uint8_t k[C::kStages][C::kBlockBytes];
  alignas(1024) std::uint8_t v[C::kStages][C::kBlockBytes];
  alignas(1024) std::uint8_t out[C::kGroups][C::kGroupOutBytes];
  std::uint64_t q_full[C::kQStages], q_empty[C::kQStages];
  std::uint64_t k_full[C::kStages], k_empty[C::kStages];
  std::uint64_t v_full[C::kStages], v_empty[C::kStages];
  int tile[C::kQStages];  // that the queries are of; below 0: there are no more
};

/// The copying thread.
template <class C>
class Producer {
 public:
  __device__ Producer(AttentionShared<C>& shared, const AttentionMaps& maps,
                      const AttentionWork& work)
      : shared_(shared), maps_(maps), work_(work) {}

  __device__ void run() {
    const int tiles = work_.tiles.count();
    for (;;) {
      const int index = static_cast<int>(atomicAdd(work_.next, 1u));
      wait_for(shared_.q_empty[q_at_.stage], q_at_.parity ^ 1);
      if (index >= tiles) break;
      load(index);
      q_at_.advance();
    }
    shared_.tile[q_at_.stage] = -1;
    ptx::mbarrier_arrive(shared_.q_full[q_at_.stage]);
    // The last block to end leaves the counters as it found them.
    if (atomicAdd(work_.next + 1, 1u) == gridDim.x - 1) work_.next[0] = work_.next[1] = 0;
  }

 private:
  __device__ __forceinline__ void load(int index) {
    const Tile tile = work_.tiles[index];
    const int head_row = tile.head * work_.tiles.sequence;
    const int blocks = blocks_seen(tile.first + C::kRows - kGroupRows, C::kKeys);
    std::uint64_t& q_full = shared_.q_full[q_at_.stage];
    shared_.tile[q_at_.stage] = index;
    const int absent = tile.first < 0 ? -tile.first / kGroupRows : 0;
    ptx::mbarrier_arrive_expect_tx(q_full, (C::kGroups - absent) * C::kGroupQBytes);
    for (int group = absent; group < C::kGroups; ++group) {
      for (int atom = 0; atom < C::kAtoms; ++atom) {
        ptx::tensor_load_2d(shared_.q[q_at_.stage][group] + atom * kGroupRows * C::kRowBytes,
                            maps_.q,
                            {.column = atom * (C::kRowBytes / C::kElementBytes),
                             .row = head_row + tile.first + group * kGroupRows},
                            q_full);
      }
    }
    for (int block = blocks - 1; block >= 0; --block) {
      const int key = block * C::kKeys;
      wait_for(shared_.k_empty[at_.stage], at_.parity ^ 1);
      ptx::mbarrier_arrive_expect_tx(shared_.k_full[at_.stage], C::kBlockBytes);
      load_rows(shared_.k[at_.stage], maps_.k, head_row + key, shared_.k_full[at_.stage]);
      wait_for(shared_.v_empty[at_.stage], at_.parity ^ 1);
      ptx::mbarrier_arrive_expect_tx(shared_.v_full[at_.stage], C::kBlockBytes);
      if constexpr (C::kElement == Element::bf16) {
        load_rows(shared_.v[at_.stage], maps_.v, head_row + key, shared_.v_full[at_.stage]);
      } else {
        ptx::tensor_load_2d(shared_.v[at_.stage], maps_.v,
                            {.column = key, .row = tile.head * C::kHeadDim},
                            shared_.v_full[at_.stage]);
      }
      at_.advance();
    }
  }

  /// A block of keys, or of values that lie like them.
  __device__ __forceinline__ void load_rows(std::uint8_t* to, const CUtensorMap& map, int row,
                                            std::uint64_t& full) {
    for (int atom = 0; atom < C::kAtoms; ++atom) {
      ptx::tensor_load_2d(to + atom * C::kKeys * C::kRowBytes, map,
                          {.column = atom * (C::kRowBytes / C::kElementBytes), .row = row}, full);
    }
  }

  AttentionShared<C>& shared_;
  const AttentionMaps& maps_;
  const AttentionWork& work_;
  RingAt<C::kStages> at_;
  RingAt<C::kQStages> q_at_;
};

/// A warpgroup that attends.
template <class C>
class Consumer {
 public:
  __device__ Consumer(AttentionShared<C>& shared, const AttentionMaps& maps,
                      const AttentionWork& work, int group)
      : shared_(shared), maps_(maps), work_(work), group_(group) {}

  __device__ __forceinline__ void run() {
    if (group_ == 0) give_turn(0);
    for (;; q_at_.advance()) {
      wait_for(shared_.q_full[q_at_.stage], q_at_.parity);
      // Only the lane that gives the stage back reads it.
      int index = 0;
      if (threadIdx.x % 32 == 0) index = shared_.tile[q_at_.stage];
      index = __shfl_sync(~0u, index, 0);
      if (index < 0) break;
      const Tile tile = work_.tiles[index];
      const int first = tile.first + group_ * kGroupRows;
      const int blocks = blocks_seen(first, C::kKeys);
      pass(blocks_seen(tile.first + C::kRows - kGroupRows, C::kKeys) - blocks, blocks == 0);
      if (blocks == 0) {
        release(shared_.q_empty[q_at_.stage]);
      } else {
        attend(tile.head * work_.tiles.sequence + first, first, blocks);
      }
    }
    if (group_ == 0) take_turn();  // the one that the last group gave
    if (threadIdx.x % kGroupThreads == 0) ptx::bulk_wait_group_read<0>();
  }

 private:
  using Scores = float[C::kKeys / 2];
  using Sums = float[C::kHeadDim / 2];
  using Weights = std::uint32_t[C::kKeys * C::kElementBytes / 8];

  /// Each warp gives back what it has read.
  static __device__ __forceinline__ void release(std::uint64_t& barrier) {
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(barrier);
  }

  // Groups issue their products in turns, so that one's softmax runs beside the other's products.
  static constexpr int kFirstTurn = 1;  // number of the first group's barrier
  static constexpr int kFirstOfGroup = kFirstTurn + C::kGroups;
  __device__ __forceinline__ void take_turn() {
    if constexpr (C::kTurns == Turns::ping_pong) {
      ptx::named_barrier_sync(kFirstTurn + group_, 2 * kGroupThreads);
    }
  }
  __device__ __forceinline__ void give_turn(int group) {
    if constexpr (C::kTurns == Turns::ping_pong) {
      ptx::named_barrier_arrive(kFirstTurn + group, 2 * kGroupThreads);
    }
  }
  __device__ __forceinline__ void give_turn() {
    give_turn(group_ + 1 == C::kGroups ? 0 : group_ + 1);
  }

  /// Blocks that only later groups see go by. A group takes one turn less than it sees blocks.
  __device__ __forceinline__ void pass(int blocks, bool all) {
    for (int i = 0; i < blocks; ++i) {
      wait_for(shared_.k_full[at_.stage], at_.parity);
      release(shared_.k_empty[at_.stage]);
      wait_for(shared_.v_full[at_.stage], at_.parity);
      release(shared_.v_empty[at_.stage]);
      at_.advance();
      if (!all || i > 0) {
        take_turn();
        give_turn();
      }
    }
  }

  static __device__ __forceinline__ std::uint64_t rows_descriptor(const void* tile) {
    if constexpr (C::kRowBytes == 128) {
      return ptx::wgmma_descriptor_128b(tile);
    } else {
      static_assert(C::kRowBytes == 64);
      return ptx::wgmma_tile_64b(ptx::shared_address(tile));
    }
  }
  __device__ __forceinline__ std::uint64_t keys(int stage) const {
    return rows_descriptor(shared_.k[stage]);
  }
  __device__ __forceinline__ std::uint64_t values(int stage) const {
    if constexpr (C::kElement == Element::bf16) {
      return ptx::wgmma_rows_128b(ptx::shared_address(shared_.v[stage]), C::kKeys * C::kRowBytes);
    } else {
      return ptx::wgmma_descriptor_128b(shared_.v[stage]);
    }
  }

  __device__ __forceinline__ void attend(int out_row, int first, int blocks) {
    const std::uint64_t q = rows_descriptor(shared_.q[q_at_.stage][group_]);
    Rows rows{.top = {-INFINITY, -INFINITY}, .sum = {0, 0}};
    float shrink[2];
    Sums out;
    Weights weights;
#pragma unroll
    for (float& word : out) word = 0;

    const auto issue_next_scores = [&](Scores& scores, int stage) {
      ptx::wgmma_registers_change(scores);
      ptx::wgmma_fence();
      issue_scores<C>(scores, q, keys(stage));
      ptx::wgmma_commit_group();
    };
    const auto issue_weighted_values = [&](int stage) {
      ptx::wgmma_registers_change(out);
      ptx::wgmma_registers_change(weights);
      ptx::wgmma_fence();
      issue_values<C>(out, weights, values(stage));
      ptx::wgmma_commit_group();
    };

    {
      Scores scores;
      wait_for(shared_.k_full[at_.stage], at_.parity);
      issue_next_scores(scores, at_.stage);
      ptx::wgmma_wait_group<0>();
      ptx::wgmma_registers_change(scores);
      release(shared_.k_empty[at_.stage]);
      if (blocks == 1) release(shared_.q_empty[q_at_.stage]);
      mask_later_keys<C::kKeys>(scores, first % C::kKeys);
      soften<C::kKeys, C::kRaised>(rows, shrink, scores, work_.scale);
      pack_weights<C>(weights, scores);
    }
    for (int left = blocks - 1; left > 0; --left) {
      const RingAt<C::kStages> of_values = at_;
      at_.advance();
      Scores scores;
      wait_for(shared_.k_full[at_.stage], at_.parity);
      take_turn();
      if constexpr (C::kSoftmax == Softmax::beside_products) {
        issue_next_scores(scores, at_.stage);
        wait_for(shared_.v_full[of_values.stage], of_values.parity);
        issue_weighted_values(of_values.stage);
        give_turn();
        ptx::wgmma_wait_group<1>();
      } else {
        wait_for(shared_.v_full[of_values.stage], of_values.parity);
        issue_weighted_values(of_values.stage);
        issue_next_scores(scores, at_.stage);
        give_turn();
        ptx::wgmma_wait_group<0>();
        ptx::wgmma_registers_change(out);
        release(shared_.v_empty[of_values.stage]);
      }
      ptx::wgmma_registers_change(scores);
      release(shared_.k_empty[at_.stage]);
      if (left == 1) release(shared_.q_empty[q_at_.stage]);
      soften<C::kKeys, C::kRaised>(rows, shrink, scores, work_.scale);
      if constexpr (C::kSoftmax == Softmax::beside_products) {
        ptx::wgmma_wait_group<0>();
        ptx::wgmma_registers_change(out);
        ptx::wgmma_registers_change(weights);
        release(shared_.v_empty[of_values.stage]);
      }
      // Once the greatest scores have been seen, nothing shrinks.
      if (__any_sync(~0u, shrink[0] != 1 || shrink[1] != 1)) scale_rows<C::kHeadDim>(out, shrink);
      pack_weights<C>(weights, scores);
    }
    wait_for(shared_.v_full[at_.stage], at_.parity);
    issue_weighted_values(at_.stage);
    float inverse[2];
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float sum = rows.sum[row] + __shfl_xor_sync(~0u, rows.sum[row], 1);
      sum += __shfl_xor_sync(~0u, sum, 2);
      inverse[row] = 1 / sum;
    }
    ptx::wgmma_wait_group<0>();
    ptx::wgmma_registers_change(out);
    release(shared_.v_empty[at_.stage]);
    at_.advance();
    scale_rows<C::kHeadDim>(out, inverse);
    store(out, out_row);
  }

  /// Through shared memory, since a row of a lane's sums is 8 bytes wide.
  __device__ __forceinline__ void store(const Sums& out, int row) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
    std::uint8_t* const tile = shared_.out[group_];
    const bool copies = threadIdx.x % kGroupThreads == 0;
    if (copies) ptx::bulk_wait_group_read<0>();
    ptx::named_barrier_sync(kFirstOfGroup + group_, kGroupThreads);
    const int tile_row = warp * 16 + lane % 16;
#pragma unroll
    for (int columns = 0; columns < C::kHeadDim; columns += 16) {
      const float* sums = out + columns / 2;
      const std::uint32_t words[4] = {pack(sums[0], sums[1]), pack(sums[2], sums[3]),
                                      pack(sums[4], sums[5]), pack(sums[6], sums[7])};
      const int chunk = columns % kOutColumns / 8 + lane / 16;
      ptx::stmatrix_x4(tile + columns / kOutColumns * kGroupRows * kOutRowBytes +
                           tile_row * kOutRowBytes + (chunk ^ tile_row % 8) * 16,
                       words);
    }
    ptx::fence_proxy_async_shared();
    ptx::named_barrier_sync(kFirstOfGroup + group_, kGroupThreads);
    if (copies) {
      for (int column = 0; column < C::kHeadDim; column += kOutColumns) {
        ptx::tensor_store_2d(maps_.out, {.column = column, .row = row},
                             tile + column / kOutColumns * kGroupRows * kOutRowBytes);
      }
      ptx::bulk_commit_group();
    }
  }

  AttentionShared<C>& shared_;
  const AttentionMaps& maps_;
  const AttentionWork& work_;
  const int group_;
  RingAt<C::kQStages> q_at_;
  RingAt<C::kStages> at_;
};

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    wgmma_attention(const __grid_constant__ AttentionMaps maps,
                    const __grid_constant__ AttentionWork work) {
  extern __shared__ __align__(1024) std::uint8_t attention_bytes[];
  auto& shared = *reinterpret_cast<AttentionShared<C>*>(attention_bytes);
  if (threadIdx.x == 0) {
    constexpr int kConsumingWarps = 4 * C::kGroups;
    for (int stage = 0; stage < C::kQStages; ++stage) {
      ptx::mbarrier_init(shared.q_full[stage], 1);
      ptx::mbarrier_init(shared.q_empty[stage], kConsumingWarps);
    }
    for (int stage = 0; stage < C::kStages; ++stage) {
      ptx::mbarrier_init(shared.k_full[stage], 1);
      ptx::mbarrier_init(shared.v_full[stage], 1);
      ptx::mbarrier_init(shared.k_empty[stage], kConsumingWarps);
      ptx::mbarrier_init(shared.v_empty[stage], kConsumingWarps);
    }
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  const int group = static_cast<int>(threadIdx.x) / kGroupThreads;
  if (group == 0) {
    ptx::setmaxnreg_decrease<C::kProducerRegisters>();
    if (threadIdx.x == 0) Producer<C>(shared, maps, work).run();
  } else {
    ptx::setmaxnreg_increase<C::kConsumerRegisters>();
    Consumer<C>(shared, maps, work, group - 1).run();
  }
}

}  // namespace gauntlet::labs::attention_ladder::cuda
