#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "core/cuda/no_device_reason.h"
#include "kernels/cuda/attention/attention_scenario.h"
#include "kernels/cuda/attention/decode_attention.h"
#include "kernels/cuda/attention/naive_attention.h"
#include "kernels/cuda/attention/prefill_attention.h"
#include "kernels/cuda/attention/rope_kv.h"

namespace gauntlet::kernels::cuda::inline attention {
namespace {

using Kernel = std::function<void(const Attention&)>;

const Launch kHow{.stream = nullptr, .overlap = Overlap::dependent};

void prefill(const Attention& attention) { prefill_attention(attention, kHow); }

Kernel decode(int pages_per_split) {
  return [pages_per_split](const Attention& attention) {
    const DecodeShape shape{.num_sequences = attention.batch.num_sequences,
                            .num_kv_heads = attention.cache.num_kv_heads,
                            .max_context = attention.batch.max_context,
                            .window = attention.window};
    const auto pairs = static_cast<std::size_t>(shape.num_sequences * shape.num_kv_heads);
    OnDevice<std::uint8_t> partials(
        std::vector<std::uint8_t>(decode_partial_bytes(shape, pages_per_split), 0xFF));
    OnDevice<std::uint32_t> arrived{std::vector<std::uint32_t>(pairs)};
    const DecodeSplit split{.pages_per_split = pages_per_split,
                            .partials = partials.as<void>(),
                            .arrived = arrived.get()};
    for (int launches = 0; launches < 2; ++launches) decode_attention(attention, split, kHow);
    EXPECT_EQ(arrived.values(), std::vector<std::uint32_t>(pairs));
  };
}

/// With a workspace for three rows, so that most batches need several pieces.
void naive(const Attention& attention) {
  const std::size_t row = naive_row_bytes(attention.num_heads, attention.batch.max_context);
  OnDevice<float> scores{std::vector<float>(3 * row / sizeof(float), NAN)};
  naive_attention(attention, {.scores = scores.get(), .bytes = scores.bytes()}, kHow);
  cuda_check(cudaDeviceSynchronize());
}

std::vector<std::uint16_t> run(const Scenario& scenario, const Kernel& kernel) {
  Stage stage(scenario);
  kernel(stage.attention());
  return stage.take_output();
}

void expect_right(const Scenario& scenario, const Kernel& kernel, const std::string& what) {
  Stage stage(scenario);
  kernel(stage.attention());
  const auto output = stage.take_output();
  std::size_t wrong = 0;
  double worst = 0;
  for (std::size_t i = 0; i < output.size(); ++i) {
    const double error = std::abs(bf16_float(output[i]) - stage.expected()[i]);
    const bool right = error <= stage.tolerance()[i];  // false for NaN
    if (!right && wrong++ == 0) {
      ADD_FAILURE() << what << ": token " << i / 64 / static_cast<std::size_t>(scenario.num_heads)
                    << " head " << i / 64 % static_cast<std::size_t>(scenario.num_heads) << " dim "
                    << i % 64 << " is " << bf16_float(output[i]) << ", expected "
                    << stage.expected()[i] << " within " << stage.tolerance()[i];
    }
    worst = std::max(worst, error / stage.tolerance()[i]);
  }
  EXPECT_EQ(wrong, 0u) << what << ": " << wrong << " of " << output.size() << " wrong";
  EXPECT_LE(worst, 1) << what;
}

std::string name_of(KvFormat format) { return format == KvFormat::bf16 ? "bf16" : "fp8"; }

const std::vector<int> kContexts{0, 1, 63, 64, 127, 128, 129, 1000};

/// Both formats, full and sliding, groups of 1, 2, 4 and 8.
void for_each_kind(const std::function<void(Scenario, const std::string&)>& visit) {
  for (const KvFormat format : {KvFormat::bf16, KvFormat::fp8}) {
    for (const int window : {0, 128}) {
      for (const int group : {1, 2, 4, 8}) {
        visit({.num_heads = 2 * group, .num_kv_heads = 2, .format = format, .window = window},
              name_of(format) + ", window " + std::to_string(window) + ", group " +
                  std::to_string(group));
      }
    }
  }
}

class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    int count = 0, driver = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    cudaDriverGetVersion(&driver);
    if (status != cudaSuccess || count == 0) {
      GTEST_SKIP() << no_device_reason(status, driver, CUDART_VERSION);
    }
  }
};
using PrefillAttentionOnGpu = OnGpu;
using DecodeAttentionOnGpu = OnGpu;
using NaiveAttentionOnGpu = OnGpu;
using RopeKvOnGpu = OnGpu;

