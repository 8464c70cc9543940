// What products cost that no optimisation has touched: the shapes of gpt-oss-20b at one token and
// at more, and what a whole step of decoding spends on them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "bench/cuda/product_speed.h"
#include "kernels/cuda/product/plain_product.h"
#include "kernels/ref/ops.h"

namespace {

using namespace gauntlet;
using namespace gauntlet::bench;
using namespace gauntlet::kernels::cuda;

constexpr int kLayers = 24;
constexpr float kBias = 0.25f;

/// Scales of 2^-15 to 1.
std::vector<std::uint8_t> scale_bytes() {
  std::vector<std::uint8_t> bytes;
  for (const std::uint16_t bits : random_bits(WeightFormat::mxfp4, 5)) {
    bytes.push_back(static_cast<std::uint8_t>((bits & 0x0F) | 0x70));
  }
  return bytes;
}

class PlainCase {
 public:
  explicit PlainCase(const Work& work)
      : work_(work),
        shape_{.format = work.format, .rows = work.rows, .cols = work.cols},
        matrices_(std::max(1, work.num_experts)),
        copies_(rotation(shape_.data_bytes() * matrices_)),
        bits_(random_bits(work.format, 3)),
        x_bits_(random_bits(WeightFormat::bf16, 4)),
        scale_bytes_(scale_bytes()),
        first_slot_(dispatch(work)),
        data_(shape_.data_bytes() * matrices_ * copies_, bits_),
        scales_(shape_.scale_bytes() * matrices_ * copies_, scale_bytes_),
        x_(work.columns * work.cols * 2, x_bits_),
        bias_(matrices_ * work.rows * 4, std::vector<float>{kBias}),
        out_(work.columns * work.rows * 4),
        device_first_slot_(first_slot_) {}

  int copies() const { return copies_; }
  PlainProduct product(int launch) const {
    const std::int64_t first = launch % copies_ * matrices_;
    return {.weights = {.format = work_.format,
                        .rows = work_.rows,
                        .cols = work_.cols,
                        .data = data_.as<std::uint8_t>(first * shape_.data_bytes()),
                        .scales = scales_.as<std::uint8_t>(first * shape_.scale_bytes())},
            .x = x_.as<__nv_bfloat16>(),
            .x_stride = work_.cols,
            .num_columns = work_.columns,
            .bias = bias_.as<float>(),
            .out = out_.as<float>(),
            .out_stride = work_.rows,
            .groups = {.num_experts = work_.num_experts,
                       .first_slot = device_first_slot_.as<std::int32_t>()}};
  }
  double bytes() const {
    const auto matrix = static_cast<double>(shape_.data_bytes() + shape_.scale_bytes());
    return active_experts(work_) * matrix +
           static_cast<double>(work_.columns * (work_.cols * 2 + work_.rows * 4));
  }
  void verify() const {
    for (const std::int64_t column : spots(work_.columns)) {
      for (const std::int64_t row : spots(work_.rows)) verify(column, row);
    }
  }

 private:
  double weight(std::int64_t index) const {
    const auto at = static_cast<std::size_t>(index);
    if (work_.format == WeightFormat::bf16) return bf16_float(bits_[at % bits_.size()]);
    const int nibble = bits_[at / 4 % bits_.size()] >> (4 * (at % 4)) & 15;
    return kernels::ref::fp4_value(nibble) *
           kernels::ref::e8m0_value(scale_bytes_[at / 32 % scale_bytes_.size()]);
  }
  void verify(std::int64_t column, std::int64_t row) const {
    const auto owner = std::ranges::upper_bound(first_slot_, column) - first_slot_.begin() - 1;
    double sum = kBias, sizes = kBias;
    for (std::int64_t k = 0; k < work_.cols; ++k) {
      const double term =
          weight((owner * work_.rows + row) * work_.cols + k) *
          bf16_float(x_bits_[static_cast<std::size_t>(column * work_.cols + k) % x_bits_.size()]);
      sum += term;
      sizes += std::abs(term);
    }
    expect_near(fmt::format("{}: feature {} of column {}", work_.name, row, column),
                out_.value<float>(column * work_.rows + row), sum, 4e-6 * sizes);
  }

  Work work_;
  PlainMatrix shape_;
  std::int64_t matrices_;
  int copies_;
  std::vector<std::uint16_t> bits_, x_bits_;
  std::vector<std::uint8_t> scale_bytes_;
  std::vector<std::int32_t> first_slot_;
  Buffer data_, scales_, x_, bias_, out_, device_first_slot_;
};

double report(const Bench& bench, const Work& w, PlainUnit unit) {
  const PlainCase made(w);
  return bench
      .report({.name = unit == PlainUnit::tensor_cores ? "plain_product mma" : "plain_product fma",
               .shape = fmt::format("{} {} {} x {}, {}", w.name,
                                    w.format == WeightFormat::bf16 ? "bf16" : "mxfp4", w.rows,
                                    w.cols, w.columns),
               .bytes = made.bytes(),
               .flop = w.flop(),
               .launches = std::clamp(made.copies(), 2, 8),
               .launch =
                   [&](int i, const Launch& how) {
                     plain_product(made.product(i), unit, {.stream = how.stream});
                   },
               .verify = [&] { made.verify(); }})
      .us;
}

void step(const Bench& bench, std::int64_t tokens, PlainUnit unit, WeightFormat experts) {
  const auto bf16 = WeightFormat::bf16;
  const auto f32 = Epilogue::store_f32;
  const std::int64_t slots = tokens * kExpertsPerToken;
  // Many tokens are prompts, which need few logits.
  const std::int64_t logit_rows = std::min<std::int64_t>(tokens, 64);
  const double layer =
      report(bench, {"qkv", bf16, f32, 5120, kHidden, tokens, 0}, unit) +
      report(bench, {"attn out", bf16, f32, kHidden, 4096, tokens, 0}, unit) +
      report(bench, {"gate_up", experts, f32, 5760, kHidden, slots, kExperts}, unit) +
      report(bench, {"down", experts, f32, kHidden, kHidden, slots, kExperts}, unit);
  const double head = report(bench, {"lm_head", bf16, f32, kVocab, kHidden, logit_rows, 0}, unit);
  const double ms = (kLayers * layer + head) * 1e-3;
  fmt::print("  a step of {} tokens: {:.2f} ms, {:.0f} tokens/s\n", tokens, ms,
             static_cast<double>(tokens) / ms * 1e3);
}

void run(const Bench& bench) {
  for (const WeightFormat experts : {WeightFormat::bf16, WeightFormat::mxfp4}) {
    for (const PlainUnit unit : {PlainUnit::cuda_cores, PlainUnit::tensor_cores}) {
      for (const std::int64_t tokens : kBatches) step(bench, tokens, unit, experts);
    }
  }
}

}  // namespace

int main() { return gauntlet::bench::run_on_gpu(run); }
