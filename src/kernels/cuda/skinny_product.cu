// The bf16 form: bound by memory alone, so nearly all that a block reads is under way before it may
// begin. Every warp streams its weights through a ring in shared memory; blocks of a cluster share
// the columns of a few rows. Parts of columns are added in their order, whoever multiplied them.
#include <algorithm>

#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/skinny_bf16_share.cuh"
#include "kernels/cuda/skinny_fp4.h"
#include "kernels/cuda/skinny_product.h"
#include "kernels/cuda/skinny_schedule.cuh"
#include "ptx/cluster.cuh"
#include "ptx/cp_async.cuh"
#include "ptx/grid_dependency.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/mma.cuh"
#include "ptx/shared_load.cuh"

namespace gauntlet::kernels::cuda {
namespace {

constexpr int kBlocksPerSm = 2;
/// Blocks of a cluster. With two blocks on an SM and SMs in pairs, fours leave no SM half empty.
constexpr int kRanks = 4;
/// Tiles per SM from which on whole tiles are spread evenly enough.
constexpr int kManyTiles = 16;
constexpr int kMostStages = 6;
constexpr int kFewestStages = 2;
/// Two blocks on an SM with fewer have less under way than one.
constexpr int kEnoughStages = 3;

/// What lies in shared memory in front of x.
template <int kTokenTiles, int kStages>
struct alignas(16) Shared {
  std::uint8_t rings[kShareWarps][kStages][kBf16TileBytes];
  float partial[kShareWarps][kTokenTiles][4][32];  // of parts of this block's columns
  float2 arrived[kRanks][kTokenTiles][2][32];      // from the blocks of the cluster
  Dealing dealing;
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

/// A tile whose sums are on their way to the rank that finishes it. In each rank, two warps for
/// every eight tokens add what the others made.
struct Closing {
  SkinnyItem item;
  int owner = 0;  // rank
  int turn = 0;   // of this warp: token tile * 2 + which of two columns of a lane
  RowPair bias;
};

template <int kTokenTiles, int kStages>
__global__ void __launch_bounds__(kShareThreads, kBlocksPerSm)
    skinny_kernel(const Product p, const SkinnyLayout layout, const int ranks) {
  using Memory = Shared<kTokenTiles, kStages>;
  constexpr int kTurns = 2 * kTokenTiles;
  extern __shared__ __align__(16) std::uint8_t shared_bytes[];
  Memory& shared = *reinterpret_cast<Memory*>(shared_bytes);
  std::uint8_t* const x_shared = shared_bytes + sizeof(Memory);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  const bool grouped = p.groups.num_experts > 0;
  if (grouped && p.groups.dealt == Dealt::in_front) {
    ptx::grid_dependency_wait();
    ptx::grid_dependency_launch();
  }
  if (grouped) read_dealing(p, layout, shared.dealing);
  const int groups =
      grouped ? shared.dealing.group_end[p.groups.num_experts - 1] : layout.plain_groups;
  const int items = groups * layout.row_tiles;
  // Neighbouring tiles go to one cluster, so that its blocks keep their x.
  const int cluster = blockIdx.x / ranks, clusters = gridDim.x / ranks, rank = ptx::cluster_rank();
  const int each = items / clusters, one_more = items - each * clusters;
  const int begin = cluster * each + min(cluster, one_more);
  const int end = begin + each + (cluster < one_more ? 1 : 0);
  if (begin >= end) {
    ptx::grid_dependency_wait();
    return;
  }
  const ColumnShare share(layout.col_blocks, rank, ranks);
  ShareStream stream(p, layout, shared.dealing, share, begin, end);
  const std::uint32_t ring = ptx::shared_address(shared.rings[warp]) + lane * 16;
#pragma unroll 1
  for (int s = 0; s < kStages; ++s) stream.load(ring + s * kBf16TileBytes);
  ptx::cluster_arrive();
  if (!grouped || p.groups.dealt == Dealt::earlier) {
    ptx::grid_dependency_wait();
    ptx::grid_dependency_launch();
  }

  std::uint32_t slot = 0;
  int part = warp, owner = 0, first_turn = 0, staged = -1;
  XRows<kTokenTiles> x;
  SkinnyItem item = locate(p, layout, shared.dealing, begin / layout.row_tiles);
  item.tile = begin - item.group * layout.row_tiles;

  const auto multiply_tile = [&](float(&sums)[2][kTokenTiles][4]) {
    if (item.group != staged) {
      __syncthreads();
      stage_share(p, layout, share, item, x_shared);
      __syncthreads();
      staged = item.group;
      x.set(layout, item, ptx::shared_address(x_shared));
    }
    for (int block = part; block < share.count; block += kShareWarps) {
      ptx::cp_async_wait_group<kStages - 1>();
      multiply<kTokenTiles>(ring + slot, block, x, sums);
      stream.load(ring + slot);  // behind the products, which have read it
      slot = slot == (kStages - 1) * kBf16TileBytes ? 0 : slot + kBf16TileBytes;
    }
  };
  const auto send = [&](const Closing& now, const float(&sums)[2][kTokenTiles][4]) {
#pragma unroll
    for (int n = 0; n < kTokenTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        shared.partial[part][n][i][lane] = sums[0][n][i] + sums[1][n][i];
      }
    }
    __syncthreads();
    if (now.turn < kTurns) {
      const int n = now.turn / 2, which = now.turn % 2;
      float2 all{};
#pragma unroll
      for (int w = 0; w < kShareWarps; ++w) {
        all.x += shared.partial[w][n][which][lane];
        all.y += shared.partial[w][n][2 + which][lane];
      }
      const std::uint32_t here = ptx::shared_address(&shared.arrived[rank][n][which][lane]);
      ptx::store_cluster_8(ptx::cluster_address(here, now.owner), all);
    }
    ptx::cluster_arrive();
  };
  const auto close = [&](const Closing& last) {
    if (last.owner != rank || last.turn >= kTurns) return;
    const int n = last.turn / 2, which = last.turn % 2;
    RowPair all;
    for (int r = 0; r < ranks; ++r) {
      const float2 sums = shared.arrived[r][n][which][lane];
      all.upper += sums.x;
      all.lower += sums.y;
    }
    const int column = n * 8 + lane % 4 * 2 + which;
    if (column < last.item.num_columns) {
      finish(p, last.item.tile, lane / 4, last.item.first_column + column, all, last.bias);
    }
  };

