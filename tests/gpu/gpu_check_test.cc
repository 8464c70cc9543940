// Does tools/gpu_check.sh run what is owed, record each unit, and stop in time? Scripts stand in
// for the programs and for nvidia-smi.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <thread>

#include "core/os/files.h"
#include "core/text/text.h"
#include "tests/gpu/fake_project.h"
#include "tests/gpu/record.h"
#include "tests/program.h"

namespace gauntlet::tests::gpu {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// Writes what it was asked to calls, and GoogleTest's JSON; what $FAIL names fails, what $HANG
// names hangs.
constexpr const char* kTestProgram = R"(#!/bin/bash
echo "${CUDA_FORCE_PTX_JIT:+ptx }$(basename "$0") $*" >> "$CALLS"
for argument; do
  case $argument in
    --gtest_output=json:*) output=${argument#*json:} ;;
    --gtest_filter=*) filter=${argument#*=} ;;
  esac
done
suite=${filter%%.*}
[ "$suite" != "${HANG:-}" ] || exec sleep 60
failures=
[ "$suite" != "${FAIL:-}" ] || failures=', "failures": [{"failure": "3 is not 4"}]'
echo "{\"testsuites\": [{\"name\": \"$suite\", \"testsuite\": [{\"name\": \"t\", \"status\": \"RUN\"$failures}]}]}" > "$output"
[ -z "$failures" ]
)";

constexpr const char* kGauntlet = R"(#!/bin/bash
echo "gauntlet $*" >> "$CALLS"
if [ "$1" = bench ]; then echo '{"tok_s": 1}'; exit; fi
shift
targets=()
while (($#)); do
  case $1 in
    --targets) shift; while [[ $# -gt 0 && $1 != --* ]]; do targets+=("$1"); shift; done ;;
    --artifacts-dir) folder=$2/20260101-000000-abcd; shift 2 ;;
    *) shift ;;
  esac
done
mkdir -p "$folder"
results=
for id in "${targets[@]}"; do
  results+="${results:+,}{\"id\": \"$id\", \"backend\": \"cuda\", \"status\": \"passed\", \"seconds\": 1,
    \"comparisons\": [{\"kind\": \"pair\", \"speedup\": {\"value\": 2, \"lo\": 1.9, \"hi\": 2.1}}]}"
  echo "{\"run_id\": \"20260101-000000-abcd\", \"results\": [$results]}" > "$folder/part"
  mv "$folder/part" "$folder/results.json"
  [ "$id" != "${HANG:-}" ] || exec sleep 60
done
)";

class GpuCheck : public testing::Test {
 protected:
  GpuCheck() {
    fs::create_directories(project_.root() / "tools");
    fs::copy_file(fs::path(GAUNTLET_SOURCE_DIR) / "tools/gpu_check.sh",
                  project_.root() / "tools/gpu_check.sh");
    script("bin/nvidia-smi", "#!/bin/bash\necho 'NVIDIA H200, 580.1'\n");
    script("bin/compute-sanitizer",
           "#!/bin/bash\necho \"sanitizer $2\" >> \"$CALLS\"\nshift 4\nexec \"$@\"\n");
    for (const char* name : {"kernels_test", "engine_test", "whole_test"}) {
      script(std::string("programs/tests/") + name, kTestProgram);
    }
    script("programs/gauntlet", kGauntlet);
    script("programs/gauntlet-lies", "#!/bin/bash\n");
    fs::create_symlink(GPU_UNITS, project_.root() / "programs/tests/gpu_units");
    stamp();
  }

  void script(const std::string& path, const std::string& text) {
    project_.write(path, text);
    fs::permissions(project_.root() / path, fs::perms::owner_all);
  }
  /// As the build does after the programs were linked.
  void stamp() {
    const Outcome done = run_program({GPU_UNITS, "--root", project_.root().string(), "stamp",
                                      (project_.root() / "programs/gpu_stamp.json").string()});
    ASSERT_EQ(done.code, 0) << done.err;
  }
  std::vector<std::string> command(const std::vector<std::string>& options,
                                   const std::vector<std::string>& variables = {}) const {
    const std::string root = project_.root().string();
    std::vector<std::string> argv = {"/usr/bin/env", "PATH=" + root + "/bin:" + ::getenv("PATH"),
                                     "CALLS=" + root + "/calls"};
    argv.insert(argv.end(), variables.begin(), variables.end());
    argv.push_back(root + "/tools/gpu_check.sh");
    argv.insert(argv.end(), options.begin(), options.end());
    argv.push_back(root + "/programs");
    return argv;
  }
  Outcome gpu_check(const std::vector<std::string>& options = {},
                    const std::vector<std::string>& variables = {}) {
    fs::remove(project_.root() / "calls");
    return run_program(command(options, variables));
  }
  Outcome check() const {
    return run_program({GPU_UNITS, "--root", project_.root().string(), "check"});
  }
  std::vector<std::string> calls() const {
    const fs::path path = project_.root() / "calls";
    return fs::exists(path) ? split_lines(*read_file(path)) : std::vector<std::string>();
  }
  Record record() const {
    return *Record::from_json(*read_file(project_.root() / "tests/gpu/record.json"));
  }

