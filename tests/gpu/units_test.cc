// Is everything that a GPU runs a unit, with all sources that decide what it does?
#include "tests/gpu/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/os/files.h"
#include "tests/gpu/fake_project.h"

namespace gauntlet::tests::gpu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> paths(const Unit& unit, const std::string& role) {
  std::vector<std::string> result;
  for (const auto& [path, code] : unit.sources.at(role).files) result.push_back(path);
  return result;
}

TEST(Units, are_targets_suites_sanitizer_cases_and_the_engine) {
  const FakeProject project;
  const Units units = project.units();
  std::vector<std::string> names;
  for (const Unit& unit : units.all) names.push_back(unit.name);
  EXPECT_THAT(
      names, ElementsAre("bench engine", "ptx engine_test CudaGoldenOnGpu",
                         "sanitizer initcheck kernels_test RouterOnGpu",
                         "sanitizer memcheck kernels_test RouterOnGpu",
                         "sanitizer racecheck kernels_test RouterOnGpu", "target ch01:one",
                         "target ch07:copy", "target ch07:tile", "test engine_test CudaGoldenOnGpu",
                         "test kernels_test RouterOnGpu", "test whole_test LiesOnGpu"));
  EXPECT_THAT(units.gaps, IsEmpty());
}

TEST(Units, of_a_target_are_its_cuda_sides_what_they_include_and_the_lab) {
  const FakeProject project;
  const Units units = project.units();
  const Unit& copy = *units.find("target ch07:copy");
  EXPECT_THAT(paths(copy, "own"),
              ElementsAre("catalog/ch07/copy/baseline.cu", "catalog/ch07/copy/optimized.cu",
                          "catalog/ch07/copy/pair.cc", "catalog/ch07/copy/pair.h"));
  EXPECT_THAT(paths(copy, "lab"),
              ElementsAre("cmake/Catalog.cmake", "src/core/check.h", "src/lab/author/pair.h",
                          "src/lab/measure/measure.cc", "src/lab/measure/measure.h"));
  EXPECT_THAT(paths(copy, "flags"), ElementsAre("cmake/Cuda.cmake"));
  EXPECT_TRUE(units.find("target ch07:tile")->sources.at("own").contains("src/ptx/mma.cuh"));
}

TEST(Units, of_a_suite_are_its_test_and_the_kernels_it_calls) {
  const FakeProject project;
  const Units units = project.units();
  EXPECT_THAT(
      paths(*units.find("test kernels_test RouterOnGpu"), "own"),
      ElementsAre("src/core/check.h", "src/core/cuda/memory.h", "src/kernels/cuda/router.cu",
                  "src/kernels/cuda/router.h", "src/kernels/cuda/router_test.cc"));
  EXPECT_THAT(paths(*units.find("test whole_test LiesOnGpu"), "own"),
              ElementsAre("tests/lies/lies/hangs/optimized.cu", "tests/lies/lies/hangs/pair.cc",
                          "tests/lies_test.cc"));
}

TEST(Units, of_the_engine_are_its_host_code_and_all_kernels) {
  const FakeProject project;
  const Units units = project.units();
  for (const char* name :
       {"bench engine", "ptx engine_test CudaGoldenOnGpu", "test engine_test CudaGoldenOnGpu"}) {
    const SourceSet& engine = units.find(name)->sources.at("engine");
    EXPECT_TRUE(engine.contains("src/engine/cuda/forward.cc")) << name;
    EXPECT_TRUE(engine.contains("src/kernels/cuda/router.cu")) << name;
  }
}