  // A tile is closed behind the products of the next one, when its sums have long arrived.
  Closing last;
  for (int index = begin; index <= end; ++index) {
    // Other warps and ranks close each time, since who does comes late to the next tile.
    Closing now{
        .item = item, .owner = owner, .turn = (warp + kShareWarps - first_turn) % kShareWarps};
    float sums[2][kTokenTiles][4] = {};
    if (index < end) {
      if (owner == rank && now.turn < kTurns) {
        now.bias = bias_of(p, item.expert, item.tile, lane / 4);
      }
      multiply_tile(sums);
    }
    ptx::cluster_wait();
    if (index > begin) close(last);
    if (index == end) break;
    send(now, sums);
    last = now;
    part = share.next_part(part);
    owner = owner + 1 == ranks ? 0 : owner + 1;
    first_turn = (first_turn + kTurns) % kShareWarps;
    ++item.tile;
    if (item.tile == layout.row_tiles && index + 1 < end) {
      item = locate(p, layout, shared.dealing, item.group + 1);
    }
  }
}

/// The layout of x when so many blocks share its columns.
SkinnyLayout layout_for(const Product& p, int token_tiles, int ranks) {
  SkinnyLayout layout = skinny_layout(p, token_tiles);
  layout.x_row_bytes = (layout.col_blocks + ranks - 1) / ranks * kBlockCols * 2 + kRowPad;
  return layout;
}

template <int kTokenTiles, int kStages>
std::size_t shared_for(const Product& p, int ranks) {
  const SkinnyLayout layout = layout_for(p, kTokenTiles, ranks);
  const std::int64_t columns = std::min<std::int64_t>(layout.columns_per_group, p.num_columns);
  return sizeof(Shared<kTokenTiles, kStages>) +
         static_cast<std::size_t>(columns * layout.x_row_bytes);
}

/// What every one of two blocks may have of an SM.
std::size_t half_of_shared() {
  constexpr std::size_t kReserved = 1024;  // of every block, by the driver
  return (most_shared_bytes() + kReserved) / kBlocksPerSm - kReserved;
}

/// With the most stages that fit into `allowed` bytes; false where those are fewer than `fewest`.
template <int kTokenTiles, int kStages = kMostStages>
bool launch_skinny(const Product& p, const SkinnyTile& tile, std::size_t allowed, int fewest,
                   const Launch& how) {
  const std::size_t shared = shared_for<kTokenTiles, kStages>(p, tile.ranks);
  if (shared > allowed) {
    if constexpr (kStages > kFewestStages) {
      if (kStages > fewest) {
        return launch_skinny<kTokenTiles, kStages - 1>(p, tile, allowed, fewest, how);
      }
    }
    return false;
  }
  const auto kernel = skinny_kernel<kTokenTiles, kStages>;
  cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shared)));
  cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                  cudaSharedmemCarveoutMaxShared));
  launch(kernel,
         {.grid = dim3(static_cast<unsigned>(tile.blocks)),
          .block = dim3(kShareThreads),
          .shared_bytes = shared,
          .cluster = static_cast<unsigned>(tile.ranks)},
         how, p, layout_for(p, kTokenTiles, tile.ranks), tile.ranks);
  return true;
}

