// Does the GPU choose the tokens that the definitions say?
#include "kernels/cuda/sampling/sample.h"

#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "kernels/cuda/device_test.h"

namespace gauntlet::kernels::cuda::inline sampling {
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

/// Rows as samplers read them: in whole quads.
OnDevice<float> on_device(std::vector<float> logits) {
  logits.resize((logits.size() + 3) / 4 * 4);
  return OnDevice<float>(logits);
}

/// What the parameters leave, in float64: the same filters in the same order.
std::int32_t drawn(const float* logits, std::int64_t vocab, const DrawParams& how) {
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < vocab; ++i) {
    if (logits[i] > -INFINITY) ids.push_back(i);
  }
  if (ids.empty()) return -1;
  std::sort(ids.begin(), ids.end(), [&](std::int32_t a, std::int32_t b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
  });
  if (how.top_k > 0)
    ids.resize(std::min<std::size_t>(ids.size(), static_cast<std::size_t>(how.top_k)));
  std::vector<double> weights(static_cast<std::size_t>(vocab), 0);
  double total = 0;
  for (const std::int32_t id : ids) {
    weights[static_cast<std::size_t>(id)] =
        std::exp((double{logits[id]} - logits[ids[0]]) / how.temperature);
    total += weights[static_cast<std::size_t>(id)];
  }
  double held = 0;
  for (const std::int32_t id : ids) {
    double& weight = weights[static_cast<std::size_t>(id)];
    const double own = weight;
    if (how.top_p < 1 && held >= how.top_p * total) weight = 0;
    held += own;
    if (own < how.min_p) weight = 0;
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
  for (const std::int64_t vocab : {6, 7, 4097, 201088}) {
    const std::int64_t rows = 3;
    auto logits = random_logits(static_cast<std::size_t>(rows * vocab), 5);
    logits[static_cast<std::size_t>(vocab + 3)] = 50;
    logits[static_cast<std::size_t>(2 * vocab - 1)] = 50;
    const auto device = on_device(logits);
    const OnDevice<RowChoice> out(static_cast<std::size_t>(rows));
    const OnDevice<std::int32_t> targets(std::vector<std::int32_t>{-1, 2, 5});
    const Sample work{.logits = device.get(),
                      .stride = vocab,
                      .num_rows = rows,
                      .vocab = vocab,
                      .targets = targets.get(),
                      .out = out.get()};
    for (int again = 0; again < 2; ++again) {
      sample_greedy(work, {});
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

/// Samples rows of so many logits, `stride` apart.
std::vector<RowChoice> sampled(const std::vector<float>& logits, std::int64_t vocab,
                               std::int64_t stride, const std::vector<DrawParams>& params) {
  const auto device = on_device(logits);
  const OnDevice<DrawParams> device_params(params);
  const OnDevice<RowChoice> out(params.size());
  sample({.logits = device.get(),
          .stride = stride,
          .num_rows = std::ssize(params),
          .vocab = vocab,
          .params = device_params.get(),
          .out = out.get()},
         {});
  return out.values();
}

/// All kinds of filters, alone and together; every eighth row is greedy.
std::vector<DrawParams> all_filters(std::uint64_t rows) {
  std::vector<DrawParams> params;
  const Random random(3);
  for (std::uint64_t r = 0; r < rows; ++r) {
    params.push_back({.temperature = r % 8 == 0 ? 0.0f : 0.3f + 0.2f * static_cast<float>(r % 5),
                      .top_p = r % 3 == 0 ? 0.7f : 1.0f,
                      .min_p = r % 4 == 1 ? 0.05f : 0.0f,
                      .top_k = r % 2 == 0 ? 17 : (r % 7 == 0 ? 700 : 0),
                      .point = random.unit(r)});
  }
  return params;
}

/// How many rows do not get the token of the definition.
int count_differing(const std::vector<float>& logits, std::int64_t vocab, std::int64_t stride,
                    const std::vector<DrawParams>& params, const std::vector<RowChoice>& got) {
  int differing = 0;
  for (std::size_t r = 0; r < params.size(); ++r) {
    const float* row = logits.data() + static_cast<std::int64_t>(r) * stride;
    const std::int32_t token = got[r].token;
    if (params[r].temperature == 0) {
      EXPECT_EQ(token, std::max_element(row, row + vocab) - row);
    } else if (token != drawn(row, vocab, params[r])) {
      ++differing;
    }
    EXPECT_NEAR(got[r].log_probability, row[token] - log_sum_exp(row, vocab), 1e-4);
  }
  return differing;
}

TEST(SampleOnGpu, draws_what_the_filters_leave) {
  GAUNTLET_NEEDS_GPU();
  struct Case {
    std::int64_t vocab, stride;
  };
  for (const Case at : {Case{1, 1}, Case{7, 7}, Case{5000, 5000}, Case{5001, 5003}}) {
    const auto params = all_filters(64);
    const auto logits = random_logits(params.size() * static_cast<std::size_t>(at.stride), 9);
    const auto got = sampled(logits, at.vocab, at.stride, params);
    // A point may lie within rounding of a border.
    EXPECT_LE(count_differing(logits, at.vocab, at.stride, params, got), 1) << at.vocab;
  }
}

TEST(SampleOnGpu, draws_from_a_whole_vocabulary_the_same_alone_and_in_company) {
  GAUNTLET_NEEDS_GPU();
  const std::int64_t vocab = 201088;
  const auto params = all_filters(12);
  const auto logits = random_logits(params.size() * static_cast<std::size_t>(vocab), 4);
  const auto got = sampled(logits, vocab, vocab, params);
  EXPECT_LE(count_differing(logits, vocab, vocab, params, got), 1);
  for (std::size_t r = 0; r < params.size(); ++r) {
    const auto row = logits.begin() + static_cast<std::int64_t>(r) * vocab;
    const auto alone = sampled({row, row + vocab}, vocab, vocab, {params[r]});
    EXPECT_EQ(alone[0].token, got[r].token);
    EXPECT_EQ(alone[0].log_probability, got[r].log_probability);
  }
}

TEST(SampleOnGpu, ties_go_to_the_lowest_ids) {
  GAUNTLET_NEEDS_GPU();
  const std::int64_t vocab = 3001;
  const auto params = all_filters(64);
  std::vector<float> few(params.size() * static_cast<std::size_t>(vocab));
  const Random random(6);
  for (std::size_t i = 0; i < few.size(); ++i) few[i] = std::floor(random.uniform(0, 4, i));
  EXPECT_LE(count_differing(few, vocab, vocab, params, sampled(few, vocab, vocab, params)), 1);

  // 0 and -0 are equal, too. Four and a half of them take five.
  std::vector<float> equal(few.size());
  for (std::size_t i = 0; i < equal.size(); ++i) equal[i] = i % 3 == 0 ? -0.0f : 0.0f;
  EXPECT_LE(count_differing(equal, vocab, vocab, params, sampled(equal, vocab, vocab, params)), 1);
  for (const double point : {0.0, 0.5, 1 - 0x1p-53}) {
    const std::vector<float> row(equal.begin(), equal.begin() + vocab);
    const auto first = static_cast<std::int32_t>(point * 5);
    EXPECT_EQ(sampled(row, vocab, vocab, {{.temperature = 1, .top_k = 5, .point = point}})[0].token,
              first);
    EXPECT_EQ(
        sampled(row, vocab, vocab, {{.temperature = 1, .top_p = 4.5f / vocab, .point = point}})[0]
            .token,
        first);
  }
}

TEST(SampleOnGpu, what_is_not_a_number_or_minus_infinity_is_never_chosen) {
  GAUNTLET_NEEDS_GPU();
  const std::int64_t vocab = 999;
  const auto params = all_filters(16);
  auto logits = random_logits(params.size() * static_cast<std::size_t>(vocab), 8);
  auto defined = logits;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (i % 5 > 1) continue;
    logits[i] = i % 5 == 0 ? NAN : -INFINITY;
    defined[i] = -INFINITY;
  }
  EXPECT_LE(count_differing(defined, vocab, vocab, params, sampled(logits, vocab, vocab, params)),
            1);
  for (const DrawParams& one : params) {
    EXPECT_EQ(sampled(std::vector<float>(7, NAN), 7, 7, {one})[0].token, -1);
    std::vector<float> infinite(900, 2);
    infinite[333] = INFINITY;
    EXPECT_EQ(sampled(infinite, 900, 900, {one})[0].token, 333);
  }
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
  const auto device = on_device(logits);
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
          .out = out.get()},
         {});
  const auto got = out.values();
  EXPECT_EQ(got[0].token, 40);
  EXPECT_TRUE(got[1].token == 96 || got[1].token == 97);
  EXPECT_EQ(got[2].token, -1);
}

}  // namespace
}  // namespace gauntlet::kernels::cuda::inline sampling
