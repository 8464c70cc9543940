// Every kernel at every SIMD level this machine has, against kernels/ref; and that an output does
// not depend on who else is in the batch.
#include "kernels/cpu/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/random.h"
#include "kernels/ref/ops.h"

namespace gauntlet::kernels::cpu {
namespace {

constexpr std::int64_t kPad = 32;

std::uint16_t to_half(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}
double from_half(std::uint16_t half) {
  const std::uint32_t bits = static_cast<std::uint32_t>(half) << 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

/// A random matrix, packed and plain.
struct TestMatrix {
  PackedMatrix packed;
  std::vector<double> plain;  // [rows, cols]
  std::vector<std::uint8_t> data, scales;

  TestMatrix(PackedFormat format, std::int64_t rows, std::int64_t cols, Random random) {
    packed = {.format = format, .rows = rows, .cols = cols};
    data.resize(packed.num_groups() * packed.group_bytes());
    scales.resize(packed.num_groups() * packed.group_scale_bytes());
    for (std::int64_t r = 0; r < rows; ++r) {
      const RowPlace place = row_place(packed, r, data.data(), scales.data());
      if (format == PackedFormat::mxfp4) {
        std::vector<std::uint8_t> nibbles(cols / 2), bytes(cols / kBlock);
        for (auto& byte : nibbles) byte = static_cast<std::uint8_t>(random.next());
        for (auto& byte : bytes) byte = static_cast<std::uint8_t>(120 + random.next_below(5));
        pack_row_mxfp4(nibbles.data(), bytes.data(), cols, place);
        const auto row = ref::dequantise_mxfp4(nibbles, bytes);
        plain.insert(plain.end(), row.begin(), row.end());
        continue;
      }
      std::vector<float> row(cols);
      std::vector<std::uint16_t> halves(cols);
      for (std::int64_t c = 0; c < cols; ++c) {
        row[c] = random.uniform(-1, 1, random.next());
        halves[c] = to_half(row[c]);
        plain.push_back(format == PackedFormat::f32 ? row[c] : from_half(halves[c]));
      }
      if (format == PackedFormat::f32) {
        pack_row_f32(row.data(), cols, place);
      } else {
        pack_row_bf16(halves.data(), cols, place);
      }
    }
    packed.data = data.data();
    packed.scales = scales.data();
  }
};

/// Random rows in every form a product reads, padded as Activations asks.
struct TestRows {
  std::int64_t stride;
  std::vector<float> f32;
  std::vector<std::uint16_t> bf16, pairs;
  std::vector<std::int8_t> i8;
  std::vector<float> scales;
  std::vector<std::int32_t> offsets;

  TestRows(const KernelTable& kernels, std::int64_t rows, std::int64_t cols, Random random)
      : stride((cols + kPad - 1) / kPad * kPad),
        f32((rows + kTileTokens - 1) * stride),
        bf16(f32.size()),
        pairs(f32.size()),
        i8(f32.size()),
        scales(f32.size() / kBlock),
        offsets(f32.size() / kBlock) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < cols; ++c) {
        f32[r * stride + c] = random.uniform(-2, 2, random.next());
      }
    }
    kernels.to_bf16(f32.data(), std::ssize(f32), bf16.data());
    kernels.to_int8(f32.data(), std::ssize(f32), i8.data(), scales.data(), offsets.data(),
                    pairs.data());
  }
  Activations view(Precision precision) const {
    return {f32.data(),     precision == Precision::int8 ? pairs.data() : bf16.data(),
            i8.data(),      scales.data(),
            offsets.data(), stride};
  }
  /// Row r as the precision sees it.
  std::vector<double> seen(std::int64_t r, std::int64_t cols, Precision precision) const {
    std::vector<double> values;
    for (std::int64_t c = 0; c < cols; ++c) {
      const std::int64_t at = r * stride + c;
      values.push_back(precision == Precision::f32    ? f32[at]
                       : precision == Precision::bf16 ? from_half(bf16[at])
                                                      : i8[at] * 2.0 * scales[at / kBlock]);
    }
    return values;
  }
};

struct ProductCase {
  PackedFormat format;
  Precision precision;
};

