// Is the engine bound to no GPU but the one it is given?
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "core/os/files.h"
#include "engine/steps/cuda_executor.h"
#include "model/weights.h"

namespace gauntlet::engine::inline steps {
namespace {

/// Calls that name a device by a number of their own.
const std::regex kBound(
    "(cudaSetDevice|find_gpu|cudaDeviceGetAttribute|cudaGetDeviceProperties|cuDeviceGet)"
    R"(\((?:[^();]*,\s*)?\d+\s*\))");

TEST(Device, is_named_by_the_configuration_alone) {
  EXPECT_TRUE(std::regex_search("cudaSetDevice(0);", kBound));
  EXPECT_TRUE(std::regex_search("cudaGetDeviceProperties(&properties, 0)", kBound));
  EXPECT_FALSE(std::regex_search("cudaSetDevice(device)", kBound));
  int seen = 0;
  for (const char* folder : {"/src/engine", "/src/kernels"}) {
    const std::string root = std::string(GAUNTLET_SOURCE_DIR) + folder;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      const std::string path = entry.path().string();
      if (!entry.is_regular_file() || path.ends_with("_test.cc")) continue;
      ++seen;
      EXPECT_FALSE(std::regex_search(read_file(path).value(), kBound)) << path;
    }
  }
  EXPECT_GT(seen, 200);
}

TEST(Device, that_is_not_there_is_refused) {
  const auto weights = model::random_model(model::random_shape("gpt-oss-20b", 1).value(), 1);
  const auto made = make_cuda_executor(weights, {.device = 99});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message, no_cuda_executor_reason(99));
  EXPECT_NE(no_cuda_executor_reason(99), "");
}

}  // namespace
}  // namespace gauntlet::engine::inline steps
