// How the warps of a bf16 product share the columns of a tile and stream their weights through
// rings in shared memory.
#pragma once
#include "kernels/cuda/product/decode_schedule.cuh"
#include "ptx/cp_async.cuh"

namespace gauntlet::kernels::cuda::inline product {

constexpr int kBf16Warps = 8;
constexpr int kBf16Threads = kBf16Warps * 32;

/// Warps share a tile's blocks of 64 columns in parts; the first parts have one more where they do
/// not divide, and go to other warps from tile to tile.
__device__ __forceinline__ int next_part(int part, int col_blocks) {
  return (part + kBf16Warps - col_blocks % kBf16Warps) % kBf16Warps;
}

/// A warp's loads, ahead of what it multiplies. A lane loads what it will read itself, so that
/// nobody waits for another lane.
class RingStream {
 public:
  __device__ __forceinline__ RingStream(const Product& p, const DecodeLayout& layout,
                                        const ColumnGroups& column_groups, int begin, int end)
      : p_(p),
        layout_(layout),
        column_groups_(column_groups),
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
      from_ += kBf16Warps * kBf16BlockBytes;
      block_ += kBf16Warps;
      if (block_ >= layout_.col_blocks) {
        leave_tile();
        enter_tile();
      }
    }
    ptx::cp_async_commit_group();
  }

 private:
  __device__ __forceinline__ void enter_group() {
    if (p_.groups.num_experts > 0) {
      while (column_groups_.group_end[expert_] <= group_) ++expert_;
    }
  }
  /// Or the next in which this warp has a part.
  __device__ __forceinline__ void enter_tile() {
    while (tiles_left_ > 0 && part_ >= layout_.col_blocks) leave_tile();
    block_ = part_;
    const std::int64_t row_block = expert_ * p_.weights.row_blocks() + tile_ / kTilesPerBlock;
    from_ = p_.weights.data + (row_block * layout_.col_blocks + part_) * kBf16BlockBytes +
            tile_ % kTilesPerBlock * kBf16TileBytes + threadIdx.x % 32 * 16;
  }
  __device__ __forceinline__ void leave_tile() {
    part_ = next_part(part_, layout_.col_blocks);
    ++tile_;
    if (--tiles_left_ > 0 && tile_ == layout_.row_tiles) {
      tile_ = 0;
      ++group_;
      enter_group();
    }
  }

  const Product& p_;
  const DecodeLayout& layout_;
  const ColumnGroups& column_groups_;
  int tiles_left_;
  int group_, tile_;
  int part_;
  int expert_ = 0;
  int block_ = 0;
  const std::uint8_t* from_ = nullptr;
};

}  // namespace gauntlet::kernels::cuda::inline product