constexpr ProductCase kProducts[] = {{PackedFormat::f32, Precision::f32},
                                     {PackedFormat::bf16, Precision::f32},
                                     {PackedFormat::bf16, Precision::bf16},
                                     {PackedFormat::mxfp4, Precision::f32},
                                     {PackedFormat::mxfp4, Precision::int8}};

class EveryLevel : public testing::TestWithParam<SimdLevel> {
 protected:
  EveryLevel() { kernels_.begin_work(); }
  ~EveryLevel() override { kernels_.end_work(); }
  const KernelTable& kernels_ = kernels(GetParam());
};

TEST_P(EveryLevel, products_match_the_reference_for_odd_shapes) {
  for (const ProductCase& one : kProducts) {
    for (const std::int64_t rows : {1, 16, 37, 96, 128}) {
      for (const std::int64_t tokens : {1, 2, 3, 7, 15, 37}) {
        // Of bf16 also a width that tiles take.
        const std::int64_t cols = one.format == PackedFormat::mxfp4 || tokens > 3 ? 96 : 45;
        const TestMatrix matrix(one.format, rows, cols, Random(rows * 100 + tokens));
        const TestRows x(kernels_, tokens, cols, Random(tokens));
        const std::vector<float> bias(128, 0.25f);
        std::vector<float> out(tokens * rows, 7.0f);
        kernels_.product({.weights = matrix.packed,
                          .precision = one.precision,
                          .group_end = matrix.packed.num_groups(),
                          .num_tokens = tokens,
                          .x = x.view(one.precision),
                          .bias = bias.data(),
                          .out = out.data(),
                          .out_stride = rows});
        for (std::int64_t t = 0; t < tokens; ++t) {
          const auto expected = ref::linear(matrix.plain, x.seen(t, cols, one.precision),
                                            std::vector<double>(rows, 0.25));
          for (std::int64_t r = 0; r < rows; ++r) {
            ASSERT_NEAR(out[t * rows + r], expected[r], 2e-5 * (1 + std::abs(expected[r])))
                << "format " << static_cast<int>(one.format) << " precision "
                << static_cast<int>(one.precision) << " rows " << rows << " row " << r;
          }
        }
      }
    }
  }
}

TEST_P(EveryLevel, a_products_bits_do_not_depend_on_the_batch) {
  constexpr int kTokens = 39;
  for (const ProductCase& one : kProducts) {
    const TestMatrix matrix(one.format, 80, 160, Random(3));
    const TestRows x(kernels_, kTokens, 160, Random(4));
    std::vector<float> together(kTokens * 80);
    Product product{.weights = matrix.packed,
                    .precision = one.precision,
                    .group_end = matrix.packed.num_groups(),
                    .num_tokens = kTokens,
                    .x = x.view(one.precision),
                    .out = together.data(),
                    .out_stride = 80};
    kernels_.product(product);
    // Alone, and among few others that lie scattered.
    for (const int mates : {1, 3, 6, 12, 20}) {
      for (std::int32_t t = 0; t < kTokens; ++t) {
        std::vector<std::int32_t> rows;
        for (int m = 0; m < mates; ++m) rows.push_back((t + 7 * m) % kTokens);
        std::vector<float> some(static_cast<std::size_t>(mates) * 80);
        product.num_tokens = mates;
        product.x_rows = rows.data();
        product.out = some.data();
        // And by other tiles of rows.
        for (std::int64_t g = 0; g < 5; ++g) {
          product.group_begin = g;
          product.group_end = g + 1;
          kernels_.product(product);
        }
        for (int m = 0; m < mates; ++m) {
          for (int r = 0; r < 80; ++r) ASSERT_EQ(some[m * 80 + r], together[rows[m] * 80 + r]);
        }
      }
    }
  }
}

TEST_P(EveryLevel, a_product_scatters_weights_and_adds) {
  const TestMatrix matrix(PackedFormat::bf16, 32, 32, Random(5));
  const TestRows x(kernels_, 3, 32, Random(6));
  const std::int32_t from[] = {2, 0};
  const std::int32_t to[] = {1, 3};
  const float weights[] = {0.5f, 2.0f};
  std::vector<float> out(4 * 32, 1.0f);
  kernels_.product({.weights = matrix.packed,
                    .group_end = 2,
                    .num_tokens = 2,
                    .x = x.view(Precision::f32),
                    .x_rows = from,
                    .output = Output::accumulate,
                    .out = out.data(),
                    .out_stride = 32,
                    .out_rows = to,
                    .token_weights = weights});
  const auto expected =
      ref::linear(matrix.plain, x.seen(0, 32, Precision::f32), std::vector<double>(32, 0.0));
  for (int r = 0; r < 32; ++r) {
    EXPECT_EQ(out[r], 1.0f);
    EXPECT_NEAR(out[3 * 32 + r], 1 + 2 * expected[r], 1e-4);
  }
}

