// Does the check name exactly what changed, and does a call run what is owed, oldest first, in
// time?
#include "tests/gpu/coverage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/gpu/fake_project.h"

namespace gauntlet::tests::gpu {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;
using testing::SizeIs;

/// A project whose units were all recorded.
class CoverageTest : public testing::Test {
 protected:
  CoverageTest() {
    for (const Unit& unit : project_.units().all) put(unit, "2026-01-02");
  }
  void put(const Unit& unit, const std::string& when, const std::string& status = "passed",
           double seconds = 10) {
    record_.put(unit, {.status = status, .seconds = seconds},
                {.machine = "GPU", .when = when, .run = "r", .commit = "c"});
  }
  /// The complaints about the project as it is now.
  std::vector<std::string> complaints() {
    units_ = project_.units();
    return judge(units_, record_).complaints();
  }
  std::vector<std::string> planned(const PlanOptions& options) {
    units_ = project_.units();
    std::vector<std::string> names;
    for (const Unit* unit : plan(judge(units_, record_), options).now) names.push_back(unit->name);
    return names;
  }

  FakeProject project_;
  Record record_;
  Units units_;
};

TEST_F(CoverageTest, is_complete_after_all_were_recorded) {
  EXPECT_THAT(complaints(), IsEmpty());
  EXPECT_TRUE(judge(units_, record_).complete());
  EXPECT_THAT(planned({}), IsEmpty());
}

TEST_F(CoverageTest, takes_a_failure_whose_finding_is_open_and_tells_of_it) {
  units_ = project_.units();
  const Unit& unit = units_.all.front();
  const OpenFindings findings = parse_open_findings("# why\n\n" + unit.name + ": it is slow\n");
  const Coverage passing = judge(units_, record_, findings);
  EXPECT_FALSE(passing.complete());
  EXPECT_THAT(passing.complaints(), ElementsAre(HasSubstr("passes: take the finding out")));
  put(unit, "2026-01-03", "failed");
  EXPECT_FALSE(judge(units_, record_).complete());
  const Coverage failing = judge(units_, record_, findings);
  EXPECT_TRUE(failing.complete());
  EXPECT_THAT(failing.open, ElementsAre(unit.name + " fails: it is slow"));
  EXPECT_THAT(plan(failing, {}).now, ElementsAre(&unit)) << "it is tried again each time";
  EXPECT_FALSE(judge(units_, record_, {{"test of nothing", "gone"}}).complete());
}

TEST_F(CoverageTest, takes_a_change_whose_files_an_open_finding_names) {
  project_.write("catalog/ch07/copy/optimized.cu", "int faster;\n");
  units_ = project_.units();
  const auto judged = [&](const std::string& reason) {
    return judge(units_, record_, {{"target ch07:copy", reason}});
  };
  EXPECT_FALSE(judged("a comment became code").complete());
  const Coverage named = judged("catalog/ch07/copy/optimized.cu has a word more");
  EXPECT_TRUE(named.complete());
  EXPECT_THAT(named.open, ElementsAre(HasSubstr("was not run again")));
  project_.write("catalog/ch07/copy/baseline.cu", "int slower;\n");
  units_ = project_.units();
  EXPECT_FALSE(judged("catalog/ch07/copy/optimized.cu has a word more").complete());
}

TEST_F(CoverageTest, takes_a_unit_that_no_gpu_has_run_only_where_a_finding_says_so) {
  project_.write("catalog/ch07/fill/pair.cc", "int pair;\n");
  project_.write("catalog/ch07/fill/optimized.cu", "int fast;\n");
  units_ = project_.units();
  EXPECT_THAT(complaints(), Contains("target ch07:fill: no GPU has run it"));
  const auto judged = [&](const std::string& reason) {
    return judge(units_, record_, {{"target ch07:fill", reason}});
  };
  EXPECT_THAT(judged("it needs two GPUs").complaints(),
              Contains("target ch07:fill: no GPU has run it"));
  const Coverage told = judged("not run yet: it needs two GPUs");
  EXPECT_THAT(told.complaints(), Not(Contains("target ch07:fill: no GPU has run it")));
  EXPECT_THAT(told.open, ElementsAre("target ch07:fill was not run yet: it needs two GPUs"));
}

TEST_F(CoverageTest, counts_files_that_are_more_than_a_person_reads) {
  std::string includes;
  for (int i = 0; i < 12; ++i) {
    const std::string name = "catalog/ch07/copy/part_" + std::to_string(i) + ".h";
    project_.write(name, "int part;\n");
    includes += "#include \"" + name + "\"\n";
  }
  project_.write("catalog/ch07/copy/optimized.cu", includes);
  EXPECT_THAT(complaints(), Contains(AllOf(HasSubstr("target ch07:copy: changed since:"),
                                           HasSubstr("optimized.cu"), HasSubstr("and 5 more"))));
}

TEST_F(CoverageTest, names_the_one_target_that_changed_and_its_file) {
  project_.write("catalog/ch07/copy/optimized.cu", "int faster;\n");
  EXPECT_THAT(complaints(),
              ElementsAre("target ch07:copy: changed since: catalog/ch07/copy/optimized.cu"));
  EXPECT_THAT(planned({}), ElementsAre("target ch07:copy"));
}

TEST_F(CoverageTest, names_the_target_whose_declaration_or_header_changed) {
  project_.write("catalog/ch01/one/pair.cc", "int other_inputs;\n");
  project_.write("src/ptx/mma.cuh", "int other_mma;\n");
  EXPECT_THAT(complaints(), ElementsAre("target ch01:one: changed since: catalog/ch01/one/pair.cc",
                                        "target ch07:tile: changed since: src/ptx/mma.cuh"));
}

TEST_F(CoverageTest, needs_no_gpu_for_a_comment_nor_for_a_side_on_the_cpu) {
  project_.write("catalog/ch07/copy/optimized.cu", "// Why it is fast.\nint optimized;\n");
  project_.write("catalog/ch07/copy/optimized.cc", "int faster_on_the_cpu;\n");
  project_.write("src/lab/report/html.cc", "int other_html;\n");
  project_.write("src/lab/measure/measure_test.cc", "TEST(Measure, takes_more_turns) {}\n");
  EXPECT_THAT(complaints(), IsEmpty());
}

TEST_F(CoverageTest, asks_the_tests_the_tools_and_the_engine_when_a_kernel_changed) {
  project_.write("src/kernels/cuda/router.cu", "#include \"kernels/cuda/router.h\"\nint more;\n");
  EXPECT_THAT(planned({}),
              ElementsAre("bench engine", "ptx engine_test CudaGoldenOnGpu",
                          "sanitizer initcheck kernels_test RouterOnGpu",
                          "sanitizer memcheck kernels_test RouterOnGpu",
                          "sanitizer racecheck kernels_test RouterOnGpu",
                          "test engine_test CudaGoldenOnGpu", "test kernels_test RouterOnGpu"));
}

TEST_F(CoverageTest, asks_the_engine_alone_when_its_choice_of_kernels_changed) {
  project_.write("src/engine/cuda/forward.cc", "int another_choice;\n");
  EXPECT_THAT(planned({}), ElementsAre("bench engine", "ptx engine_test CudaGoldenOnGpu",
                                       "test engine_test CudaGoldenOnGpu"));
}

TEST_F(CoverageTest, asks_everything_when_the_flags_of_device_code_changed) {
  project_.write("cmake/Cuda.cmake", "add_compile_options(-G)\n");
  EXPECT_THAT(planned({}), SizeIs(project_.units().all.size()));
}

TEST_F(CoverageTest, owes_the_lies_and_the_oldest_target_of_each_chapter_when_the_lab_changed) {
  put(*project_.units().find("target ch07:copy"), "2026-01-05");
  project_.write("src/lab/measure/measure.cc", "int measured_otherwise;\n");
  EXPECT_THAT(planned({}),
              ElementsAre("target ch01:one", "target ch07:tile", "test whole_test LiesOnGpu"));
  EXPECT_THAT(complaints(),
              IsSupersetOf({"target ch07:tile: the lab changed, and no target of ch07 was measured "
                            "with it",
                            "of the lab changed: src/lab/measure/measure.cc"}));
  for (const std::string& name : planned({})) put(*units_.find(name), "2026-01-06");
  EXPECT_THAT(complaints(), IsEmpty());
  // The next change of the lab comes to the other one.
  project_.write("src/lab/measure/measure.cc", "int measured_again;\n");
  EXPECT_THAT(planned({}), AllOf(Contains("target ch07:copy"), Not(Contains("target ch07:tile"))));
}

TEST_F(CoverageTest, takes_a_change_of_the_lab_whose_files_an_open_finding_names) {
  put(*project_.units().find("target ch07:copy"), "2026-01-05");
  const auto judged = [&](const std::string& reason) {
    units_ = project_.units();
    return judge(units_, record_, {{"lab", reason}, {"test whole_test LiesOnGpu", reason}});
  };
  EXPECT_THAT(judged("nothing").complaints(), Contains(HasSubstr("take the finding out")));
  project_.write("src/lab/measure/measure.cc", "int tried_again;\n");
  EXPECT_FALSE(judged("a loop has another end").complete());
  const Coverage named = judged("src/lab/measure/measure.cc tries again");
  EXPECT_TRUE(named.complete());
  EXPECT_THAT(named.complaints(), IsEmpty());
  EXPECT_THAT(named.open, Contains(HasSubstr("lab was not tried again: src/lab")));
  EXPECT_THAT(planned({}), Contains("target ch07:tile")) << "a GPU is asked all the same";
  project_.write("src/lab/measure/measure.h", "int another_measure;\n");
  EXPECT_FALSE(judged("src/lab/measure/measure.cc tries again").complete());
}

TEST_F(CoverageTest, takes_no_skipped_target_for_a_sample_of_the_lab) {
  put(*project_.units().find("target ch07:copy"), "2026-01-01", "skipped");
  project_.write("src/lab/measure/measure.h", "int measured_otherwise;\n");
  EXPECT_THAT(planned({}), Contains("target ch07:tile"));
  put(*project_.units().find("target ch07:copy"), "2026-01-06", "skipped");
  EXPECT_THAT(planned({}), Contains("target ch07:tile"));
  put(*project_.units().find("target ch07:tile"), "2026-01-06");
  EXPECT_THAT(planned({}), Not(Contains("target ch07:tile")));
}

TEST_F(CoverageTest, counts_no_gain_and_skipped_as_answers_and_anything_else_as_failed) {
  for (const char* status : {"no_gain", "skipped"}) {
    put(*project_.units().find("target ch07:copy"), "2026-01-05", status);
    EXPECT_THAT(complaints(), IsEmpty()) << status;
  }
  for (const char* status : {"wrong", "crashed", "timed_out", "regressed", "failed"}) {
    put(*project_.units().find("target ch07:copy"), "2026-01-05", status);
    EXPECT_THAT(complaints(), ElementsAre(HasSubstr(std::string("target ch07:copy: ") + status)));
    EXPECT_TRUE(judge(units_, record_).any_failed());
    EXPECT_THAT(planned({}), ElementsAre("target ch07:copy"));
  }
}

TEST_F(CoverageTest, leaves_for_later_what_does_not_fit_and_begins_with_the_oldest) {
  put(*project_.units().find("target ch07:tile"), "2026-01-01", "passed", 100);
  put(*project_.units().find("target ch01:one"), "2026-01-03", "passed", 100);
  put(*project_.units().find("target ch07:copy"), "2026-01-04", "passed", 100);
  const PlanOptions all_targets{.scope = PlanOptions::Scope::all, .only = "target", .seconds = 250};
  EXPECT_THAT(planned(all_targets), ElementsAre("target ch07:tile", "target ch01:one"));
  const PlanOptions little{.scope = PlanOptions::Scope::all, .only = "target", .seconds = 1};
  EXPECT_THAT(planned(little), ElementsAre("target ch07:tile"))
      << "what is too long for any call still has its turn";
}

TEST_F(CoverageTest, counts_units_that_run_at_once_by_the_lane) {
  const PlanOptions three{
      .scope = PlanOptions::Scope::all, .only = "sanitizer", .seconds = 10, .lanes = 3};
  EXPECT_THAT(planned(three), SizeIs(3));
  const PlanOptions one{
      .scope = PlanOptions::Scope::all, .only = "sanitizer", .seconds = 10, .lanes = 1};
  EXPECT_THAT(planned(one), SizeIs(1));
}

TEST_F(CoverageTest, asks_a_new_unit_before_all_others) {
  project_.write("catalog/ch09/new/pair.cc", "int declared;\n");
  project_.write("catalog/ch09/new/optimized.cu", "int optimized;\n");
  EXPECT_THAT(complaints(), ElementsAre("target ch09:new: no GPU has run it"));
  const auto names = planned({.scope = PlanOptions::Scope::all});
  EXPECT_EQ(names.front(), "target ch09:new");
}

}  // namespace
}  // namespace gauntlet::tests::gpu
