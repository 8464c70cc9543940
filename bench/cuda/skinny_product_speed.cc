// How fast products of few tokens are beside the memory they read.
#include <cstdio>

#include "bench/cuda/product_speed.h"
#include "kernels/cuda/skinny_product.h"

namespace {

using namespace gauntlet;
using namespace gauntlet::bench;

void report(const Work& w, int num_sms) {
  const std::int64_t expected = w.num_experts > 0 ? 2 * w.columns / w.num_experts : w.columns;
  SkinnyTile tile;
  const double us = microseconds(w, [&](const Product& product, const Launch& how) {
    tile = choose_skinny_tile(product, expected, num_sms);
    skinny_product(product, tile, how);
  });
  const FragmentMatrix shape{.format = w.format, .rows = w.rows, .cols = w.cols};
  const double bytes = active_experts(w) * static_cast<double>(shape.bytes());
  std::printf("%-10s %-5s %6lld x %4lld %5lld tokens  %d x 8  %9.1f us  %5.2f TB/s\n", w.name,
              w.format == WeightFormat::bf16 ? "bf16" : "mxfp4", static_cast<long long>(w.rows),
              static_cast<long long>(w.cols), static_cast<long long>(w.columns), tile.token_tiles,
              us, bytes / us * 1e-6);
  std::fflush(stdout);
}

}  // namespace

int main() {
  int num_sms = 0;
  cuda_check(cudaDeviceGetAttribute(&num_sms, cudaDevAttrMultiProcessorCount, 0));
  const auto bf16 = WeightFormat::bf16, mxfp4 = WeightFormat::mxfp4;
  for (const std::int64_t tokens : {1, 8, 16}) {
    report({"qkv", bf16, Epilogue::store_f32, 5120, 2880, tokens, 0}, num_sms);
    report({"attn out", bf16, Epilogue::add_f32, 2880, 4096, tokens, 0}, num_sms);
    report({"lm_head", bf16, Epilogue::store_f32, 201088, 2880, tokens, 0}, num_sms);
  }
  for (const std::int64_t slots : {4, 16, 32, 64, 128, 256, 384}) {
    report({"gate_up", mxfp4, Epilogue::swiglu_bf16, 5760, 2880, slots, 32}, num_sms);
    report({"down", mxfp4, Epilogue::weighted_f32, 2880, 2880, slots, 32}, num_sms);
  }
  return 0;
}
