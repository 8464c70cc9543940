#include "core/cuda/tensor_map.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <utility>

namespace gauntlet {
namespace {

using EncodeTiled = decltype(&cuTensorMapEncodeTiled);

// Through the runtime, so that the binary links no driver library and starts on machines without
// one.
EncodeTiled find_encoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t status = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function,
                                                              12000, cudaEnableDefault, &found);
  if (status != cudaSuccess || found != cudaDriverEntryPointSuccess) return nullptr;
  return reinterpret_cast<EncodeTiled>(function);
}

CUtensorMapDataType element_type(DType type) {
  switch (type) {
    case DType::f64:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
    case DType::f32:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case DType::tf32:
      return CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
    case DType::f16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case DType::bf16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case DType::i64:
      return CU_TENSOR_MAP_DATA_TYPE_INT64;
    case DType::i32:
      return CU_TENSOR_MAP_DATA_TYPE_INT32;
    case DType::u64:
      return CU_TENSOR_MAP_DATA_TYPE_UINT64;
    case DType::u32:
      return CU_TENSOR_MAP_DATA_TYPE_UINT32;
    case DType::i16:
    case DType::u16:
      return CU_TENSOR_MAP_DATA_TYPE_UINT16;
    case DType::f8e4m3:
    case DType::f8e5m2:
    case DType::i8:
    case DType::u8:
      return CU_TENSOR_MAP_DATA_TYPE_UINT8;
  }
  fail("unknown element type");
}

struct Swizzle {
  CUtensorMapSwizzle mode;
  std::int64_t max_bytes;  // widest box row; 0: no limit
};

Swizzle swizzle_of(TileSwizzle swizzle) {
  switch (swizzle) {
    case TileSwizzle::none:
      return {CU_TENSOR_MAP_SWIZZLE_NONE, 0};
    case TileSwizzle::bytes_32:
      return {CU_TENSOR_MAP_SWIZZLE_32B, 32};
    case TileSwizzle::bytes_64:
      return {CU_TENSOR_MAP_SWIZZLE_64B, 64};
    case TileSwizzle::bytes_128:
      return {CU_TENSOR_MAP_SWIZZLE_128B, 128};
  }
  fail("unknown tile swizzle");
}

// The driver answers every fault with "invalid value"; this says which rule was broken.
std::optional<Error> refuse(const TensorMap2d& m, std::int64_t pitch_bytes) {
  const auto error = [](std::string message) {
    return Error{.message = std::move(message), .kind = ErrorKind::wrong_use};
  };
  const auto element_bytes = static_cast<std::int64_t>(size_of(m.type));
  const std::int64_t max_extent = std::int64_t{1} << 32;
  const std::int64_t max_pitch_bytes = std::int64_t{1} << 40;
  if (reinterpret_cast<std::uintptr_t>(m.address) % 16 != 0) {
    return error("tensor map: the matrix must start at a multiple of 16 bytes");
  }
  if (m.rows < 1 || m.columns < 1 || m.rows > max_extent || m.columns > max_extent) {
    return error(fmt::format("tensor map: {} x {} elements; each extent must be in 1..2^32", m.rows,
                             m.columns));
  }
  if (pitch_bytes % 16 != 0 || pitch_bytes < m.columns * element_bytes ||
      pitch_bytes >= max_pitch_bytes) {
    return error(fmt::format(
        "tensor map: a row pitch of {} bytes; it must be a multiple of 16, hold a row and be under "
        "2^40",
        pitch_bytes));
  }
  if (m.box_rows < 1 || m.box_rows > 256 || m.box_columns < 1 || m.box_columns > 256) {
    return error(fmt::format("tensor map: a box of {} x {}; each side must be in 1..256",
                             m.box_rows, m.box_columns));
  }
  const std::int64_t box_bytes = m.box_columns * element_bytes;
  const std::int64_t max_bytes = swizzle_of(m.swizzle).max_bytes;
  if (box_bytes % 16 != 0 || (max_bytes != 0 && box_bytes > max_bytes)) {
    return error(fmt::format(
        "tensor map: a box row of {} bytes; it must be a multiple of 16 and fit the swizzle",
        box_bytes));
  }
  return std::nullopt;
}

}  // namespace

Expected<void> encode_tensor_map(const TensorMap2d& matrix, CUtensorMap& map) {
  const std::int64_t pitch_bytes =
      matrix.row_pitch_bytes != 0
          ? matrix.row_pitch_bytes
          : matrix.columns * static_cast<std::int64_t>(size_of(matrix.type));
  if (auto error = refuse(matrix, pitch_bytes)) return *error;
  const EncodeTiled encode = find_encoder();
  if (encode == nullptr) {
    return Error{
        "tensor map: this driver has no cuTensorMapEncodeTiled; it needs CUDA 12 or later"};
  }

  // Fastest dimension first; the stride of that one is implied.
  const std::array<cuuint64_t, 2> extents{static_cast<cuuint64_t>(matrix.columns),
                                          static_cast<cuuint64_t>(matrix.rows)};
  const std::array<cuuint64_t, 1> strides_bytes{static_cast<cuuint64_t>(pitch_bytes)};
  const std::array<cuuint32_t, 2> box{static_cast<cuuint32_t>(matrix.box_columns),
                                      static_cast<cuuint32_t>(matrix.box_rows)};
  const std::array<cuuint32_t, 2> element_strides{1, 1};
  const CUresult status =
      encode(&map, element_type(matrix.type), 2, const_cast<void*>(matrix.address), extents.data(),
             strides_bytes.data(), box.data(), element_strides.data(),
             CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(matrix.swizzle).mode,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) {
    return Error{fmt::format("tensor map: cuTensorMapEncodeTiled failed with CUDA error {}",
                             static_cast<int>(status))};
  }
  return {};
}

}  // namespace gauntlet