/// Two blocks to an SM, or one where the tokens leave too little room.
template <int kTokenTiles>
bool launch_skinny(const Product& p, SkinnyTile tile, const Launch& how) {
  if (launch_skinny<kTokenTiles>(p, tile, half_of_shared(), kEnoughStages, how)) return true;
  const int clusters = tile.blocks / tile.ranks;
  tile.blocks = (clusters + kBlocksPerSm - 1) / kBlocksPerSm * tile.ranks;
  return launch_skinny<kTokenTiles>(p, tile, most_shared_bytes(), kFewestStages, how);
}

/// PTX for older GPUs knows no clusters, even on a GPU that does.
bool compiled_for_clusters() {
  cudaFuncAttributes attributes{};
  cuda_check(cudaFuncGetAttributes(&attributes, skinny_kernel<1, kMostStages>));
  return attributes.ptxVersion >= 90;
}

/// Ranks depend on the matrix alone: a token's bits must not depend on its company.
int choose_ranks(const Product& product, const SkinnyLayout& layout, int num_sms) {
  const bool even = layout.row_tiles >= kManyTiles * num_sms;
  return product.groups.num_experts > 0 || even || layout.col_blocks < kRanks ? 1 : kRanks;
}

/// As few clusters as take no longer.
int choose_blocks(std::int64_t items, int ranks, int num_sms) {
  const std::int64_t most = std::max(1, num_sms * kBlocksPerSm / ranks);
  const std::int64_t each = std::max<std::int64_t>(1, (items + most - 1) / most);
  return static_cast<int>((items + each - 1) / each * ranks);
}

}  // namespace

SkinnyTile choose_skinny_tile(const Product& product, std::int64_t most_columns, int num_sms) {
  SkinnyTile tile{.token_tiles = most_columns > 8 ? 2 : 1};
  const SkinnyLayout layout = skinny_layout(product, tile.token_tiles);
  const std::int64_t full = product.num_columns / layout.columns_per_group;
  const std::int64_t groups =
      product.groups.num_experts == 0
          ? layout.plain_groups
          : full + std::min<std::int64_t>(product.groups.num_experts, product.num_columns);
  const std::int64_t items = groups * layout.row_tiles;
  if (product.weights.format == WeightFormat::mxfp4) {
    tile.teams = choose_fp4_teams(product);
    tile.blocks =
        static_cast<int>(std::min<std::int64_t>(items, num_sms * fp4_blocks_per_sm(tile.teams)));
  } else {
    tile.ranks = choose_ranks(product, layout, num_sms);
    tile.blocks = choose_blocks(items, tile.ranks, num_sms);
  }
  return tile;
}

void skinny_product(const Product& product, const SkinnyTile& tile, const Launch& how) {
  check(product.groups.num_experts <= kMostExperts, "more experts than the product was made for");
  if (product.weights.format == WeightFormat::mxfp4) return skinny_fp4_product(product, tile, how);
  SkinnyTile possible = tile;
  if (tile.ranks > 1 && !compiled_for_clusters()) possible.ranks = 1;
  if (tile.token_tiles == 2 && launch_skinny<2>(product, possible, how)) return;
  check(launch_skinny<1>(product, possible, how), "x is too wide for the skinny product");
}

}  // namespace gauntlet::kernels::cuda
