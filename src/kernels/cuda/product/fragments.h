// Weights in the order in which tensor cores take them. A matrix is cut into blocks of 64 rows by
// 64 columns; a block is four tiles of 16 rows, and a lane finds its operands of an m16k16 step in
// one 16-byte load (bf16), those of four steps in one (MXFP4).
#pragma once
#include <cstdint>

#if defined(__CUDACC__)
#define GAUNTLET_HOST_DEVICE __host__ __device__
#else
#define GAUNTLET_HOST_DEVICE
#endif

namespace gauntlet::kernels::cuda::inline product {

enum class WeightFormat { bf16, mxfp4 };

inline constexpr int kBlockRows = 64;
inline constexpr int kBlockCols = 64;
inline constexpr int kTileRows = 16;
inline constexpr int kTilesPerBlock = kBlockRows / kTileRows;
inline constexpr int kBf16TileBytes = 2048;  // 4 steps x 32 lanes x 16 bytes
inline constexpr int kBf16BlockBytes = 8192;
inline constexpr int kMxfp4TileBytes = 512;  // 32 lanes x 4 steps x 4 bytes
inline constexpr int kMxfp4ScaleBytes = 32;  // of a tile: 8 rows x {r, r + 8} x 2 blocks
inline constexpr int kMxfp4BlockBytes = 4 * (kMxfp4TileBytes + kMxfp4ScaleBytes);  // nibbles first

/// Decoded weights are 2^-64 of what they stand for, so that the factor of any scale up to 2^65 is
/// a bf16 number. Sums are multiplied by this at their end.
inline constexpr float kMxfp4Unit = 0x1p64f;
/// A stored scale byte is the exponent field of the bf16 factor: the file's E8M0 byte plus this.
inline constexpr int kMxfp4ScaleBias = 62;
inline constexpr int kMxfp4LargestScale = 192;

/// How the rows of a matrix are assigned to tiles.
enum class RowOrder {
  plain,   // row r is row r % 16 of tile r / 16
  paired,  // rows r < n/2 and r + n/2 stand 8 apart in one tile: gates 8j..8j+7, then their ups
};

/// A matrix on the device; rows and columns are padded with zeros to whole blocks. Several of one
/// shape (experts) follow one another.
struct FragmentMatrix {
  WeightFormat format = WeightFormat::bf16;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  const std::uint8_t* data = nullptr;  // block (r, c) is number r * col_blocks + c

  GAUNTLET_HOST_DEVICE std::int64_t row_blocks() const {
    return (rows + kBlockRows - 1) / kBlockRows;
  }
  GAUNTLET_HOST_DEVICE std::int64_t col_blocks() const {
    return (cols + kBlockCols - 1) / kBlockCols;
  }
  GAUNTLET_HOST_DEVICE std::int64_t block_bytes() const {
    return format == WeightFormat::bf16 ? kBf16BlockBytes : kMxfp4BlockBytes;
  }
  GAUNTLET_HOST_DEVICE std::int64_t bytes() const {
    return row_blocks() * col_blocks() * block_bytes();
  }
};

/// Where an element lies among the operands of one lane: register i of a step holds two neighbours
/// along a row, `half` tells which.
struct FragmentPlace {
  std::int64_t block;
  int tile;  // of the block
  int step;  // of 16 columns
  int lane;
  int reg;
  int half;
};

GAUNTLET_HOST_DEVICE inline FragmentPlace fragment_place(std::int64_t row, std::int64_t col,
                                                         std::int64_t col_blocks) {
  const int in_row = static_cast<int>(row % kTileRows), in_col = static_cast<int>(col % 16);
  return {.block = row / kBlockRows * col_blocks + col / kBlockCols,
          .tile = static_cast<int>(row % kBlockRows) / kTileRows,
          .step = static_cast<int>(col % kBlockCols) / 16,
          .lane = in_row % 8 * 4 + in_col % 8 / 2,
          .reg = in_row / 8 + in_col / 8 * 2,
          .half = in_col % 2};
}

/// Byte offset of a bf16 element.
GAUNTLET_HOST_DEVICE inline std::int64_t bf16_offset(const FragmentPlace& p) {
  return p.block * kBf16BlockBytes + p.tile * kBf16TileBytes + p.step * 512 + p.lane * 16 +
         p.reg * 4 + p.half * 2;
}

/// Byte offset of the 32-bit word that holds an FP4 element, a lane's eight of a step.
GAUNTLET_HOST_DEVICE inline std::int64_t mxfp4_word_offset(const FragmentPlace& p) {
  return p.block * kMxfp4BlockBytes + p.tile * kMxfp4TileBytes + p.lane * 16 + p.step * 4;
}

/// Byte offset of the scale of 32 elements.
GAUNTLET_HOST_DEVICE inline std::int64_t mxfp4_scale_offset(const FragmentPlace& p) {
  return p.block * kMxfp4BlockBytes + 4 * kMxfp4TileBytes + p.tile * kMxfp4ScaleBytes +
         p.lane / 4 * 4 + p.reg % 2 * 2 + p.step / 2;
}

/// An FP4 value (sign, two exponent bits, one mantissa bit) becomes bf16 at bits 15, 8, 7 and 6 of
/// its half. In its word, register 0's values lie there, register 1's are turned left by 6 bits and
/// register 2's shifted right by 6; what those leave is register 3's, turned left by 4 bits but for
/// the upper exponent bit, shifted right by 4. No other order takes fewer instructions to undo.
GAUNTLET_HOST_DEVICE inline std::uint32_t spread_fp4(std::uint32_t nibble, int reg, int half) {
  const std::uint32_t bf16 = ((nibble >> 3 & 1) << 15 | (nibble & 7) << 6) << (16 * half);
  const std::uint32_t upper_exponent = bf16 & 0x01000100u, rest = bf16 & 0x80C080C0u;
  switch (reg) {
    case 0:
      return bf16;
    case 1:
      return bf16 << 6 | bf16 >> 26;
    case 2:
      return bf16 >> 6;
    default:
      return (rest << 4 | rest >> 28) | upper_exponent >> 4;
  }
}

}  // namespace gauntlet::kernels::cuda::inline product
