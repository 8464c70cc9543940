// MXFP4 weights take as long to dequantize as to load, so neither may wait for the other: every
// warp streams its weights through a ring in shared memory, on and on over the tiles of its block.
// A team of warps shares the columns of a tile of 16 rows; teams share the tokens.
#include <algorithm>

#include "kernels/cuda/device_facts.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/product/decode_mxfp4.h"
#include "kernels/cuda/product/decode_schedule.cuh"
#include "kernels/cuda/product/epilogue.cuh"
#include "kernels/cuda/product/fp4_sums.cuh"
#include "kernels/cuda/shared_memory.cuh"
#include "ptx/cp_async.cuh"
#include "ptx/grid_dependency.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/shared_load.cuh"

namespace gauntlet::kernels::cuda::inline product {
namespace {

constexpr int kTeamWarps = 4;
constexpr int kTeamThreads = kTeamWarps * 32;
/// Many tokens leave room for one block on an SM, and two tiles of them for fewer warps with more
/// registers; with a few, more and smaller blocks start sooner where those of the kernel in front
/// end.
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
  /// As many as leave room for the tokens.
  static constexpr int kStages = kTokenTiles == 1 ? 3 : 2;
  std::uint8_t rings[kTeams * kTeamWarps][kStages][kStageBytes];
  float partial[kTeams][2][kTeamWarps][kTokenTiles][4][32];
  ColumnGroups column_groups;
};

/// Goes over the tiles of one team: one in so many of a run of tiles with the same columns, then on
/// to the next run. Divides only once.
struct Walk {
  int group;  // of columns
  int tile;
  int run_end;  // of tiles
  int last_group, last_end;

  __device__ __forceinline__ Walk(int begin, int end, int row_tiles, int team)
      : group(begin / row_tiles), last_group((end - 1) / row_tiles) {
    last_end = end - last_group * row_tiles;
    tile = begin - group * row_tiles + team;
    run_end = group == last_group ? last_end : row_tiles;
  }
  __device__ __forceinline__ bool in_run() const { return tile < run_end; }
  __device__ __forceinline__ bool next_run(int row_tiles, int team) {
    if (group == last_group) return false;
    ++group;
    tile = team;
    run_end = group == last_group ? last_end : row_tiles;
    return true;
  }
};

/// A warp's loads, ahead of what it multiplies.
template <int kTeams>
class Stream {
 public:
  __device__ __forceinline__ Stream(const Product& p, const DecodeLayout& layout,
                                    const ColumnGroups& column_groups, const Walk& walk, int team,
                                    int member)
      : p_(p), layout_(layout), column_groups_(column_groups), walk_(walk), team_(team) {
    first_block_ = member * kStageBlocks;
    more_ = first_block_ < layout.col_blocks;
    enter_run();
    enter_tile();
  }

  /// Starts the next stage's copies, or an empty group where there are no more. `stage` is where
  /// this lane's first words go.
  __device__ __forceinline__ void load(std::uint32_t stage) {
    if (more_) {
      const int lane = threadIdx.x % 32, left = layout_.col_blocks - block_;
#pragma unroll
      for (int i = 0; i < kStageBlocks; ++i) {
        if (i == 0 || i < left) {
          ptx::cp_async_16(stage + i * kMxfp4TileBytes, words_ + i * kMxfp4BlockBytes);
        }
      }
      if (lane < 2 * kStageBlocks && lane < 2 * left) {
        ptx::cp_async_16(stage + kStageBlocks * kMxfp4TileBytes, words_ + to_scales_);
      }
      words_ += kTeamWarps * kStageBlocks * kMxfp4BlockBytes;
      block_ += kTeamWarps * kStageBlocks;
      if (block_ >= layout_.col_blocks) {
        walk_.tile += kTeams;
        if (!walk_.in_run()) enter_run();
        enter_tile();
      }
    }
    ptx::cp_async_commit_group();
  }

