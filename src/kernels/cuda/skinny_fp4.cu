// MXFP4 weights take as long to decode as to load, so neither may wait for the other: every warp
// streams its weights through a ring in shared memory, on and on over the tiles of its block, whole
// tiles of 16 rows that it need not tell others of; the last few are shared by teams.
#include <algorithm>

#include "kernels/cuda/decode_fp4.cuh"
#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/skinny_fp4.h"
#include "kernels/cuda/skinny_schedule.cuh"
#include "ptx/cp_async.cuh"
#include "ptx/grid_dependency.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/mma.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/shared_load.cuh"

namespace gauntlet::kernels::cuda {
namespace {

constexpr int kTeamWarps = 4;
constexpr int kTeamThreads = kTeamWarps * 32;
/// Many tokens leave room for one block on an SM, and two tiles of them for fewer warps with more
/// registers; with a few tokens, more and smaller blocks start sooner where those of the kernel in
/// front end.
constexpr int kManyTeams = 6;
constexpr int kTwoTileTeams = 5;
constexpr int kFewTeams = 2;
constexpr int blocks_per_sm(int teams) { return kManyTeams / teams; }
constexpr std::int64_t kFewColumns = 4;
constexpr int kStageBlocks = 3;  // of 64 columns
constexpr int kStageBytes = kStageBlocks * (kMxfp4TileBytes + kMxfp4ScaleBytes);

/// What lies in shared memory in front of x.
template <int kTokenTiles, int kTeams>
struct alignas(16) Shared {
  static constexpr int kStages = 3;
  /// Two of one token tile save a barrier; of two tiles they would take a stage's room.
  static constexpr int kPartials = kTokenTiles == 1 ? 2 : 1;
  std::uint8_t rings[kTeams * kTeamWarps][kStages][kStageBytes];
  float partial[kTeams][kPartials][kTeamWarps][kTokenTiles][4][32];
  Dealing dealing;
};

/// A share of a tile: whole stages, contiguous, the last share perhaps shorter. A sum is made of
/// the sums of shares, added in their order, whether one warp makes them all or a team one each.
struct Shares {
  int blocks;  // of a share

  __device__ __forceinline__ explicit Shares(const SkinnyLayout& layout) {
    const int stages = (layout.col_blocks + kStageBlocks - 1) / kStageBlocks;
    blocks = (stages + kTeamWarps - 1) / kTeamWarps * kStageBlocks;
  }
};

/// Goes over the tiles of one warp. Of a run of tiles with the same columns each warp takes whole
/// ones as long as there are enough for all; teams share those that are left. Then comes the next
/// run. Divides only at its start.
template <int kTeams>
struct Walk {
  static constexpr int kWarps = kTeams * kTeamWarps;
  int group;  // of columns
  int tile;
  int whole_end;  // tiles before this one are taken whole
  int run_end;
  int end;  // of the block, counted through all groups

  __device__ __forceinline__ Walk(int begin, int block_end, int row_tiles)
      : group(begin / row_tiles), end(block_end) {
    enter(begin - group * row_tiles, row_tiles);
  }
  __device__ __forceinline__ bool in_run() const { return tile < run_end; }
  __device__ __forceinline__ bool whole() const { return tile < whole_end; }
  __device__ __forceinline__ void advance() {
    const bool was_whole = whole();
    tile += was_whole ? kWarps : kTeams;
    if (was_whole && !whole()) tile = whole_end + team();
  }
  __device__ __forceinline__ bool next_run(int row_tiles) {
    if ((group + 1) * row_tiles >= end) return false;
    ++group;
    enter(0, row_tiles);
    return true;
  }

 private:
  static __device__ __forceinline__ int team() { return threadIdx.x / kTeamThreads; }
  __device__ __forceinline__ void enter(int first, int row_tiles) {
    run_end = min(row_tiles, end - group * row_tiles);
    whole_end = first + (run_end - first) / kWarps * kWarps;
    tile = first + static_cast<int>(threadIdx.x) / 32;
    if (!whole()) tile = whole_end + team();
  }
};

/// A warp's loads, ahead of what it multiplies.
template <int kTeams>
class Stream {
 public:
  __device__ __forceinline__ Stream(const Product& p, const SkinnyLayout& layout,
                                    const Dealing& dealing, const Walk<kTeams>& walk)
      : p_(p), layout_(layout), dealing_(dealing), walk_(walk) {
    enter_run();
    enter_tile();
  }

