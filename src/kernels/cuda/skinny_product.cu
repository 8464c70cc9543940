// A block of eight warps takes a tile of 16 rows; the warps share its columns and keep the next
// weights in flight while they multiply. Sums of the warps are added in their order, so that a
// result depends on its own token alone.
#include <algorithm>

#include "kernels/cuda/decode_fp4.cuh"
#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/skinny_product.h"
#include "ptx/grid_dependency.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/mma.cuh"
#include "ptx/streaming.cuh"

namespace gauntlet::kernels::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * 32;
constexpr int kTilesPerBlock = kBlockRows / kTileRows;
constexpr int kMostExperts = 256;
constexpr int kRowPad = 16;  // bytes between rows of x, so that eight of them fall on all banks

/// The weights that a warp has under way: its part of kBlocks * kWarps blocks of a tile.
template <WeightFormat kFormat>
struct Chunk;

template <>
struct Chunk<WeightFormat::bf16> {
  static constexpr int kBlocks = 2;
  static constexpr bool kTwice = true;  // the next chunk is loaded while this one is multiplied
  static constexpr int kBlockBytes = kBf16BlockBytes;
  static constexpr int kTileBytes = kBf16TileBytes;
  uint4 steps[kBlocks][4];

  /// What this lane reads of a block's tile.
  struct Place {
    const std::uint8_t* steps;
    __device__ Place(const std::uint8_t* block, int tile, int lane)
        : steps(block + tile * kTileBytes + lane * 16) {}
  };
  __device__ __forceinline__ void load(int i, const Place& from, int offset) {
#pragma unroll
    for (int s = 0; s < 4; ++s) steps[i][s] = ptx::load_streaming_16(from.steps + offset + s * 512);
  }
  __device__ __forceinline__ void operands(int i, int step, std::uint32_t (&a)[4]) const {
    const uint4& v = steps[i][step];
    a[0] = v.x, a[1] = v.y, a[2] = v.z, a[3] = v.w;
  }
};

template <>
struct Chunk<WeightFormat::mxfp4> {
  static constexpr int kBlocks = 6;
  // Decoding takes as long as loading: more warps hide it better than a second chunk would.
  static constexpr bool kTwice = false;
  static constexpr int kBlockBytes = kMxfp4BlockBytes;
  static constexpr int kTileBytes = kMxfp4TileBytes;
  uint4 words[kBlocks];
  std::uint32_t scales[kBlocks];

  struct Place {
    const std::uint8_t* words;
    const std::uint8_t* scales;
    __device__ Place(const std::uint8_t* block, int tile, int lane)
        : words(block + tile * kTileBytes + lane * 16),
          scales(block + kTilesPerBlock * kTileBytes + tile * kMxfp4ScaleBytes + lane / 4 * 4) {}
  };
  __device__ __forceinline__ void load(int i, const Place& from, int offset) {
    words[i] = ptx::load_streaming_16(from.words + offset);
    scales[i] = ptx::load_streaming_4(from.scales + offset);
  }
  __device__ __forceinline__ void operands(int i, int step, std::uint32_t (&a)[4]) const {
    const std::uint32_t word = step == 0   ? words[i].x
                               : step == 1 ? words[i].y
                               : step == 2 ? words[i].z
                                           : words[i].w;
    const int shift = step < 2 ? 0 : 8;
    decode_fp4(word, scale_pair(scales[i] >> shift & 0xFF),
               scale_pair(scales[i] >> (16 + shift) & 0xFF), a);
  }
};

/// Blocks that fit an SM by their registers, and by the columns they keep.
template <WeightFormat kFormat, int kTokenTiles>
constexpr int blocks_per_sm() {
  return Chunk<kFormat>::kTwice || kTokenTiles > 1 ? 2 : 3;
}

/// A tile of rows with the columns it is multiplied with.
struct Item {
  int expert = 0;
  int tile = 0;
  int first_column = 0;
  int num_columns = 0;
  int group = -1;  // of columns: what x must be in shared memory
};

struct Layout {
  int row_tiles;
  int col_blocks;
  int columns_per_group;
  int plain_groups;  // of a plain product
  int x_row_bytes;
};

/// Where experts' slots begin and how many groups of columns end before the next expert, kept where
/// it can be read again and again.
struct Dealing {
  int first_slot[kMostExperts + 1];
  int group_end[kMostExperts];
};

__device__ void read_dealing(const Product& p, const Layout& layout, Dealing& dealing) {
  const int experts = p.groups.num_experts;
  for (int e = threadIdx.x; e <= experts; e += kThreads) {
    dealing.first_slot[e] = p.groups.first_slot[e];
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    int before = 0;
    for (int first = 0; first < experts; first += 32) {
      const int e = first + threadIdx.x;
      const int slots = e < experts ? dealing.first_slot[e + 1] - dealing.first_slot[e] : 0;
      int groups = (slots + layout.columns_per_group - 1) / layout.columns_per_group;
#pragma unroll
      for (int offset = 1; offset < 32; offset *= 2) {
        const int other = __shfl_up_sync(0xFFFFFFFF, groups, offset);
        if (static_cast<int>(threadIdx.x) >= offset) groups += other;
      }
      if (e < experts) dealing.group_end[e] = before + groups;
      before += __shfl_sync(0xFFFFFFFF, groups, 31);
    }
  }
  __syncthreads();
}

