#include "lab/run/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/fake_tree.h"
#include "core/files.h"
#include "lab/measure/fake_backend.h"
#include "lab/run/worker.h"

namespace gauntlet::lab::inline run {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

MachineInfo cpu_machine() {
  MachineInfo machine;
  machine.cpu = {.cores = 2, .memory_bytes = std::int64_t{8} << 30, .simd = {"avx2"}};
  machine.no_gpu_reason = "no CUDA device";
  return machine;
}
MachineInfo gpu_machine() {
  MachineInfo machine = cpu_machine();
  machine.gpus = {{.name = "H200", .compute_major = 9, .compute_minor = 0}};
  return machine;
}

std::vector<std::string> keys(const Expected<std::vector<PlanItem>>& plan) {
  std::vector<std::string> result;
  for (const PlanItem& item : *plan) result.push_back(item.key());
  return result;
}
using Keys = std::vector<std::string>;

class MakePlan : public testing::Test {
 protected:
  MakePlan() : both_(twice_target()), cpu_only_(twice_target()), cuda_only_(twice_target()) {
    cpu_only_.source.name = "cpu_only";
    cpu_only_.source.cuda.reset();
    cpu_only_.source.has_cuda_source = false;
    cuda_only_.source.name = "cuda_only";
    cuda_only_.source.cpu.reset();
  }
  Keys plan(const Target& target, BackendChoice choice, const MachineInfo& machine) {
    return keys(make_plan({&target}, choice, machine, {}, {}));
  }
  Target both_, cpu_only_, cuda_only_;
};

TEST_F(MakePlan, takes_the_gpu_by_itself_where_there_is_one_and_the_pair_can_use_it) {
  const auto automatic = BackendChoice::automatic;
  EXPECT_EQ(plan(both_, automatic, gpu_machine()), Keys{"ch07:twice cuda"});
  EXPECT_EQ(plan(both_, automatic, cpu_machine()), Keys{"ch07:twice cpu"});
  EXPECT_EQ(plan(cpu_only_, automatic, gpu_machine()), Keys{"ch07:cpu_only cpu"});
  EXPECT_EQ(plan(cuda_only_, automatic, cpu_machine()), Keys{"ch07:cuda_only cuda"})
      << "to be reported as skipped, not left out";
}

TEST_F(MakePlan, follows_the_choice_though_it_will_be_skipped) {
  EXPECT_EQ(plan(cuda_only_, BackendChoice::cpu, gpu_machine()), Keys{"ch07:cuda_only cpu"});
  EXPECT_EQ(plan(both_, BackendChoice::cuda, cpu_machine()), Keys{"ch07:twice cuda"});
}

TEST_F(MakePlan, takes_every_backend_a_pair_has) {
  const auto all = BackendChoice::all;
  EXPECT_EQ(plan(both_, all, cpu_machine()), (Keys{"ch07:twice cpu", "ch07:twice cuda"}));
  EXPECT_EQ(plan(cpu_only_, all, gpu_machine()), Keys{"ch07:cpu_only cpu"});
}

TEST_F(MakePlan, expands_a_sweep_in_the_order_given) {
  const auto plan =
      make_plan({&both_, &cpu_only_}, BackendChoice::cpu, cpu_machine(), {}, Sweep{"n", {64, 16}});
  EXPECT_EQ(keys(plan), (Keys{"ch07:twice cpu n=64", "ch07:twice cpu n=16",
                              "ch07:cpu_only cpu n=64", "ch07:cpu_only cpu n=16"}));
  EXPECT_EQ((*plan)[0].sweep_key, "n");
}

TEST_F(MakePlan, lets_a_sweep_win_over_a_setting_of_the_same_knob) {
  EXPECT_EQ(
      keys(make_plan({&both_}, BackendChoice::cpu, cpu_machine(), {{"n", 5}}, Sweep{"n", {7}})),
      Keys{"ch07:twice cpu n=7"});
}

TEST_F(MakePlan, finds_a_bad_knob_of_any_target_before_anything_runs) {
  cpu_only_.pair.knobs = {{.name = "rows", .cpu = 4}};
  const auto plan =
      make_plan({&both_, &cpu_only_}, BackendChoice::cpu, cpu_machine(), {{"n", 8}}, {});
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().kind, ErrorKind::wrong_use);
  EXPECT_THAT(plan.error().message, StartsWith("ch07:cpu_only: there is no knob 'n'"));
  EXPECT_FALSE(make_plan({&both_}, BackendChoice::cpu, cpu_machine(), {}, Sweep{"n", {8, 0}}));
}

