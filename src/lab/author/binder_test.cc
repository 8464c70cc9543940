#include "lab/author/binder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "core/check.h"
#include "core/narrow_floats.h"
#include "lab/author/fill_rule.h"

namespace gauntlet::lab::inline author {
namespace {

/// Remembers what was declared.
class SpyBinder final : public Binder {
 public:
  using Binder::Binder;
  std::vector<BufferSpec> specs;

 protected:
  void* add(BufferSpec spec) override {
    specs.push_back(std::move(spec));
    return this;
  }
};

template <class T>
std::vector<T> filled(const Fill& fill, std::int64_t count, std::uint64_t seed) {
  std::vector<T> values(static_cast<std::size_t>(count), T{});
  fill.write(values.data(), 0, count, sizeof(T), Random(seed));
  return values;
}

/// The same in pieces, the last one first.
template <class T>
std::vector<T> filled_in_pieces(const Fill& fill, std::int64_t count, std::uint64_t seed,
                                std::int64_t piece) {
  std::vector<T> values(static_cast<std::size_t>(count), T{});
  const Random random(seed);
  for (std::int64_t begin = (count - 1) / piece * piece; begin >= 0; begin -= piece) {
    fill.write(values.data() + begin, begin, std::min(count, begin + piece), sizeof(T), random);
  }
  return values;
}

TEST(Binder, hands_on_type_role_count_and_memory) {
  const Knobs knobs = Knobs::defaults({{.name = "n", .cpu = 5}}, BackendKind::cpu);
  SpyBinder binder(knobs);
  EXPECT_EQ(binder.knob("n"), 5);
  EXPECT_EQ(static_cast<const void*>(binder.input<float>("a", 3, Fill::uniform())), &binder);
  binder.output<std::uint16_t>("b", 4, Memory::pinned);
  binder.scratch<double>("c", 5, Memory::managed);
  ASSERT_EQ(binder.specs.size(), 3u);
  EXPECT_EQ(binder.specs[0].name, "a");
  EXPECT_EQ(binder.specs[0].role, Role::input);
  EXPECT_EQ(binder.specs[0].type, DType::f32);
  EXPECT_EQ(binder.specs[0].count, 3);
  EXPECT_EQ(binder.specs[0].memory, Memory::device);
  EXPECT_EQ(binder.specs[0].fill.rule, Fill::Rule::uniform);
  EXPECT_EQ(binder.specs[1].role, Role::output);
  EXPECT_EQ(binder.specs[1].type, DType::u16);
  EXPECT_EQ(binder.specs[1].memory, Memory::pinned);
  EXPECT_EQ(binder.specs[2].role, Role::scratch);
  EXPECT_EQ(binder.specs[2].type, DType::f64);
  EXPECT_EQ(binder.specs[2].memory, Memory::managed);
}

TEST(Fill, gives_the_same_values_however_the_range_is_split) {
  for (const Fill& fill :
       {Fill::uniform(-2, 5), Fill::integers(-3, 100), Fill::bytes(), Fill::constant_zero()}) {
    const auto whole = filled<std::uint32_t>(fill, 101, 7);
    for (const std::int64_t piece : {1, 3, 60, 100}) {
      EXPECT_EQ(filled_in_pieces<std::uint32_t>(fill, 101, 7, piece), whole);
    }
  }
}

TEST(Fill, gives_the_same_bytes_from_any_offset_whatever_the_element) {
  const auto bytes = filled<std::uint8_t>(Fill::bytes(), 120, 9);
  for (const std::int64_t piece : {1, 3, 5, 7, 8, 13}) {
    EXPECT_EQ(filled_in_pieces<std::uint8_t>(Fill::bytes(), 120, 9, piece), bytes);
  }
  const auto same = [&](const auto& wider) {
    return std::memcmp(wider.data(), bytes.data(), bytes.size()) == 0;
  };
  EXPECT_TRUE(same(filled_in_pieces<std::uint16_t>(Fill::bytes(), 60, 9, 7)));
  EXPECT_TRUE(same(filled_in_pieces<std::uint32_t>(Fill::bytes(), 30, 9, 3)));
  EXPECT_TRUE(same(filled_in_pieces<std::uint64_t>(Fill::bytes(), 15, 9, 2)));
}

TEST(Fill, splits_a_filler_of_ranges_and_never_one_of_wholes) {
  const Fill squares =
      Fill::ranges([](void* out, std::int64_t begin, std::int64_t end, const Random&) {
        for (std::int64_t i = begin; i < end; ++i) {
          static_cast<std::int32_t*>(out)[i - begin] = static_cast<std::int32_t>(i * i);
        }
      });
  EXPECT_FALSE(squares.whole);
  EXPECT_FALSE(squares.mixes) << "unless told, elements belong together";
  EXPECT_EQ(filled_in_pieces<std::int32_t>(squares, 9, 1, 4), filled<std::int32_t>(squares, 9, 1));
}

TEST(Fill, faults_a_rule_of_another_element) {
  std::vector<double> values(4);
  EXPECT_THROW(Fill::uniform().write(values.data(), 0, 4, sizeof(double), Random(1)), Fault);
  EXPECT_THROW(Fill::integers(0, 9).write(values.data(), 0, 4, sizeof(double), Random(1)), Fault);
}

TEST(Fill, spreads_random_bytes_over_all_values) {
  std::vector<int> counts(256);
  for (const unsigned char byte : filled<std::uint8_t>(Fill::bytes(), 256 * 100, 5)) ++counts[byte];
  for (const int count : counts) EXPECT_NEAR(count, 100, 60);
}

TEST(Fill, changes_with_the_seed) {
  EXPECT_NE(filled<float>(Fill::uniform(), 50, 1), filled<float>(Fill::uniform(), 50, 2));
  EXPECT_NE(filled<std::uint8_t>(Fill::bytes(), 50, 1), filled<std::uint8_t>(Fill::bytes(), 50, 2));
}

TEST(Fill, keeps_integers_in_their_range_and_reaches_both_ends) {
  const auto values = filled<std::int32_t>(Fill::integers(-2, 3), 500, 3);
  const auto [low, high] = std::ranges::minmax(values);
  EXPECT_EQ(low, -2);
  EXPECT_EQ(high, 2);
}

TEST(Fill, keeps_uniform_values_in_their_range) {
  const auto values = filled<float>(Fill::uniform(0.5f, 0.75f), 500, 3);
  const auto [low, high] = std::ranges::minmax(values);
  EXPECT_GE(low, 0.5f);
  EXPECT_LE(high, 0.75f);
  EXPECT_GT(high - low, 0.2f);
}

TEST(Fill, makes_the_same_whole_numbers_of_every_type) {
  const auto floats = filled<float>(Fill::whole_floats(-8, 9), 500, 3);
  const auto halves = filled<Bf16>(Fill::whole_bf16(-8, 9), 500, 3);
  const auto quarters = filled<F8e4m3>(Fill::whole_f8e4m3(-8, 9), 500, 3);
  const auto [low, high] = std::ranges::minmax(floats);
  EXPECT_EQ(low, -8);
  EXPECT_EQ(high, 8);
  for (std::size_t i = 0; i < floats.size(); ++i) {
    EXPECT_EQ(to_float(halves[i]), floats[i]);
    EXPECT_EQ(to_float(quarters[i]), floats[i]);
  }
  EXPECT_THROW(Fill::whole_bf16(-300, 300), Fault) << "300 is not a bf16";
  EXPECT_THROW(Fill::whole_f8e4m3(-17, 17), Fault) << "17 is not an e4m3";
}

TEST(Fill, repeats_rows_of_a_few_kinds) {
  constexpr std::int64_t kRow = 8, kRows = 500, kKinds = 5;
  const auto words = filled<Bf16>(Fill::whole_bf16_rows(-8, 9, kRow, kKinds), kRow * kRows, 3);
  const auto row = [&](std::int64_t i) { return std::span(words).subspan(i * kRow, kRow); };
  std::vector<std::int64_t> first_of(kKinds, -1);
  for (std::int64_t i = 0; i < kRows; ++i) {
    auto& first = first_of[static_cast<std::size_t>(row_kind(i, kKinds))];
    if (first < 0) first = i;
    EXPECT_TRUE(std::ranges::equal(row(i), row(first))) << i;
  }
  EXPECT_TRUE(std::ranges::none_of(first_of, [](std::int64_t i) { return i < 0; }));
  EXPECT_FALSE(std::ranges::equal(row(first_of[0]), row(first_of[1])));
}

TEST(Fill, writes_an_odd_number_of_bytes_and_none_beyond) {
  std::vector<unsigned char> bytes(16, 0xEE);
  Fill::bytes().write(bytes.data(), 0, 13, 1, Random(4));
  EXPECT_FALSE(
      std::all_of(bytes.begin() + 8, bytes.begin() + 13, [](auto b) { return b == 0xEE; }));
  EXPECT_TRUE(std::all_of(bytes.begin() + 13, bytes.end(), [](auto b) { return b == 0xEE; }));
}

TEST(Fill, hands_a_custom_filler_all_of_the_buffer) {
  const Fill fill = Fill::custom<std::int32_t>([](std::span<std::int32_t> all, const Random&) {
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int32_t>(all.size() - i);
  });
  EXPECT_TRUE(fill.whole);
  EXPECT_FALSE(fill.mixes);
  EXPECT_EQ(filled<std::int32_t>(fill, 4, 1), (std::vector<std::int32_t>{4, 3, 2, 1}));
}

}  // namespace
}  // namespace gauntlet::lab::inline author