  /// Starts the next stage's copies, or an empty group where there are no more. `stage` is where
  /// this lane's first words go.
  __device__ __forceinline__ void load(std::uint32_t stage) {
    if (more_) {
      const int lane = threadIdx.x % 32, left = layout_.col_blocks - block_;
      const std::uint8_t* words = p_.weights.data + std::size_t{pieces_} * kPieceBytes;
#pragma unroll
      for (int i = 0; i < kStageBlocks; ++i) {
        if (i == 0 || i < left) {
          ptx::cp_async_16(stage + i * kMxfp4TileBytes, words + i * kMxfp4BlockBytes);
        }
      }
      if (lane < 2 * kStageBlocks && lane < 2 * left) {
        ptx::cp_async_16(stage + kStageBlocks * kMxfp4TileBytes, words + to_scales_);
      }
      pieces_ += kStageBlocks * (kMxfp4BlockBytes / kPieceBytes);
      block_ += kStageBlocks;
      if (block_ >= end_) {
        walk_.advance();
        if (!has_tile()) enter_run();
        enter_tile();
      }
    }
    ptx::cp_async_commit_group();
  }

 private:
  static constexpr int kPieceBytes = 16;
  static_assert(kMxfp4BlockBytes % kPieceBytes == 0);

  __device__ __forceinline__ int share_begin() const {
    return static_cast<int>(threadIdx.x) / 32 % kTeamWarps * Shares(layout_).blocks;
  }
  /// Narrow matrices leave some of a team without a share.
  __device__ __forceinline__ bool has_tile() const {
    return walk_.in_run() && (walk_.whole() || share_begin() < layout_.col_blocks);
  }
  /// Goes on to a run in which this warp has a tile.
  __device__ __forceinline__ void enter_run() {
    while (more_ && !has_tile()) more_ = walk_.next_run(layout_.row_tiles);
    int expert = 0;
    if (more_ && p_.groups.num_experts > 0) {
      while (dealing_.group_end[expert] <= walk_.group) ++expert;
    }
    first_row_block_ = expert * static_cast<int>(p_.weights.row_blocks());
  }
  __device__ __forceinline__ void enter_tile() {
    const int lane = threadIdx.x % 32, in_block = walk_.tile % kTilesPerBlock;
    const bool whole = walk_.whole();
    block_ = whole ? 0 : share_begin();
    end_ = whole ? layout_.col_blocks : min(layout_.col_blocks, block_ + Shares(layout_).blocks);
    const int row_block = first_row_block_ + walk_.tile / kTilesPerBlock;
    pieces_ = static_cast<std::uint32_t>(row_block * layout_.col_blocks + block_) *
                  (kMxfp4BlockBytes / kPieceBytes) +
              static_cast<std::uint32_t>(in_block * (kMxfp4TileBytes / kPieceBytes) + lane);
    to_scales_ = (kTilesPerBlock - in_block) * kMxfp4TileBytes + in_block * kMxfp4ScaleBytes +
                 lane / 2 * kMxfp4BlockBytes + lane % 2 * 16 - lane * 16;
  }

  const Product& p_;
  const SkinnyLayout& layout_;
  const Dealing& dealing_;
  Walk<kTeams> walk_;
  bool more_ = true;
  int first_row_block_ = 0;   // of the run's expert
  int block_ = 0, end_ = 0;   // the stage's first, and the last stage's end
  std::uint32_t pieces_ = 0;  // before this lane's words
  int to_scales_ = 0;         // from this lane's words
};

/// `words` and `scales` are where this lane finds its first.
template <int kTokenTiles>
__device__ __forceinline__ void multiply(std::uint32_t words, std::uint32_t scales, int first_block,
                                         int col_blocks, const XRows<kTokenTiles>& x,
                                         float (&sums)[kTokenTiles][4]) {
  uint4 steps[kStageBlocks];
  std::uint32_t factors[kStageBlocks];
#pragma unroll
  for (int i = 0; i < kStageBlocks; ++i) {
    steps[i] = ptx::load_shared_16(words + i * kMxfp4TileBytes);
    factors[i] = ptx::load_shared_4(scales + i * kMxfp4ScaleBytes);
  }
  std::uint32_t x_row[kTokenTiles];
#pragma unroll
  for (int n = 0; n < kTokenTiles; ++n) x_row[n] = x.at(n, first_block);
#pragma unroll
  for (int i = 0; i < kStageBlocks; ++i) {
    if (i > 0 && first_block + i >= col_blocks) break;
    const std::uint32_t step[4] = {steps[i].x, steps[i].y, steps[i].z, steps[i].w};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t upper = scale_pair(factors[i], half);
      const std::uint32_t lower = scale_pair(factors[i], 2 + half);
      std::uint32_t a[2][4];
      decode_fp4(step[2 * half], upper, lower, a[0]);
      decode_fp4(step[2 * half + 1], upper, lower, a[1]);
#pragma unroll
      for (int n = 0; n < kTokenTiles; ++n) {
        std::uint32_t b[4];
        ptx::ldmatrix_x4(b, x_row[n] + (i * 2 + half) * kHalfBlockBytes);
        ptx::mma_m16n8k16_bf16(sums[n], a[0], {b[0], b[1]});
        ptx::mma_m16n8k16_bf16(sums[n], a[1], {b[2], b[3]});
      }
    }
  }
}

/// What a warp multiplies, tile after tile.
template <int kTokenTiles, int kTeams>
class Worker {
 public:
  using Memory = Shared<kTokenTiles, kTeams>;
  static constexpr int kStages = Memory::kStages;

