// From the sums of a 64 x kWidth tile in registers to memory.
#pragma once
#include <cuda_bf16.h>

#include <cstdint>

#include "kernels/cuda/add_in_memory.cuh"
#include "kernels/cuda/bf16_pair.cuh"
#include "kernels/cuda/product/prefill_schedule.h"
#include "kernels/cuda/product/product.h"
#include "kernels/cuda/swiglu.cuh"
#include "ptx/stmatrix.cuh"

namespace gauntlet::kernels::cuda::inline product {

struct PrefillParams {
  FragmentMatrix weights;
  int num_columns;
  int row_tiles;
  float unit;  // sums are multiplied by it
  float swiglu_limit;
  const float* bias;
  Epilogue epilogue;
  void* out;
  std::int64_t out_stride;
  Groups groups;
};

inline constexpr int kChunkTokens = 16;
/// Of a warp: 16 tokens x 16 features in bf16, twice, so that one is written while one is read.
inline constexpr int kStagingBytes = 2 * kChunkTokens * kTileRows * 2;

/// A warp's 16 rows of the tile. Element [4j + 2h + i] of the sums is feature g + 8h of token
/// 8j + 2t + i, with g = lane / 4 and t = lane % 4.
template <int kWidth>
class PrefillOutput {
 public:
  using Sums = float[kWidth / 2];

  __device__ PrefillOutput(const PrefillParams& p, const PrefillWork& work, int tile_row,
                           std::uint8_t* staging)
      : p_(p), work_(work), tile_row_(tile_row), staging_(staging) {
    if (p.bias == nullptr) return;
    const float* bias =
        p.bias + work.expert * p.weights.row_blocks() * kBlockRows + tile_row + lane_ / 4;
    bias_[0] = bias[0];
    bias_[1] = bias[8];
  }

  __device__ __forceinline__ void write(const Sums& sums) {
    switch (p_.epilogue) {
      case Epilogue::store_f32:
        return write_f32<Epilogue::store_f32>(sums);
      case Epilogue::add_f32:
        return write_f32<Epilogue::add_f32>(sums);
      case Epilogue::weighted_f32:
        return write_f32<Epilogue::weighted_f32>(sums);
      case Epilogue::store_bf16:
        return write_bf16(sums);
      case Epilogue::swiglu_bf16:
        return write_swiglu(sums);
    }
  }

  /// Where the epilogue is known.
  template <Epilogue kHow>
  __device__ __forceinline__ void write_as(const Sums& sums) {
    if constexpr (kHow == Epilogue::store_bf16) {
      write_bf16(sums);
    } else if constexpr (kHow == Epilogue::swiglu_bf16) {
      write_swiglu(sums);
    } else {
      write_f32<kHow>(sums);
    }
  }

 private:
  static constexpr int kChunks = kWidth / kChunkTokens;

  __device__ __forceinline__ float value(const Sums& sums, int j, int h, int i) const {
    return sums[4 * j + 2 * h + i] * p_.unit + bias_[h];
  }

  /// Eight lanes write 32 neighbouring bytes of a token.
  template <Epilogue kHow>
  __device__ __forceinline__ void write_f32(const Sums& sums) const {
    const int feature = tile_row_ + lane_ / 4;
    const bool stored[2] = {feature < p_.weights.rows, feature + 8 < p_.weights.rows};
    float* const out = static_cast<float*>(p_.out) + feature;
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      if (chunk * kChunkTokens >= work_.slots) return;
      float* row[4];
      float weight[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int token = chunk * kChunkTokens + k / 2 * 8 + lane_ % 4 * 2 + k % 2;
        row[k] = nullptr;
        if (token >= work_.slots) continue;
        std::int64_t index = work_.first_slot + token;
        if constexpr (kHow == Epilogue::weighted_f32) {
          weight[k] = p_.groups.slot_weight[index];
          index = p_.groups.slot_row[index];
        }
        row[k] = out + index * p_.out_stride;
      }
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if (row[k] == nullptr) continue;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          float v = value(sums, 2 * chunk + k / 2, h, k % 2);
          if constexpr (kHow == Epilogue::weighted_f32) v *= weight[k];
          if (!stored[h]) continue;
          if constexpr (kHow == Epilogue::add_f32) {
            add_in_memory(row[k] + 8 * h, v);
          } else {
            row[k][8 * h] = v;
          }
        }
      }
    }
  }

  /// Tokens are transposed into rows of 32 bytes; two lanes write a token's.
  __device__ __forceinline__ void write_bf16(const Sums& sums) const {
    // The 16-byte halves of tokens 4 to 7 change places, or they would share banks with 0 to 3.
    const auto place = [](int token, int half) {
      return token * 32 + (half ^ (token / 4 & 1)) * 16;
    };
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      if (chunk * kChunkTokens >= work_.slots) return;
      std::uint8_t* const buffer = staging_ + chunk % 2 * (kStagingBytes / 2);
      std::uint32_t matrices[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int j = 2 * chunk + k / 2;
        matrices[k] = pack_bf16(value(sums, j, k % 2, 0), value(sums, j, k % 2, 1));
      }
      ptx::stmatrix_x4_trans(buffer + place(lane_ / 16 * 8 + lane_ % 8, lane_ / 8 % 2), matrices);
      __syncwarp();
      const int token = lane_ / 2, half = lane_ % 2;
      const uint4 features = *reinterpret_cast<const uint4*>(buffer + place(token, half));
      store_features(features, chunk * kChunkTokens + token, tile_row_ + half * 8, p_.weights.rows);
    }
  }

  /// Gates are the upper 8 rows, their ups the lower 8: 16 bytes of a token per warp.
  __device__ __forceinline__ void write_swiglu(const Sums& sums) const {
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      if (chunk * kChunkTokens >= work_.slots) return;
      std::uint8_t* const buffer = staging_ + chunk % 2 * (kStagingBytes / 2);
      std::uint32_t matrices[2];
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const int j = 2 * chunk + k;
        float v[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          v[i] = clamped_swiglu(value(sums, j, 0, i), value(sums, j, 1, i), p_.swiglu_limit);
        }
        matrices[k] = pack_bf16(v[0], v[1]);
      }
      ptx::stmatrix_x2_trans(buffer + lane_ % 16 * 16, matrices[0], matrices[1]);
      __syncwarp();
      if (lane_ < kChunkTokens) {
        const uint4 features = *reinterpret_cast<const uint4*>(buffer + lane_ * 16);
        store_features(features, chunk * kChunkTokens + lane_, tile_row_ / 2, p_.weights.rows / 2);
      }
    }
  }

  __device__ __forceinline__ void store_features(const uint4& features, int token, int feature,
                                                 std::int64_t num_features) const {
    if (token >= work_.slots) return;
    __nv_bfloat16* const to =
        static_cast<__nv_bfloat16*>(p_.out) + (work_.first_slot + token) * p_.out_stride + feature;
    if (feature + 8 <= num_features) {
      *reinterpret_cast<uint4*>(to) = features;
      return;
    }
    const std::uint32_t words[4] = {features.x, features.y, features.z, features.w};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (feature + i >= num_features) return;
      to[i] = __ushort_as_bfloat16(static_cast<unsigned short>(words[i / 2] >> (i % 2 * 16)));
    }
  }

  const PrefillParams& p_;
  const PrefillWork& work_;
  const int tile_row_;  // of the matrix
  std::uint8_t* const staging_;
  const int lane_ = static_cast<int>(threadIdx.x) % 32;
  float bias_[2] = {0, 0};
};

}  // namespace gauntlet::kernels::cuda::inline product
