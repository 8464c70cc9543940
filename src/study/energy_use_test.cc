// Is energy counted per token, and its absence said?
#include "study/energy_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "study/fake_bench.h"

namespace gauntlet::study {
namespace {

TEST(EnergyUse, is_not_told_where_there_is_no_meter) {
  FakeBench fake;
  const auto told = measure_energy(fake.bench, {}, 0);
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().message, "not told by this machine");
}

/// A machine that uses a joule whenever somebody looks.
TEST(EnergyUse, is_given_per_token_of_each_batch) {
  const auto weights = model::random_model({.name = "small",
                                            .num_layers = 1,
                                            .hidden = 64,
                                            .intermediate = 64,
                                            .num_heads = 2,
                                            .num_kv_heads = 1,
                                            .head_dim = 32,
                                            .num_experts = 4,
                                            .experts_per_token = 2,
                                            .vocab = 128,
                                            .max_positions = 512,
                                            .sliding_window = 32,
                                            .attention = model::alternating_attention(1)},
                                           1);
  double joules = 0;
  const EnergyMeter meter("a test", [&]() -> Expected<double> { return joules += 1; });
  Workbench bench({.weights = weights,
                   .text = std::vector<std::int32_t>(4096, 7),
                   .ladder = ladder_for(engine::Backend::cpu),
                   .ceilings = {},
                   .cpu = {},
                   .energy = &meter});
  Sizes sizes = sizes_for(Depth::quick, engine::Backend::cpu, weights.config, 1);
  sizes.most_sequences = 2;
  const auto told = measure_energy(bench, sizes, 0);
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_EQ(told->at("source"), "a test");
  ASSERT_EQ(told->at("points").size(), 2u);
  for (const auto& point : told->at("points")) {
    const double tokens = 65 * point.at("batch").get<double>();
    EXPECT_DOUBLE_EQ(point.at("joules_per_token"), 1 / tokens) << "one look per repetition";
  }
}

}  // namespace
}  // namespace gauntlet::study
