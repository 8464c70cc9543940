// Rotating, storing and attending in one launch must leave the bits that rope_kv and
// decode_attention leave; what those are worth is in attention_test.cc.
#include "kernels/cuda/attention/decode_attention.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>

#include "kernels/cuda/attention/attention_scenario.h"
#include "kernels/cuda/attention/rope_kv.h"

namespace gauntlet::kernels::cuda::inline attention {
namespace {

const Launch kHow{.stream = nullptr, .overlap = Overlap::dependent};

template <class T>
bool same_bytes(const std::vector<T>& one, const std::vector<T>& other) {
  return one.size() == other.size() &&
         (one.empty() || std::memcmp(one.data(), other.data(), one.size() * sizeof(T)) == 0);
}

/// A layer's keys or values as the device holds them.
struct Rows {
  explicit Rows(const DeviceRows& rows)
      : bf16(rows.bf16.values()), fp8(rows.fp8.values()), scale(rows.scale.values()) {}
  void restore(DeviceRows& rows) const {
    rows.bf16.write(bf16), rows.fp8.write(fp8), rows.scale.write(scale);
  }
  std::vector<std::uint16_t> bf16;
  std::vector<std::uint8_t> fp8;
  std::vector<float> scale;
};

bool same(const Rows& one, const Rows& other) {
  return same_bytes(one.bf16, other.bf16) && same_bytes(one.fp8, other.fp8) &&
         same_bytes(one.scale, other.scale);
}

/// What a step leaves.
struct Outcome {
  std::vector<std::uint16_t> out;
  Rows k, v;
};

/// A scenario of single tokens whose newest keys and values the cache does not hold yet: it holds
/// others in their place.
class Case {
 public:
  explicit Case(const Scenario& scenario)
      : scenario_(scenario),
        stage_(scenario),
        k_(stage_.k()),
        v_(stage_.v()),
        qkv_(product()),
        rope_(angles()),
        q_(std::vector<std::uint16_t>(scenario.sequences.size() * heads() * kHeadDim, kPoison16)) {}

  Outcome in_two_launches(int pages_per_split) {
    return run(pages_per_split, [&](const DecodeSplit& split) {
      rope_kv({.qkv = qkv_.get(),
               .qkv_stride = width(),
               .rope = rope_.as<float2>(),
               .q = q_.as<__nv_bfloat16>(),
               .num_heads = scenario_.num_heads,
               .cache = stage_.cache(),
               .batch = batch()},
              kHow);
      Attention work = attention();
      work.q = q_.as<__nv_bfloat16>();
      decode_attention(work, split, kHow);
    });
  }

  Outcome in_one_launch(int pages_per_split) {
    return run(pages_per_split, [&](const DecodeSplit& split) {
      rope_decode_attention(attention(),
                            {.qkv = qkv_.get(), .qkv_stride = width(), .rope = rope_.as<float2>()},
                            split, kHow);
    });
  }

  const Rows& k_before() const { return k_; }
  const Rows& v_before() const { return v_; }
  void take_pages_away() {
    no_pages_ =
        OnDevice<std::int32_t>(std::vector<std::int32_t>(stage_.pages().entries.size(), -1));
  }

 private:
  std::size_t heads() const { return static_cast<std::size_t>(scenario_.num_heads); }
  std::int64_t width() const {
    return std::int64_t{scenario_.num_heads + 2 * scenario_.num_kv_heads} * kHeadDim;
  }

  /// The first k head of every other token is zero.
  std::vector<float> product() const {
    std::vector<float> all;
    const auto rows = static_cast<std::size_t>(width() / kHeadDim);
    for (std::size_t s = 0; s < scenario_.sequences.size(); ++s) {
      const Sequence& sequence = scenario_.sequences[s];
      for (std::size_t row = 0; row < rows; ++row) {
        const auto number = static_cast<std::uint64_t>(sequence.context) * rows + row;
        const bool zero = s % 2 == 1 && row == heads();
        const auto values = random_row(sequence.content + 3000, number, zero ? 0 : 3);
        all.insert(all.end(), values.begin(), values.end());
      }
    }
    return all;
  }

  std::vector<float> angles() const {
    std::vector<float> all;
    const Random random(11);
    int positions = 0;
    for (const Sequence& s : scenario_.sequences) positions = std::max(positions, s.context + 1);
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(positions) * kHeadDim; ++i) {
      all.push_back(random.uniform(-1.3f, 1.3f, i));
    }
    return all;
  }

  AttentionBatch batch() {
    AttentionBatch batch = stage_.batch();
    if (no_pages_.bytes() > 0) batch.table = no_pages_.get();
    return batch;
  }
  Attention attention() {
    Attention attention = stage_.attention();
    attention.q = nullptr;
    attention.batch = batch();
    return attention;
  }

  /// A second launch must change nothing.
  template <class Step>
  Outcome run(int pages_per_split, const Step& step) {
    k_.restore(stage_.k()), v_.restore(stage_.v());
    const DecodeShape shape{.num_sequences = batch().num_sequences,
                            .num_kv_heads = scenario_.num_kv_heads,
                            .max_context = batch().max_context,
                            .window = scenario_.window};
    const auto pairs = static_cast<std::size_t>(shape.num_sequences * shape.num_kv_heads);
    const OnDevice<std::uint8_t> partials(
        std::vector<std::uint8_t>(decode_partial_bytes(shape, pages_per_split), 0xFF));
    const OnDevice<std::uint32_t> arrived{std::vector<std::uint32_t>(pairs)};
    const DecodeSplit split{.pages_per_split = pages_per_split,
                            .partials = partials.as<void>(),
                            .arrived = arrived.get()};
    step(split);
    Outcome outcome{stage_.take_output(), Rows(stage_.k()), Rows(stage_.v())};
    EXPECT_EQ(arrived.values(), std::vector<std::uint32_t>(pairs));
    step(split);
    EXPECT_TRUE(same_bytes(stage_.take_output(), outcome.out)) << "not the same a second time";
    return outcome;
  }

