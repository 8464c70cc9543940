// Weights as the CPU kernels read them: rows in groups of sixteen, one row per SIMD lane, so that a
// product needs no reduction across lanes and every output is summed in one fixed order.
#pragma once
#include <cstdint>

namespace gauntlet::kernels::cpu {

inline constexpr int kGroupRows = 16;
inline constexpr int kBlock = 32;  // elements that share an MXFP4 scale, and an int8 one

/// How a group of sixteen rows lies in memory:
///  f32    [cols][16] floats
///  bf16   [cols/2][16] pairs of neighbours (cols rounded up to even, zero-filled)
///  mxfp4  [cols/32][4][16] words; word v holds elements 8v..8v+7 of its row: byte j has element
///         8v+j in its low and 8v+4+j in its high nibble. Scales apart: [cols/32][16] bytes.
enum class PackedFormat { f32, bf16, mxfp4 };

struct PackedMatrix {
  PackedFormat format = PackedFormat::bf16;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  const std::uint8_t* data = nullptr;
  const std::uint8_t* scales = nullptr;

  std::int64_t num_groups() const { return (rows + kGroupRows - 1) / kGroupRows; }
  std::int64_t group_bytes() const;
  std::int64_t group_scale_bytes() const;
  /// Bytes that one product with this matrix has to read.
  std::int64_t bytes() const { return num_groups() * (group_bytes() + group_scale_bytes()); }
};

/// Writes row `lane` of a group, from a row of the matching type.
void pack_row_f32(const float* row, std::int64_t cols, int lane, std::uint8_t* group);
void pack_row_bf16(const std::uint16_t* row, std::int64_t cols, int lane, std::uint8_t* group);
/// From MXFP4 with neighbours in a byte, low nibble first.
void pack_row_mxfp4(const std::uint8_t* nibbles, const std::uint8_t* scale_bytes, std::int64_t cols,
                    int lane, std::uint8_t* group, std::uint8_t* scales);

}  // namespace gauntlet::kernels::cpu
