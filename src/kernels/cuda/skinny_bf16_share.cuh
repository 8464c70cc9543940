// A block's share of a bf16 product: which columns of a tile it takes, how its warps stream their
// weights, and its columns of x.
#pragma once
#include "kernels/cuda/skinny_schedule.cuh"
#include "ptx/cp_async.cuh"

namespace gauntlet::kernels::cuda {

constexpr int kShareWarps = 8;
constexpr int kShareThreads = kShareWarps * 32;

/// The blocks of 64 columns that a rank takes of every tile. Warps share them in parts; the first
/// `extra` parts have one more, and go to other warps from tile to tile.
struct ColumnShare {
  int first;
  int count;

  __device__ __forceinline__ ColumnShare(int col_blocks, int rank, int ranks)
      : first(col_blocks * rank / ranks), count(col_blocks * (rank + 1) / ranks - first) {}
  __device__ __forceinline__ int next_part(int part) const {
    const int extra = count % kShareWarps;
    return (part + kShareWarps - extra) % kShareWarps;
  }
};

/// A warp's loads, ahead of what it multiplies. A lane loads what it will read itself, so that
/// nobody waits for another lane.
class ShareStream {
 public:
  __device__ __forceinline__ ShareStream(const Product& p, const SkinnyLayout& layout,
                                         const Dealing& dealing, const ColumnShare& share,
                                         int begin, int end)
      : p_(p),
        layout_(layout),
        dealing_(dealing),
        share_(share),
        tiles_left_(end - begin),
        group_(begin / layout.row_tiles),
        tile_(begin - group_ * layout.row_tiles),
        part_(threadIdx.x / 32) {
    enter_group();
    enter_tile();
  }

  /// Starts the next copies, or an empty group where there are no more. `slot` is where this lane's
  /// first weights go.
  __device__ __forceinline__ void load(std::uint32_t slot) {
    if (tiles_left_ > 0) {
#pragma unroll
      for (int s = 0; s < 4; ++s) ptx::cp_async_16(slot + s * 512, from_ + s * 512);
      from_ += kShareWarps * kBf16BlockBytes;
      block_ += kShareWarps;
      if (block_ >= share_.count) {
        leave_tile();
        enter_tile();
      }
    }
    ptx::cp_async_commit_group();
  }

 private:
  __device__ __forceinline__ void enter_group() {
    if (p_.groups.num_experts > 0) {
      while (dealing_.group_end[expert_] <= group_) ++expert_;
    }
  }
  /// Or the next in which this warp has a part.
  __device__ __forceinline__ void enter_tile() {
    while (tiles_left_ > 0 && part_ >= share_.count) leave_tile();
    block_ = part_;
    const std::int64_t row_block = expert_ * p_.weights.row_blocks() + tile_ / kTilesPerBlock;
    from_ = p_.weights.data +
            (row_block * layout_.col_blocks + share_.first + part_) * kBf16BlockBytes +
            tile_ % kTilesPerBlock * kBf16TileBytes + threadIdx.x % 32 * 16;
  }
  __device__ __forceinline__ void leave_tile() {
    part_ = share_.next_part(part_);
    ++tile_;
    if (--tiles_left_ > 0 && tile_ == layout_.row_tiles) {
      tile_ = 0;
      ++group_;
      enter_group();
    }
  }

  const Product& p_;
  const SkinnyLayout& layout_;
  const Dealing& dealing_;
  const ColumnShare& share_;
  int tiles_left_;
  int group_, tile_;
  int part_;
  int expert_ = 0;
  int block_ = 0;  // of the share
  const std::uint8_t* from_ = nullptr;
};

/// Brings this rank's columns of x, by all threads of a block, several loads of each under way.
__device__ __forceinline__ void stage_share(const Product& p, const SkinnyLayout& layout,
                                            const ColumnShare& share, const SkinnyItem& item,
                                            std::uint8_t* x) {
  constexpr int kAtOnce = 8;
  const int pieces = share.count * (kBlockCols * 2 / 16);
  const int columns_on = kShareThreads / pieces, pieces_on = kShareThreads % pieces;
  int column = threadIdx.x / pieces, piece = threadIdx.x % pieces;
  while (column < item.num_columns) {
    uint4 held[kAtOnce];
    std::uint8_t* to[kAtOnce] = {};
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (column < item.num_columns) {
        const int slot = item.first_column + column;
        const std::int64_t row = p.groups.slot_token != nullptr ? p.groups.slot_token[slot] : slot;
        held[i] = *reinterpret_cast<const uint4*>(p.x + row * p.x_stride +
                                                  share.first * kBlockCols + piece * 8);
        to[i] = x + column * layout.x_row_bytes + piece * 16;
      }
      column += columns_on;
      piece += pieces_on;
      if (piece >= pieces) piece -= pieces, ++column;
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (to[i] != nullptr) *reinterpret_cast<uint4*>(to[i]) = held[i];
    }
  }
}

}  // namespace gauntlet::kernels::cuda
