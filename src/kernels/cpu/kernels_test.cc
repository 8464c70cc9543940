#include "kernels/cpu/kernels.h"

#include <gtest/gtest.h>

namespace gauntlet::kernels::cpu {
namespace {

TEST(SimdLevels, are_found_by_their_names) {
  for (const SimdLevel level : available_levels()) {
    EXPECT_EQ(parse_level(name_of(level)), level);
    EXPECT_EQ(kernels(level).level, level);
  }
  EXPECT_FALSE(parse_level("avx1024"));
}

}  // namespace
}  // namespace gauntlet::kernels::cpu