TEST(Units, of_sabotage_are_one_per_target_with_its_sides_and_what_spoils_them) {
  FakeProject project;
  project.write("tests/sabotage_test.cc",
                "TEST_P(SabotageOnGpu, is_refused) { run(GAUNTLET_SABOTAGE_BINARY); }\n"
                "TEST(HonestTwinsOnGpu, are_verified) {}\n");
  project.write("tests/sabotage/spoil.h", "int spoil;\n");
  project.write("tests/sabotage/spoil.cc", "#include \"tests/sabotage/spoil.h\"\n");
  const Units units = project.units();
  for (const char* target : {"ch01:one", "ch07:copy", "ch07:tile"}) {
    EXPECT_NE(units.find(std::string("sabotage ") + target), nullptr) << target;
  }
  EXPECT_EQ(units.find("test whole_test SabotageOnGpu"), nullptr);
  EXPECT_TRUE(units.find("test whole_test HonestTwinsOnGpu")
                  ->sources.at("own")
                  .contains("tests/sabotage/spoil.cc"));
  const Unit& copy = *units.find("sabotage ch07:copy");
  EXPECT_EQ(copy.what, "*/SabotageOnGpu.*/ch07_copy");
  EXPECT_EQ(copy.program, "whole_test");
  EXPECT_THAT(copy.also, ElementsAre("gauntlet-sabotage"));
  EXPECT_TRUE(copy.samples("lab"));
  EXPECT_THAT(
      paths(copy, "own"),
      ElementsAre("catalog/ch07/copy/baseline.cu", "catalog/ch07/copy/optimized.cu",
                  "catalog/ch07/copy/pair.cc", "catalog/ch07/copy/pair.h",
                  "tests/sabotage/spoil.cc", "tests/sabotage/spoil.h", "tests/sabotage_test.cc"));
}

TEST(StartedPrograms, are_those_whose_paths_the_build_gives) {
  EXPECT_THAT(started_programs("run(GAUNTLET_LIES_BINARY); run(GAUNTLET_BINARY);\n"
                               "// GAUNTLET_DOUBLES_BINARY\n"),
              ElementsAre("gauntlet", "gauntlet-lies"));
}

TEST(Units, change_with_the_tests_that_a_tool_of_the_sanitizer_runs) {
  const FakeProject project;
  const SourceTree tree(project.root());
  const auto other = find_units(tree, "kernels_test RouterOnGpu.*\n");
  ASSERT_TRUE(other);
  const Units units = project.units();
  const std::string sanitizer = "sanitizer memcheck kernels_test RouterOnGpu";
  EXPECT_NE(units.find(sanitizer)->sources_id(), other->find(sanitizer)->sources_id());
  const std::string test = "test kernels_test RouterOnGpu";
  EXPECT_EQ(units.find(test)->sources_id(), other->find(test)->sources_id());
}

TEST(Units, miss_a_kernel_that_nothing_runs_and_a_suite_that_no_tool_sees) {
  FakeProject project;
  project.write("src/study/orphan.cu", "int orphan;\n");
  project.write("src/kernels/cuda/new_test.cc", "TEST_F(NewOnGpu, runs) {}\n");
  EXPECT_THAT(project.units().gaps,
              ElementsAre("test kernels_test NewOnGpu has no line in tests/gpu/sanitized",
                          "src/study/orphan.cu is run by no unit"));
}

TEST(Units, refuse_a_sanitizer_case_of_a_suite_that_is_no_more) {
  const FakeProject project;
  const auto units = find_units(SourceTree(project.root()), "kernels_test GoneOnGpu.*\n");
  ASSERT_FALSE(units);
  EXPECT_THAT(units.error().message, HasSubstr("names GoneOnGpu.*, but kernels_test has no such"));
}

TEST(GpuSuites, are_those_whose_names_say_so) {
  EXPECT_THAT(gpu_suites("TEST(AOnGpu, x) {}\nTEST_F(\n    BOnGpu, y) {}\nTEST_P(AOnGpu, z) {}\n"
                         "TEST(OnCpu, x) {}\n// TEST(COnGpu, x)\nMY_TEST(DOnGpu, x)\n"),
              ElementsAre("AOnGpu", "BOnGpu"));
}

TEST(UnitsOfThisTree, leave_no_kernel_out) {
  const std::filesystem::path root = GAUNTLET_SOURCE_DIR;
  const SourceTree tree(root);
  const auto units = find_units(tree, *read_file(root / "tests/gpu/sanitized"));
  ASSERT_TRUE(units) << units.error().message;
  EXPECT_THAT(units->gaps, IsEmpty());
  int kernels = 0;
  for (const std::string& path : tree.paths()) kernels += path.ends_with(".cu");
  EXPECT_GT(kernels, 50) << "the scan found too little to mean anything";
}

}  // namespace
}  // namespace gauntlet::tests::gpu
