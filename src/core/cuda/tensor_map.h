// Tensor maps: how a row-major matrix is described to the tile copies of Hopper and later GPUs.
#pragma once
#include <cuda.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/expected.h"

namespace gauntlet {

enum class TileSwizzle { none, bytes_32, bytes_64, bytes_128 };

struct TensorMap2d {
  const void* address = nullptr;  // on the device, a multiple of 16
  DType type = DType::f32;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_pitch_bytes = 0;  // a multiple of 16; 0: rows follow each other
  int box_rows = 0;                  // a tile, at most 256 each way
  int box_columns = 0;               // a multiple of 16 bytes, and no wider than the swizzle
  TileSwizzle swizzle = TileSwizzle::none;
};

/// Writes a map to pass to a kernel as `const __grid_constant__ CUtensorMap`. Loads read zero
/// outside the matrix. (Not returned: gcc remarks on every by-value use of a type aligned to 128
/// bytes.)
Expected<void> encode_tensor_map(const TensorMap2d& matrix, CUtensorMap& map);

}  // namespace gauntlet
