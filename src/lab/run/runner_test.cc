#include "lab/run/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "core/os/fake_tree.h"
#include "core/os/files.h"
#include "lab/run/fake_evidence.h"
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
    cpu_only_.source.cuda.clear();
    cuda_only_.source.name = "cuda_only";
    cuda_only_.source.cpu.clear();
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

/// A runner whose worker is a shell script that answers on descriptor 3. $token is the request's,
/// $nth how often the script was started.
class RunnerWithScript : public testing::Test {
 protected:
  Result run(const std::string& script, RunnerOptions options = {}) {
    std::error_code ignored;
    std::filesystem::remove(folder_.root() / "starts", ignored);
    folder_.write("worker",
                  "#!/bin/sh\ncd " + folder_.root().string() +
                      "\necho x >> starts; nth=$(wc -l < starts)\n"
                      "token=$(echo \"$2\" | sed 's/.*\"token\":\"\\([0-9a-f]*\\)\".*/\\1/')\n" +
                      script + "\n");
    std::filesystem::permissions(folder_.root() / "worker", std::filesystem::perms::owner_all);
    std::filesystem::create_directories(folder_.root() / "logs");
    options.program = (folder_.root() / "worker").string();
    options.folder = folder_.root().string();
    Runner runner(options, cpu_machine());
    return runner.run({.target = &target_, .backend = BackendKind::cpu}, ceilings_,
                      [&](const RunProgress& p) { progress_.push_back(p); });
  }
  int starts() const {
    const auto text = read_file(folder_.root() / "starts");
    return text ? static_cast<int>(std::ranges::count(*text, '\n')) : 0;
  }
  /// Sends a message as the worker would, or with another token.
  static std::string send(nlohmann::json message, const std::string& token = "'$token'") {
    message["token"] = "TOKEN";
    std::string text = message.dump();
    text.replace(text.find("TOKEN"), 5, token);
    return "echo '" + text + "' >&3";
  }
  static nlohmann::json measurement(const Measurement& m) {
    nlohmann::json message = to_json(m);
    message["type"] = "measurement";
    return message;
  }
  /// A worker that measured a speedup of 2.
  static std::string answer() { return send(measurement(measured({200, 100}))); }

  FakeTree folder_;
  Target target_ = twice_target();
  std::optional<Ceilings> ceilings_;
  std::vector<RunProgress> progress_;
};

TEST_F(RunnerWithScript, starts_three_processes_and_judges_what_they_found) {
  const Result result = run("echo started; " + answer());
  EXPECT_EQ(result.status, Status::passed) << result.reason;
  EXPECT_DOUBLE_EQ(result.headline().speedup.value, 2);
  EXPECT_EQ(result.conditions.processes, 3);
  EXPECT_EQ(*read_file(folder_.root() / result.log), "started\nstarted\nstarted\n");
}

TEST_F(RunnerWithScript, gives_the_worker_the_target_and_a_new_seed_and_token_each_time) {
  run("echo \"$1 $2\"; " + answer());
  const std::string log = *read_file(folder_.root() / "logs/ch07-twice-cpu.log");
  std::set<std::string> seeds, tokens;
  std::istringstream stream(log);
  for (std::string line; std::getline(stream, line);) {
    ASSERT_THAT(line, StartsWith("__worker {"));
    const WorkerRequest request =
        worker_request_from_json(nlohmann::json::parse(line.substr(line.find('{'))));
    EXPECT_EQ(request.target, "ch07:twice");
    EXPECT_EQ(request.token.size(), 32u);
    seeds.insert(std::to_string(request.options.seed));
    tokens.insert(request.token);
  }
  EXPECT_EQ(seeds.size(), 3u);
  EXPECT_EQ(tokens.size(), 3u);
}

TEST_F(RunnerWithScript, passes_progress_on) {
  run(send({{"type", "progress"}, {"phase", "verify"}, {"side", "baseline"}, {"ratio", 1.5}}) +
      "; " + answer());
  ASSERT_EQ(progress_.size(), 3u);
  EXPECT_EQ(progress_[0].phase, "verify");
  EXPECT_EQ(progress_[0].side, "baseline");
  EXPECT_EQ(progress_[0].ratio, 1.5);
  EXPECT_EQ(progress_[2].process, 3);
}

