// The bf16 form: bound by memory alone, so most of what a block reads is under way before it may
// begin. Its warps share the columns of a tile of 16 rows, each streaming weights through a ring in
// shared memory. Parts of columns are added in their order, whoever multiplied them.
#include <algorithm>

#include "kernels/cuda/device_facts.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/product/decode_bf16_ring.cuh"
#include "kernels/cuda/product/decode_mxfp4.h"
#include "kernels/cuda/product/decode_product.h"
#include "kernels/cuda/product/decode_schedule.cuh"
#include "kernels/cuda/product/epilogue.cuh"
#include "kernels/cuda/shared_memory.cuh"
#include "ptx/cp_async.cuh"
#include "ptx/grid_dependency.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/mma.cuh"
#include "ptx/shared_load.cuh"

namespace gauntlet::kernels::cuda::inline product {
namespace {

constexpr int kBlocksPerSm = 2;
constexpr int kMostStages = 6;
constexpr int kFewestStages = 2;
/// Two blocks on an SM with fewer have less under way than one.
constexpr int kEnoughStages = 3;

/// What lies in shared memory in front of x.
template <int kTokenTiles, int kStages>
struct alignas(16) Shared {
  std::uint8_t rings[kBf16Warps][kStages][kBf16TileBytes];
  float partial[2][kBf16Warps][kTokenTiles][4][32];  // of parts of the columns
  ColumnGroups column_groups;
};

/// Two sums, so that a product need not wait for the one before.
template <int kTokenTiles>
__device__ __forceinline__ void multiply(std::uint32_t slot, int block, const XRows<kTokenTiles>& x,
                                         float (&sums)[2][kTokenTiles][4]) {
  uint4 steps[4];
#pragma unroll
  for (int s = 0; s < 4; ++s) steps[s] = ptx::load_shared_16(slot + s * 512);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const uint4 &even = steps[2 * half], &odd = steps[2 * half + 1];
#pragma unroll
    for (int n = 0; n < kTokenTiles; ++n) {
      std::uint32_t b[4];
      ptx::ldmatrix_x4(b, x.at(n, block) + half * kHalfBlockBytes);
      ptx::mma_m16n8k16_bf16(sums[0][n], {even.x, even.y, even.z, even.w}, {b[0], b[1]});
      ptx::mma_m16n8k16_bf16(sums[1][n], {odd.x, odd.y, odd.z, odd.w}, {b[2], b[3]});
    }
  }
}

template <int kTokenTiles, int kStages>
__global__ void __launch_bounds__(kBf16Threads, kBlocksPerSm)
    decode_bf16_kernel(const Product p, const DecodeLayout layout) {
  using Memory = Shared<kTokenTiles, kStages>;
  constexpr int kTurns = 2 * kTokenTiles;
  extern __shared__ __align__(16) std::uint8_t shared_bytes[];
  Memory& shared = *reinterpret_cast<Memory*>(shared_bytes);
  std::uint8_t* const x_shared = shared_bytes + sizeof(Memory);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  const bool grouped = p.groups.num_experts > 0;
  if (grouped && p.groups.dispatched == Dispatched::in_front) {
    ptx::grid_dependency_wait();
    ptx::grid_dependency_launch();
  }
  if (grouped) read_column_groups(p, layout, shared.column_groups);
  const int groups =
      grouped ? shared.column_groups.group_end[p.groups.num_experts - 1] : layout.plain_groups;
  const int items = groups * layout.row_tiles;
  // Neighbouring tiles go to one block, so that it keeps its x.
  const int blocks = gridDim.x, block_index = blockIdx.x;
  const int each = items / blocks, one_more = items - each * blocks;
  const int begin = block_index * each + min(block_index, one_more);
  const int end = begin + each + (block_index < one_more ? 1 : 0);
  if (begin >= end) {
    ptx::grid_dependency_wait();
    return;
  }
  RingStream stream(p, layout, shared.column_groups, begin, end);
  const std::uint32_t ring = ptx::shared_address(shared.rings[warp]) + lane * 16;
#pragma unroll 1
  for (int s = 0; s < kStages; ++s) stream.load(ring + s * kBf16TileBytes);
  if (!grouped || p.groups.dispatched == Dispatched::earlier) {
    ptx::grid_dependency_wait();
    ptx::grid_dependency_launch();
  }

  std::uint32_t slot = 0;
  int part = warp, first_turn = 0, parity = 0, staged = -1;
  XRows<kTokenTiles> x;
  DecodeItem item = locate(p, layout, shared.column_groups, begin / layout.row_tiles);
  item.tile = begin - item.group * layout.row_tiles;
  for (int index = begin; index < end; ++index, parity ^= 1) {
    if (item.group != staged) {
      __syncthreads();
      stage_x<kBf16Threads>(p, layout, item, x_shared);
      __syncthreads();
      staged = item.group;
      x.set(layout, item, ptx::shared_address(x_shared));
    }
    // Other warps finish each time, since who does comes late to the next tile.
    const int turn = (warp + kBf16Warps - first_turn) % kBf16Warps;
    first_turn = (first_turn + kTurns) % kBf16Warps;
    RowPair bias;
    if (turn < kTurns) bias = bias_of(p, item.expert, item.tile, lane / 4);
    float sums[2][kTokenTiles][4] = {};
    for (int block = part; block < layout.col_blocks; block += kBf16Warps) {
      ptx::cp_async_wait_group<kStages - 1>();
      multiply<kTokenTiles>(ring + slot, block, x, sums);
      stream.load(ring + slot);  // behind the products, which have read it
      slot = slot == (kStages - 1) * kBf16TileBytes ? 0 : slot + kBf16TileBytes;
    }
    auto& partial = shared.partial[parity];
#pragma unroll
    for (int n = 0; n < kTokenTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) partial[part][n][i][lane] = sums[0][n][i] + sums[1][n][i];
    }
    part = next_part(part, layout.col_blocks);
    __syncthreads();
    if (turn < kTurns) {
      const int n = turn / 2, which = turn % 2;
      const int column = n * 8 + lane % 4 * 2 + which;
      RowPair all;
#pragma unroll
      for (int w = 0; w < kBf16Warps; ++w) {
        all.upper += partial[w][n][which][lane];
        all.lower += partial[w][n][2 + which][lane];
      }
      if (column < item.num_columns) {
        finish(p, item.tile, lane / 4, item.first_column + column, all, bias);
      }
    }
    ++item.tile;
    if (item.tile == layout.row_tiles && index + 1 < end) {
      item = locate(p, layout, shared.column_groups, item.group + 1);
    }
  }
}