  Scenario scenario_;
  Stage stage_;
  Rows k_, v_;
  OnDevice<float> qkv_, rope_;
  OnDevice<std::uint16_t> q_;
  OnDevice<std::int32_t> no_pages_{std::size_t{0}};
};

void expect_same(const Scenario& scenario, const std::vector<int>& pages_per_split,
                 const std::string& what) {
  Case made(scenario);
  for (const int pages : pages_per_split) {
    const Outcome one = made.in_one_launch(pages), two = made.in_two_launches(pages);
    EXPECT_TRUE(same_bytes(one.out, two.out)) << what << ", " << pages << " pages per split";
    EXPECT_TRUE(same(one.k, two.k) && same(one.v, two.v)) << what << ": another cache";
    EXPECT_FALSE(same(one.k, made.k_before()) || same(one.v, made.v_before())) << what;
  }
}

const std::vector<int> kContexts{0,   1,   14,  15,  16,  63,  64,  127,
                                 128, 129, 383, 384, 512, 767, 768, 1000};

void for_each_kind(const std::function<void(Scenario, const std::string&)>& visit) {
  for (const KvFormat format : {KvFormat::bf16, KvFormat::fp8}) {
    for (const int window : {0, 128}) {
      for (const int group : {1, 2, 4, 8}) {
        visit({.num_heads = 2 * group, .num_kv_heads = 2, .format = format, .window = window},
              std::string(format == KvFormat::bf16 ? "bf16" : "fp8") + ", window " +
                  std::to_string(window) + ", group " + std::to_string(group));
      }
    }
  }
}

TEST(RopeDecodeAttentionOnGpu, leaves_the_bits_of_two_launches) {
  GAUNTLET_NEEDS_GPU();
  for_each_kind([](Scenario scenario, const std::string& kind) {
    for (const int context : kContexts) {
      scenario.sequences.push_back(
          {.context = context, .content = static_cast<std::uint64_t>(context) + 1});
    }
    expect_same(scenario, {1, 3, 12, 100}, kind);
  });
}

TEST(RopeDecodeAttentionOnGpu, takes_one_sequence) {
  GAUNTLET_NEEDS_GPU();
  for (const KvFormat format : {KvFormat::bf16, KvFormat::fp8}) {
    for (const int context : {0, 15, 16, 1000}) {
      expect_same({.format = format, .sequences = {{.context = context}}}, {1, 100},
                  "context " + std::to_string(context));
    }
  }
}

TEST(RopeDecodeAttentionOnGpu, takes_more_blocks_than_the_gpu_has_room_for) {
  GAUNTLET_NEEDS_GPU();
  for (const KvFormat format : {KvFormat::bf16, KvFormat::fp8}) {
    for (const int window : {0, 500}) {
      Scenario scenario{.format = format, .window = window, .max_context = 2048};
      for (int i = 0; i < 70; ++i) {
        scenario.sequences.push_back({.context = 13 * i, .content = static_cast<std::uint64_t>(i)});
      }
      expect_same(scenario, {5, 12, 40}, "window " + std::to_string(window));
    }
  }
}

TEST(RopeDecodeAttentionOnGpu, stores_nothing_for_padding_without_a_page) {
  GAUNTLET_NEEDS_GPU();
  for (const KvFormat format : {KvFormat::bf16, KvFormat::fp8}) {
    Case made({.format = format, .sequences = {{.context = 0}, {.context = 100}}});
    made.take_pages_away();
    const Outcome left = made.in_one_launch(1);
    EXPECT_TRUE(same(left.k, made.k_before()) && same(left.v, made.v_before()));
  }
}

TEST(DecodeRing, is_deep_for_few_blocks_that_walk_far) {
  DecodeShape shape{.num_sequences = 1, .num_kv_heads = 8, .max_context = 8192, .num_sms = 132};
  EXPECT_EQ(choose_decode_ring(shape, 12), DecodeRing::deep);
  EXPECT_EQ(choose_decode_ring(shape, 4), DecodeRing::shallow) << "a short walk";
  shape.num_sequences = 2;
  EXPECT_EQ(choose_decode_ring(shape, 12), DecodeRing::shallow) << "two blocks share an SM";
  shape.window = 128;
  EXPECT_EQ(choose_decode_ring(shape, 12), DecodeRing::shallow);
  shape.window = 1024;
  EXPECT_EQ(choose_decode_ring(shape, 12), DecodeRing::deep);
  shape = {.num_sequences = 1, .num_kv_heads = 8, .max_context = 384, .num_sms = 132};
  EXPECT_EQ(choose_decode_ring(shape, 12), DecodeRing::shallow);
  shape.max_context = 385;
  EXPECT_EQ(choose_decode_ring(shape, 12), DecodeRing::deep);
}

}  // namespace
}  // namespace gauntlet::kernels::cuda::inline attention
