#include "kernels/cpu/packed.h"

#include <cstring>

namespace gauntlet::kernels::cpu {

RowPlace row_place(const PackedMatrix& matrix, std::int64_t row, std::uint8_t* data,
                   std::uint8_t* scales) {
  const GroupPlace group = matrix.place(row / kGroupRows);
  const std::int64_t lane = row % kGroupRows;
  // Formats without scales may come without memory for them.
  std::uint8_t* scale =
      matrix.group_scale_bytes() > 0 ? scales + group.scale_offset + lane : nullptr;
  return {data + group.offset + lane * 4, group.step, scale, group.scale_step};
}

void pack_row_f32(const float* row, std::int64_t cols, const RowPlace& place) {
  for (std::int64_t c = 0; c < cols; ++c) std::memcpy(place.words + c * place.step, row + c, 4);
}

void pack_row_bf16(const std::uint16_t* row, std::int64_t cols, const RowPlace& place) {
  for (std::int64_t c = 0; c < cols; c += 2) {
    const std::uint16_t pair[2] = {row[c], c + 1 < cols ? row[c + 1] : std::uint16_t{0}};
    std::memcpy(place.words + c / 2 * place.step, pair, 4);
  }
}

void pack_row_mxfp4(const std::uint8_t* nibbles, const std::uint8_t* scale_bytes, std::int64_t cols,
                    const RowPlace& place) {
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
    std::memcpy(place.words + v * place.step, &out, 4);
  }
  for (std::int64_t b = 0; b < cols / kBlock; ++b)
    place.scales[b * place.scale_step] = scale_bytes[b];
}

}  // namespace gauntlet::kernels::cpu