void check_contexts(const Kernel& kernel, int queries) {
  for_each_kind([&](Scenario scenario, const std::string& kind) {
    for (const int context : kContexts) {
      scenario.sequences = {{.context = context, .queries = queries}};
      expect_right(scenario, kernel, kind + ", context " + std::to_string(context));
    }
  });
}

Scenario mixed() {
  return {.sequences = {{.context = 0, .queries = 130, .content = 1},
                        {.context = 700, .queries = 1, .content = 2},
                        {.context = 64, .queries = 33, .content = 3},
                        {.context = 0, .queries = 1, .content = 4},
                        {.context = 190, .queries = 200, .content = 5}}};
}

Scenario many_single() {
  Scenario scenario;
  for (int i = 0; i < 40; ++i) {
    scenario.sequences.push_back(
        {.context = 37 * i, .queries = 1, .content = static_cast<std::uint64_t>(i)});
  }
  return scenario;
}

void check_sinks(const Kernel& kernel, int queries) {
  for (const float sink : {-1e30f, -200.0f, 0.0f, 12.0f, 200.0f}) {
    for (const int window : {0, 128}) {
      const Scenario scenario{
          .window = window, .sink = sink, .sequences = {{.context = 300, .queries = queries}}};
      expect_right(scenario, kernel, "sink " + std::to_string(sink));
    }
  }
}

/// A sequence's rows are the same bits whatever else is in the batch.
void check_company(const Scenario& scenario, const Kernel& kernel) {
  const auto together = run(scenario, kernel);
  std::size_t first = 0;
  for (const Sequence& sequence : scenario.sequences) {
    Scenario alone = scenario;
    alone.sequences = {sequence};
    const auto output = run(alone, kernel);
    const auto begin = together.begin() + static_cast<std::ptrdiff_t>(first);
    EXPECT_TRUE(std::equal(output.begin(), output.end(), begin))
        << "context " << sequence.context << ", queries " << sequence.queries;
    first += output.size();
  }
}

TEST_F(PrefillAttentionOnGpu, is_right_for_every_context_and_group) { check_contexts(prefill, 37); }

TEST_F(PrefillAttentionOnGpu, is_right_for_single_tokens) { check_contexts(prefill, 1); }

TEST_F(PrefillAttentionOnGpu, takes_mixed_sequences) {
  for (const KvFormat format : {KvFormat::bf16, KvFormat::fp8}) {
    for (const int window : {0, 128}) {
      Scenario scenario = mixed();
      scenario.format = format, scenario.window = window;
      expect_right(scenario, prefill, name_of(format) + ", window " + std::to_string(window));
    }
  }
  expect_right(many_single(), prefill, "forty sequences");
}

TEST_F(PrefillAttentionOnGpu, passes_over_sequences_without_tokens) {
  const Scenario scenario{.sequences = {{.context = 5, .queries = 0},
                                        {.context = 100, .queries = 20},
                                        {.context = 64, .queries = 0}}};
  expect_right(scenario, prefill, "empty sequences");
}

TEST_F(PrefillAttentionOnGpu, counts_the_sink_once) { check_sinks(prefill, 20); }

