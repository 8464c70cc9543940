// Do layers compute what the model's definition says, at every level and by both attentions?
#include "engine/cpu/layers.h"

#include "engine/cpu/layers_cases.h"

namespace gauntlet::engine::cpu {
namespace {

TEST(Layers, are_the_scalar_ones_at_every_level) {
  for (const kernels::cpu::SimdLevel level : kernels::cpu::available_levels()) {
    expect_scalar(residuals_of({.simd = level, .threads = 2}, 37));
  }
}

TEST(Layers, are_the_scalar_ones_by_either_attention) {
  for (const AttentionKind attention : {AttentionKind::flash, AttentionKind::naive}) {
    expect_scalar(residuals_of({.threads = 1, .attention = attention}, 10));
  }
}

TEST(Layers, share_attention_out_by_sequences_where_there_are_many) {
  const auto run = [](int threads) {
    const auto executor =
        std::move(make_cpu_executor(
                      small_model(),
                      {.options = {.threads = threads}, .max_sequences = 40, .export_layers = {1}})
                      .value());
    std::vector<BatchItem> items;
    for (std::int32_t s = 0; s < 33; ++s) {
      const SequenceId sequence = executor->kv().create();
      check(executor->kv().reserve(sequence, 1 + s % 3), "no pages");
      items.push_back({.sequence = sequence,
                       .tokens = std::vector<std::int32_t>(static_cast<std::size_t>(1 + s % 3), s),
                       .exports = true});
    }
    std::vector<std::vector<float>> all;
    for (ItemResult& result : executor->collect(executor->submit(std::move(items)))) {
      all.push_back(std::move(result.residuals));
    }
    return all;
  };
  const auto by_heads = run(5);  // 33 items are fewer than eight for each
  EXPECT_EQ(run(1), by_heads);
  EXPECT_EQ(run(2), by_heads);
}

}  // namespace
}  // namespace gauntlet::engine::cpu