TEST_F(RunnerWithScript, starts_more_processes_while_the_interval_is_wide) {
  const auto speedup_of = [](double ns) { return send(measurement(measured({ns, 100}))); };
  const std::string wide =
      "if [ $((nth % 2)) = 0 ]; then " + speedup_of(200) + "; else " + speedup_of(400) + "; fi";
  const Result result = run(wide, {.max_processes = 5});
  EXPECT_EQ(result.conditions.processes, 5);
  EXPECT_EQ(starts(), 5);
}

TEST_F(RunnerWithScript, makes_up_for_processes_that_found_the_gpu_too_hot) {
  const std::string hot = send(measurement(too_hot(2)));
  const Result result = run("if [ $nth -le 2 ]; then " + hot + "; else " + answer() + "; fi");
  EXPECT_EQ(result.status, Status::passed) << result.reason;
  EXPECT_EQ(starts(), 5);
  EXPECT_EQ(result.samples(), 3 * 8 * 4);
  EXPECT_EQ(result.conditions.dropped_blocks, 12);
}

TEST_F(RunnerWithScript, skips_a_target_whose_processes_are_all_too_hot) {
  const Result result = run(send(measurement(too_hot(2))));
  EXPECT_EQ(result.status, Status::skipped);
  EXPECT_EQ(starts(), 6) << "as many as it may start";
}

TEST_F(RunnerWithScript, ends_with_the_first_process_that_finds_a_side_wrong) {
  Measurement wrong = measured({200, 100});
  wrong.ok = false;
  wrong.reason = "optimized gave a wrong result";
  const Result result = run(send(measurement(wrong)));
  EXPECT_EQ(result.status, Status::wrong);
  EXPECT_EQ(starts(), 1);
}