TEST_P(EveryLevel, norm_and_activation_match_the_reference) {
  const TestRows x(kernels_, 1, 80, Random(8));
  const std::vector<float> weight(96, 1.5f);
  std::vector<float> out(80);
  kernels_.rms_norm(x.f32.data(), weight.data(), 1e-5f, 72, out.data());
  const auto expected =
      ref::rms_norm(x.seen(0, 72, Precision::f32), std::vector<double>(72, 1.5), 1e-5);
  for (int i = 0; i < 72; ++i) EXPECT_NEAR(out[i], expected[i], 2e-6);

  std::vector<float> gates(64), activated(32);
  for (int i = 0; i < 64; ++i) gates[i] = static_cast<float>(i) * 0.61f - 20;
  for (int i = 0; i < 8; ++i) gates[i] = -200.0f;
  kernels_.swiglu(gates.data(), 7, activated.data());
  for (int i = 0; i < 32; ++i) {
    EXPECT_NEAR(activated[i], ref::swiglu(gates[i], gates[32 + i], 7), 1e-5);
  }
}

TEST_P(EveryLevel, argmax_takes_the_lowest_of_equals_and_sums_are_stable) {
  std::vector<float> x(75, -3.0f);
  x[70] = x[20] = x[21] = 5.0f;
  EXPECT_EQ(kernels_.argmax(x.data(), 75), 20);
  EXPECT_EQ(kernels_.argmax(x.data(), 5), 0);
  for (float& value : x) value += 1000;
  EXPECT_NEAR(kernels_.log_sum_exp(x.data(), 75), 1005 + std::log(3 + 72 * std::exp(-8.0)), 1e-4);
}

/// A cache of one sequence with shuffled pages.
struct TestCache {
  int dim;
  KvType type;
  std::vector<std::int32_t> pages;
  std::vector<std::uint8_t> keys, values;
  std::vector<double> plain_keys, plain_values;  // [positions, dim]

  TestCache(int head_dim, KvType kv, int positions, Random random) : dim(head_dim), type(kv) {
    const int count = (positions + kPageTokens - 1) / kPageTokens;
    for (int p = 0; p < count; ++p) pages.push_back(count - 1 - p);
    const std::size_t bytes = type == KvType::f32 ? 4 : 2;
    // What lies behind the last position must not matter: NaN would show.
    keys.assign(static_cast<std::size_t>(count) * page_bytes(), 0xFF);
    values.assign(keys.size(), 0xFF);
    for (int p = 0; p < positions; ++p) {
      const std::size_t page = static_cast<std::size_t>(pages[p / kPageTokens]) * page_bytes();
      for (int d = 0; d < dim; ++d) {
        put(keys, page + place(d, kPageTokens, p % kPageTokens) * bytes,
            random.uniform(-1, 1, random.next()), plain_keys);
        put(values, page + place(p % kPageTokens, dim, d) * bytes,
            random.uniform(-1, 1, random.next()), plain_values);
      }
    }
  }
  /// Of an element in a page: as bf16, two rows share words.
  std::size_t place(int row, int width, int column) const {
    return static_cast<std::size_t>(type == KvType::f32 ? row * width + column
                                                        : (row / 2 * width + column) * 2 + row % 2);
  }
  std::size_t page_bytes() const {
    return static_cast<std::size_t>(dim * kPageTokens * (type == KvType::f32 ? 4 : 2));
  }
  void put(std::vector<std::uint8_t>& into, std::size_t at, float value,
           std::vector<double>& plain) const {
    if (type == KvType::f32) {
      std::memcpy(into.data() + at, &value, 4);
      plain.push_back(value);
    } else {
      const std::uint16_t half = to_half(value);
      std::memcpy(into.data() + at, &half, 2);
      plain.push_back(from_half(half));
    }
  }
};

