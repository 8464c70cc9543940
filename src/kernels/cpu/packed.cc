#include "kernels/cpu/packed.h"

#include <cstring>

namespace gauntlet::kernels::cpu {

std::int64_t PackedMatrix::group_bytes() const {
  switch (format) {
    case PackedFormat::f32:
      return cols * kGroupRows * 4;
    case PackedFormat::bf16:
      return (cols + 1) / 2 * kGroupRows * 4;
    case PackedFormat::mxfp4:
      return cols / 2 * kGroupRows;
  }
  return 0;
}

std::int64_t PackedMatrix::group_scale_bytes() const {
  return format == PackedFormat::mxfp4 ? cols / kBlock * kGroupRows : 0;
}

void pack_row_f32(const float* row, std::int64_t cols, int lane, std::uint8_t* group) {
  for (std::int64_t c = 0; c < cols; ++c) {
    std::memcpy(group + (c * kGroupRows + lane) * 4, row + c, 4);
  }
}

void pack_row_bf16(const std::uint16_t* row, std::int64_t cols, int lane, std::uint8_t* group) {
  for (std::int64_t c = 0; c < cols; c += 2) {
    const std::uint16_t pair[2] = {row[c], c + 1 < cols ? row[c + 1] : std::uint16_t{0}};
    std::memcpy(group + (c / 2 * kGroupRows + lane) * 4, pair, 4);
  }
}

void pack_row_mxfp4(const std::uint8_t* nibbles, const std::uint8_t* scale_bytes, std::int64_t cols,
                    int lane, std::uint8_t* group, std::uint8_t* scales) {
  for (std::int64_t v = 0; v < cols / 8; ++v) {
    // Four bytes hold eight neighbours: bring element j beside element j + 4.
    std::uint32_t in;
    std::memcpy(&in, nibbles + v * 4, 4);
    std::uint32_t out = 0;
    for (int j = 0; j < 4; ++j) {
      const std::uint32_t first = (in >> (4 * j)) & 15;
      const std::uint32_t second = (in >> (4 * (j + 4))) & 15;
      out |= (first | second << 4) << (8 * j);
    }
    std::memcpy(group + (v * kGroupRows + lane) * 4, &out, 4);
  }
  for (std::int64_t b = 0; b < cols / kBlock; ++b) scales[b * kGroupRows + lane] = scale_bytes[b];
}

}  // namespace gauntlet::kernels::cpu