__device__ __forceinline__ Item locate(const Product& p, const Layout& layout,
                                       const Dealing& dealing, int index) {
  Item item{.tile = index % layout.row_tiles, .group = index / layout.row_tiles};
  int first = item.group * layout.columns_per_group;
  int end = static_cast<int>(p.num_columns);
  if (p.groups.num_experts > 0) {
    while (dealing.group_end[item.expert] <= item.group) ++item.expert;
    const int before = item.expert == 0 ? 0 : dealing.group_end[item.expert - 1];
    first = dealing.first_slot[item.expert] + (item.group - before) * layout.columns_per_group;
    end = dealing.first_slot[item.expert + 1];
  }
  item.first_column = first;
  item.num_columns = min(layout.columns_per_group, end - first);
  return item;
}

/// Where a warp's first block of a tile lies.
template <WeightFormat kFormat>
__device__ __forceinline__ const std::uint8_t* first_block(const Product& p, const Layout& layout,
                                                           const Item& item) {
  const std::int64_t row_block = item.expert * p.weights.row_blocks() + item.tile / kTilesPerBlock;
  return p.weights.data +
         (row_block * layout.col_blocks + threadIdx.x / 32) * Chunk<kFormat>::kBlockBytes;
}

template <WeightFormat kFormat>
__device__ __forceinline__ void load_chunk(Chunk<kFormat>& chunk, const std::uint8_t* first,
                                           const Layout& layout, int tile, int index) {
  using C = Chunk<kFormat>;
  constexpr int kStride = kWarps * C::kBlockBytes;
  const typename C::Place from(first + static_cast<std::int64_t>(index) * C::kBlocks * kStride,
                               tile % kTilesPerBlock, threadIdx.x % 32);
  const int left =
      layout.col_blocks - static_cast<int>(threadIdx.x / 32) - index * C::kBlocks * kWarps;
#pragma unroll
  for (int i = 0; i < C::kBlocks; ++i) {
    if (i * kWarps < left) chunk.load(i, from, i * kStride);
  }
}

__device__ __forceinline__ void stage_x(const Product& p, const Layout& layout, const Item& item,
                                        std::uint8_t* x) {
  const int pieces = layout.col_blocks * (kBlockCols * 2 / 16);
  for (int i = threadIdx.x; i < item.num_columns * pieces; i += kThreads) {
    const int column = i / pieces, piece = i % pieces;
    const int slot = item.first_column + column;
    const std::int64_t row = p.groups.slot_token != nullptr ? p.groups.slot_token[slot] : slot;
    *reinterpret_cast<uint4*>(x + column * layout.x_row_bytes + piece * 16) =
        *reinterpret_cast<const uint4*>(p.x + row * p.x_stride + piece * 8);
  }
}

/// Two sums, so that a product need not wait for the one before; where registers are short, other
/// warps fill the wait.
template <WeightFormat kFormat>
constexpr int kSums = Chunk<kFormat>::kTwice ? 2 : 1;

template <WeightFormat kFormat, int kTokenTiles>
__device__ __forceinline__ void multiply(const Chunk<kFormat>& chunk, int index, int col_blocks,
                                         const std::uint32_t (&x_row)[kTokenTiles],
                                         const std::uint32_t (&x_step)[kTokenTiles],
                                         float (&sums)[kSums<kFormat>][kTokenTiles][4]) {
  using C = Chunk<kFormat>;
  const int first = index * C::kBlocks * kWarps + static_cast<int>(threadIdx.x / 32);
#pragma unroll
  for (int i = 0; i < C::kBlocks; ++i) {
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
        ptx::ldmatrix_x4(b, x_row[n] + (block * kBlockCols + half * 32) * 2 * x_step[n]);
        ptx::mma_m16n8k16_bf16(sums[0][n], a[0], {b[0], b[1]});
        ptx::mma_m16n8k16_bf16(sums[kSums<kFormat> - 1][n], a[1], {b[2], b[3]});
      }
    }
  }
}

