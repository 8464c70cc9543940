// Does a model that is cut over ranks compute what the whole one does, once its parts are summed?
#include <cmath>
#include <stdexcept>
#include <thread>

#include "engine/rank_halves.h"

namespace gauntlet::engine::cpu {
namespace {

constexpr float kTolerance = 2e-5f;  // of logits of order one, whose sums have another order

/// Of the only rank there is.
class SumOfOne final : public RankSum {
 public:
  void add_up(const PartialRows& part, void* stream) override {
    EXPECT_EQ(stream, nullptr);
    EXPECT_EQ(part.of, calls++ % 2 == 0 ? SumOf::attention : SumOf::experts);
    rows += part.rows;
  }
  std::int64_t calls = 0;
  std::int64_t rows = 0;
};

class RankOfTwo final : public RankSum {
 public:
  RankOfTwo(SumOfTwo& sum, int rank) : sum_(sum), rank_(rank) {}
  void add_up(const PartialRows& part, void*) override {
    sum_.add_up(rank_, {part.values, static_cast<std::size_t>(part.count())});
  }

 private:
  SumOfTwo& sum_;
  int rank_;
};

class Broken final : public RankSum {
 public:
  void add_up(const PartialRows&, void*) override { throw std::runtime_error("a rank is gone"); }
};

std::unique_ptr<Executor> executor_of(const model::ModelWeights& weights, EngineOptions options,
                                      std::shared_ptr<RankSum> sum) {
  return std::move(
      make_cpu_executor(
          weights,
          {.options = options, .max_sequences = 4, .max_tokens = 1024, .rank_sum = std::move(sum)})
          .value());
}

/// Both ways of computing a layer, by one thread and by several.
const EngineOptions kWays[] = {{.threads = 1},
                               {.threads = 2},
                               {.threads = 3},
                               {.threads = 2, .fusion = Fusion::op_by_op},
                               {.threads = 2, .stages = Stages::apart}};

TEST(RankSum, of_one_rank_changes_nothing_but_the_order_of_a_sum) {
  const auto weights = golden_model("gauntlet-tiny");
  for (const EngineOptions& options : kWays) {
    const auto whole = executor_of(weights, options, nullptr);
    const auto sum = std::make_shared<SumOfOne>();
    const auto summed = executor_of(weights, options, sum);
    for (const std::int64_t chunk : {60, 3}) {
      sum->calls = sum->rows = 0;
      expect_close(logits_of(*whole, chunk), logits_of(*summed, chunk), kTolerance);
      const std::int64_t layers = weights.config.num_layers;
      EXPECT_EQ(sum->calls, 2 * layers * ((60 + chunk - 1) / chunk + 2));
      EXPECT_EQ(sum->rows, 2 * layers * 62) << "every token's row, once for each sum";
    }
  }
}

/// Experts add in their order to zeros, and to the residual elsewhere; o adds once either way.
TEST(RankSum, of_one_rank_has_the_same_bits_where_experts_add_nothing) {
  auto weights = golden_model("gauntlet-tiny");
  for (const int rank : {0, 1}) {
    auto half = half_of(weights, rank);  // the other half of the experts adds nothing
    weights.storage = half.storage;
    for (std::size_t l = 0; l < weights.layers.size(); ++l) {
      for (std::size_t e = 1 - rank; e < weights.layers[l].experts.size(); e += 2) {
        weights.layers[l].experts[e] = half.layers[l].experts[e];
      }
    }
  }
  for (const EngineOptions& options : kWays) {
    EXPECT_EQ(logits_of(*executor_of(weights, options, nullptr), 60),
              logits_of(*executor_of(weights, options, std::make_shared<SumOfOne>()), 60));
  }
}

TEST(RankSum, of_two_halves_is_the_whole_model_with_the_same_bits_on_both) {
  const auto weights = golden_model("gauntlet-tiny");
  for (const EngineOptions& options : kWays) {
    const auto expected = logits_of(*executor_of(weights, options, nullptr), 60);
    SumOfTwo sum;
    std::vector<std::vector<float>> got[2];
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < 2; ++rank) {
      ranks.emplace_back([&, rank] {
        const auto executor =
            executor_of(half_of(weights, rank), options, std::make_shared<RankOfTwo>(sum, rank));
        got[rank] = logits_of(*executor, 60);
      });
    }
    for (std::thread& rank : ranks) rank.join();
    ASSERT_EQ(got[0].size(), 3u);
    EXPECT_EQ(got[0], got[1]);
    expect_close(expected, got[0], kTolerance);
  }
}

TEST(RankSum, without_the_other_half_it_is_another_model) {
  const auto weights = golden_model("gauntlet-tiny");
  const auto half = executor_of(half_of(weights, 0), {.threads = 1}, std::make_shared<SumOfOne>());
  const auto whole = executor_of(weights, {.threads = 1}, nullptr);
  const auto a = logits_of(*half, 60), b = logits_of(*whole, 60);
  float worst = 0;
  for (std::size_t k = 0; k < a[0].size(); ++k)
    worst = std::max(worst, std::abs(a[0][k] - b[0][k]));
  EXPECT_GT(worst, 100 * kTolerance);
}

TEST(RankSum, ends_the_step_when_it_throws_and_commits_nothing) {
  for (const int threads : {1, 3}) {
    const auto executor = executor_of(golden_model("gauntlet-tiny"), {.threads = threads},
                                      std::make_shared<Broken>());
    const SequenceId sequence = executor->kv().create();
    for (int attempt = 0; attempt < 2; ++attempt) {
      try {
        step(*executor, {.sequence = sequence, .tokens = {1, 2, 3}});
        FAIL() << "the step went on";
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "a rank is gone");
      }
      EXPECT_EQ(executor->kv().length(sequence), 0);
      EXPECT_EQ(executor->kv().next_position(sequence), 0);
    }
  }
}

}  // namespace
}  // namespace gauntlet::engine::cpu