 private:
  /// Goes on to a run in which this team has a tile.
  __device__ __forceinline__ void enter_run() {
    while (more_ && !walk_.in_run()) more_ = walk_.next_run(layout_.row_tiles, team_);
    int expert = 0;
    if (more_ && p_.groups.num_experts > 0) {
      while (column_groups_.group_end[expert] <= walk_.group) ++expert;
    }
    const int lane = threadIdx.x % 32;
    run_words_ =
        p_.weights.data +
        (expert * p_.weights.row_blocks() * layout_.col_blocks + first_block_) * kMxfp4BlockBytes +
        lane * 16;
  }
  __device__ __forceinline__ void enter_tile() {
    const int lane = threadIdx.x % 32, in_block = walk_.tile % kTilesPerBlock;
    block_ = first_block_;
    words_ = run_words_ + walk_.tile / kTilesPerBlock * (layout_.col_blocks * kMxfp4BlockBytes) +
             in_block * kMxfp4TileBytes;
    to_scales_ = (kTilesPerBlock - in_block) * kMxfp4TileBytes + in_block * kMxfp4ScaleBytes +
                 lane / 2 * kMxfp4BlockBytes + lane % 2 * 16 - lane * 16;
  }

  const Product& p_;
  const DecodeLayout& layout_;
  const ColumnGroups& column_groups_;
  Walk walk_;
  const int team_;
  int first_block_;  // of this warp in every tile
  bool more_;
  int block_ = 0;      // the stage's first
  int to_scales_ = 0;  // from this lane's words
  const std::uint8_t* run_words_ = nullptr;
  const std::uint8_t* words_ = nullptr;
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
    add_scaled_sums(steps[i], factors[i], x_row, sums);
#pragma unroll
    for (int n = 0; n < kTokenTiles; ++n) x_row[n] += 2 * kHalfBlockBytes;
  }
}

template <int kTokenTiles, int kTeams>
__global__ void __launch_bounds__(kTeams* kTeamThreads, blocks_per_sm(kTeams))
    decode_mxfp4_kernel(const Product p, const DecodeLayout layout) {
  using Memory = Shared<kTokenTiles, kTeams>;
  constexpr int kStages = Memory::kStages;
  extern __shared__ __align__(16) std::uint8_t shared_bytes[];
  Memory& shared = *reinterpret_cast<Memory*>(shared_bytes);
  std::uint8_t* const x_shared = shared_bytes + sizeof(Memory);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int team = warp / kTeamWarps, member = warp % kTeamWarps;

  const bool grouped = p.groups.num_experts > 0;
  if (grouped && p.groups.dispatched == Dispatched::in_front) {
    ptx::grid_dependency_wait();
    ptx::grid_dependency_launch();
  }
  if (grouped) read_column_groups(p, layout, shared.column_groups);
  const int groups =
      grouped ? shared.column_groups.group_end[p.groups.num_experts - 1] : layout.plain_groups;
  const std::int64_t items = static_cast<std::int64_t>(groups) * layout.row_tiles;
  const int begin = static_cast<int>(items * blockIdx.x / gridDim.x);
  const int end = static_cast<int>(items * (blockIdx.x + 1) / gridDim.x);
  if (begin >= end) {
    ptx::grid_dependency_wait();
    return;
  }
  Walk walk(begin, end, layout.row_tiles, team);
  Stream<kTeams> stream(p, layout, shared.column_groups, walk, team, member);
  const std::uint32_t ring = ptx::shared_address(shared.rings[warp]);
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) stream.load(ring + s * kStageBytes + lane * 16);
  if (!grouped || p.groups.dispatched == Dispatched::earlier) {
    ptx::grid_dependency_wait();
    ptx::grid_dependency_launch();
  }

  const std::uint32_t x_address = ptx::shared_address(x_shared);
  std::uint32_t stage = 0, freed = (kStages - 1) * kStageBytes;  // read now, read last time
  int parity = 0, finisher = 0;
  XRows<kTokenTiles> x;
  do {
    const DecodeItem run = locate(p, layout, shared.column_groups, walk.group);
    __syncthreads();
    stage_scaled_x<kTeams * kTeamThreads>(p, layout, run, x_shared);
    __syncthreads();
    x.set(layout, run, x_address);
    for (; walk.in_run(); walk.tile += kTeams, parity ^= 1) {
      // Other warps finish each time, since who does comes late to the next tile.
      const int turn = (member + kTeamWarps - finisher) % kTeamWarps;
      finisher = (finisher + 2 * kTokenTiles) % kTeamWarps;
      RowPair bias;
      if (turn < 2 * kTokenTiles) bias = bias_of(p, run.expert, walk.tile, lane / 4);
      float sums[kTokenTiles][4] = {};
      for (int block = member * kStageBlocks; block < layout.col_blocks;
           block += kTeamWarps * kStageBlocks) {
        ptx::cp_async_wait_group<kStages - 2>();
        __syncwarp();
        stream.load(ring + freed + lane * 16);
        multiply<kTokenTiles>(ring + stage + lane * 16,
                              ring + stage + kStageBlocks * kMxfp4TileBytes + lane / 4 * 4, block,
                              layout.col_blocks, x, sums);
        freed = stage;
        stage = stage == (kStages - 1) * kStageBytes ? 0 : stage + kStageBytes;
      }
      auto& partial = shared.partial[team][parity];
#pragma unroll
      for (int n = 0; n < kTokenTiles; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) partial[member][n][i][lane] = sums[n][i];
      }
      ptx::named_barrier_sync(1 + team, kTeamThreads);
      if (turn < 2 * kTokenTiles) {
        const int n = turn / 2, which = turn % 2;
        const int column = n * 8 + lane % 4 * 2 + which;
        RowPair all;
#pragma unroll
        for (int w = 0; w < kTeamWarps; ++w) {
          all.upper += partial[w][n][which][lane];
          all.lower += partial[w][n][2 + which][lane];
        }
        all.upper *= kUnscale, all.lower *= kUnscale;
        if (column < run.num_columns) {
          finish(p, walk.tile, lane / 4, run.first_column + column, all, bias);
        }
      }
    }
  } while (walk.next_run(layout.row_tiles, team));
}

