#include "model/weights.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"
#include "model/mxfp4.h"
#include "model/quantized.h"
#include "model/random_rows.h"

namespace gauntlet::model {
namespace {

// Files promise no alignment.
template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

const std::uint8_t* octets(const std::byte* bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes);
}

/// Reads elements of type T by stride; `widen` makes each a float.
template <class T, class Widen>
void read_elements(const std::byte* row, std::int64_t stride_bytes, std::int64_t count, float* out,
                   Widen widen) {
  if (stride_bytes == static_cast<std::int64_t>(sizeof(T))) {
    for (std::int64_t c = 0; c < count; ++c) {
      out[c] = widen(load<T>(row + c * static_cast<std::int64_t>(sizeof(T))));
    }
  } else {
    for (std::int64_t c = 0; c < count; ++c) out[c] = widen(load<T>(row + c * stride_bytes));
  }
}

void read_q8(const std::byte* row, std::int64_t count, float* out) {
  for (std::int64_t block = 0; block < count / kQ8Block; ++block) {
    const std::byte* at = row + block * kQ8BlockBytes;
    const float scale = f16_value(load<std::uint16_t>(at));
    for (std::int64_t j = 0; j < kQ8Block; ++j) {
      out[block * kQ8Block + j] = scale * static_cast<float>(load<std::int8_t>(at + 2 + j));
    }
  }
}

void read_mxfp4_halves(const std::byte* row, std::int64_t count, float* out) {
  for (std::int64_t block = 0; block < count / kMxfp4Block; ++block) {
    const std::uint8_t* at = octets(row + block * kMxfp4HalvesBytes);
    std::uint8_t nibbles[kMxfp4NibbleBytes];
    halves_to_neighbours(at + 1, nibbles);
    decode_mxfp4(nibbles, at, kMxfp4Block, out + block * kMxfp4Block);
  }
}

}  // namespace

void Matrix::read_row(std::int64_t row, float* out) const {
  check(row >= 0 && row < rows, "a row lies inside its matrix");
  if (is_random()) return read_random_row(*this, row, out);
  const std::byte* at = data + row * row_stride_bytes;
  switch (type) {
    case WeightType::f32:
      return read_elements<float>(at, col_stride_bytes, cols, out, [](float x) { return x; });
    case WeightType::f16:
      return read_elements<std::uint16_t>(at, col_stride_bytes, cols, out, f16_value);
    case WeightType::bf16:
      return read_elements<std::uint16_t>(at, col_stride_bytes, cols, out, bf16_value);
    case WeightType::q8_0:
      return read_q8(at, cols, out);
    case WeightType::mxfp4:
      if (order == Mxfp4Order::halves) return read_mxfp4_halves(at, cols, out);
      return decode_mxfp4(octets(at), octets(scales + row * scale_row_stride_bytes), cols, out);
  }
}

void Matrix::read_row_bf16(std::int64_t row, std::uint16_t* out) const {
  check(type == WeightType::bf16, "only a bf16 matrix has bf16 rows");
  check(row >= 0 && row < rows, "a row lies inside its matrix");
  if (is_random()) return read_random_row_bf16(*this, row, out);
  const std::byte* at = data + row * row_stride_bytes;
  if (col_stride_bytes == 2) {
    std::memcpy(out, at, static_cast<std::size_t>(cols) * 2);
    return;
  }
  for (std::int64_t c = 0; c < cols; ++c) out[c] = load<std::uint16_t>(at + c * col_stride_bytes);
}

void Matrix::read_row_mxfp4(std::int64_t row, std::uint8_t* nibbles,
                            std::uint8_t* scale_bytes) const {
  check(type == WeightType::mxfp4, "only an mxfp4 matrix has mxfp4 rows");
  check(row >= 0 && row < rows, "a row lies inside its matrix");
  if (is_random()) return read_random_row_mxfp4(*this, row, nibbles, scale_bytes);
  const std::byte* at = data + row * row_stride_bytes;
  const std::int64_t blocks = cols / kMxfp4Block;
  if (order == Mxfp4Order::neighbours) {
    std::memcpy(nibbles, at, static_cast<std::size_t>(blocks * kMxfp4NibbleBytes));
    std::memcpy(scale_bytes, scales + row * scale_row_stride_bytes,
                static_cast<std::size_t>(blocks));
    return;
  }
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::uint8_t* from = octets(at + block * kMxfp4HalvesBytes);
    scale_bytes[block] = from[0];
    halves_to_neighbours(from + 1, nibbles + block * kMxfp4NibbleBytes);
  }
}

std::int64_t Matrix::row_bytes() const { return stored_row_bytes(type, cols); }

void ModelWeights::release(const Matrix& matrix) const {
  if (!storage || !matrix.data || matrix.rows == 0 || matrix.cols == 0) return;
  const std::int64_t last_row = (matrix.rows - 1) * matrix.row_stride_bytes;
  const auto span = [](std::int64_t bytes) { return static_cast<std::size_t>(bytes); };
  if (!is_block_type(matrix.type)) {
    const std::int64_t last_col = (matrix.cols - 1) * matrix.col_stride_bytes;
    storage->release(matrix.data, span(last_row + last_col + element_bytes(matrix.type)));
    return;
  }
  const std::int64_t scale_bytes = matrix.scales ? matrix.cols / kMxfp4Block : 0;
  storage->release(matrix.data, span(last_row + matrix.row_bytes() - scale_bytes));
  if (matrix.scales) {
    storage->release(matrix.scales,
                     span((matrix.rows - 1) * matrix.scale_row_stride_bytes + scale_bytes));
  }
}

void ModelWeights::release(const Matrix& matrix, std::int64_t first_row, std::int64_t rows) const {
  if (!matrix.data) return;
  Matrix part = matrix;
  part.rows = rows;
  part.data += first_row * matrix.row_stride_bytes;
  if (part.scales) part.scales += first_row * matrix.scale_row_stride_bytes;
  release(part);
}

}  // namespace gauntlet::model
