// A block of eight warps takes a tile of 16 rows; the warps share its columns and keep the next
// weights in flight while they multiply. Sums of the warps are added in their order, so that a
// result depends on its own token alone. This is the bf16 form.
#include <algorithm>

#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/skinny_fp4.h"
#include "kernels/cuda/skinny_product.h"
#include "kernels/cuda/skinny_schedule.cuh"
#include "ptx/grid_dependency.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/mma.cuh"
#include "ptx/streaming.cuh"

namespace gauntlet::kernels::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * 32;
constexpr int kBlocksPerSm = 2;

/// The weights that a warp has under way: its part of kBlocks * kWarps blocks of a tile.
struct Chunk {
  static constexpr int kBlocks = 2;
  uint4 steps[kBlocks][4];

  __device__ __forceinline__ void load(int i, const std::uint8_t* from) {
#pragma unroll
    for (int s = 0; s < 4; ++s) steps[i][s] = ptx::load_streaming_16(from + s * 512);
  }
  __device__ __forceinline__ void operands(int i, int step, std::uint32_t (&a)[4]) const {
    const uint4& v = steps[i][step];
    a[0] = v.x, a[1] = v.y, a[2] = v.z, a[3] = v.w;
  }
};

/// Where a warp's first block of a tile lies.
__device__ __forceinline__ const std::uint8_t* first_block(const Product& p,
                                                           const SkinnyLayout& layout,
                                                           const SkinnyItem& item) {
  const std::int64_t row_block = item.expert * p.weights.row_blocks() + item.tile / kTilesPerBlock;
  return p.weights.data + (row_block * layout.col_blocks + threadIdx.x / 32) * kBf16BlockBytes;
}

__device__ __forceinline__ void load_chunk(Chunk& chunk, const std::uint8_t* first,
                                           const SkinnyLayout& layout, int tile, int index) {
  constexpr int kStride = kWarps * kBf16BlockBytes;
  const std::uint8_t* from = first + static_cast<std::int64_t>(index) * Chunk::kBlocks * kStride +
                             tile % kTilesPerBlock * kBf16TileBytes + threadIdx.x % 32 * 16;
  const int left =
      layout.col_blocks - static_cast<int>(threadIdx.x / 32) - index * Chunk::kBlocks * kWarps;
#pragma unroll
  for (int i = 0; i < Chunk::kBlocks; ++i) {
    if (i * kWarps < left) chunk.load(i, from + i * kStride);
  }
}

/// Two sums, so that a product need not wait for the one before.
template <int kTokenTiles>
__device__ __forceinline__ void multiply(const Chunk& chunk, int index, int col_blocks,
                                         const XRows<kTokenTiles>& x,
                                         float (&sums)[2][kTokenTiles][4]) {
  const int first = index * Chunk::kBlocks * kWarps + static_cast<int>(threadIdx.x / 32);
#pragma unroll
  for (int i = 0; i < Chunk::kBlocks; ++i) {
    const int block = first + i * kWarps;
    if (block >= col_blocks) break;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      std::uint32_t a[2][4];
      chunk.operands(i, 2 * half, a[0]);
      chunk.operands(i, 2 * half + 1, a[1]);
#pragma unroll
      for (int n = 0; n < kTokenTiles; ++n) {
        std::uint32_t b[4];
        ptx::ldmatrix_x4(b, x.at(n, block) + half * kHalfBlockBytes);
        ptx::mma_m16n8k16_bf16(sums[0][n], a[0], {b[0], b[1]});
        ptx::mma_m16n8k16_bf16(sums[1][n], a[1], {b[2], b[3]});
      }
    }
  }
}

