// Tiles of 64 rows and of some columns, 64 deep, in shared memory as bf16; and the two ways to
// multiply them. Both sum along a row in its order, one column beside another.
#pragma once
#include "kernels/cuda/bf16_pair.cuh"
#include "kernels/cuda/product/plain_product.h"
#include "ptx/ldmatrix.cuh"
#include "ptx/mma.cuh"

namespace gauntlet::kernels::cuda::inline product {

inline constexpr int kPlainRows = 64;
inline constexpr int kPlainDepth = 64;
inline constexpr int kPlainThreads = 128;
inline constexpr int kPlainChunks = kPlainDepth / 8;  // of 16 bytes, in a row
/// One chunk more than a row has, so that eight rows' chunks of one column fall on all banks.
inline constexpr int kPlainPitch = kPlainChunks + 1;

template <int kColumns>
struct PlainTiles {
  uint4 weights[kPlainRows][kPlainPitch];
  uint4 x[kColumns][kPlainPitch];
  int x_rows[kColumns];  // of the product's x; -1: beyond the last column
};

__device__ __forceinline__ float fp4_float(std::uint32_t nibble) {
  // Exponent and mantissa where a float has them make 2^-126 of the value, subnormals included.
  return __uint_as_float((nibble & 8) << 28 | (nibble & 7) << 22) * 0x1p126f;
}

__device__ __forceinline__ float e8m0_float(std::uint32_t byte) {
  return __uint_as_float(byte == 0 ? 0x00400000u : byte << 23);
}

/// A thread's part of a tile of weights, between memory and shared memory.
template <WeightFormat kFormat>
struct PlainPart;

template <>
struct PlainPart<WeightFormat::bf16> {
  static constexpr int kOwn = kPlainRows * kPlainChunks / kPlainThreads;
  uint4 chunks[kOwn];

  __device__ __forceinline__ void load(const PlainMatrix& matrix, const std::uint8_t* data,
                                       const std::uint8_t* /*scales*/, int first_row,
                                       int first_col) {
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const int own = threadIdx.x + i * kPlainThreads;
      const int row = first_row + own / kPlainChunks, col = first_col + own % kPlainChunks * 8;
      const bool inside = row < matrix.rows && col < matrix.cols;
      chunks[i] = inside
                      ? __ldg(reinterpret_cast<const uint4*>(data + (row * matrix.cols + col) * 2))
                      : uint4{};
    }
  }
  __device__ __forceinline__ void store(uint4 (&tile)[kPlainRows][kPlainPitch]) const {
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const int own = threadIdx.x + i * kPlainThreads;
      tile[own / kPlainChunks][own % kPlainChunks] = chunks[i];
    }
  }
};

template <>
struct PlainPart<WeightFormat::mxfp4> {
  static constexpr int kPerRow = kPlainDepth / 32;
  static_assert(kPlainRows * kPerRow == kPlainThreads, "a thread decodes one scale's 32 elements");
  uint4 nibbles;
  std::uint32_t scale;

  __device__ __forceinline__ void load(const PlainMatrix& matrix, const std::uint8_t* data,
                                       const std::uint8_t* scales, int first_row, int first_col) {
    const int row = first_row + threadIdx.x / kPerRow;
    const int col = first_col + threadIdx.x % kPerRow * 32;
    const bool inside = row < matrix.rows && col < matrix.cols;
    const std::int64_t block = (row * matrix.cols + col) / 32;
    nibbles = inside ? __ldg(reinterpret_cast<const uint4*>(data) + block) : uint4{};
    scale = inside ? __ldg(scales + block) : 0;
  }
  __device__ __forceinline__ void store(uint4 (&tile)[kPlainRows][kPlainPitch]) const {
    const float factor = e8m0_float(scale);
    const auto pair = [&](std::uint32_t byte) {
      return pack_bf16(fp4_float(byte) * factor, fp4_float(byte >> 4) * factor);
    };
    const std::uint32_t words[4] = {nibbles.x, nibbles.y, nibbles.z, nibbles.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      tile[threadIdx.x / kPerRow][threadIdx.x % kPerRow * 4 + i] = {
          pair(words[i]), pair(words[i] >> 8), pair(words[i] >> 16), pair(words[i] >> 24)};
    }
  }
};

/// A thread's part of a tile of columns.
template <int kColumns>
struct PlainInput {
  static constexpr int kOwn = kColumns * kPlainChunks / kPlainThreads;
  static_assert(kOwn * kPlainThreads == kColumns * kPlainChunks);
  uint4 chunks[kOwn];

