// Which kernel is fastest for MXFP4 experts with some tokens each: a row for a histogram, a column
// for a kernel.
// usage: batch_product_speed [few]   (few: the shapes of decode steps alone)
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "bench/cuda/product_speed.h"
#include "kernels/cuda/product/batch_mxfp4.h"
#include "kernels/cuda/product/decode_mxfp4_bulk.h"
#include "kernels/cuda/product/decode_product.h"
#include "kernels/cuda/product/prefill_product.h"

namespace {

using namespace gauntlet;
using namespace gauntlet::bench;
using namespace gauntlet::kernels::cuda;

/// Past so many slots for an expert, on average, the kernels for few tokens are not asked.
constexpr std::int64_t kFewSlots = 16;

PrefillInput input_of(const Work& w, const Product& product) {
  PrefillInput input;
  make_prefill_input(
      {.x = product.x, .rows = w.columns, .cols = w.cols, .stride = product.x_stride}, input);
  return input;
}

void compare(const Bench& bench, const Work& w) {
  const std::int64_t expected = 2 * w.columns / w.num_experts;
  std::vector<ProductKernel> kernels;
  if (w.columns <= kFewSlots * w.num_experts) {
    kernels.push_back({"bulk", [&](const Product& p, const Launch& how) {
                         decode_mxfp4_bulk(p, expected, bench.num_sms(), how);
                       }});
  }
  const auto prefill = [&](const char* name, const PrefillTile& tile) {
    kernels.push_back({fmt::format("{}{}x{}", name, tile.tokens, tile.consumers),
                       [&w, tile](const Product& p, const Launch& how) {
                         prefill_product(p, input_of(w, p), tile, how);
                       }});
  };
  const PrefillTile chosen = choose_prefill_tile({.format = w.format,
                                                  .rows = w.rows,
                                                  .cols = w.cols,
                                                  .num_columns = w.columns,
                                                  .num_experts = w.num_experts});
  prefill("now ", chosen);
  const std::int64_t average = w.columns / w.num_experts;
  for (const PrefillTile& tile : kPrefillTiles) {
    const bool sensible = tile.tokens >= average && tile.tokens <= 4 * average + 16;
    if (tile.consumers == 2 && sensible && tile != chosen) prefill("", tile);
  }
  for (const BatchTile& tile : kBatchTiles) {
    kernels.push_back({fmt::format("batch {}x{}", tile.most_width, tile.stripes),
                       [&w, tile](const Product& p, const Launch& how) {
                         batch_mxfp4(p, input_of(w, p), tile, how);
                       }});
  }
  const auto first = dispatch(w);
  std::int32_t most = 0;
  for (std::size_t e = 0; e + 1 < first.size(); ++e) most = std::max(most, first[e + 1] - first[e]);
  const FragmentMatrix shape{.format = w.format, .rows = w.rows, .cols = w.cols};
  const double bytes = active_experts(w) * static_cast<double>(shape.bytes());
  fmt::print("{} {}e {} max {} ({:.0f} us at 4.2 TB/s):", w.name, w.num_experts, w.columns, most,
             bytes / 4.2e6);
  const std::vector<ProductTime> times = compare_products(bench, w, kernels);
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    // All kernels that feed wgmma add up in the same order.
    const bool same = times[k].digest == times.back().digest;
    fmt::print(" {} {:.1f}{}{}", kernels[k].name, times[k].us, same ? "=" : "",
               times[k].fault.empty() ? "" : "!");
  }
  fmt::print("\n");
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    if (!times[k].fault.empty()) fmt::print("  {}: {}\n", kernels[k].name, times[k].fault);
  }
  std::fflush(stdout);
}

void run(const Bench& bench, bool few) {
  if (!prefill_product_available()) throw Unavailable("batch products need a Hopper GPU (sm_90a)");
  const auto mxfp4 = WeightFormat::mxfp4;
  const auto both = [&](std::int64_t slots, int experts, float skew) {
    compare(bench, {"gate_up", mxfp4, Epilogue::swiglu_bf16, 5760, 2880, slots, experts, skew});
    compare(bench, {"down", mxfp4, Epilogue::weighted_f32, 2880, 2880, slots, experts, skew});
  };
  for (const std::int64_t slots : {64, 128, 256, 512, 1024}) both(slots, 32, 0.0f);
  for (const std::int64_t slots : {256, 512, 1024}) both(slots, 32, 1.0f);
  for (const std::int64_t slots : {256, 1024}) both(slots, 128, 0.0f);
  if (few) return;
  for (const std::int64_t slots : {2048, 4096, 8192}) both(slots, 32, 0.5f);
  both(4096, 128, 0.5f);
}

}  // namespace

int main(int argc, char** argv) {
  const bool few = argc > 1 && std::strcmp(argv[1], "few") == 0;
  return gauntlet::bench::run_on_gpu([&](const Bench& bench) { run(bench, few); });
}