  FakeProject project_;
};

TEST_F(GpuCheck, records_every_unit_and_then_has_nothing_left_to_do) {
  const Outcome first = gpu_check();
  EXPECT_EQ(first.code, 0) << first.out << first.err;
  EXPECT_EQ(check().code, 0);
  const Record recorded = record();
  for (const Unit& unit : project_.units().all) {
    const UnitRecord* found = recorded.find(unit.name);
    ASSERT_NE(found, nullptr) << unit.name;
    EXPECT_EQ(found->verdict.status, "passed") << unit.name;
    EXPECT_EQ(found->occasion.machine, "NVIDIA H200, driver 580.1");
  }
  EXPECT_EQ(recorded.find("target ch07:copy")->occasion.run, "20260101-000000-abcd");
  EXPECT_EQ(recorded.find("target ch07:copy")->verdict.speedup, R"({"hi":2.1,"lo":1.9,"value":2})");
  EXPECT_THAT(calls(), Contains("sanitizer racecheck"));
  EXPECT_THAT(calls(), Contains(HasSubstr("ptx engine_test --gtest_brief=1 --gtest_filter="
                                          "CudaGoldenOnGpu.choices*")));
  EXPECT_TRUE(fs::exists(project_.root() / "tests/gpu/engine.json"));

  const Outcome second = gpu_check();
  EXPECT_EQ(second.code, 0) << second.out << second.err;
  EXPECT_THAT(calls(), IsEmpty());
}

TEST_F(GpuCheck, runs_a_changed_target_alone) {
  ASSERT_EQ(gpu_check().code, 0);
  project_.write("catalog/ch07/copy/optimized.cu", "int faster;\n");
  stamp();
  const Outcome before = check();
  EXPECT_EQ(before.code, 4);
  EXPECT_THAT(before.err, HasSubstr("target ch07:copy: changed since: "
                                    "catalog/ch07/copy/optimized.cu\n"));
  EXPECT_EQ(gpu_check().code, 0);
  EXPECT_THAT(calls(), SizeIs(1));
  EXPECT_THAT(calls()[0], HasSubstr("run --targets ch07:copy --backend cuda"));
  EXPECT_EQ(check().code, 0);
}

TEST_F(GpuCheck, runs_the_lies_and_a_target_of_each_chapter_when_the_lab_changed) {
  ASSERT_EQ(gpu_check().code, 0);
  project_.write("src/lab/measure/measure.h", "int measured_otherwise;\n");
  stamp();
  EXPECT_EQ(check().code, 4);
  EXPECT_EQ(gpu_check().code, 0);
  ASSERT_THAT(calls(), SizeIs(2));
  EXPECT_THAT(calls()[0], HasSubstr("whole_test --gtest_brief=1 --gtest_filter=LiesOnGpu.*"));
  EXPECT_THAT(calls()[1], HasSubstr("run --targets ch01:one ch07:copy --backend cuda"));
}

TEST_F(GpuCheck, fails_when_a_unit_fails_and_names_it) {
  const Outcome outcome = gpu_check({}, {"FAIL=RouterOnGpu"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err,
              HasSubstr("test kernels_test RouterOnGpu: failed: RouterOnGpu.t: 3 is not 4"));
  EXPECT_EQ(record().find("target ch01:one")->verdict.status, "passed") << "the others went on";
  EXPECT_EQ(gpu_check().code, 0) << "what failed is tried again";
}

TEST_F(GpuCheck, runs_what_it_is_told_to) {
  ASSERT_EQ(gpu_check().code, 0);
  EXPECT_EQ(gpu_check({"--all", "--only", "memcheck"}).code, 0);
  EXPECT_THAT(calls(), Contains("sanitizer memcheck"));
  EXPECT_THAT(calls(), SizeIs(2)) << "the tool and the program under it";
}

TEST_F(GpuCheck, leaves_what_does_not_fit_for_the_next_call) {
  const Outcome first = gpu_check({"--only", "target", "--seconds", "25"});
  EXPECT_EQ(first.code, 4) << first.out << first.err;
  EXPECT_THAT(first.err, HasSubstr("target ch07:tile: in a later call"));
  EXPECT_EQ(record().find("target ch07:tile"), nullptr);
  gpu_check({"--only", "target", "--seconds", "25"});
  EXPECT_NE(record().find("target ch07:tile"), nullptr);
}

TEST_F(GpuCheck, cuts_off_at_the_end_of_its_time_and_records_nothing_false) {
  const Outcome outcome =
      gpu_check({"--only", "test kernels_test", "--seconds", "3"}, {"HANG=RouterOnGpu"});
  EXPECT_EQ(outcome.code, 4) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("test kernels_test RouterOnGpu was cut off"));
  EXPECT_FALSE(fs::exists(project_.root() / "tests/gpu/record.json"));
}

