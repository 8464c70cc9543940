// Does the build refuse device code that spills registers or that ptxas reports as slowed down?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/program.h"

namespace gauntlet::tests {
namespace {

using testing::HasSubstr;

/// Compiles a file of tests/strict with the launcher and the options that the build gives such a
/// file.
Outcome compile(const std::string& file, const std::string& options) {
  const TemporaryFolder folder;
  std::vector<std::string> argv = {GAUNTLET_NVCC_LAUNCHER, GAUNTLET_NVCC, "-std=c++20"};
  std::stringstream words(options);
  for (std::string word; words >> word;) argv.push_back(word);
  for (const std::string word : {"-c", "-o"}) argv.push_back(word);
  argv.push_back(folder / "object.o");
  argv.push_back(GAUNTLET_SOURCE_DIR "/tests/strict/" + file);
  return run_program(argv);
}

class StrictBuild : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string(GAUNTLET_NVCC).empty()) GTEST_SKIP() << "no CUDA toolkit: nothing was compiled";
  }
};

TEST_F(StrictBuild, takes_clean_device_code) {
  const Outcome outcome = compile("clean.cu", GAUNTLET_CLEAN_OPTIONS);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_F(StrictBuild, refuses_register_spills) {
  const Outcome outcome = compile("spills.cu", GAUNTLET_SPILLS_OPTIONS);
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("spilled to local memory"));
}

TEST_F(StrictBuild, refuses_what_ptxas_reports_as_lost_performance) {
  const Outcome outcome = compile("ignored_setmaxnreg.sm90a.cu", GAUNTLET_SETMAXNREG_OPTIONS);
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("(C7508)"));
  EXPECT_THAT(outcome.err, HasSubstr("treats it as an error"));
}

}  // namespace
}  // namespace gauntlet::tests
