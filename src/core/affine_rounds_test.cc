#include "core/affine_rounds.h"

#include <gtest/gtest.h>

#include "core/random.h"

namespace gauntlet {
namespace {

TEST(AffineRounds, come_to_what_they_do_one_by_one) {
  const Random random(3);
  AffineRounds rounds;
  std::uint32_t low = 0, high = 0x80000000u;
  for (std::uint64_t round = 0; round < 5000; ++round) {
    EXPECT_EQ(rounds(0), low);
    EXPECT_EQ(rounds(0x80000000u), high);
    const auto factor = static_cast<std::uint32_t>(random.bits(round));
    rounds.add(factor);
    low = affine_round(low, factor);
    high = affine_round(high, factor);
    ASSERT_NE(low, high) << "the highest bit is lost after round " << round;
  }
}

}  // namespace
}  // namespace gauntlet