/// Seven rows of queries at any positions of a cache.
struct TestQueries {
  static constexpr int kRows = 7;
  const std::int64_t positions[kRows] = {0, 15, 16, 128, 255, 300, 549};
  const float sinks[kRows] = {0, 1, -1, 3, 0.5f, 0, -2};
  TestRows q;
  std::vector<float> out, scratch;

  TestQueries(const KernelTable& kernels, int dim)
      : q(kernels, kRows, dim, Random(11)), out(kRows * dim), scratch(600) {
    // As bf16 rounds them, so that who rounds sees the same.
    for (std::size_t i = 0; i < q.f32.size(); ++i) {
      q.f32[i] = static_cast<float>(from_half(q.bf16[i]));
    }
  }
  AttentionTask task(const TestCache& cache, std::int64_t window) {
    return {.q = q.f32.data(),
            .q_stride = q.stride,
            .out = out.data(),
            .out_stride = cache.dim,
            .num_rows = kRows,
            .positions = positions,
            .window = window,
            .sinks = sinks,
            .head_dim = cache.dim,
            .type = cache.type,
            .pages = cache.pages.data(),
            .k_base = cache.keys.data(),
            .v_base = cache.values.data(),
            .page_stride_bytes = static_cast<std::int64_t>(cache.page_bytes()),
            .scratch = scratch.data()};
  }
};
constexpr int kCached = 550;

TEST_P(EveryLevel, attention_matches_the_reference_flash_and_naive) {
  for (const int dim : {32, 64, 80, 160}) {
    for (const KvType type : {KvType::f32, KvType::bf16}) {
      for (const std::int64_t window : {0, 5, 128}) {
        const TestCache cache(dim, type, kCached, Random(dim));
        TestQueries queries(kernels_, dim);
        const AttentionTask task = queries.task(cache, window);
        for (auto* attend : {kernels_.flash_attention, kernels_.naive_attention}) {
          attend(task);
          // Tiles take weights rounded to bf16, which have eight bits; values are below 1.
          const bool rounds = GetParam() == SimdLevel::amx && type == KvType::bf16 &&
                              attend == kernels_.flash_attention;
          for (int r = 0; r < TestQueries::kRows; ++r) {
            const auto seen = static_cast<std::size_t>((queries.positions[r] + 1) * dim);
            const auto expected = ref::attention({.q = queries.q.seen(r, dim, Precision::f32),
                                                  .keys = {cache.plain_keys.data(), seen},
                                                  .values = {cache.plain_values.data(), seen},
                                                  .sink = queries.sinks[r],
                                                  .window = window});
            for (int d = 0; d < dim; ++d) {
              ASSERT_NEAR(queries.out[r * dim + d], expected[d], rounds ? 1.0 / 512 : 1e-5)
                  << "dim " << dim << " window " << window << " row " << r;
            }
          }
        }
      }
    }
  }
}

TEST_P(EveryLevel, attentions_bits_do_not_depend_on_the_rows_beside) {
  for (const std::int64_t window : {0, 128}) {
    const TestCache cache(64, KvType::bf16, kCached, Random(64));
    TestQueries queries(kernels_, 64);
    const AttentionTask together = queries.task(cache, window);
    kernels_.flash_attention(together);
    for (int r = 0; r < TestQueries::kRows; ++r) {
      std::vector<float> out(64);
      AttentionTask alone = together;
      alone.q += r * alone.q_stride;
      alone.positions += r;
      alone.sinks += r;
      alone.out = out.data();
      alone.num_rows = 1;
      kernels_.flash_attention(alone);
      for (int d = 0; d < 64; ++d) ASSERT_EQ(out[d], queries.out[r * 64 + d]) << "row " << r;
    }
  }
}

std::string level_name(const testing::TestParamInfo<SimdLevel>& info) {
  std::string name(name_of(info.param));
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}
INSTANTIATE_TEST_SUITE_P(Cpu, EveryLevel, testing::ValuesIn(available_levels()), level_name);

TEST(SimdLevels, are_found_by_their_names) {
  for (const SimdLevel level : available_levels()) {
    EXPECT_EQ(parse_level(name_of(level)), level);
    EXPECT_EQ(kernels(level).level, level);
  }
  EXPECT_FALSE(parse_level("avx1024"));
}

}  // namespace
}  // namespace gauntlet::kernels::cpu
