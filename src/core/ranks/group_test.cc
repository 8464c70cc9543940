#include "core/ranks/group.h"

#include <gtest/gtest.h>

#include "core/ranks/conformance.h"

namespace gauntlet::ranks {
namespace {

TEST(GroupOfOne, conforms) {
  const auto group = alone();
  EXPECT_EQ(group->size(), 1);
  EXPECT_EQ(group->transport(), "alone");
  conforms(*group);
  conforms_over_links(*group);
}

}  // namespace
}  // namespace gauntlet::ranks
