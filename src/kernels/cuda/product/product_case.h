// Random matrices in fragment order, made on the device, and what a product with them must give.
#pragma once
#include <cmath>

#include "core/random.h"
#include "kernels/cuda/device_test.h"
#include "kernels/cuda/product/pack.h"
#include "kernels/cuda/product/product.h"

namespace gauntlet::kernels::cuda::inline product {

/// Rows of bf16, or of MXFP4, as they would be uploaded.
struct HostMatrix {
  WeightFormat format;
  std::int64_t rows;
  std::int64_t cols;
  std::vector<std::uint16_t> halves;  // bf16
  std::vector<std::uint8_t> nibbles;  // MXFP4
  std::vector<std::uint8_t> scales;

  double at(std::int64_t row, std::int64_t col) const {
    const auto index = static_cast<std::size_t>(row * cols + col);
    if (format == WeightFormat::bf16) return bf16_float(halves[index]);
    constexpr double kValues[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    const int nibble = nibbles[index / 2] >> (4 * (index % 2)) & 15;
    const double value = std::ldexp(kValues[nibble & 7], scales[index / 32] - 127);
    return nibble & 8 ? -value : value;
  }
};

inline HostMatrix random_matrix(WeightFormat format, std::int64_t rows, std::int64_t cols,
                                std::uint64_t seed) {
  HostMatrix made{.format = format, .rows = rows, .cols = cols};
  Random random(seed);
  const auto count = static_cast<std::size_t>(rows * cols);
  if (format == WeightFormat::bf16) {
    for (std::size_t i = 0; i < count; ++i) {
      made.halves.push_back(bf16_bits(random.uniform(-0.1f, 0.1f, i)));
    }
    return made;
  }
  for (std::size_t i = 0; i < count / 2; ++i) {
    made.nibbles.push_back(static_cast<std::uint8_t>(random.below(256, i)));
  }
  for (std::size_t i = 0; i < count / 32; ++i) {
    made.scales.push_back(static_cast<std::uint8_t>(118 + random.below(9, i + count)));
  }
  return made;
}

/// The matrix on the device: its raw rows, and the fragments packed from them.
class PackedOnDevice {
 public:
  PackedOnDevice(const std::vector<HostMatrix>& experts, RowOrder order)
      : shape_{.format = experts[0].format, .rows = experts[0].rows, .cols = experts[0].cols},
        data_(static_cast<std::size_t>(shape_.bytes()) * experts.size()) {
    shape_.data = data_.get();
    for (std::size_t e = 0; e < experts.size(); ++e) {
      const HostMatrix& from = experts[e];
      const bool mxfp4 = from.format == WeightFormat::mxfp4;
      const OnDevice<std::uint16_t> halves(from.halves);
      const OnDevice<std::uint8_t> nibbles(from.nibbles), scales(from.scales);
      Pack work{.source_format = from.format, .order = order, .cols = from.cols, .target = shape_};
      const auto piece = [&](std::int64_t first, std::int64_t rows) {
        return RowSource{
            .rows = rows,
            .data = mxfp4 ? static_cast<const void*>(nibbles.get() + first * from.cols / 2)
                          : halves.get() + first * from.cols,
            .scales = mxfp4 ? scales.get() + first * from.cols / 32 : nullptr};
      };
      if (order == RowOrder::paired) {
        work.sources[0] = piece(0, from.rows / 2);
        work.sources[1] = piece(from.rows / 2, from.rows / 2);
      } else {
        work.sources[0] = piece(0, from.rows);
      }
      work.out = data_.get() + static_cast<std::int64_t>(e) * shape_.bytes();
      work.target.data = work.out;
      pack(work, {});
      cuda_check(cudaDeviceSynchronize());
    }
  }
  const FragmentMatrix& shape() const { return shape_; }
  std::vector<std::uint8_t> bytes() const { return data_.values(); }

 private:
  FragmentMatrix shape_;
  OnDevice<std::uint8_t> data_;
};

/// A row in the order of the tiles, as the host numbers it.
inline std::int64_t tile_row(RowOrder order, std::int64_t rows, std::int64_t row) {
  if (order == RowOrder::plain) return row;
  const std::int64_t in = row % (rows / 2);
  return in / 8 * 16 + in % 8 + (row >= rows / 2 ? 8 : 0);
}

}  // namespace gauntlet::kernels::cuda::inline product
