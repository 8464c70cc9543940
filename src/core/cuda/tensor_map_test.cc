#include "core/cuda/tensor_map.h"

#include <gtest/gtest.h>

#include <string>

namespace gauntlet {
namespace {

// Never read: what is refused is refused before a driver is asked.
TensorMap2d good() {
  return {.address = reinterpret_cast<const void*>(std::uintptr_t{1} << 20),
          .type = DType::f32,
          .rows = 100,
          .columns = 200,
          .box_rows = 32,
          .box_columns = 64};
}

void expect_refused(const TensorMap2d& matrix, const std::string& because) {
  CUtensorMap map;
  const auto encoded = encode_tensor_map(matrix, map);
  ASSERT_FALSE(encoded);
  EXPECT_EQ(encoded.error().kind, ErrorKind::wrong_use);
  EXPECT_NE(encoded.error().message.find(because), std::string::npos) << encoded.error().message;
}

/// Without a GPU's driver a good description still fails, but for that reason only.
void expect_accepted(const TensorMap2d& matrix) {
  CUtensorMap map;
  const auto encoded = encode_tensor_map(matrix, map);
  if (!encoded) {
    EXPECT_EQ(encoded.error().kind, ErrorKind::environment) << encoded.error().message;
  }
}

TEST(TensorMap, accepts_a_good_description) { expect_accepted(good()); }

TEST(TensorMap, refuses_an_address_that_is_not_16_byte_aligned) {
  auto matrix = good();
  matrix.address = static_cast<const char*>(matrix.address) + 8;
  expect_refused(matrix, "multiple of 16 bytes");
}

TEST(TensorMap, refuses_rows_whose_pitch_is_not_a_multiple_of_16) {
  auto matrix = good();
  matrix.columns = 201;
  expect_refused(matrix, "row pitch of 804");
}

TEST(TensorMap, refuses_a_pitch_shorter_than_a_row) {
  auto matrix = good();
  matrix.row_pitch_bytes = 784;
  expect_refused(matrix, "row pitch of 784");
}

TEST(TensorMap, refuses_an_empty_matrix) {
  auto matrix = good();
  matrix.rows = 0;
  expect_refused(matrix, "0 x 200");
}

TEST(TensorMap, refuses_a_box_wider_than_256) {
  auto matrix = good();
  matrix.box_columns = 260;
  expect_refused(matrix, "box of 32 x 260");
}

TEST(TensorMap, refuses_a_box_row_that_is_not_a_multiple_of_16_bytes) {
  auto matrix = good();
  matrix.box_columns = 66;
  expect_refused(matrix, "box row of 264 bytes");
}

TEST(TensorMap, refuses_a_box_row_wider_than_its_swizzle) {
  auto matrix = good();
  matrix.swizzle = TileSwizzle::bytes_128;
  expect_refused(matrix, "box row of 256 bytes");
  matrix.box_columns = 32;
  expect_accepted(matrix);
}

}  // namespace
}  // namespace gauntlet
