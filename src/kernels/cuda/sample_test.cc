// Does the GPU choose the tokens that the definitions say?
#include "kernels/cuda/sample.h"

#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "kernels/cuda/device_test.h"

namespace gauntlet::kernels::cuda {
namespace {

std::vector<float> random_logits(std::size_t count, std::uint64_t seed) {
  const Random random(seed);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = random.uniform(-6, 6, i);
  return values;
}

double log_sum_exp(const float* logits, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += std::exp(static_cast<double>(logits[i]));
  return std::log(sum);
}

/// What the parameters leave, in float64: the same filters in the same order.
std::int32_t drawn(const float* logits, std::int64_t vocab, const DrawParams& how) {
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < vocab; ++i) ids.push_back(i);
  std::sort(ids.begin(), ids.end(), [&](std::int32_t a, std::int32_t b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
  });
  if (how.top_k > 0)
    ids.resize(std::min<std::size_t>(ids.size(), static_cast<std::size_t>(how.top_k)));
  std::vector<double> weights(static_cast<std::size_t>(vocab), 0);
  double total = 0;
  for (const std::int32_t id : ids) {
    weights[static_cast<std::size_t>(id)] =
        std::exp((logits[id] - logits[ids[0]]) / how.temperature);
    total += weights[static_cast<std::size_t>(id)];
  }
  double held = 0;
  for (const std::int32_t id : ids) {
    double& weight = weights[static_cast<std::size_t>(id)];
    if (held >= how.top_p * total) weight = 0;
    held += weight;
    if (weight < how.min_p) weight = 0;
  }
  total = 0;
  for (const double weight : weights) total += weight;
  double left = how.point * total;
  std::int32_t token = -1;
  for (std::int32_t id = 0; id < vocab; ++id) {
    if (weights[static_cast<std::size_t>(id)] <= 0) continue;
    token = id;
    if (left < weights[static_cast<std::size_t>(id)]) break;
    left -= weights[static_cast<std::size_t>(id)];
  }
  return token;
}

TEST(SampleOnGpu, greedy_takes_the_first_largest_and_its_log_probability) {
  GAUNTLET_NEEDS_GPU();
  for (const std::int64_t vocab : {7, 4096, 201088}) {
    const std::int64_t rows = 3;
    auto logits = random_logits(static_cast<std::size_t>(rows * vocab), 5);
    logits[static_cast<std::size_t>(vocab + 3)] = 50;
    logits[static_cast<std::size_t>(2 * vocab - 1)] = 50;
    const OnDevice<float> device(logits);
    const OnDevice<RowChoice> out(static_cast<std::size_t>(rows));
    const OnDevice<std::uint8_t> space(
        static_cast<std::size_t>(sample_greedy_workspace_bytes(rows)));
    const OnDevice<std::int32_t> targets(std::vector<std::int32_t>{-1, 2, 5});
    const Sample work{.logits = device.get(),
                      .stride = vocab,
                      .num_rows = rows,
                      .vocab = vocab,
                      .targets = targets.get(),
                      .out = out.get()};
    for (int again = 0; again < 2; ++again) {
      sample_greedy(work, space.get(), {});
      const auto got = out.values();
      for (std::int64_t r = 0; r < rows; ++r) {
        const float* row = logits.data() + r * vocab;
        const auto best = std::max_element(row, row + vocab) - row;
        const auto& choice = got[static_cast<std::size_t>(r)];
        EXPECT_EQ(choice.token, best);
        EXPECT_NEAR(choice.log_probability, row[best] - log_sum_exp(row, vocab), 1e-4);
        if (r > 0) {
          EXPECT_NEAR(choice.target_log_probability, row[r == 1 ? 2 : 5] - log_sum_exp(row, vocab),
                      1e-4);
        }
      }
    }
  }
}

TEST(SampleOnGpu, draws_what_the_filters_leave) {
  GAUNTLET_NEEDS_GPU();
  const std::int64_t vocab = 5000, rows = 64;
  auto logits = random_logits(static_cast<std::size_t>(rows * vocab), 9);
  std::vector<DrawParams> params;
  const Random random(3);
  for (std::uint64_t r = 0; r < static_cast<std::uint64_t>(rows); ++r) {
    params.push_back({.temperature = r % 8 == 0 ? 0.0f : 0.3f + 0.2f * static_cast<float>(r % 5),
                      .top_p = r % 3 == 0 ? 0.7f : 1.0f,
                      .min_p = r % 4 == 1 ? 0.05f : 0.0f,
                      .top_k = r % 2 == 0 ? 17 : 0,
                      .point = random.unit(r)});
  }
  const OnDevice<float> device(logits), weights(logits.size());
  const OnDevice<DrawParams> device_params(params);
  const OnDevice<RowChoice> out(static_cast<std::size_t>(rows));
  sample({.logits = device.get(),
          .stride = vocab,
          .num_rows = rows,
          .vocab = vocab,
          .params = device_params.get(),
          .out = out.get(),
          .weights = weights.get()},
         {});
  const auto got = out.values();
  int differing = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* row = logits.data() + r * vocab;
    DrawParams how = params[static_cast<std::size_t>(r)];
    const auto& choice = got[static_cast<std::size_t>(r)];
    if (how.temperature == 0) {
      EXPECT_EQ(choice.token, std::max_element(row, row + vocab) - row);
    } else if (choice.token != drawn(row, vocab, how)) {
      ++differing;  // a point within rounding of a border
    }
    EXPECT_NEAR(choice.log_probability, row[choice.token] - log_sum_exp(row, vocab), 1e-4);
  }
  EXPECT_LE(differing, 1);
}

TEST(SampleOnGpu, a_mask_leaves_only_what_it_allows) {
  GAUNTLET_NEEDS_GPU();
  const std::int64_t vocab = 100, rows = 3;
  const auto logits = random_logits(static_cast<std::size_t>(rows * vocab), 2);
  std::vector<std::uint32_t> allowed(static_cast<std::size_t>(rows * 4), 0);
  allowed[1] = 1u << 8;  // row 0: id 40 alone
  allowed[4 + 3] = 3;    // row 1: 96, 97; row 2: nothing
  std::vector<DrawParams> params(static_cast<std::size_t>(rows));
  params[1].temperature = 1;
  const OnDevice<float> device(logits), weights(logits.size());
  const OnDevice<std::uint32_t> mask(allowed);
  const OnDevice<DrawParams> device_params(params);
  const OnDevice<RowChoice> out(static_cast<std::size_t>(rows));
  sample({.logits = device.get(),
          .stride = vocab,
          .num_rows = rows,
          .vocab = vocab,
          .params = device_params.get(),
          .allowed = mask.get(),
          .allowed_words = 4,
          .out = out.get(),
          .weights = weights.get()},
         {});
  const auto got = out.values();
  EXPECT_EQ(got[0].token, 40);
  EXPECT_TRUE(got[1].token == 96 || got[1].token == 97);
  EXPECT_EQ(got[2].token, -1);
}

}  // namespace
}  // namespace gauntlet::kernels::cuda
