#include "core/cuda/tensor_map.h"

namespace gauntlet {

Expected<void> encode_tensor_map(const TensorMap2d& matrix, CUtensorMap& map) {
  const auto size = static_cast<std::int64_t>(size_of(matrix.type));
  const std::int64_t pitch_bytes =
      matrix.row_pitch_bytes == 0 ? matrix.columns * size : matrix.row_pitch_bytes;
  const std::int64_t box_bytes = matrix.box_columns * size;
  if (reinterpret_cast<std::uintptr_t>(matrix.address) % 16 != 0 || pitch_bytes % 16 != 0) {
    return Error{"rows of a tensor map begin at multiples of 16 bytes"};
  }
  if (matrix.box_rows < 1 || matrix.box_rows > 256 || box_bytes % 16 != 0 || box_bytes > 128) {
    return Error{"no box of a tensor map"};
  }
  if (matrix.swizzle != TileSwizzle::bytes_128) return Error{"a swizzle that is not emulated"};
  map = {.address = static_cast<const unsigned char*>(matrix.address),
         .type = matrix.type,
         .rows = matrix.rows,
         .columns = matrix.columns,
         .pitch_bytes = pitch_bytes,
         .box_rows = matrix.box_rows,
         .box_columns = matrix.box_columns,
         .swizzled = true};
  return {};
}

}  // namespace gauntlet
