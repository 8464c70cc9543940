#include "bench/cuda/product_speed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "core/cuda/check.h"
#include "core/random.h"
#include "kernels/ref/ops.h"

namespace gauntlet::bench {
namespace {

using namespace kernels::cuda;

constexpr float kBias = 0.25f;
constexpr float kSlotWeight = 0.5f;
constexpr double kSwigluLimit = 7;

/// One product on the device, and what it must give.
class ProductCase {
 public:
  explicit ProductCase(const Work& work)
      : work_(work),
        shape_{.format = work.format, .rows = work.rows, .cols = work.cols},
        experts_(std::max(1, work.num_experts)),
        launch_bytes_(shape_.bytes() * experts_),
        copies_(rotation(launch_bytes_)),
        weight_bits_(random_bits(work.format, 3)),
        x_bits_(random_bits(WeightFormat::bf16, 4)),
        first_slot_(dispatch(work)),
        weights_(launch_bytes_ * copies_, weight_bits_),
        x_(work.columns * x_stride() * 2, x_bits_),
        out_(work.columns * features() * 4),
        bias_(experts_ * shape_.row_blocks() * kBlockRows * 4, std::vector<float>{kBias}),
        slot_weight_(work.columns * 4, std::vector<float>{kSlotWeight}),
        slot_row_(identity(work.columns)),
        device_first_slot_(first_slot_) {}

  int copies() const { return copies_; }
  /// What is read and written beside the weights.
  double row_bytes() const {
    const std::int64_t element = halves() ? 2 : 4;
    return static_cast<double>(work_.columns * (work_.cols * 2 + features() * element));
  }
  Product product(int launch) const {
    return {.weights = {.format = work_.format,
                        .rows = work_.rows,
                        .cols = work_.cols,
                        .data = weights_.as<std::uint8_t>(launch % copies_ * launch_bytes_)},
            .x = x_.as<__nv_bfloat16>(),
            .x_stride = x_stride(),
            .num_columns = work_.columns,
            .bias = bias_.as<float>(),
            .epilogue = work_.epilogue,
            .out = out_.as<void>(),
            .out_stride = features(),
            .groups = {.num_experts = work_.num_experts,
                       .first_slot =
                           work_.num_experts > 0 ? device_first_slot_.as<std::int32_t>() : nullptr,
                       .slot_row = slot_row_.as<std::int32_t>(),
                       .slot_weight = slot_weight_.as<float>()}};
  }

  std::int64_t out_bytes() const { return work_.columns * features() * (halves() ? 2 : 4); }
  void clear() const {
    cuda_check(cudaMemset(out_.as<void>(), 0x5A, static_cast<std::size_t>(out_bytes())));
  }
  /// Of the whole output (FNV-1a).
  std::uint64_t digest() const {
    std::uint64_t hash = 0xCBF29CE484222325u;
    for (const std::uint32_t word : out_.values<std::uint32_t>(out_bytes() / 4)) {
      hash = (hash ^ word) * 0x100000001B3u;
    }
    return hash;
  }

  void verify() const {
    for (const std::int64_t column : spots(work_.columns)) {
      for (const std::int64_t feature : spots(features())) verify(column, feature);
    }
  }

 private:
  struct Sum {
    double value = kBias;
    double sizes = kBias;
  };