TEST_F(RunnerWithScript, turns_each_way_to_end_into_a_status) {
  EXPECT_EQ(run("kill -SEGV $$").reason, "crashed: segmentation fault (SIGSEGV)");
  EXPECT_EQ(run("exit 9").reason, "ended its process with exit code 9 before reporting a result");
  EXPECT_EQ(run("exit 9").status, Status::crashed);
  EXPECT_EQ(run(send({{"type", "error"}, {"reason", "out of memory"}}) + "; exit 1").reason,
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
  EXPECT_FALSE(result.measured());
}

TEST_F(RunnerWithScript, skips_what_cannot_run_here_without_starting_anything) {
  target_.source.cpu.clear();
  const Result result = run("echo started");
  EXPECT_EQ(result.status, Status::skipped);
  EXPECT_EQ(result.reason, "has no cpu sides");
  EXPECT_EQ(starts(), 0);
}

TEST_F(RunnerWithScript, measures_the_rest_where_a_yardstick_cannot_be) {
  target_.source.cpu.push_back(target_.source.cpu[0]);
  target_.source.cpu.back().name = "library";
  target_.source.cpu.back().role = SideRole::yardstick;
  target_.pair.cpu->yardsticks = {{.name = "library", .needs = {"4096 NUMA nodes"}}};
  const Result result = run("echo \"$2\"; " + answer());
  EXPECT_EQ(result.status, Status::passed) << result.reason;
  EXPECT_EQ(result.sides.size(), 2u);
  EXPECT_EQ(result.comparisons.size(), 1u);
  ASSERT_EQ(result.absent.size(), 1u);
  EXPECT_EQ(result.absent[0].name, "library");
  EXPECT_THAT(result.absent[0].reason, StartsWith("needs 4096 NUMA nodes, there is "));
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_EQ(result.notes[0], "without the yardstick library: " + result.absent[0].reason);
  const std::string log = *read_file(folder_.root() / result.log);
  EXPECT_THAT(log, testing::HasSubstr("\"without\":[\"library\"]"));

  target_.pair.cpu->yardsticks.clear();
  const Result whole = run(send(measurement(measured({200, 100, 50}))));
  EXPECT_EQ(whole.comparisons.size(), 2u) << whole.reason;
  EXPECT_TRUE(whole.absent.empty());
}

TEST_F(RunnerWithScript, calls_a_target_wrong_that_reports_without_the_token) {
  const std::string forged =
      "a side wrote a report of its own into the pipe between the worker and the lab";
  for (const std::string& token :
       {std::string("00000000000000000000000000000000"), std::string()}) {
    const std::string report = send(measurement(measured({9000, 1})), token);
    for (const std::string& script :
         {report, report + "; " + answer(), answer() + "; " + report, report + "; kill -SEGV $$"}) {
      const Result result = run(script);
      EXPECT_EQ(result.status, Status::wrong) << script;
      EXPECT_EQ(result.reason, forged);
      EXPECT_FALSE(result.measured());
    }
  }
  EXPECT_EQ(run(R"(echo '{"type":7}' >&3; )" + answer()).status, Status::wrong);
  EXPECT_EQ(run(R"(echo '{"type":"progress","phase":"verify"}' >&3; )" + answer()).status,
            Status::wrong);
}

TEST_F(RunnerWithScript, survives_what_is_no_message_at_all) {
  for (const std::string line : {"garbage", "[1]", "{}", "null", R"(\377\376)"}) {
    const Result result = run("printf '" + line + "\\n' >&3; " + answer());
    EXPECT_EQ(result.status, Status::passed) << line << ": " << result.reason;
  }
}

TEST_F(RunnerWithScript, survives_messages_that_do_not_fit) {
  EXPECT_EQ(
      run(send({{"type", "progress"}, {"phase", 3}, {"ratio", nullptr}}) + "; " + answer()).status,
      Status::passed);
  EXPECT_EQ(run(send({{"type", "error"}, {"reason", nlohmann::json::array()}}) + "; exit 1").reason,
            "unknown error");
  const Result broken = run(send({{"type", "measurement"}, {"blocks", "none"}}));
  EXPECT_EQ(broken.status, Status::crashed);
  EXPECT_THAT(broken.reason, StartsWith("reported a result that cannot be read"));
}

TEST_F(RunnerWithScript, refuses_a_measurement_without_blocks_of_all_sides) {
  Measurement empty = measured({200, 100}, 0);
  Measurement short_block = measured({200, 100});
  short_block.blocks[3].ns.pop_back();
  for (const Measurement& m : {empty, short_block, measured({200}), measured({3, 2, 1})}) {
    const Result result = run(send(measurement(m)));
    EXPECT_EQ(result.status, Status::crashed);
    EXPECT_THAT(result.reason, StartsWith("reported a result that cannot be read"));
  }
}

/// A worker that answers a request to profile with another message.
std::string on_profile(const std::string& profile, const std::string& otherwise) {
  const int task = static_cast<int>(WorkerRequest::Task::profile);
  return "if echo \"$2\" | grep -q '\"task\":" + std::to_string(task) + "'; then " + profile +
         "; else " + otherwise + "; fi";
}

TEST_F(RunnerWithScript, profiles_in_a_process_of_its_own) {
  ProfileOutcome outcome{
      .sides = {{.counters = {{"sectors", 32}}}, {.counters = {{"sectors", 4}}}}};
  nlohmann::json message = to_json(outcome);
  message["type"] = "profile";
  const Result result =
      run(on_profile(send(message), answer()), {.profile = ProfileLevel::minimal});
  EXPECT_EQ(result.status, Status::passed) << result.reason;
  EXPECT_EQ(starts(), 4);
  EXPECT_EQ(result.counters.at("sectors"), (std::vector<double>{32, 4}));
}

TEST_F(RunnerWithScript, says_why_there_is_no_profile) {
  target_.pair.cpu->witness =
      Witness::counter("sectors", Witness::Moves::falls, 2, "fewer sectors");
  const Result result = run(on_profile("exit 9", answer()), {.profile = ProfileLevel::minimal});
  EXPECT_EQ(result.status, Status::no_gain);
  EXPECT_THAT(result.reason, HasSubstr("the profiling process failed: ended its process"));
}

TEST_F(RunnerWithScript, calls_a_target_wrong_that_forges_its_profile) {
  nlohmann::json message = to_json(ProfileOutcome{});
  message["type"] = "profile";
  const Result result =
      run(on_profile(send(message, "1234"), answer()), {.profile = ProfileLevel::minimal});
  EXPECT_EQ(result.status, Status::wrong);
  EXPECT_THAT(result.reason, StartsWith("a side wrote a report of its own"));
}

/// A worker that answers a request for ceilings with what a test gives it.
class RunnerWithCeilings : public RunnerWithScript {
 protected:
  static Ceilings of(double bytes_per_ns) {
    Ceilings ceilings{.machine_key = "test",
                      .caches = {.l1_bytes = 1, .l2_bytes = 1, .last_bytes = 1}};
    for (const char* name : {"dram_read", "dram_copy", "dram_write", "llc_read", "fma_f32"}) {
      ceilings.values[name] = {.value = bytes_per_ns, .unit = "GB/s", .method = "m"};
    }
    return ceilings;
  }
  static std::string measuring(const Ceilings& again,
                               WorkerRequest::Task which = WorkerRequest::Task::ceilings) {
    const int task = static_cast<int>(which);
    return "if echo \"$2\" | grep -q '\"task\":" + std::to_string(task) + "'; then " +
           send({{"type", "ceilings"}, {"ceilings", to_json(again)}}) + "; else " + answer() +
           "; fi";
  }
};

// 8000 bytes in 100 ns are 80 bytes/ns.
TEST_F(RunnerWithCeilings, measures_ceilings_again_that_a_result_is_above) {
  ceilings_ = of(50);
  const Result result = run(measuring(of(90)));
  EXPECT_EQ(result.status, Status::passed) << result.reason;
  EXPECT_EQ(ceilings_->get("dram_read"), 90) << "the better ones stay";
  EXPECT_EQ(starts(), 4);
}

TEST_F(RunnerWithCeilings, calls_a_result_wrong_that_is_above_them_twice) {
  ceilings_ = of(50);
  const Result result = run(measuring(of(40)));
  EXPECT_EQ(result.status, Status::wrong);
  EXPECT_THAT(result.reason, HasSubstr("is faster than this machine can be"));
  EXPECT_EQ(ceilings_->get("dram_read"), 50);
}

TEST_F(RunnerWithCeilings, measures_the_disk_beside_what_reads_it) {
  target_.pair.cpu->cost = [](const Knobs&) -> Cost {
    return {.read_bytes = 8000, .level = Cost::Level::disk};
  };
  const auto disk_of = [](double bytes_per_ns) {
    Ceilings ceilings{.machine_key = "test"};
    ceilings.values["disk_read"] = {.value = bytes_per_ns, .unit = "GB/s", .method = "m"};
    return ceilings;
  };
  ceilings_ = disk_of(40);
  const Result result = run(measuring(disk_of(160), WorkerRequest::Task::disk_ceiling));
  EXPECT_EQ(result.status, Status::passed) << result.reason;
  EXPECT_EQ(result.bound_by, "disk");
  EXPECT_NEAR(result.sides[1].ceiling_percent, 50, 1e-9);
  EXPECT_EQ(ceilings_->get("disk_read"), 160);
  EXPECT_EQ(starts(), 4);
  const Result later = run(measuring(disk_of(40), WorkerRequest::Task::disk_ceiling));
  EXPECT_EQ(later.status, Status::passed) << later.reason;
  EXPECT_NEAR(later.sides[1].ceiling_percent, 50, 1e-9) << "of the better of both moments";
  EXPECT_EQ(ceilings_->get("disk_read"), 160) << "which is kept";
}

TEST_F(RunnerWithCeilings, leaves_ceilings_alone_that_no_result_is_above) {
  ceilings_ = of(90);
  EXPECT_EQ(run(measuring(of(500))).status, Status::passed);
  EXPECT_EQ(ceilings_->get("dram_read"), 90);
  EXPECT_EQ(starts(), 3);
}

}  // namespace
}  // namespace gauntlet::lab::inline run