template <int kTokenTiles, int kStages>
std::size_t shared_for(const Product& p) {
  const DecodeLayout layout = decode_layout(p, kTokenTiles);
  const std::int64_t columns = std::min<std::int64_t>(layout.columns_per_group, p.num_columns);
  return sizeof(Shared<kTokenTiles, kStages>) +
         static_cast<std::size_t>(columns * layout.x_row_bytes);
}

/// What every one of two blocks may have of an SM.
std::size_t half_of_shared() {
  constexpr std::size_t kReserved = 1024;  // of every block, by the driver
  return (device_facts().most_shared_bytes + kReserved) / kBlocksPerSm - kReserved;
}

/// With the most stages that fit into `allowed` bytes; false where those are fewer than `fewest`.
template <int kTokenTiles, int kStages = kMostStages>
bool launch_bf16(const Product& p, const DecodeTile& tile, std::size_t allowed, int fewest,
                 const Launch& how) {
  const std::size_t shared = shared_for<kTokenTiles, kStages>(p);
  if (shared > allowed) {
    if constexpr (kStages > kFewestStages) {
      if (kStages > fewest) {
        return launch_bf16<kTokenTiles, kStages - 1>(p, tile, allowed, fewest, how);
      }
    }
    return false;
  }
  constexpr auto kernel = decode_bf16_kernel<kTokenTiles, kStages>;
  allow_shared_memory<kernel, Carveout::most_shared>();
  launch(kernel,
         {.grid = dim3(static_cast<unsigned>(tile.blocks)),
          .block = dim3(kBf16Threads),
          .shared_bytes = shared},
         how, p, decode_layout(p, kTokenTiles));
  return true;
}

/// Two blocks to an SM, or one where the tokens leave too little room.
template <int kTokenTiles>
bool launch_bf16(const Product& p, DecodeTile tile, const Launch& how) {
  if (launch_bf16<kTokenTiles>(p, tile, half_of_shared(), kEnoughStages, how)) return true;
  tile.blocks = (tile.blocks + kBlocksPerSm - 1) / kBlocksPerSm;
  return launch_bf16<kTokenTiles>(p, tile, device_facts().most_shared_bytes, kFewestStages, how);
}

}  // namespace

DecodeTile choose_decode_tile(const Product& product, std::int64_t most_columns, int num_sms) {
  DecodeTile tile{.token_tiles = most_columns > 8 ? 2 : 1};
  const DecodeLayout layout = decode_layout(product, tile.token_tiles);
  const std::int64_t full = product.num_columns / layout.columns_per_group;
  const std::int64_t groups =
      product.groups.num_experts == 0
          ? layout.plain_groups
          : full + std::min<std::int64_t>(product.groups.num_experts, product.num_columns);
  int per_sm = kBlocksPerSm;
  if (product.weights.format == WeightFormat::mxfp4) {
    tile.teams = choose_mxfp4_teams(product);
    per_sm = mxfp4_blocks_per_sm(tile.teams);
  }
  tile.blocks =
      static_cast<int>(std::min<std::int64_t>(groups * layout.row_tiles, num_sms * per_sm));
  return tile;
}

void decode_product(const Product& product, const DecodeTile& tile, const Launch& how) {
  check(product.groups.num_experts <= kMostExperts, "more experts than the product was made for");
  if (product.weights.format == WeightFormat::mxfp4)
    return decode_mxfp4_product(product, tile, how);
  if (tile.token_tiles == 2 && launch_bf16<2>(product, tile, how)) return;
  check(launch_bf16<1>(product, tile, how), "x is too wide for the decode product");
}

}  // namespace gauntlet::kernels::cuda::inline product