  __device__ __forceinline__ Worker(const Product& p, const SkinnyLayout& layout, Memory& shared,
                                    const Walk<kTeams>& walk)
      : p_(p),
        layout_(layout),
        shared_(shared),
        stream_(p, layout, shared.dealing, walk),
        ring_(ptx::shared_address(shared.rings[threadIdx.x / 32])),
        share_blocks_(Shares(layout).blocks) {}

  __device__ __forceinline__ void start() {
#pragma unroll
    for (int s = 0; s < kStages - 1; ++s) stream_.load(ring_ + s * kStageBytes + lane() * 16);
  }

  /// A run with columns for kTiles of the token tiles.
  template <int kTiles>
  __device__ __forceinline__ void compute(Walk<kTeams>& walk, const SkinnyItem& run,
                                          std::uint32_t x_address) {
    XRows<kTiles> x;
    x.set(layout_, run, x_address);
    for (; walk.whole(); walk.advance()) take_whole(walk.tile, run, x);
    for (; walk.in_run(); walk.advance()) take_share(walk.tile, run, x);
  }

 private:
  static __device__ __forceinline__ int lane() { return threadIdx.x % 32; }
  static __device__ __forceinline__ int member() { return threadIdx.x / 32 % kTeamWarps; }

  template <int kTiles>
  __device__ __forceinline__ void sum_share(int share, const XRows<kTiles>& x,
                                            float (&sums)[kTiles][4]) {
    const int end = min(layout_.col_blocks, (share + 1) * share_blocks_);
    for (int block = share * share_blocks_; block < end; block += kStageBlocks) {
      ptx::cp_async_wait_group<kStages - 2>();
      __syncwarp();
      const std::uint32_t freed = (stage_ == 0 ? kStages * kStageBytes : stage_) - kStageBytes;
      stream_.load(ring_ + freed + lane() * 16);
      multiply<kTiles>(ring_ + stage_ + lane() * 16,
                       ring_ + stage_ + kStageBlocks * kMxfp4TileBytes + lane() / 4 * 4, block,
                       layout_.col_blocks, x, sums);
      stage_ = stage_ == (kStages - 1) * kStageBytes ? 0 : stage_ + kStageBytes;
    }
  }

  template <int kTiles>
  __device__ __forceinline__ void take_whole(int tile, const SkinnyItem& run,
                                             const XRows<kTiles>& x) {
    // What the shares add up to waits where a team would look for this warp's part.
    auto& kept = shared_.partial[threadIdx.x / kTeamThreads][0][member()];
    float sums[kTiles][4];
#pragma unroll 1
    for (int share = 0; share < kTeamWarps; ++share) {
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) sums[n][i] = 0;
      }
      sum_share(share, x, sums);
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (share > 0) sums[n][i] += kept[n][i][lane()];
          if (share < kTeamWarps - 1) kept[n][i][lane()] = sums[n][i];
        }
      }
    }
    const RowPair bias = bias_of(p_, run.expert, tile, lane() / 4);
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
#pragma unroll
      for (int which = 0; which < 2; ++which) {
        const int column = n * 8 + lane() % 4 * 2 + which;
        if (column < run.num_columns) {
          finish(p_, tile, lane() / 4, run.first_column + column,
                 {sums[n][which], sums[n][2 + which]}, bias);
        }
      }
    }
  }

  template <int kTiles>
  __device__ __forceinline__ void take_share(int tile, const SkinnyItem& run,
                                             const XRows<kTiles>& x) {
    // Other warps finish each time, since who does comes late to the next tile.
    const int turn = (member() + 2 * parity_) % kTeamWarps;
    RowPair bias;
    if (turn < 2 * kTiles) bias = bias_of(p_, run.expert, tile, lane() / 4);
    float sums[kTiles][4] = {};
    sum_share(member(), x, sums);
    const int team = threadIdx.x / kTeamThreads;
    auto& partial = shared_.partial[team][parity_ % Memory::kPartials];
    parity_ ^= 1;
    if constexpr (Memory::kPartials == 1) ptx::named_barrier_sync(1 + team, kTeamThreads);
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) partial[member()][n][i][lane()] = sums[n][i];
    }
    ptx::named_barrier_sync(1 + team, kTeamThreads);
    if (turn >= 2 * kTiles) return;
    const int n = turn / 2, which = turn % 2;
    const int column = n * 8 + lane() % 4 * 2 + which;
    RowPair all;
