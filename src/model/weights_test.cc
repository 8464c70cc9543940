#include "model/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/check.h"
#include "model/quantized.h"

namespace gauntlet::model {
namespace {

using testing::ElementsAre;

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST(Half, is_what_the_compiler_says) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const auto expected = static_cast<float>(std::bit_cast<_Float16>(half));
    const float value = f16_value(half);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << bits;
    } else {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(value), std::bit_cast<std::uint32_t>(expected))
          << bits;
    }
  }
}

TEST(Matrix, reads_rows_at_any_alignment) {
  std::vector<std::byte> bytes(1);
  for (const std::byte byte : bytes_of<float>({1, 2, 3, 4, 5, 6})) bytes.push_back(byte);
  const Matrix matrix{.type = WeightType::f32,
                      .rows = 2,
                      .cols = 3,
                      .data = bytes.data() + 1,
                      .row_stride_bytes = 12,
                      .col_stride_bytes = 4};
  std::vector<float> row(3);
  matrix.read_row(1, row.data());
  EXPECT_THAT(row, ElementsAre(4, 5, 6));
}

TEST(Matrix, reads_a_transposed_tensor_by_its_strides) {
  const auto bytes = bytes_of<std::uint16_t>({0x3F80, 0x4000, 0x4040, 0x4080, 0x40A0, 0x40C0});
  const Matrix matrix{.type = WeightType::bf16,
                      .rows = 3,
                      .cols = 2,
                      .data = bytes.data(),
                      .row_stride_bytes = 2,
                      .col_stride_bytes = 6};
  std::vector<float> row(2);
  matrix.read_row(2, row.data());
  EXPECT_THAT(row, ElementsAre(3, 6));
  std::vector<std::uint16_t> bits(2);
  matrix.read_row_bf16(0, bits.data());
  EXPECT_THAT(bits, ElementsAre(0x3F80, 0x4080));
}

TEST(Matrix, scales_the_bytes_of_q8_0) {
  std::vector<std::byte> bytes(2 * kQ8BlockBytes);
  const std::uint16_t half = 0x3800;  // 0.5
  std::memcpy(bytes.data() + kQ8BlockBytes, &half, 2);
  bytes[kQ8BlockBytes + 2] = std::byte{0x80};       // -128
  bytes[kQ8BlockBytes + 2 + 31] = std::byte{0x03};  // 3
  const Matrix matrix{.type = WeightType::q8_0,
                      .rows = 1,
                      .cols = 64,
                      .data = bytes.data(),
                      .row_stride_bytes = 2 * kQ8BlockBytes};
  std::vector<float> row(64);
  matrix.read_row(0, row.data());
  EXPECT_EQ(row[0], 0);
  EXPECT_EQ(row[32], -64);
  EXPECT_EQ(row[63], 1.5f);
}

TEST(Matrix, gives_mxfp4_in_one_order_whatever_the_file_has) {
  std::vector<std::byte> halves(kMxfp4HalvesBytes);
  halves[0] = std::byte{127};
  halves[1] = std::byte{0x52};  // element 0 is 2, element 16 is 5
  const Matrix matrix{.type = WeightType::mxfp4,
                      .rows = 1,
                      .cols = 32,
                      .data = halves.data(),
                      .row_stride_bytes = kMxfp4HalvesBytes,
                      .order = Mxfp4Order::halves};
  std::uint8_t nibbles[16], scale = 0;
  matrix.read_row_mxfp4(0, nibbles, &scale);
  EXPECT_EQ(scale, 127);
  EXPECT_EQ(nibbles[0], 0x02);
  EXPECT_EQ(nibbles[8], 0x05);
  std::vector<float> row(32);
  matrix.read_row(0, row.data());
  EXPECT_EQ(row[0], 1);
  EXPECT_EQ(row[16], 3);
  EXPECT_EQ(matrix.row_bytes(), 17);
}

TEST(Matrix, faults_on_a_row_that_is_not_there) {
  const auto bytes = bytes_of<float>({1});
  const Matrix matrix{.type = WeightType::f32,
                      .rows = 1,
                      .cols = 1,
                      .data = bytes.data(),
                      .row_stride_bytes = 4,
                      .col_stride_bytes = 4};
  float out = 0;
  std::uint16_t bits = 0;
  EXPECT_THROW(matrix.read_row(1, &out), Fault);
  EXPECT_THROW(matrix.read_row(-1, &out), Fault);
  EXPECT_THROW(matrix.read_row_bf16(0, &bits), Fault);
}

/// Remembers what it was told to let go.
struct RecordingStorage : WeightStorage {
  std::vector<std::pair<const std::byte*, std::size_t>> released;
  void release(const std::byte* data, std::size_t bytes) override {
    released.emplace_back(data, bytes);
  }
};

TEST(ModelWeights, release_covers_exactly_what_a_view_spans) {
  const auto storage = std::make_shared<RecordingStorage>();
  const ModelWeights weights{.storage = storage};
  const std::vector<std::byte> memory(1000);
  const std::byte* at = memory.data();
  weights.release({.type = WeightType::bf16,
                   .rows = 3,
                   .cols = 5,
                   .data = at,
                   .row_stride_bytes = 20,
                   .col_stride_bytes = 2});
  weights.release({.type = WeightType::bf16,
                   .rows = 3,
                   .cols = 5,
                   .data = at,
                   .row_stride_bytes = 4,
                   .col_stride_bytes = 12});
  weights.release({.type = WeightType::mxfp4,
                   .rows = 3,
                   .cols = 64,
                   .data = at,
                   .row_stride_bytes = 64,
                   .scales = at + 500,
                   .scale_row_stride_bytes = 4});
  EXPECT_THAT(storage->released, ElementsAre(std::pair(at, 50u), std::pair(at, 58u),
                                             std::pair(at, 160u), std::pair(at + 500, 10u)));
}

TEST(ModelWeights, release_of_some_rows_leaves_the_others) {
  const auto storage = std::make_shared<RecordingStorage>();
  const ModelWeights weights{.storage = storage};
  const std::vector<std::byte> memory(1000);
  const std::byte* at = memory.data();
  const Matrix dense{.type = WeightType::bf16,
                     .rows = 9,
                     .cols = 5,
                     .data = at,
                     .row_stride_bytes = 20,
                     .col_stride_bytes = 2};
  weights.release(dense, 2, 3);
  const Matrix blocks{.type = WeightType::mxfp4,
                      .rows = 9,
                      .cols = 64,
                      .data = at,
                      .row_stride_bytes = 32,
                      .scales = at + 500,
                      .scale_row_stride_bytes = 2};
  weights.release(blocks, 4, 2);
  weights.release({.rows = 9, .cols = 5, .random_key = 1}, 2, 3);
  EXPECT_THAT(storage->released, ElementsAre(std::pair(at + 40, 50u), std::pair(at + 128, 64u),
                                             std::pair(at + 508, 4u)));
}

}  // namespace
}  // namespace gauntlet::model