/// A runner whose worker is a shell script that answers on descriptor 3.
class RunnerWithScript : public testing::Test {
 protected:
  Result run(const std::string& script, RunnerOptions options = {}) {
    folder_.write("worker", "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(folder_.root() / "worker", std::filesystem::perms::owner_all);
    std::filesystem::create_directories(folder_.root() / "logs");
    options.program = (folder_.root() / "worker").string();
    options.folder = folder_.root().string();
    Runner runner(options, cpu_machine());
    return runner.run({.target = &target_, .backend = BackendKind::cpu}, std::nullopt,
                      [&](const RunProgress& p) { progress_.push_back(p); });
  }
  /// A line of a worker that measured a speedup of 2.
  static std::string answer() {
    Measurement m;
    m.blocks.assign(8, {.baseline_ns = {200, 200}, .optimized_ns = {100, 100}});
    nlohmann::json message = to_json(m);
    message["type"] = "measurement";
    return "echo '" + message.dump() + "' >&3";
  }

  FakeTree folder_;
  Target target_ = twice_target();
  std::vector<RunProgress> progress_;
};

TEST_F(RunnerWithScript, starts_three_processes_and_judges_what_they_found) {
  const Result result = run("echo started; " + answer());
  EXPECT_EQ(result.status, Status::passed) << result.reason;
  EXPECT_DOUBLE_EQ(result.speedup->median, 2);
  EXPECT_EQ(result.conditions.processes, 3);
  EXPECT_EQ(*read_file(folder_.root() / result.log), "started\nstarted\nstarted\n");
}

TEST_F(RunnerWithScript, gives_the_worker_the_target_and_a_new_seed_each_time) {
  run("echo \"$1 $2\"; " + answer());
  const std::string log = *read_file(folder_.root() / "logs/ch07-twice-cpu.log");
  std::set<std::string> lines;
  std::istringstream stream(log);
  for (std::string line; std::getline(stream, line);) {
    EXPECT_THAT(line, StartsWith("__worker {"));
    EXPECT_THAT(line, HasSubstr("ch07:twice"));
    lines.insert(line);
  }
  EXPECT_EQ(lines.size(), 3u);
}

TEST_F(RunnerWithScript, passes_progress_on) {
  run(R"(echo '{"type":"progress","phase":"verify","side":"baseline","ratio":1.5}' >&3; )" +
      answer());
  ASSERT_EQ(progress_.size(), 3u);
  EXPECT_EQ(progress_[0].phase, "verify");
  EXPECT_EQ(progress_[0].side, "baseline");
  EXPECT_EQ(progress_[0].ratio, 1.5);
  EXPECT_EQ(progress_[2].process, 3);
}

TEST_F(RunnerWithScript, turns_each_way_to_end_into_a_status) {
  EXPECT_EQ(run("kill -SEGV $$").reason, "crashed: segmentation fault (SIGSEGV)");
  EXPECT_EQ(run("exit 9").reason, "ended its process with exit code 9 before reporting a result");
  EXPECT_EQ(run("exit 9").status, Status::crashed);
  EXPECT_EQ(run(R"(echo '{"type":"error","reason":"out of memory"}' >&3; exit 1)").reason,
            "out of memory");
  const Result hung = run("sleep 30", {.timeout_s = 0.2});
  EXPECT_EQ(hung.status, Status::timed_out);
  EXPECT_THAT(hung.reason, StartsWith("did not finish within"));
  const std::atomic<bool> interrupt = true;
  EXPECT_EQ(run("sleep 30", {.interrupt = &interrupt}).reason, "interrupted");
}

TEST_F(RunnerWithScript, does_not_believe_an_answer_followed_by_a_crash) {
  const Result result = run(answer() + "; kill -SEGV $$");
  EXPECT_EQ(result.status, Status::crashed);
  EXPECT_FALSE(result.speedup);
}

TEST_F(RunnerWithScript, skips_what_cannot_run_here_without_starting_anything) {
  target_.source.cpu.reset();
  const Result result = run("echo started");
  EXPECT_EQ(result.status, Status::skipped);
  EXPECT_EQ(result.reason, "has no cpu sides");
  EXPECT_FALSE(std::filesystem::exists(folder_.root() / "logs/ch07-twice-cpu.log"));
}

TEST_F(RunnerWithScript, survives_whatever_a_pair_writes_into_the_pipe) {
  for (const std::string line :
       {"garbage", "[1]", "{}", R"({"type":7})", R"({"type":"progress","phase":3,"ratio":null})",
        R"({"type":"error","reason":[]})", R"(\377\376)"}) {
    const Result result = run("printf '" + line + "\\n' >&3; " + answer());
    EXPECT_EQ(result.status, Status::passed) << line << ": " << result.reason;
  }
  const Result forged = run(R"(echo '{"type":"measurement","blocks":"none"}' >&3)");
  EXPECT_EQ(forged.status, Status::crashed);
  EXPECT_THAT(forged.reason, StartsWith("reported a result that cannot be read"));
}

TEST_F(RunnerWithScript, refuses_a_measurement_without_a_block) {
  const Result result = run(
      R"(echo '{"type":"measurement","ok":true,"reason":"","side":"","blocks":[],"repetitions":[1,1],)"
      R"("max_error":0,"bound":0,"checks":1,"checked_percent":100,"side_error":[0,0],)"
      R"("facts":[{},{}],"conditions":{"blocks":0,"dropped_blocks":0,"sm_clock_mhz_min":0,)"
      R"("sm_clock_mhz_max":0,"power_w_max":0,"temperature_c_max":0,"throttle_reasons":[],)"
      R"("cold":false}}' >&3)");
  EXPECT_EQ(result.status, Status::crashed);
  EXPECT_THAT(result.reason, StartsWith("reported a result that cannot be read"));
}

}  // namespace
}  // namespace gauntlet::lab::inline run
