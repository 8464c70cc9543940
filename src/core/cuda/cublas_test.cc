#include "core/cuda/cublas.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace gauntlet {
namespace {

TEST(Cublas, names_the_library_and_the_places_when_it_is_missing) {
  const std::vector<std::string> paths = {"/nowhere/libcublas.so.13", "/elsewhere/libcublas.so.13"};
  const auto opened = Cublas::open(paths);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("libcublas.so.13 not found"), std::string::npos);
  EXPECT_NE(opened.error().message.find("/nowhere/"), std::string::npos);
  EXPECT_NE(opened.error().message.find("/elsewhere/"), std::string::npos);
}

TEST(Cublas, says_what_is_missing_when_the_library_is_another_one) {
  const std::vector<std::string> paths = {"libm.so.6"};
  const auto opened = Cublas::open(paths);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("cublasCreate_v2"), std::string::npos);
}

TEST(CublasPaths, ask_the_loader_first_and_look_beside_the_executable_last) {
  setenv("CUDA_HOME", "/opt/some-toolkit", 1);
  const auto paths = cublas_paths();
  unsetenv("CUDA_HOME");
  ASSERT_GE(paths.size(), 4u);
  EXPECT_EQ(paths.front(), "libcublas.so.13");
  EXPECT_EQ(paths[1], "/opt/some-toolkit/lib64/libcublas.so.13");
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  EXPECT_EQ(paths.back(), (here / "libcublas.so.13").string());
}

}  // namespace
}  // namespace gauntlet