template <int kTokenTiles>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm)
    skinny_kernel(const Product p, const SkinnyLayout layout) {
  extern __shared__ __align__(16) std::uint8_t x_shared[];
  __shared__ float partial[2][kWarps][kTokenTiles][4][32];
  __shared__ Dealing dealing;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  const bool grouped = p.groups.num_experts > 0;
  if (grouped && p.groups.dealt == Dealt::in_front) {
    ptx::grid_dependency_wait();
    ptx::grid_dependency_launch();
  }
  if (grouped) read_dealing(p, layout, dealing);
  const int groups = grouped ? dealing.group_end[p.groups.num_experts - 1] : layout.plain_groups;
  const std::int64_t items = static_cast<std::int64_t>(groups) * layout.row_tiles;
  // Neighbouring tiles go to one block, so that it keeps its columns.
  int index = static_cast<int>(items * blockIdx.x / gridDim.x);
  const int end = static_cast<int>(items * (blockIdx.x + 1) / gridDim.x);
  SkinnyItem item;
  Chunk next;
  const std::uint8_t* from = nullptr;  // this warp's first block of the item's tile
  if (index < end) {
    item = locate(p, layout, dealing, index / layout.row_tiles);
    item.tile = index % layout.row_tiles;
    from = first_block(p, layout, item);
    load_chunk(next, from, layout, item.tile, 0);
  }
  if (!grouped || p.groups.dealt == Dealt::earlier) {
    ptx::grid_dependency_wait();
    ptx::grid_dependency_launch();
  }

  const int per_chunk = Chunk::kBlocks * kWarps;
  const int chunks = (layout.col_blocks + per_chunk - 1) / per_chunk;
  int staged = -1, parity = 0, finisher = 0;
  XRows<kTokenTiles> x;
  for (; index < end; ++index, parity ^= 1) {
    if (item.group != staged) {
      __syncthreads();
      stage_x<kThreads>(p, layout, item, x_shared);
      __syncthreads();
      staged = item.group;
      x.set(layout, item, ptx::shared_address(x_shared));
    }
    // Other warps finish each time, since who does comes late to the next tile.
    const int turn = (warp + kWarps - finisher) % kWarps;
    finisher = (finisher + 2 * kTokenTiles) % kWarps;
    RowPair bias;
    if (turn < 2 * kTokenTiles) bias = bias_of(p, item.expert, item.tile, lane / 4);
    float sums[2][kTokenTiles][4] = {};
    SkinnyItem after = item;
    for (int c = 0; c < chunks; ++c) {
      const Chunk now = next;
      if (c + 1 < chunks) {
        load_chunk(next, from, layout, item.tile, c + 1);
      } else if (index + 1 < end) {
        ++after.tile;
        if (after.tile == layout.row_tiles) after = locate(p, layout, dealing, after.group + 1);
        if (after.tile % kTilesPerBlock == 0) from = first_block(p, layout, after);
        load_chunk(next, from, layout, after.tile, 0);
      }
      multiply<kTokenTiles>(now, c, layout.col_blocks, x, sums);
    }
#pragma unroll
    for (int n = 0; n < kTokenTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        partial[parity][warp][n][i][lane] = sums[0][n][i] + sums[1][n][i];
      }
    }
    __syncthreads();
    if (turn < 2 * kTokenTiles) {
      const int n = turn / 2, which = turn % 2;
      const int column = n * 8 + lane % 4 * 2 + which;
      RowPair all;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) {
        all.upper += partial[parity][w][n][which][lane];
        all.lower += partial[parity][w][n][2 + which][lane];
      }
      if (column < item.num_columns) {
        finish(p, item.tile, lane / 4, item.first_column + column, all, bias);
      }
    }
    item = after;
  }
}

template <int kTokenTiles>
std::size_t x_bytes(const Product& p) {
  const SkinnyLayout layout = skinny_layout(p, kTokenTiles);
  const std::int64_t columns = std::min<std::int64_t>(layout.columns_per_group, p.num_columns);
  return static_cast<std::size_t>(columns * layout.x_row_bytes);
}

/// Static shared memory of the larger kernel.
constexpr std::size_t kStaticBytes = sizeof(float) * 2 * kWarps * 2 * 128 + 2048;

template <int kTokenTiles>
void launch_skinny(const Product& p, const SkinnyTile& tile, const Launch& how) {
  const auto kernel = skinny_kernel<kTokenTiles>;
  const std::size_t shared = x_bytes<kTokenTiles>(p);
  if (shared + kStaticBytes > 48 * 1024) {
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(shared)));
  }
  launch(kernel,
         {.grid = dim3(static_cast<unsigned>(tile.blocks)),
          .block = dim3(kThreads),
          .shared_bytes = shared},
         how, p, skinny_layout(p, kTokenTiles));
}

}  // namespace

SkinnyTile choose_skinny_tile(const Product& product, std::int64_t most_columns, int num_sms) {
  SkinnyTile tile{.token_tiles = most_columns > 8 ? 2 : 1};
  int per_sm = kBlocksPerSm;
  if (product.weights.format == WeightFormat::mxfp4) {
    tile.teams = choose_fp4_teams(product);
    per_sm = fp4_blocks_per_sm(tile.teams);
  }
  const SkinnyLayout layout = skinny_layout(product, tile.token_tiles);
  const std::int64_t full = product.num_columns / layout.columns_per_group;
  const std::int64_t groups =
      product.groups.num_experts == 0
          ? layout.plain_groups
          : full + std::min<std::int64_t>(product.groups.num_experts, product.num_columns);
  tile.blocks =
      static_cast<int>(std::min<std::int64_t>(groups * layout.row_tiles, num_sms * per_sm));
  return tile;
}

void skinny_product(const Product& product, const SkinnyTile& tile, const Launch& how) {
  check(product.groups.num_experts <= kMostExperts, "more experts than the product was made for");
  if (product.weights.format == WeightFormat::mxfp4) return skinny_fp4_product(product, tile, how);
  const bool two =
      tile.token_tiles == 2 && x_bytes<2>(product) + kStaticBytes <= most_shared_bytes();
  two ? launch_skinny<2>(product, tile, how) : launch_skinny<1>(product, tile, how);
}

}  // namespace gauntlet::kernels::cuda
