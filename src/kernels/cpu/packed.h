// Weights as the CPU kernels read them: rows in groups of sixteen, one row per SIMD lane, so that a
// product needs no reduction across lanes and every output is summed in one fixed order.
#pragma once
#include <cstdint>

namespace gauntlet::kernels::cpu {

inline constexpr int kGroupRows = 16;
inline constexpr int kBlock = 32;  // elements that share a scale, of MXFP4 and of int8

/// A group of sixteen rows is a row of units of 64 bytes, one word per lane:
///  f32    a unit per column
///  bf16   a unit per pair of columns (cols rounded up to even, zero-filled)
///  mxfp4  a unit per eight columns: byte j of a word has element j in its low and element 4 + j in
///         its high nibble. Scales apart: sixteen bytes per 32 columns.
///  int8   a unit per four columns: bytes 128 above their value. Scales as those of mxfp4.
/// Four groups make a tile, whose units alternate, so that a product over it reads one stream: four
/// streams reach little more than half of the bandwidth of one. Groups left over lie by themselves.
enum class PackedFormat { f32, bf16, mxfp4, int8 };

inline constexpr int kTileGroups = 4;
inline constexpr int kUnitBytes = 64;

/// Where a group's units and scales begin, and how far apart they are.
struct GroupPlace {
  std::int64_t offset;
  std::int64_t step;
  std::int64_t scale_offset;
  std::int64_t scale_step;
};

struct PackedMatrix {
  PackedFormat format = PackedFormat::bf16;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  const std::uint8_t* data = nullptr;
  const std::uint8_t* scales = nullptr;

  std::int64_t num_groups() const { return (rows + kGroupRows - 1) / kGroupRows; }
  std::int64_t group_bytes() const {
    switch (format) {
      case PackedFormat::f32:
        return cols * kGroupRows * 4;
      case PackedFormat::bf16:
        return (cols + 1) / 2 * kGroupRows * 4;
      case PackedFormat::mxfp4:
        return cols / 2 * kGroupRows;
      case PackedFormat::int8:
        return cols * kGroupRows;
    }
    return 0;
  }
  std::int64_t group_scale_bytes() const {
    const bool has_scales = format == PackedFormat::mxfp4 || format == PackedFormat::int8;
    return has_scales ? cols / kBlock * kGroupRows : 0;
  }
  /// Whether this group begins a whole tile.
  bool begins_tile(std::int64_t group) const {
    return group % kTileGroups == 0 && group + kTileGroups <= num_groups();
  }
  GroupPlace place(std::int64_t group) const {
    const std::int64_t first = group / kTileGroups * kTileGroups;
    const std::int64_t within = group - first;
    if (begins_tile(first)) {
      return {first * group_bytes() + within * kUnitBytes, kTileGroups * kUnitBytes,
              first * group_scale_bytes() + within * kGroupRows, kTileGroups * kGroupRows};
    }
    return {group * group_bytes(), kUnitBytes, group * group_scale_bytes(), kGroupRows};
  }
  /// Bytes that one product with this matrix has to read.
  std::int64_t bytes() const { return num_groups() * (group_bytes() + group_scale_bytes()); }
};

/// Where one row of a group goes: its word in the group's first unit, and its first scale byte.
struct RowPlace {
  std::uint8_t* words;
  std::int64_t step;
  std::uint8_t* scales;
  std::int64_t scale_step;
};
/// Writes a row from one of the matching type.
void pack_row_f32(const float* row, std::int64_t cols, const RowPlace& place);
void pack_row_bf16(const std::uint16_t* row, std::int64_t cols, const RowPlace& place);
/// From MXFP4 with neighbours in a byte, low nibble first.
void pack_row_mxfp4(const std::uint8_t* nibbles, const std::uint8_t* scale_bytes, std::int64_t cols,
                    const RowPlace& place);

/// The place of a row of `matrix` in memory that is being filled.
RowPlace row_place(const PackedMatrix& matrix, std::int64_t row, std::uint8_t* data,
                   std::uint8_t* scales);

}  // namespace gauntlet::kernels::cpu