TEST_F(GpuCheck, keeps_the_targets_that_were_done_when_it_is_killed) {
  Program running(command({"--only", "target"}, {"HANG=ch07:copy"}));
  const fs::path record_file = project_.root() / "tests/gpu/record.json";
  for (int i = 0; i < 200 && !fs::exists(record_file); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  running.terminate();
  EXPECT_EQ(running.wait().code, 143);
  EXPECT_NE(record().find("target ch01:one"), nullptr);
  EXPECT_EQ(record().find("target ch07:tile"), nullptr);
}

TEST_F(GpuCheck, does_not_record_programs_of_other_sources) {
  project_.write("catalog/ch07/copy/optimized.cu", "int not_built_yet;\n");
  const Outcome outcome = gpu_check({"--only", "target"});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.err, HasSubstr("target ch07:copy: built from other sources"));
  EXPECT_EQ(record().find("target ch07:copy"), nullptr);
  EXPECT_NE(record().find("target ch07:tile"), nullptr);
}

TEST_F(GpuCheck, does_without_a_program_that_is_not_there) {
  fs::remove(project_.root() / "programs/tests/engine_test");
  const Outcome outcome = gpu_check();
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.err, HasSubstr("test engine_test CudaGoldenOnGpu: there is no engine_test"));
  EXPECT_NE(record().find("test kernels_test RouterOnGpu"), nullptr);
}

TEST_F(GpuCheck, does_without_a_suite_that_starts_a_program_that_is_not_there) {
  fs::remove(project_.root() / "programs/gauntlet-lies");
  const Outcome outcome = gpu_check({"--only", "whole_test"});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.err, HasSubstr("test whole_test LiesOnGpu: there is no gauntlet-lies"));
  EXPECT_THAT(calls(), IsEmpty());
  EXPECT_FALSE(fs::exists(project_.root() / "tests/gpu/record.json")) << "it waits";
}

TEST_F(GpuCheck, sabotages_targets_beside_one_another_and_one_of_each_chapter_with_a_new_lab) {
  project_.write("tests/sabotage_test.cc", "TEST_P(SabotageOnGpu, is_refused) {}\n");
  stamp();
  ASSERT_EQ(gpu_check().code, 0);
  EXPECT_THAT(calls(), Contains(HasSubstr("--gtest_filter=*/SabotageOnGpu.*/ch07_tile ")));
  EXPECT_EQ(record().find("sabotage ch07:tile")->verdict.status, "passed");
  project_.write("src/lab/measure/measure.h", "int measured_otherwise;\n");
  stamp();
  EXPECT_THAT(check().err,
              HasSubstr("sabotage ch01:one: the lab changed, and no target of ch01 was sabotaged"));
  EXPECT_EQ(gpu_check({"--only", "sabotage"}).code, 4) << "the lies and targets are left";
  EXPECT_THAT(calls(), SizeIs(2)) << "one of each chapter";
}

TEST_F(GpuCheck, refuses_a_machine_without_a_gpu) {
  script("bin/nvidia-smi", "#!/bin/bash\nexit 9\n");
  const Outcome outcome = gpu_check();
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("nvidia-smi names no GPU"));
  EXPECT_THAT(calls(), IsEmpty());
}

TEST_F(GpuCheck, merges_a_record_of_a_run_made_elsewhere) {
  const std::string root = project_.root().string();
  ASSERT_EQ(gpu_check({"--only", "target"}).code, 4);
  const std::string elsewhere = root + "/elsewhere.json";
  fs::rename(root + "/tests/gpu/record.json", elsewhere);
  ASSERT_EQ(gpu_check({"--only", "engine"}).code, 4);
  EXPECT_EQ(run_program({GPU_UNITS, "--root", root, "merge", elsewhere}).code, 0);
  EXPECT_NE(record().find("target ch07:copy"), nullptr);
  EXPECT_NE(record().find("bench engine"), nullptr);
}

}  // namespace
}  // namespace gauntlet::tests::gpu
