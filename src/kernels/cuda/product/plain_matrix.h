// Weights as files hold them, row after row, and a product with them that does nothing but add a
// bias: what the fragment order and the epilogues of product.h are measured against.
#pragma once
#include <cstdint>

#include "kernels/cuda/product/product.h"

namespace gauntlet::kernels::cuda::inline product {

/// On the device. Several of one shape (experts) follow one another, in data and in scales.
struct PlainMatrix {
  WeightFormat format = WeightFormat::bf16;
  std::int64_t rows = 0;
  std::int64_t cols = 0;                 // a multiple of 8, of 32 where the format is MXFP4
  const std::uint8_t* data = nullptr;    // bf16 [rows, cols]; nibbles [rows, cols / 2], low is even
  const std::uint8_t* scales = nullptr;  // E8M0 [rows, cols / 32], MXFP4 only

  GAUNTLET_HOST_DEVICE std::int64_t data_bytes() const {
    return format == WeightFormat::bf16 ? rows * cols * 2 : rows * cols / 2;
  }
  GAUNTLET_HOST_DEVICE std::int64_t scale_bytes() const {
    return format == WeightFormat::bf16 ? 0 : rows * cols / 32;
  }
};

/// out[column] = weights * x[column] + bias.
struct PlainProduct {
  PlainMatrix weights;               // of a group: the first expert's
  const __nv_bfloat16* x = nullptr;  // [columns, x_stride], the stride a multiple of 8
  std::int64_t x_stride = 0;
  std::int64_t num_columns = 0;  // tokens; of a group: at most so many slots in all
  const float* bias = nullptr;   // [rows], of a group [experts, rows]; gates first, then ups
  float* out = nullptr;          // [columns, out_stride]
  std::int64_t out_stride = 0;
  Groups groups;  // num_experts 0: a product of one matrix; slot_row and slot_weight are not read
};

}  // namespace gauntlet::kernels::cuda::inline product