template <int kTokenTiles, int kTeams>
std::size_t shared_for(const Product& p) {
  const DecodeLayout layout = decode_layout(p, kTokenTiles);
  const std::int64_t columns = std::min<std::int64_t>(layout.columns_per_group, p.num_columns);
  return sizeof(Shared<kTokenTiles, kTeams>) +
         static_cast<std::size_t>(columns * layout.x_row_bytes);
}

template <int kTokenTiles, int kTeams>
void launch_mxfp4(const Product& p, const DecodeTile& tile, const Launch& how) {
  constexpr auto kernel = decode_mxfp4_kernel<kTokenTiles, kTeams>;
  const std::size_t shared = shared_for<kTokenTiles, kTeams>(p);
  allow_shared_memory<kernel>();
  launch(kernel,
         {.grid = dim3(static_cast<unsigned>(tile.blocks)),
          .block = dim3(kTeams * kTeamThreads),
          .shared_bytes = shared},
         how, p, decode_layout(p, kTokenTiles));
}

}  // namespace

int mxfp4_blocks_per_sm(int teams) { return blocks_per_sm(teams); }

int choose_mxfp4_teams(const Product& product) {
  return product.num_columns <= kFewColumns ? kFewTeams : kManyTeams;
}

void decode_mxfp4_product(const Product& product, const DecodeTile& tile, const Launch& how) {
  const std::size_t allowed = device_facts().most_shared_bytes;
  if (tile.token_tiles == 2 && shared_for<2, kTwoTileTeams>(product) <= allowed) {
    return launch_mxfp4<2, kTwoTileTeams>(product, tile, how);
  }
  if (tile.teams == kManyTeams && shared_for<1, kManyTeams>(product) <= allowed) {
    return launch_mxfp4<1, kManyTeams>(product, tile, how);
  }
  launch_mxfp4<1, kFewTeams>(product, tile, how);
}

}  // namespace gauntlet::kernels::cuda::inline product
