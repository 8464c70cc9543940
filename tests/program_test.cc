// Do tests find the programs that were carried elsewhere together, and say which one is missing?
#include "tests/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gauntlet::tests {
namespace {

using testing::HasSubstr;

TEST(TestedProgram, is_found_beside_the_test_when_it_is_not_where_it_was_built) {
  const std::string name = std::filesystem::path(GAUNTLET_LIES_BINARY).filename().string();
  const Outcome outcome = run_program({"/nowhere/that/it/was/built/" + name, "--help"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("Usage"));
}

TEST(TestedProgram, that_is_missing_is_named) {
  const Outcome outcome = run_program({"/nowhere/at-all"});
  EXPECT_EQ(outcome.code, 127);
  EXPECT_THAT(outcome.err, HasSubstr("cannot start /nowhere/at-all: No such file or directory"));
}

}  // namespace
}  // namespace gauntlet::tests