template <WeightFormat kFormat, int kTokenTiles>
__global__ void __launch_bounds__(kThreads, blocks_per_sm<kFormat, kTokenTiles>())
    skinny_kernel(const Product p, const Layout layout) {
  extern __shared__ __align__(16) std::uint8_t x_shared[];
  __shared__ float partial[2][kWarps][kTokenTiles][4][32];
  __shared__ Dealing dealing;
  __shared__ __align__(16) std::uint8_t zeros[16];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x < 4) reinterpret_cast<std::uint32_t*>(zeros)[threadIdx.x] = 0;

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
  Item item;
  Chunk<kFormat> next;
  const std::uint8_t* from = nullptr;  // this warp's first block of the item's tile
  if (index < end) {
    item = locate(p, layout, dealing, index);
    from = first_block<kFormat>(p, layout, item);
    load_chunk(next, from, layout, item.tile, 0);
  }
  if (!grouped || p.groups.dealt == Dealt::earlier) {
    ptx::grid_dependency_wait();
    ptx::grid_dependency_launch();
  }

  const int per_chunk = Chunk<kFormat>::kBlocks * kWarps;
  const int chunks = (layout.col_blocks + per_chunk - 1) / per_chunk;
  int staged = -1, parity = 0, finisher = 0;
  std::uint32_t x_row[kTokenTiles], x_step[kTokenTiles];
  for (; index < end; ++index, parity ^= 1) {
    if (item.group != staged) {
      __syncthreads();
      stage_x(p, layout, item, x_shared);
      __syncthreads();
      staged = item.group;
#pragma unroll
      for (int n = 0; n < kTokenTiles; ++n) {
        const int column = n * 8 + lane % 8;
        const bool real = column < item.num_columns;
        x_row[n] = ptx::shared_address(real ? x_shared + column * layout.x_row_bytes + lane / 8 * 16
                                            : zeros);
        x_step[n] = real ? 1 : 0;
      }
    }
    // Other warps finish each time, since who does comes late to the next tile.
    const int turn = (warp + kWarps - finisher) % kWarps;
    finisher = (finisher + 2 * kTokenTiles) % kWarps;
    RowPair bias;
    if (turn < 2 * kTokenTiles) bias = bias_of(p, item.expert, item.tile, lane / 4);
    float sums[kSums<kFormat>][kTokenTiles][4] = {};
    Item after = item;
    for (int c = 0; c < chunks; ++c) {
      const auto load_next = [&] {
        if (c + 1 < chunks) {
          load_chunk(next, from, layout, item.tile, c + 1);
        } else if (index + 1 < end) {
          ++after.tile;
          if (after.tile == layout.row_tiles) after = locate(p, layout, dealing, index + 1);
          if (after.tile % kTilesPerBlock == 0) from = first_block<kFormat>(p, layout, after);
          load_chunk(next, from, layout, after.tile, 0);
        }
      };
      if constexpr (Chunk<kFormat>::kTwice) {
        const Chunk<kFormat> now = next;
        load_next();
        multiply<kFormat, kTokenTiles>(now, c, layout.col_blocks, x_row, x_step, sums);
      } else {
        multiply<kFormat, kTokenTiles>(next, c, layout.col_blocks, x_row, x_step, sums);
        load_next();
      }
    }
#pragma unroll
    for (int n = 0; n < kTokenTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float sum = sums[0][n][i];
        if constexpr (kSums<kFormat> == 2) sum += sums[1][n][i];
        partial[parity][warp][n][i][lane] = sum;
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

template <WeightFormat kFormat, int kTokenTiles>
void launch_skinny(const Product& p, const Layout& layout, const SkinnyTile& tile,
                   const Launch& how) {
  const auto kernel = skinny_kernel<kFormat, kTokenTiles>;
  const std::int64_t columns = std::min<std::int64_t>(layout.columns_per_group, p.num_columns);
  const auto shared = static_cast<std::size_t>(columns * layout.x_row_bytes);
  constexpr std::size_t kUnasked = 48 * 1024 - sizeof(float) * 2 * kWarps * 2 * 128 - 2048;
  if (shared > kUnasked) {
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(shared)));
  }
  launch(kernel,
         {.grid = dim3(static_cast<unsigned>(tile.blocks)),
          .block = dim3(kThreads),
          .shared_bytes = shared},
         how, p, layout);
}

Layout layout_of(const Product& p, const SkinnyTile& tile) {
  const int per_group = 8 * tile.token_tiles;
  const auto col_blocks = static_cast<int>(p.weights.col_blocks());
  return {.row_tiles = static_cast<int>((p.weights.rows + kTileRows - 1) / kTileRows),
          .col_blocks = col_blocks,
          .columns_per_group = per_group,
          .plain_groups = static_cast<int>((p.num_columns + per_group - 1) / per_group),
          .x_row_bytes = col_blocks * kBlockCols * 2 + kRowPad};
}

}  // namespace

SkinnyTile choose_skinny_tile(const Product& product, std::int64_t most_columns, int num_sms) {
  SkinnyTile tile{.token_tiles = most_columns > 8 ? 2 : 1};
  const bool three = product.weights.format == WeightFormat::mxfp4 && tile.token_tiles == 1;
  const int per_sm =
      three ? blocks_per_sm<WeightFormat::mxfp4, 1>() : blocks_per_sm<WeightFormat::bf16, 2>();
  const Layout layout = layout_of(product, tile);
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
  const Layout layout = layout_of(product, tile);
  const bool mxfp4 = product.weights.format == WeightFormat::mxfp4;
  if (tile.token_tiles == 1) {
    mxfp4 ? launch_skinny<WeightFormat::mxfp4, 1>(product, layout, tile, how)
          : launch_skinny<WeightFormat::bf16, 1>(product, layout, tile, how);
  } else {
    mxfp4 ? launch_skinny<WeightFormat::mxfp4, 2>(product, layout, tile, how)
          : launch_skinny<WeightFormat::bf16, 2>(product, layout, tile, how);
  }
}

}  // namespace gauntlet::kernels::cuda
