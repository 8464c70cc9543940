#include "core/opaque.h"

#include <gtest/gtest.h>

namespace gauntlet {
namespace {

TEST(Opaque, returns_the_value_when_it_is_a_scalar) {
  EXPECT_EQ(opaque(1.5f), 1.5f);
  EXPECT_EQ(opaque(-2.25), -2.25);
}

TEST(Opaque, returns_every_lane_when_it_is_a_vector) {
  using Float4 [[gnu::vector_size(16)]] = float;
  const Float4 value = opaque(Float4{1, 2, 3, 4});
  for (int lane = 0; lane < 4; ++lane) EXPECT_EQ(value[lane], static_cast<float>(lane + 1));
}

}  // namespace
}  // namespace gauntlet
