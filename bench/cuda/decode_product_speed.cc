// How fast products of few tokens are beside the memory they read.
#include "bench/cuda/product_speed.h"
#include "kernels/cuda/product/decode_mxfp4_bulk.h"
#include "kernels/cuda/product/decode_product.h"

namespace {

using namespace gauntlet;
using namespace gauntlet::bench;
using namespace gauntlet::kernels::cuda;

void report(const Bench& bench, const Work& w) {
  const std::int64_t expected = w.num_experts > 0 ? 2 * w.columns / w.num_experts : w.columns;
  report_product(bench, w, "decode_product", "", [&](const Product& product, const Launch& how) {
    decode_product(product, choose_decode_tile(product, expected, bench.num_sms()), how);
  });
  if (w.format == WeightFormat::bf16) return;
  report_product(bench, w, "decode_mxfp4_bulk", "", [&](const Product& product, const Launch& how) {
    decode_mxfp4_bulk(product, expected, bench.num_sms(), how);
  });
}

void run(const Bench& bench) {
  const auto bf16 = WeightFormat::bf16, mxfp4 = WeightFormat::mxfp4;
  for (const std::int64_t tokens : {1, 8, 16}) {
    report(bench, {"qkv", bf16, Epilogue::store_f32, 5120, 2880, tokens, 0});
    report(bench, {"attn out", bf16, Epilogue::add_f32, 2880, 4096, tokens, 0});
    report(bench, {"lm_head", bf16, Epilogue::store_f32, 201088, 2880, tokens, 0});
  }
  for (const std::int64_t slots : {4, 16, 32, 64, 128, 256, 384}) {
    report(bench, {"gate_up", mxfp4, Epilogue::swiglu_bf16, 5760, 2880, slots, 32});
    report(bench, {"down", mxfp4, Epilogue::weighted_f32, 2880, 2880, slots, 32});
  }
}

}  // namespace

int main() { return gauntlet::bench::run_on_gpu(run); }