  __device__ __forceinline__ void load(const PlainProduct& p, const int (&rows)[kColumns],
                                       int first_col) {
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const int own = threadIdx.x + i * kPlainThreads;
      const int row = rows[own / kPlainChunks], col = first_col + own % kPlainChunks * 8;
      const bool inside = row >= 0 && col < p.weights.cols;
      chunks[i] = inside ? *reinterpret_cast<const uint4*>(p.x + row * p.x_stride + col) : uint4{};
    }
  }
  __device__ __forceinline__ void store(uint4 (&tile)[kColumns][kPlainPitch]) const {
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const int own = threadIdx.x + i * kPlainThreads;
      tile[own / kPlainChunks][own % kPlainChunks] = chunks[i];
    }
  }
};

/// A thread's sums of a tile. multiply() adds 64 products to each, each() visits them as
/// (row, column, sum).
template <PlainUnit kUnit, int kColumns>
struct PlainSums;

/// Threads hold 4 rows, 16 apart, of every eighth column.
template <int kColumns>
struct PlainSums<PlainUnit::cuda_cores, kColumns> {
  static constexpr int kRowThreads = 16;
  static constexpr int kColumnThreads = kPlainThreads / kRowThreads;
  static constexpr int kOwnRows = kPlainRows / kRowThreads;
  static constexpr int kOwnColumns = kColumns / kColumnThreads;
  float sums[kOwnRows][kOwnColumns] = {};

  static __device__ __forceinline__ void widen(const uint4& chunk, float (&to)[8]) {
    const float2 a = unpack_bf16(chunk.x), b = unpack_bf16(chunk.y);
    const float2 c = unpack_bf16(chunk.z), d = unpack_bf16(chunk.w);
    to[0] = a.x, to[1] = a.y, to[2] = b.x, to[3] = b.y;
    to[4] = c.x, to[5] = c.y, to[6] = d.x, to[7] = d.y;
  }
  __device__ __forceinline__ void multiply(const PlainTiles<kColumns>& tiles) {
    const int row = threadIdx.x % kRowThreads, column = threadIdx.x / kRowThreads;
#pragma unroll 1
    for (int chunk = 0; chunk < kPlainChunks; ++chunk) {
      float w[kOwnRows][8];
#pragma unroll
      for (int i = 0; i < kOwnRows; ++i) widen(tiles.weights[row + i * kRowThreads][chunk], w[i]);
#pragma unroll
      for (int j = 0; j < kOwnColumns; ++j) {
        float x[8];
        widen(tiles.x[column + j * kColumnThreads][chunk], x);
#pragma unroll
        for (int k = 0; k < 8; ++k) {
#pragma unroll
          for (int i = 0; i < kOwnRows; ++i) sums[i][j] += w[i][k] * x[k];
        }
      }
    }
  }
  template <class Visit>
  __device__ __forceinline__ void each(const Visit& visit) const {
    const int row = threadIdx.x % kRowThreads, column = threadIdx.x / kRowThreads;
#pragma unroll
    for (int j = 0; j < kOwnColumns; ++j) {
#pragma unroll
      for (int i = 0; i < kOwnRows; ++i) {
        visit(row + i * kRowThreads, column + j * kColumnThreads, sums[i][j]);
      }
    }
  }
};

/// A warp holds 16 rows of all columns.
template <int kColumns>
struct PlainSums<PlainUnit::tensor_cores, kColumns> {
  static_assert(kPlainRows == kPlainThreads / 32 * 16 && kColumns % 16 == 0);
  float sums[kColumns / 8][4] = {};

  __device__ __forceinline__ void multiply(const PlainTiles<kColumns>& tiles) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    constexpr unsigned kStepBytes = 32, kPitchBytes = kPlainPitch * sizeof(uint4);
    const auto row = ptx::shared_address(&tiles.weights[warp * 16 + lane % 16][lane / 16]);
    const auto column = ptx::shared_address(&tiles.x[lane / 16 * 8 + lane % 8][lane / 8 % 2]);
#pragma unroll
    for (int step = 0; step < kPlainDepth / 16; ++step) {
      std::uint32_t a[4];
      ptx::ldmatrix_x4(a, row + step * kStepBytes);
#pragma unroll
      for (int n = 0; n < kColumns / 16; ++n) {
        std::uint32_t b[4];
        ptx::ldmatrix_x4(b, column + n * 16 * kPitchBytes + step * kStepBytes);
        ptx::mma_m16n8k16_bf16(sums[2 * n], a, {b[0], b[1]});
        ptx::mma_m16n8k16_bf16(sums[2 * n + 1], a, {b[2], b[3]});
      }
    }
  }
  template <class Visit>
  __device__ __forceinline__ void each(const Visit& visit) const {
    const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
#pragma unroll
    for (int n = 0; n < kColumns / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) visit(row + i / 2 * 8, n * 8 + column + i % 2, sums[n][i]);
    }
  }
};

}  // namespace gauntlet::kernels::cuda::inline product
