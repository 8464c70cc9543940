#include "study/ranks/rank_scaling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "model/weights.h"
#include "study/ranks/rank_crew.h"
#include "study/ranks/scaling_text.h"

namespace gauntlet::study {
namespace {

using engine::SpeedKind;
using testing::HasSubstr;

/// Of a model that is made in a moment.
model::ModelWeights small_model() {
  const auto config = model::random_shape("gpt-oss-20b", 1);
  model::ModelConfig small = config.value();
  small.hidden = 256;
  small.intermediate = 256;
  small.num_heads = 8;
  small.num_kv_heads = 4;
  small.num_experts = 4;
  small.vocab = 4096;
  return model::random_model(small, 1);
}

const std::vector<engine::SpeedTest> kTests = {
    {.kind = SpeedKind::prefill, .batch = 1, .context = 0, .tokens = 32},
    {.kind = SpeedKind::decode, .batch = 2, .context = 32, .tokens = 4}};

TEST(RankScaling, measures_every_test_on_every_number_of_ranks) {
  const auto scaling = measure_scaling(
      small_model(), {.ranks = {1, 2, 4}, .options = {.threads = 1}, .tests = kTests, .rounds = 3},
      {});
  ASSERT_TRUE(scaling) << scaling.error().message;
  ASSERT_EQ(scaling->points.size(), 6u);
  for (const RankScalePoint& point : scaling->points) {
    EXPECT_GT(point.tokens_per_s.value, 0);
    EXPECT_NEAR(point.efficiency.value, point.speedup.value / point.ranks, 1e-9);
    EXPECT_GE(point.waiting, 0);
    EXPECT_LE(point.waiting, 1.05) << "a rank waits no longer than the whole takes";
    if (point.ranks == 1) {
      EXPECT_EQ(point.speedup.value, 1);
      EXPECT_EQ(point.sent_bytes_per_token, 0);
    } else {
      // Each layer has two sums of a row that every rank sends to every other, and logits.
      const double rows = 2.0 * point.ranks * (point.ranks - 1) * 256 * sizeof(float);
      EXPECT_GE(point.sent_bytes_per_token, rows * 0.99);
    }
  }
  EXPECT_EQ(scaling->points[1].mesh, "tp2,ep2");
  EXPECT_LT(scaling->points[2].weight_bytes, scaling->points[0].weight_bytes / 2);
}

TEST(RankScaling, says_which_number_of_ranks_divides_nothing) {
  const auto scaling = measure_scaling(small_model(), {.ranks = {1, 3}, .tests = kTests}, {});
  ASSERT_FALSE(scaling);
  EXPECT_THAT(scaling.error().message, HasSubstr("3 ranks divide neither"));
}

TEST(RankScaling, is_written_as_table_json_and_page) {
  RankScaling scaling{.model = "tiny", .sums = "reduced", .threads = 2, .cpus = 2, .rounds = 5};
  for (const int ranks : {1, 2}) {
    scaling.points.push_back({.ranks = ranks,
                              .mesh = ranks == 1 ? "tp1" : "tp2",
                              .test = kTests[1],
                              .tokens_per_s = {100.0 * ranks, 90.0 * ranks, 110.0 * ranks},
                              .speedup = {1.0 * ranks, 0.9 * ranks, 1.1 * ranks},
                              .efficiency = {1, 0.9, 1.1},
                              .waiting = 0.25});
  }
  const std::string markdown = markdown_of(scaling);
  EXPECT_THAT(markdown, HasSubstr("| decode, batch 2 | 2 | tp2 | 200.0 [180.0, 220.0] | 2.00x "
                                  "[1.80, 2.20] | 100% | 25% |"));
  EXPECT_THAT(markdown, HasSubstr("There are 2 CPUs: rows that share them"));
  const auto json = to_json(scaling);
  EXPECT_EQ(json.at("points")[1].at("ranks_share_cpus"), true);
  EXPECT_EQ(json.at("points")[0].at("ranks_share_cpus"), false);
  const std::string page = page_of(scaling);
  EXPECT_THAT(page, HasSubstr("<svg"));
  EXPECT_THAT(page, HasSubstr("class=\"ideal\""));
}

TEST(RankCrew, tells_what_an_order_failed_by_and_takes_no_other) {
  const auto weights = small_model();
  engine::RankConfig config{.mesh = {.tp = 2}};
  config.cpu = {.options = {.threads = 1}, .max_sequences = 2, .max_tokens = 128};
  auto crew = RankCrew::make(weights, config);
  ASSERT_TRUE(crew) << crew.error().message;
  std::size_t num_counted = 0;
  const auto counted = (*crew)->run([&](Executor&, RankPulse& pulse) {
    pulse.beat();
    num_counted = pulse.counters().size();
    return Expected<void>();
  });
  EXPECT_TRUE(counted);
  EXPECT_EQ(num_counted, 2u);
  const auto failed = (*crew)->run(
      [](Executor&, RankPulse&) -> Expected<void> { throw std::runtime_error("out of paper"); });
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("out of paper"));
  EXPECT_FALSE((*crew)->run([](Executor&, RankPulse&) { return Expected<void>(); }));
}

}  // namespace
}  // namespace gauntlet::study
