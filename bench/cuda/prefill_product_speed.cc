// How fast prefill products are: dense and grouped.
// usage: prefill_product_speed [all]   (all: every tile, not only the chosen)
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "bench/cuda/product_speed.h"
#include "kernels/cuda/product/prefill_product.h"

namespace {

using namespace gauntlet;
using namespace gauntlet::bench;
using namespace gauntlet::kernels::cuda;

void report(const Bench& bench, const Work& w, const PrefillTile& tile, const char* remark) {
  report_product(
      bench, w, "prefill_product",
      fmt::format("tile {} x {}{}", tile.tokens, tile.consumers, remark),
      [&](const Product& product, const Launch& how) {
        PrefillInput input;
        make_prefill_input(
            {.x = product.x, .rows = w.columns, .cols = w.cols, .stride = product.x_stride}, input);
        prefill_product(product, input, tile, how);
      });
}

std::vector<Work> works() {
  std::vector<Work> all;
  const auto bf16 = WeightFormat::bf16, mxfp4 = WeightFormat::mxfp4;
  for (const std::int64_t tokens : {16, 64, 256, 512, 2048, 8192}) {
    all.push_back({"qkv", bf16, Epilogue::store_bf16, 5120, 2880, tokens, 0});
    all.push_back({"attn out", bf16, Epilogue::add_f32, 2880, 4096, tokens, 0});
  }
  all.push_back({"lm_head", bf16, Epilogue::store_f32, 201088, 2880, 16, 0});
  all.push_back({"lm_head", bf16, Epilogue::store_f32, 201088, 2880, 64, 0});
  for (const std::int64_t slots : {64, 256, 1024, 2048, 8192, 65536}) {
    all.push_back({"gate_up", mxfp4, Epilogue::swiglu_bf16, 5760, 2880, slots, 32});
    all.push_back({"down", mxfp4, Epilogue::weighted_f32, 2880, 2880, slots, 32});
  }
  all.push_back({"gate_up", bf16, Epilogue::swiglu_bf16, 5760, 2880, 8192, 32});
  return all;
}

enum class Tiles { chosen, all };

void run(const Bench& bench, Tiles tiles) {
  if (!prefill_product_available())
    throw Unavailable("prefill products need a Hopper GPU (sm_90a)");
  for (const Work& w : works()) {
    const PrefillTile chosen = choose_prefill_tile({.format = w.format,
                                                    .rows = w.rows,
                                                    .cols = w.cols,
                                                    .num_columns = w.columns,
                                                    .num_experts = w.num_experts});
    report(bench, w, chosen, ", chosen");
    const std::int64_t average = w.columns / std::max(1, w.num_experts);
    for (const PrefillTile& tile : kPrefillTiles) {
      // Tiles much narrower than the tokens, or much wider, tell nothing.
      const bool sensible = tile.tokens * 8 >= average && tile.tokens <= 4 * average + 16;
      if (tiles == Tiles::all && tile != chosen && sensible) report(bench, w, tile, "");
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Tiles tiles = argc > 1 && std::strcmp(argv[1], "all") == 0 ? Tiles::all : Tiles::chosen;
  return gauntlet::bench::run_on_gpu([&](const Bench& bench) { run(bench, tiles); });
}
