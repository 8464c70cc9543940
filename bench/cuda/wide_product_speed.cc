// How fast wide products are: dense and grouped.
// usage: wide_product_speed [all]   (all: every tile, not only the chosen)
#include <cstdio>
#include <cstring>

#include "bench/cuda/product_speed.h"
#include "kernels/cuda/wide_product.h"

namespace {

using namespace gauntlet;
using namespace gauntlet::bench;

void report(const Work& w, const WideTile& tile, const char* remark) {
  const double us = microseconds(w, [&](const Product& product, const Launch& how) {
    WideInput input;
    make_wide_input({.x = product.x, .rows = w.columns, .cols = w.cols, .stride = product.x_stride},
                    input);
    wide_product(product, input, tile, how);
  });
  const FragmentMatrix shape{.format = w.format, .rows = w.rows, .cols = w.cols};
  const double flop = 2.0 * static_cast<double>(w.rows * w.cols * w.columns);
  const double bytes = active_experts(w) * static_cast<double>(shape.bytes());
  std::printf("%-10s %-5s %6lld x %4lld %6lld  %3d x %d  %9.1f us  %7.1f TFLOP/s  %5.2f TB/s%s\n",
              w.name, w.format == WeightFormat::bf16 ? "bf16" : "mxfp4",
              static_cast<long long>(w.rows), static_cast<long long>(w.cols),
              static_cast<long long>(w.columns), tile.tokens, tile.consumers, us, flop / us * 1e-6,
              bytes / us * 1e-6, remark);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const bool all = argc > 1 && std::strcmp(argv[1], "all") == 0;
  if (!wide_available()) {
    std::puts("wide products need a Hopper GPU (sm_90a)");
    return 1;
  }
  std::vector<Work> works;
  const auto bf16 = WeightFormat::bf16, mxfp4 = WeightFormat::mxfp4;
  for (const std::int64_t tokens : {16, 64, 256, 512, 2048, 8192}) {
    works.push_back({"qkv", bf16, Epilogue::store_bf16, 5120, 2880, tokens, 0});
    works.push_back({"attn out", bf16, Epilogue::add_f32, 2880, 4096, tokens, 0});
  }
  works.push_back({"lm_head", bf16, Epilogue::store_f32, 201088, 2880, 16, 0});
  works.push_back({"lm_head", bf16, Epilogue::store_f32, 201088, 2880, 64, 0});
  for (const std::int64_t slots : {64, 256, 1024, 2048, 8192, 65536}) {
    works.push_back({"gate_up", mxfp4, Epilogue::swiglu_bf16, 5760, 2880, slots, 32});
    works.push_back({"down", mxfp4, Epilogue::weighted_f32, 2880, 2880, slots, 32});
  }
  works.push_back({"gate_up", bf16, Epilogue::swiglu_bf16, 5760, 2880, 8192, 32});
  std::puts("                     rows   cols tokens  tile");
  for (const Work& w : works) {
    const WideTile chosen = choose_wide_tile({.format = w.format,
                                              .rows = w.rows,
                                              .cols = w.cols,
                                              .num_columns = w.columns,
                                              .num_experts = w.num_experts});
    report(w, chosen, "  (chosen)");
    const std::int64_t average = w.columns / std::max(1, w.num_experts);
    for (const WideTile& tile : kWideTiles) {
      // Tiles much narrower than the tokens, or much wider, tell nothing.
      const bool sensible = tile.tokens * 8 >= average && tile.tokens <= 4 * average + 16;
      if (all && tile != chosen && sensible) report(w, tile, "");
    }
  }
  return 0;
}