TEST_F(PrefillAttentionOnGpu, does_not_depend_on_company) {
  check_company(mixed(), prefill);
  Scenario sliding = mixed();
  sliding.window = 128, sliding.format = KvFormat::fp8;
  check_company(sliding, prefill);
}

TEST_F(DecodeAttentionOnGpu, is_right_for_every_context_and_group) {
  for (const int pages : {1, 3, 100}) check_contexts(decode(pages), 1);
}

TEST_F(DecodeAttentionOnGpu, takes_many_sequences_of_any_length) {
  for (const KvFormat format : {KvFormat::bf16, KvFormat::fp8}) {
    for (const int window : {0, 128}) {
      Scenario scenario = many_single();
      scenario.format = format, scenario.window = window;
      for (const int pages : {1, 2, 5}) {
        expect_right(scenario, decode(pages), name_of(format) + ", " + std::to_string(pages));
      }
    }
  }
}

TEST_F(DecodeAttentionOnGpu, joins_many_splits) {
  const Scenario scenario{.sequences = {{.context = 7000, .content = 1}, {.content = 2}}};
  expect_right(scenario, decode(1), "110 splits");
}

TEST_F(DecodeAttentionOnGpu, takes_a_bound_above_every_context) {
  Scenario scenario = many_single();
  scenario.max_context = 8192;
  expect_right(scenario, decode(4), "bucket of 8192");
  scenario.window = 128;
  expect_right(scenario, decode(4), "sliding in a bucket of 8192");
}

TEST_F(DecodeAttentionOnGpu, counts_the_sink_once) {
  for (const int pages : {1, 100}) check_sinks(decode(pages), 1);
}

TEST_F(DecodeAttentionOnGpu, does_not_depend_on_company) {
  for (const KvFormat format : {KvFormat::bf16, KvFormat::fp8}) {
    Scenario scenario = many_single();
    scenario.format = format;
    check_company(scenario, decode(3));
    check_company(scenario, decode(12));
    scenario.window = 128;
    check_company(scenario, decode(3));
  }
}

TEST_F(DecodeAttentionOnGpu, agrees_with_prefill) {
  const Scenario scenario = many_single();
  const auto one = run(scenario, decode(2)), other = run(scenario, prefill);
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    ASSERT_NEAR(bf16_float(one[i]), bf16_float(other[i]), 1e-2) << i;
  }
}

