#include "model/files/tensor_writer.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/check.h"
#include "model/files/checked_math.h"
#include "model/mxfp4.h"
#include "model/quantized.h"

namespace gauntlet::model::inline files {
namespace {

template <class T>
void write_span(const std::vector<T>& values, FileWriter& file) {
  file.write(std::as_bytes(std::span(values)));
}

bool are_exact_in_bf16(const float* values, std::size_t count) {
  return std::all_of(values, values + count, [](float value) {
    return (std::bit_cast<std::uint32_t>(value) & 0xFFFFu) == 0;
  });
}

/// The bytes of a row as they lie in its file, without gaps.
void write_stored_row(const Matrix& matrix, std::int64_t row, FileWriter& file) {
  const std::byte* at = matrix.data + row * matrix.row_stride_bytes;
  const auto width = static_cast<std::size_t>(matrix.row_bytes());
  if (is_block_type(matrix.type) || matrix.col_stride_bytes == element_bytes(matrix.type)) {
    return file.write({at, width});
  }
  const std::int64_t size = element_bytes(matrix.type);
  std::vector<std::byte> packed(width);
  for (std::int64_t c = 0; c < matrix.cols; ++c) {
    std::memcpy(packed.data() + c * size, at + c * matrix.col_stride_bytes,
                static_cast<std::size_t>(size));
  }
  write_span(packed, file);
}

void write_mxfp4_row(const Matrix& matrix, std::int64_t row, FileWriter& file) {
  const std::int64_t blocks = matrix.cols / kMxfp4Block;
  std::vector<std::uint8_t> nibbles(static_cast<std::size_t>(blocks * kMxfp4NibbleBytes));
  std::vector<std::uint8_t> scales(static_cast<std::size_t>(blocks));
  matrix.read_row_mxfp4(row, nibbles.data(), scales.data());
  std::vector<std::uint8_t> halves(static_cast<std::size_t>(blocks * kMxfp4HalvesBytes));
  for (std::int64_t block = 0; block < blocks; ++block) {
    std::uint8_t* to = halves.data() + block * kMxfp4HalvesBytes;
    to[0] = scales[static_cast<std::size_t>(block)];
    neighbours_to_halves(nibbles.data() + block * kMxfp4NibbleBytes, to + 1);
  }
  write_span(halves, file);
}

}  // namespace

std::uint64_t PlannedTensor::bytes() const {
  const auto count = checked_count(shape);
  check(count.has_value(), "the size of a planned tensor fits");
  const auto values = static_cast<std::uint64_t>(*count);
  switch (type) {
    case TensorType::f32:
      return values * 4;
    case TensorType::f16:
    case TensorType::bf16:
      return values * 2;
    case TensorType::u8:
      return values;
    case TensorType::q8_0:
      return values / kQ8Block * kQ8BlockBytes;
    case TensorType::mxfp4:
      return values / kMxfp4Block * kMxfp4HalvesBytes;
    case TensorType::other:
      break;
  }
  fail("a planned tensor has a type that can be written");
}

void write_tensors(const std::vector<PlannedTensor>& tensors, std::uint64_t alignment,
                   FileWriter& file, const WriteProgress& progress) {
  const std::uint64_t start = file.written();
  std::uint64_t total = 0;
  for (const PlannedTensor& tensor : tensors) {
    total += (tensor.bytes() + alignment - 1) / alignment * alignment;
  }
  for (const PlannedTensor& tensor : tensors) {
    if (file.failed()) return;
    const std::uint64_t begin = file.written();
    tensor.write(file);
    check(file.written() - begin == tensor.bytes(), "a tensor is as long as was planned");
    file.pad_to(alignment);
    progress(file.written() - start, total);
  }
}

void write_row(const Matrix& matrix, std::int64_t row, TensorType type, FileWriter& file) {
  if (type == TensorType::mxfp4) return write_mxfp4_row(matrix, row, file);
  if (type == TensorType::bf16 && matrix.type == WeightType::bf16) {
    std::vector<std::uint16_t> values(static_cast<std::size_t>(matrix.cols));
    matrix.read_row_bf16(row, values.data());
    return write_span(values, file);
  }
  if (type == tensor_type(matrix.type)) return write_stored_row(matrix, row, file);
  Vector values(static_cast<std::size_t>(matrix.cols));
  matrix.read_row(row, values.data());
  write_values(values.data(), values.size(), type, file);
}

void write_values(const float* values, std::size_t count, TensorType type, FileWriter& file) {
  if (type == TensorType::f32) return file.write(std::as_bytes(std::span(values, count)));
  check(type == TensorType::bf16, "numbers are written as f32 or bf16");
  std::vector<std::uint16_t> bits(count);
  for (std::size_t i = 0; i < count; ++i) {
    bits[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(values[i]) >> 16);
  }
  write_span(bits, file);
}

bool is_exact_in_bf16(const Vector& values) {
  return are_exact_in_bf16(values.data(), values.size());
}

bool is_exact_in_bf16(const Matrix& matrix) {
  // A value of MXFP4 has two bits of mantissa.
  if (matrix.type == WeightType::bf16 || matrix.type == WeightType::mxfp4) return true;
  Vector row(static_cast<std::size_t>(matrix.cols));
  for (std::int64_t r = 0; r < matrix.rows; ++r) {
    matrix.read_row(r, row.data());
    if (!is_exact_in_bf16(row)) return false;
  }
  return true;
}

TensorType tensor_type(WeightType type) {
  switch (type) {
    case WeightType::f32:
      return TensorType::f32;
    case WeightType::f16:
      return TensorType::f16;
    case WeightType::bf16:
      return TensorType::bf16;
    case WeightType::q8_0:
      return TensorType::q8_0;
    case WeightType::mxfp4:
      return TensorType::mxfp4;
  }
  return TensorType::other;
}

}  // namespace gauntlet::model::inline files
