#include "core/expected.h"

#include <gtest/gtest.h>

#include <memory>

namespace gauntlet {
namespace {

TEST(Expected, holds_a_value) {
  Expected<std::string> text = std::string("x");
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, "x");
  EXPECT_EQ(text->size(), 1u);
  *text = "longer";
  EXPECT_EQ(text.value(), "longer");
  EXPECT_THROW(text.error(), Fault);
}

TEST(Expected, holds_an_error_and_refuses_its_value) {
  const Expected<int> failed = Error{"no such file", ErrorKind::wrong_use};
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "no such file");
  EXPECT_EQ(failed.error().kind, ErrorKind::wrong_use);
  EXPECT_THROW(failed.value(), Fault);
  EXPECT_THROW(*failed, Fault);
}

TEST(Expected, blames_the_environment_unless_told) {
  EXPECT_EQ(Expected<int>(Error{"x"}).error().kind, ErrorKind::environment);
}

TEST(Expected, carries_what_can_only_be_moved) {
  Expected<std::unique_ptr<int>> owned = std::make_unique<int>(7);
  const std::unique_ptr<int> taken = std::move(*owned);
  EXPECT_EQ(*taken, 7);
}

TEST(ExpectedVoid, is_fine_until_given_an_error) {
  const Expected<void> fine;
  EXPECT_TRUE(fine);
  EXPECT_THROW(fine.error(), Fault);
  const Expected<void> failed = Error{"full disk"};
  EXPECT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "full disk");
}

TEST(ErrorKind, is_the_exit_code) {
  EXPECT_EQ(static_cast<int>(ErrorKind::check_failed), 1);
  EXPECT_EQ(static_cast<int>(ErrorKind::wrong_use), 2);
  EXPECT_EQ(static_cast<int>(ErrorKind::environment), 3);
}

TEST(Check, names_the_place_that_failed) {
  check(true, "never seen");
  try {
    check(false, "rows must be even");
    FAIL();
  } catch (const Fault& fault) {
    const std::string what = fault.what();
    EXPECT_TRUE(what.starts_with("rows must be even (expected_test.cc:")) << what;
  }
}

}  // namespace
}  // namespace gauntlet