TEST_F(DecodeAttentionOnGpu, reads_nothing_for_padding_without_a_page) {
  Stage stage({.sequences = {{.context = 100}}});
  Attention attention = stage.attention();
  const OnDevice<std::int32_t> no_pages{std::vector<std::int32_t>(2, -1)};
  attention.batch.table = no_pages.get();
  decode(1)(attention);
  prefill(attention);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST_F(NaiveAttentionOnGpu, is_right_for_every_context_and_group) { check_contexts(naive, 7); }

TEST_F(NaiveAttentionOnGpu, takes_mixed_sequences) {
  expect_right(mixed(), naive, "mixed");
  check_sinks(naive, 4);
}

/// Random q, k, v with one k head of zeros, a table of arbitrary factors, and poisoned pages.
class RopeCase {
 public:
  explicit RopeCase(KvFormat format) : scenario_(with_format(mixed(), format)), stage_(scenario_) {
    const Random random(5);
    for (std::size_t i = 0; i < num_tokens() * width(); ++i) {
      const bool zero = i % width() / 64 == static_cast<std::size_t>(scenario_.num_heads);
      qkv_.push_back(zero ? 0 : random.uniform(-3, 3, i));
    }
    for (std::size_t i = 0; i < 1000 * 64; ++i) {
      rope_.push_back(random.uniform(-1.3f, 1.3f, 1'000'000'000 + i));
    }
    const HostRows poison(format, static_cast<std::size_t>(stage_.pages().num_pages *
                                                           scenario_.num_kv_heads * kPageTokens));
    for (DeviceRows* rows : {&stage_.k(), &stage_.v()}) {
      rows->bf16.write(poison.bf16), rows->fp8.write(poison.fp8), rows->scale.write(poison.scale);
    }
  }

  void run_and_check() {
    const OnDevice<float> qkv(qkv_), rope(rope_);
    const OnDevice<std::uint16_t> q(std::vector<std::uint16_t>(
        num_tokens() * static_cast<std::size_t>(scenario_.num_heads) * 64, kPoison16));
    rope_kv({.qkv = qkv.get(),
             .qkv_stride = static_cast<std::int64_t>(width()),
             .rope = rope.as<float2>(),
             .q = q.as<__nv_bfloat16>(),
             .num_heads = scenario_.num_heads,
             .cache = stage_.cache(),
             .batch = stage_.batch()},
            kHow);
    cuda_check(cudaDeviceSynchronize());
    check_q(q.values());
    check_rows(stage_.k(), scenario_.num_heads);
    check_rows(stage_.v(), scenario_.num_heads + scenario_.num_kv_heads);
  }

 private:
  struct Token {
    std::size_t row;
    int position, page;
  };

  static Scenario with_format(Scenario scenario, KvFormat format) {
    scenario.format = format;
    return scenario;
  }
  std::size_t num_tokens() { return static_cast<std::size_t>(stage_.batch().num_tokens); }
  std::size_t width() const {
    return static_cast<std::size_t>(scenario_.num_heads + 2 * scenario_.num_kv_heads) * 64;
  }

  std::vector<Token> tokens() const {
    std::vector<Token> all;
    const auto stride = static_cast<std::size_t>(stage_.pages().stride);
    for (std::size_t s = 0; s < scenario_.sequences.size(); ++s) {
      for (int i = 0; i < scenario_.sequences[s].queries; ++i) {
        const int position = scenario_.sequences[s].context + i;
        const auto at = s * stride + static_cast<std::size_t>(position / kPageTokens);
        all.push_back({all.size(), position, stage_.pages().entries[at]});
      }
    }
    return all;
  }

  std::vector<double> expected(const Token& token, int head) const {
    const float* x = qkv_.data() + token.row * width() + static_cast<std::size_t>(head) * 64;
    std::vector<double> out(x, x + 64);
    if (head >= scenario_.num_heads + scenario_.num_kv_heads) return out;
    for (std::size_t i = 0; i < 32; ++i) {
      const float* factors = rope_.data() + static_cast<std::size_t>(token.position) * 64 + 2 * i;
      const double cosine = factors[0], sine = factors[1];
      out[i] = x[i] * cosine - x[i + 32] * sine;
      out[i + 32] = x[i + 32] * cosine + x[i] * sine;
    }
    return out;
  }

  void check_q(const std::vector<std::uint16_t>& q) const {
    for (const Token& token : tokens()) {
      for (int head = 0; head < scenario_.num_heads; ++head) {
        const auto row = expected(token, head);
        const auto first = (token.row * static_cast<std::size_t>(scenario_.num_heads) +
                            static_cast<std::size_t>(head)) *
                           64;
        for (std::size_t d = 0; d < 64; ++d) {
          ASSERT_NEAR(bf16_float(q[first + d]), row[d], std::abs(row[d]) * 0x1p-8 + 1e-5);
        }
      }
    }
  }

  void check_rows(const DeviceRows& rows, int first_head) {
    const auto bf16 = rows.bf16.values();
    const auto fp8 = rows.fp8.values();
    const auto scale = rows.scale.values();
    const auto written = std::ranges::count_if(bf16, [](auto x) { return x != kPoison16; }) +
                         std::ranges::count_if(fp8, [](auto x) { return x != kPoison8; });
    EXPECT_EQ(static_cast<std::size_t>(written),
              num_tokens() * static_cast<std::size_t>(scenario_.num_kv_heads) * 64);
    for (const Token& token : tokens()) {
      for (int head = 0; head < scenario_.num_kv_heads; ++head) {
        const auto row = static_cast<std::size_t>(
            kv_row(scenario_.num_kv_heads, token.page, head, token.position % kPageTokens));
        const auto values = expected(token, first_head + head);
        double amax = 0;
        for (const double x : values) amax = std::max(amax, std::abs(x));
        if (!scale.empty()) {
          ASSERT_NEAR(scale[row], amax / 448, amax * 1e-6);
        }
        for (std::size_t d = 0; d < 64; ++d) {
          if (scale.empty()) {
            ASSERT_NEAR(bf16_float(bf16[row * 64 + d]), values[d],
                        std::abs(values[d]) * 0x1p-8 + 1e-5);
          } else {
            ASSERT_NEAR(from_e4m3(fp8[row * 64 + d]) * scale[row], values[d],
                        std::abs(values[d]) * 0x1p-4 + amax / 448 * 0x1p-10 + 1e-5);
          }
        }
      }
    }
  }

  Scenario scenario_;
  Stage stage_;
  std::vector<float> qkv_, rope_;
};

TEST_F(RopeKvOnGpu, rotates_q_and_stores_k_and_v_in_bf16) {
  RopeCase(KvFormat::bf16).run_and_check();
}

TEST_F(RopeKvOnGpu, quantises_rows_to_fp8) { RopeCase(KvFormat::fp8).run_and_check(); }

TEST(DecodePlan, fills_the_gpu_as_far_as_parts_stay_long_enough) {
  const DecodeShape shape{
      .num_sequences = 1, .num_kv_heads = 8, .max_context = 8192, .num_sms = 132};
  const int pages = choose_pages_per_split(shape);
  EXPECT_EQ(pages, kMinPagesPerSplit);
  EXPECT_GE(decode_splits(shape, pages) * 8, 132 / 2);
  EXPECT_EQ(choose_pages_per_split(
                {.num_sequences = 4096, .num_kv_heads = 8, .max_context = 640, .num_sms = 132}),
            10);
}

TEST(DecodePlan, does_not_split_short_or_sliding_sequences) {
  for (const int context : {1, 64, 200}) {
    const DecodeShape shape{
        .num_sequences = 1, .num_kv_heads = 8, .max_context = context, .num_sms = 132};
    EXPECT_EQ(decode_splits(shape, choose_pages_per_split(shape)), 1) << context;
    EXPECT_EQ(decode_partial_bytes(shape, choose_pages_per_split(shape)), 0u);
  }
  const DecodeShape sliding{
      .num_sequences = 1, .num_kv_heads = 8, .max_context = 32768, .window = 128, .num_sms = 132};
  EXPECT_EQ(decode_splits(sliding, choose_pages_per_split(sliding)), 1);
}

TEST(PrefillTiles, leave_every_sequence_what_it_needs) {
  const Random random(3);
  for (const int tile_tokens : {16, 32, 64, 128}) {
    int first = 0;
    for (int s = 0; s < 300; ++s) {
      const int count = static_cast<int>(random.below(200, static_cast<std::uint64_t>(s)));
      const int tiles = prefill_first_tile(first + count, s + 1, tile_tokens) -
                        prefill_first_tile(first, s, tile_tokens);
      EXPECT_GE(tiles * tile_tokens, count);
      EXPECT_LE((tiles - 2) * tile_tokens, count);
      first += count;
    }
  }
}

TEST(NaiveRows, are_those_that_fit) {
  const Attention attention{.batch = {.num_tokens = 10, .max_context = 100}, .num_heads = 4};
  EXPECT_EQ(naive_row_bytes(4, 100), 1600u);
  EXPECT_EQ(naive_rows(attention, 1599), 0);
  EXPECT_EQ(naive_rows(attention, 4000), 2);
  EXPECT_EQ(naive_rows(attention, 1 << 20), 10);
}

}  // namespace
}  // namespace gauntlet::kernels::cuda::inline attention