#pragma unroll
    for (int w = 0; w < kTeamWarps; ++w) {
      all.upper += partial[w][n][which][lane()];
      all.lower += partial[w][n][2 + which][lane()];
    }
    if (column < run.num_columns) {
      finish(p_, tile, lane() / 4, run.first_column + column, all, bias);
    }
  }

  const Product& p_;
  const SkinnyLayout& layout_;
  Memory& shared_;
  Stream<kTeams> stream_;
  const std::uint32_t ring_;
  const int share_blocks_;
  std::uint32_t stage_ = 0;  // of the ring, read next
  int parity_ = 0;
};

template <int kTokenTiles, int kTeams>
__global__ void __launch_bounds__(kTeams* kTeamThreads, blocks_per_sm(kTeams))
    skinny_fp4_kernel(const Product p, const SkinnyLayout layout) {
  using Memory = Shared<kTokenTiles, kTeams>;
  extern __shared__ __align__(16) std::uint8_t shared_bytes[];
  Memory& shared = *reinterpret_cast<Memory*>(shared_bytes);
  std::uint8_t* const x_shared = shared_bytes + sizeof(Memory);

  const bool grouped = p.groups.num_experts > 0;
  if (grouped && p.groups.dealt == Dealt::in_front) {
    ptx::grid_dependency_wait();
    ptx::grid_dependency_launch();
  }
  if (grouped) read_dealing(p, layout, shared.dealing);
  const int groups =
      grouped ? shared.dealing.group_end[p.groups.num_experts - 1] : layout.plain_groups;
  const std::int64_t items = static_cast<std::int64_t>(groups) * layout.row_tiles;
  const int begin = static_cast<int>(items * blockIdx.x / gridDim.x);
  const int end = static_cast<int>(items * (blockIdx.x + 1) / gridDim.x);
  if (begin >= end) {
    ptx::grid_dependency_wait();
    return;
  }
  Walk<kTeams> walk(begin, end, layout.row_tiles);
  Worker<kTokenTiles, kTeams> worker(p, layout, shared, walk);
  worker.start();
  if (!grouped || p.groups.dealt == Dealt::earlier) {
    ptx::grid_dependency_wait();
    ptx::grid_dependency_launch();
  }
  const std::uint32_t x_address = ptx::shared_address(x_shared);
  do {
    const SkinnyItem run = locate(p, layout, shared.dealing, walk.group);
    __syncthreads();
    stage_x<kTeams * kTeamThreads>(p, layout, run, x_shared);
    __syncthreads();
    if (kTokenTiles == 1 || run.num_columns <= 8) {
      worker.template compute<1>(walk, run, x_address);
    } else {
      worker.template compute<kTokenTiles>(walk, run, x_address);
    }
  } while (walk.next_run(layout.row_tiles));
}

template <int kTokenTiles, int kTeams>
std::size_t shared_for(const Product& p) {
  const SkinnyLayout layout = skinny_layout(p, kTokenTiles);
  const std::int64_t columns = std::min<std::int64_t>(layout.columns_per_group, p.num_columns);
  return sizeof(Shared<kTokenTiles, kTeams>) +
         static_cast<std::size_t>(columns * layout.x_row_bytes);
}

template <int kTokenTiles, int kTeams>
void launch_fp4(const Product& p, const SkinnyTile& tile, const Launch& how) {
  const auto kernel = skinny_fp4_kernel<kTokenTiles, kTeams>;
  const std::size_t shared = shared_for<kTokenTiles, kTeams>(p);
  cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shared)));
  launch(kernel,
         {.grid = dim3(static_cast<unsigned>(tile.blocks)),
          .block = dim3(kTeams * kTeamThreads),
          .shared_bytes = shared},
         how, p, skinny_layout(p, kTokenTiles));
}

}  // namespace

int fp4_blocks_per_sm(int teams) { return blocks_per_sm(teams); }

int choose_fp4_teams(const Product& product) {
  return product.num_columns <= kFewColumns ? kFewTeams : kManyTeams;
}

void skinny_fp4_product(const Product& product, const SkinnyTile& tile, const Launch& how) {
  const std::size_t allowed = most_shared_bytes();
  if (tile.token_tiles == 2 && shared_for<2, kTwoTileTeams>(product) <= allowed) {
    return launch_fp4<2, kTwoTileTeams>(product, tile, how);
  }
  if (tile.teams == kManyTeams && shared_for<1, kManyTeams>(product) <= allowed) {
    return launch_fp4<1, kManyTeams>(product, tile, how);
  }
  launch_fp4<1, kFewTeams>(product, tile, how);
}

}  // namespace gauntlet::kernels::cuda
