// Row vectors between operations, in float32 and in whatever rounded form the next product reads.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/host_array.h"
#include "kernels/cpu/kernels.h"

namespace gauntlet::engine::cpu {

class Rows {
 public:
  /// Zeroed, so that padding beyond `width` never disturbs a product.
  Rows(std::int64_t rows, std::int64_t width)
      : stride_((width + kernels::cpu::kBlock - 1) / kernels::cpu::kBlock * kernels::cpu::kBlock) {
    // Products read whole tiles of rows.
    const auto count = static_cast<std::size_t>((rows + kernels::cpu::kTileTokens - 1) * stride_);
    f32_.resize(count);
    bf16_.resize(count);
    i8_.resize(count);
    scales_.resize(count / kernels::cpu::kBlock);
    offsets_.resize(count / kernels::cpu::kBlock);
  }

  float* row(std::int64_t r) { return f32_.data() + r * stride_; }
  const float* row(std::int64_t r) const { return f32_.data() + r * stride_; }
  std::int64_t stride() const { return stride_; }

  /// Brings [first, first + count) of a row, a multiple of 32, into the form that `precision`
  /// reads.
  void round(const kernels::cpu::KernelTable& kernels, kernels::cpu::Precision precision,
             std::int64_t r, std::int64_t first, std::int64_t count) {
    const std::int64_t at = r * stride_ + first;
    if (precision == kernels::cpu::Precision::bf16) {
      kernels.to_bf16(f32_.data() + at, count, bf16_.data() + at);
    } else if (precision == kernels::cpu::Precision::int8) {
      const std::int64_t block = at / kernels::cpu::kBlock;
      kernels.to_int8(f32_.data() + at, count, i8_.data() + at, scales_.data() + block,
                      offsets_.data() + block, bf16_.data() + at);
    }
  }

  /// The rows from `first` on, in every form.
  kernels::cpu::Activations view(std::int64_t first = 0) const {
    const std::int64_t at = first * stride_;
    const std::int64_t block = at / kernels::cpu::kBlock;
    return {f32_.data() + at,       bf16_.data() + at,       i8_.data() + at,
            scales_.data() + block, offsets_.data() + block, stride_};
  }

 private:
  std::int64_t stride_;
  // Anonymous mappings: zero until written, and no memory for a form that is never used.
  HostArray<float> f32_;
  HostArray<std::uint16_t> bf16_;
  HostArray<std::int8_t> i8_;
  HostArray<float> scales_;
  HostArray<std::int32_t> offsets_;
};

}  // namespace gauntlet::engine::cpu
