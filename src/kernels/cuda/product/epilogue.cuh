// What becomes of a finished sum. A lane holds two rows of a tile, 8 apart; in paired order they
// are a gate and its up.
#pragma once
#include <cuda_bf16.h>

#include "kernels/cuda/add_in_memory.cuh"
#include "kernels/cuda/product/product.h"
#include "kernels/cuda/swiglu.cuh"

namespace gauntlet::kernels::cuda::inline product {

/// Of rows tile * 16 + row and 8 below it.
struct RowPair {
  float upper = 0;
  float lower = 0;
};

__device__ __forceinline__ RowPair bias_of(const Product& p, int expert, int tile, int row) {
  if (p.bias == nullptr) return {};
  const float* bias = p.bias + expert * p.weights.row_blocks() * kBlockRows +
                      static_cast<std::int64_t>(tile) * kTileRows + row;
  return {__ldg(bias), __ldg(bias + 8)};
}

/// `column` is a token, or a slot of the expert that the sums and the bias are of.
__device__ __forceinline__ void finish(const Product& p, int tile, int row, int column,
                                       RowPair sums, RowPair bias) {
  const std::int64_t first = static_cast<std::int64_t>(tile) * kTileRows + row;
  const float unit = p.weights.format == WeightFormat::mxfp4 ? kMxfp4Unit : 1.0f;
  float upper = sums.upper * unit + bias.upper, lower = sums.lower * unit + bias.lower;
  if (p.epilogue == Epilogue::swiglu_bf16) {
    const std::int64_t out = static_cast<std::int64_t>(tile) * (kTileRows / 2) + row;
    if (out < p.weights.rows / 2) {
      static_cast<__nv_bfloat16*>(p.out)[column * p.out_stride + out] =
          __float2bfloat16(clamped_swiglu(upper, lower, p.swiglu_limit));
    }
    return;
  }
  std::int64_t out_row = column;
  if (p.epilogue == Epilogue::weighted_f32) {
    out_row = p.groups.slot_row[column];
    const float weight = p.groups.slot_weight[column];
    upper *= weight;
    lower *= weight;
  }
  const std::int64_t at = out_row * p.out_stride + first;
  const auto put = [&](std::int64_t offset, float value) {
    if (p.epilogue == Epilogue::store_bf16) {
      static_cast<__nv_bfloat16*>(p.out)[at + offset] = __float2bfloat16(value);
    } else if (p.epilogue == Epilogue::add_f32) {
      add_in_memory(static_cast<float*>(p.out) + at + offset, value);
    } else {
      static_cast<float*>(p.out)[at + offset] = value;
    }
  };
  if (first < p.weights.rows) put(0, upper);
  if (first + 8 < p.weights.rows) put(8, lower);
}

}  // namespace gauntlet::kernels::cuda::inline product