  static std::vector<std::int32_t> identity(std::int64_t count) {
    std::vector<std::int32_t> all(static_cast<std::size_t>(count));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  bool paired() const { return work_.epilogue == Epilogue::swiglu_bf16; }
  bool halves() const { return paired() || work_.epilogue == Epilogue::store_bf16; }
  std::int64_t features() const { return paired() ? work_.rows / 2 : work_.rows; }
  std::int64_t x_stride() const { return shape_.col_blocks() * kBlockCols; }

  std::uint8_t weight_byte(std::int64_t offset) const {
    const std::uint16_t bits =
        weight_bits_[static_cast<std::size_t>(offset / 2) % weight_bits_.size()];
    return static_cast<std::uint8_t>(bits >> (8 * (offset % 2)));
  }
  double weight(std::int64_t expert, std::int64_t row, std::int64_t col) const {
    const FragmentPlace at = fragment_place(row, col, shape_.col_blocks());
    const std::int64_t first = expert * shape_.bytes();
    if (work_.format == WeightFormat::bf16) {
      return bf16_float(weight_bits_[static_cast<std::size_t>((first + bf16_offset(at)) / 2) %
                                     weight_bits_.size()]);
    }
    std::uint32_t word = 0;
    for (int byte = 0; byte < 4; ++byte) {
      word |= std::uint32_t{weight_byte(first + mxfp4_word_offset(at) + byte)} << (8 * byte);
    }
    const std::uint32_t own = word & spread_fp4(15, at.reg, at.half);
    std::uint32_t nibble = 0;
    while (spread_fp4(nibble, at.reg, at.half) != own) ++nibble;
    const int scale = weight_byte(first + mxfp4_scale_offset(at)) - kMxfp4ScaleBias;
    return std::ldexp(kernels::ref::fp4_value(static_cast<int>(nibble)), scale - 127);
  }
  Sum sum(std::int64_t column, std::int64_t row) const {
    const auto owner = std::ranges::upper_bound(first_slot_, column) - first_slot_.begin() - 1;
    Sum total;
    for (std::int64_t k = 0; k < work_.cols; ++k) {
      const double term =
          weight(owner, row, k) *
          bf16_float(x_bits_[static_cast<std::size_t>(column * x_stride() + k) % x_bits_.size()]);
      total.value += term;
      total.sizes += std::abs(term);
    }
    return total;
  }
  void verify(std::int64_t column, std::int64_t feature) const {
    constexpr double kSumError = 4e-6;  // of the sizes of the terms: float sums in any order
    double wanted = 0, tolerance = 0;
    if (paired()) {
      const std::int64_t gate_row = feature / 8 * kTileRows + feature % 8;
      const Sum gate = sum(column, gate_row), up = sum(column, gate_row + 8);
      wanted = kernels::ref::swiglu(gate.value, up.value, kSwigluLimit);
      tolerance = 2 * kSwigluLimit * kSumError * (gate.sizes + up.sizes);
    } else {
      const Sum all = sum(column, feature);
      wanted = all.value * (work_.epilogue == Epilogue::weighted_f32 ? kSlotWeight : 1);
      tolerance = kSumError * all.sizes;
    }
    const std::int64_t at = column * features() + feature;
    if (halves()) tolerance += std::abs(wanted) / 250 + 1e-5;
    expect_near(fmt::format("{}: feature {} of column {}", work_.name, feature, column),
                halves() ? bf16_float(out_.value<std::uint16_t>(at)) : out_.value<float>(at),
                wanted, tolerance);
  }

  Work work_;
  FragmentMatrix shape_;
  std::int64_t experts_, launch_bytes_;
  int copies_;
  std::vector<std::uint16_t> weight_bits_, x_bits_;
  std::vector<std::int32_t> first_slot_;
  Buffer weights_, x_, out_, bias_, slot_weight_, slot_row_, device_first_slot_;
};

}  // namespace

std::vector<std::uint16_t> random_bits(WeightFormat format, std::uint64_t seed) {
  std::vector<std::uint16_t> pattern(1 << 20);
  const Random random(seed);
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const auto bits = random.bits(i);
    pattern[i] = static_cast<std::uint16_t>(
        format == WeightFormat::bf16 ? (bits & 0x81FF) | 0x3E00 : (bits & 0x8F8F) | 0x3030);
  }
  return pattern;
}

std::vector<std::int32_t> dispatch(const Work& work) {
  const auto experts = static_cast<std::uint64_t>(std::max(1, work.num_experts));
  const Random random(11), weights(12);
  std::vector<double> until(experts);  // cumulative probabilities
  double all = 0;
  for (std::uint64_t e = 0; e < experts; ++e) {
    all += std::exp(work.skew * weights.uniform(-1, 1, e));
    until[e] = all;
  }
  std::vector<std::int32_t> first(experts + 1, 0);
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(work.columns); ++i) {
    const double at = all * random.uniform(0, 1, i);
    const auto expert = std::ranges::upper_bound(until, at) - until.begin();
    ++first[std::min(static_cast<std::uint64_t>(expert), experts - 1) + 1];
  }
  std::partial_sum(first.begin(), first.end(), first.begin());
  return first;
}

double active_experts(const Work& work) {
  const auto first = dispatch(work);
  double active = 0;
  for (std::size_t e = 0; e + 1 < first.size(); ++e) active += first[e + 1] > first[e] ? 1 : 0;
  return active;
}

Timed report_product(const Bench& bench, const Work& work, const std::string& kernel,
                     const std::string& remark,
                     const std::function<void(const Product&, const Launch&)>& launch) {
  const ProductCase made(work);
  const FragmentMatrix shape{.format = work.format, .rows = work.rows, .cols = work.cols};
  return bench.report(
      {.name = kernel,
       .shape = fmt::format("{} {} {} x {}, {}", work.name,
                            work.format == WeightFormat::bf16 ? "bf16" : "mxfp4", work.rows,
                            work.cols, work.columns),
       .bytes = active_experts(work) * static_cast<double>(shape.bytes()) + made.row_bytes(),
       .flop = work.flop(),
       .launches = std::max(made.copies(), 8),
       .launch = [&](int i, const Launch& how) { launch(made.product(i), how); },
       .verify = [&] { made.verify(); },
       .remark = remark});
}

std::vector<ProductTime> compare_products(const Bench& bench, const Work& work,
                                          const std::vector<ProductKernel>& kernels) {
  const ProductCase made(work);
  std::vector<ProductTime> times;
  for (const ProductKernel& kernel : kernels) {
    ProductTime& got = times.emplace_back();
    made.clear();
    kernel.launch(made.product(0), {});
    cuda_check(cudaDeviceSynchronize());
    try {
      made.verify();
    } catch (const std::exception& wrong) {
      got.fault = wrong.what();
    }
    got.digest = made.digest();
    got.us = bench
                 .time(std::max(made.copies(), 8),
                       [&](int i, const Launch& how) { kernel.launch(made.product(i), how); })
                 .us;
  }
  return times;
}

}  // namespace gauntlet::bench
