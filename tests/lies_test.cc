// Does the lab see through pairs that cheat, say how they did, and go on to the next?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "core/machine/machine.h"
#include "tests/json_answer.h"
#include "tests/program.h"

namespace gauntlet::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

/// What the lab must say of a lie: a status, and one of these in its reason.
struct Answer {
  std::string status;
  std::vector<std::string> reasons = {""};
};
using Answers = std::map<std::string, Answer>;

/// A finished run of some lies.
struct LiesRun {
  TemporaryFolder artifacts;
  Outcome outcome;
  std::map<std::string, json> results;  // by name of the lie

  explicit LiesRun(const std::vector<std::string>& arguments) {
    std::vector<std::string> argv = {GAUNTLET_LIES_BINARY, "run",           "--format", "json",
                                     "--artifacts-dir",    artifacts.path()};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    outcome = run_program(argv);
    const json answer = json_answer(outcome);
    if (answer.empty()) return;
    folder_ = artifacts.path() / answer.at("run_id").get<std::string>();
    for (const json& result : answer.at("results")) {
      results[result.at("id").get<std::string>().substr(5)] = result;
    }
  }
  std::string log(const std::string& name) const {
    return read_text(folder_ / results.at(name).at("log").get<std::string>());
  }

 private:
  std::filesystem::path folder_;
};

/// Every lie of a run, and no other, has its answer; but for those that have no sides on its
/// backend.
void expect_answers(const LiesRun& run, const Answers& answers) {
  for (const auto& [name, result] : run.results) {
    const bool told_elsewhere =
        result.at("status") == "skipped" &&
        std::regex_match(result.at("reason").get<std::string>(), std::regex("has no [a-z]+ sides"));
    EXPECT_NE(answers.contains(name), told_elsewhere)
        << name
        << " is planted, and nothing is said of what must come of it: " << result.at("status")
        << ", " << result.at("reason");
  }
  for (const auto& [name, answer] : answers) {
    SCOPED_TRACE(name);
    const auto result = run.results.find(name);
    if (result == run.results.end()) {
      ADD_FAILURE() << "the run has no result of it";
      continue;
    }
    const std::string reason = result->second.at("reason");
    EXPECT_EQ(result->second.at("status"), answer.status) << reason;
    EXPECT_TRUE(std::ranges::any_of(
        answer.reasons,
        [&](const std::string& part) { return reason.find(part) != std::string::npos; }))
        << "its reason: " << reason;
    if (answer.status == "wrong" || answer.status == "crashed" || answer.status == "timed_out") {
      EXPECT_TRUE(result->second.at("comparisons").empty()) << "a lie must not get a speedup";
    }
  }
}

struct Quick {
  std::vector<std::string> targets = {"lies"};
  std::string backend;
  std::string timeout_s;
  std::string memory_gib;

  std::vector<std::string> arguments() const {
    std::vector<std::string> all = {
        "--backend", backend,          "--no-ceilings", "--repeat",     "2", "--timeout",
        timeout_s,   "--memory-limit", memory_gib,      "--iterations", "16"};
    for (const std::string& target : targets) all.insert(all.end(), {"--targets", target});
    return all;
  }
};

/// The ids of all lies that are planted, but for one.
std::vector<std::string> all_but(const std::string& one) {
  const Outcome outcome = run_program({GAUNTLET_LIES_BINARY, "list", "--format", "json"});
  std::vector<std::string> ids;
  for (const json& lie : json::parse(outcome.out)) {
    if (lie.at("id") != one) ids.push_back(lie.at("id"));
  }
  return ids;
}

const std::string kTimed = "(output of a timed sample)";
// A thread that a side left behind is heard after its sample, or while the next inputs are made.
const std::string kWorksAfter = "work that goes on after a side returned";
const std::string kWorksBetween = "does work before its clock starts";
const std::string kThreads = "was timed beside threads that the lab does not know";
const std::string kOtherStream = "does work outside of its stream";
const std::string kBefore = "(before timing)";
const std::string kLeftProcess = "left a process of its own running";

/// Lies that are told alike on every backend.
Answers common_answers() {
  const Answer stale{"wrong", {kTimed}};
  return {
      {"honest", {"passed"}},
      {"equal_sides", {"no_gain", {"does not clear 1.02"}}},
      {"uses_enter_and_leave", {"passed"}},
      {"product_honest", {"passed"}},
      {"tf32_product_honest", {"passed"}},
      {"leaves_unwritten", {"wrong", {"left part of its output unwritten"}}},
      {"writes_past_output", {"wrong", {"wrote outside of its buffers: past the end of 'out'"}}},
      {"caches_answer", {"wrong", {"an answer is kept between calls"}}},
      {"works_in_enter", {"wrong", {"unwritten"}}},
      {"works_in_leave", {"wrong", {"unwritten"}}},
      {"trusts_unpoisoned", stale},
      {"trusts_first_input", stale},
      {"trusts_few_inputs", stale},
      {"trusts_fitting_outputs", stale},
      {"skips_later", {"wrong", {kTimed, "(after timing)"}}},
      {"skips_at_random", {"wrong", {kTimed, kBefore, "(after timing)"}}},
      {"answers_from_file", {"wrong", {"an answer is kept between calls"}}},
      {"forges_report", {"wrong", {"wrote a report of its own"}}},
      {"product_repeats_few_rows", {"wrong", {"does not add up", "gave a wrong result: c["}}},
      {"product_repeats_rows", {"wrong", {"does not add up", "gave a wrong result: c["}}},
      {"product_skips_rows", {"wrong", {"left part of its output unwritten"}}},
      {"product_by_tf32", {"wrong", {"gave a wrong result", "less precise than it claims"}}},
      {"tf32_product_by_bf16", {"wrong", {"gave a wrong result", "less precise than it claims"}}},
      {"tf32_product_of_5_bits", {"wrong", {"gave a wrong result", "less precise than it claims"}}},
      {"inflated_cost", {"passed"}},  // nothing is above a ceiling that nobody measured
      {"joins_thread", {"passed"}},
      {"joins_process", {"passed"}},
      {"uses_file", {"passed"}},
      {"hinders_baseline", {"wrong", {kWorksAfter, kWorksBetween, kThreads, kOtherStream}}},
      {"watches_inputs", {"wrong", {kWorksAfter, kWorksBetween, kThreads, kOtherStream, kTimed}}},
      {"leaves_process", {"wrong", {kLeftProcess, kBefore}}},
      {"works_after_enter",
       {"wrong", {kWorksAfter, kWorksBetween, kThreads, "unwritten", kBefore, kTimed}}},
      {"mutates_input", {"wrong", {"optimized changed its input 'in'"}}},
      {"right_only_first", {"wrong", {"is right for the first inputs, not for fresh ones"}}},
      {"remembers_answers", {"wrong", {kTimed}}},
      {"witness_still", {"no_gain", {"the witness did not move: passes went from 32 to 32"}}},
      {"witness_missing", {"no_gain", {"did not report nowhere"}}},
      {"leaves_nice", {"wrong", {"left a thread's nice value (10) changed"}}}};
}

Answers with(Answers answers, const Answers& more) {
  for (const auto& [name, answer] : more) answers[name] = answer;
  return answers;
}

TEST(LiesOnCpu, are_all_found_in_one_run_that_goes_on) {
  // A sanitized side is many times slower: what a side that hangs is given must not catch one that
  // works.
  const std::string timeout_s = kSanitized ? "60" : "20";
  const LiesRun run(Quick{
      .targets = all_but("lies:hangs"), .backend = "cpu", .timeout_s = timeout_s, .memory_gib = "1"}
                        .arguments());
  EXPECT_EQ(run.outcome.code, 1) << run.outcome.err;
  // Sanitizers catch the signal and end the process with a code of their own.
  const std::string crash =
      kSanitized ? "before reporting a result" : "segmentation fault (SIGSEGV)";
  const std::string exit = kSanitized
                               ? "before reporting a result"
                               : "ended its process with exit code 0 before reporting a result";
  expect_answers(
      run,
      with(common_answers(),
           {{"wrong_result", {"wrong", {"optimized gave a wrong result: out[32767] is "}}},
            {"returns_nan", {"wrong", {"returned NaN at out[16384]"}}},
            {"crashes", {"crashed", {crash}}},
            {"exits", {"crashed", {exit}}},
            {"allocates", {"crashed", {"used more than 1 GiB of memory and was stopped"}}},
            {"prints_garbage", {"passed"}},
            {"prints_forever", {"crashed", {"printed more than 64 MiB and was stopped"}}},
            {"updates_changes", {"no_gain", {"does not clear 1.02"}}},
            {"leaves_thread", {"wrong", {kWorksAfter, kWorksBetween, kTimed}}},
            {"declares_thread", {"passed"}},
            {"declares_thread_and_leaves_it", {"no_gain", {"does not clear 1.02"}}},
            {"works_on_alarm", {"wrong", {"unwritten", kTimed}}},
            {"honest_with_dear_checks", {"passed"}},
            {"skips_with_dear_checks", {"wrong", {kTimed}}},
            {"computes_while_copied", {"wrong", {kWorksAfter, kWorksBetween, kTimed}}},
            {"hides_in_slack", {"wrong", {kWorksAfter, kWorksBetween, kTimed}}},
            {"uses_pool_later", {"wrong", {kWorksAfter, kWorksBetween, kTimed}}},
            {"uses_pool", {"passed"}},
            {"reaps_in_time", {"wrong", {kLeftProcess, kBefore, kTimed}}},
            {"leaves_silent_clone", {"wrong", {kLeftProcess}}},
            {"leaves_sibling", {"wrong", {kLeftProcess}}},
            {"leaves_rounding", {"wrong", {"left the floating-point mode", kBefore}}},
            {"leaves_timer", {"wrong", {"left a timer that goes on", "the handler of signal 14"}}},
            {"restores_rounding", {"passed"}},
            {"handles_signal", {"passed"}},
            {"protects_within_run", {"passed"}},
            {"states_count", {"wrong", {"states its 'busy_cpus', which is the lab's to count"}}},
            {"states_count_later", {"wrong", {"states its 'busy_cpus'"}}},
            {"many_passes", {"passed"}},
            {"inflated_passes", {"passed"}},  // no ceilings, again
            {"computes_when_read", {"wrong", {"made 'out' unreadable"}}}}));
  EXPECT_GT(run.results.at("honest").at("comparisons").at(0).at("speedup").at("lo"), 2.0);
  EXPECT_THAT(run.log("prints_garbage"), HasSubstr("\xff\xfe\x01 {\"type\""))
      << "what a side prints belongs in its log";
  EXPECT_THAT(run.log("prints_garbage"), HasSubstr("working"));
}

TEST(LiesOnCpu, that_hang_are_ended_in_a_run_that_goes_on) {
  // Apart, so that nobody waits as long as the slowest of the others may take.
  const std::string timeout_s = kSanitized ? "20" : "5";
  const LiesRun run(Quick{.targets = {"lies:hangs", "lies:honest"},
                          .backend = "cpu",
                          .timeout_s = timeout_s,
                          .memory_gib = "1"}
                        .arguments());
  EXPECT_EQ(run.outcome.code, 1) << run.outcome.err;
  expect_answers(run, {{"hangs", {"timed_out", {"did not finish within " + timeout_s + " s"}}},
                       {"honest", {"passed"}}});
}

TEST(LiesOnCpu, a_cost_above_the_ceilings_is_refused) {
  std::vector<std::string> arguments = {"--backend", "cpu", "--iterations", "12"};
  for (const char* name : {"honest", "inflated_cost", "many_passes", "inflated_passes"}) {
    arguments.insert(arguments.end(), {"--targets", std::string("lies:") + name});
  }
  const LiesRun run(arguments);
  const Answer impossible{"wrong", {"is faster than this machine can be"}};
  expect_answers(run, {{"honest", {"passed"}},
                       {"inflated_cost", impossible},
                       {"many_passes", {"passed"}},
                       {"inflated_passes", impossible}});
}

TEST(LiesOnGpu, are_all_found_in_one_run_that_goes_on) {
  const MachineInfo machine = read_machine(true);
  if (machine.gpus.empty()) {
    GTEST_SKIP() << "the GPU's lies were not tried: " << machine.no_gpu_reason;
  }
  const LiesRun run(Quick{.backend = "cuda", .timeout_s = "15", .memory_gib = "8"}.arguments());
  EXPECT_EQ(run.outcome.code, 1) << run.outcome.err;
  expect_answers(
      run, with(common_answers(),
                {{"wrong_result", {"wrong", {"optimized gave a wrong result: out[4194303] is "}}},
                 {"other_stream", {"wrong", {"does work outside of its stream", "unwritten"}}},
                 {"other_stream_mostly", {"wrong", {"does work outside of its stream", kTimed}}},
                 {"other_stream_in_part", {"wrong", {"does work outside of its stream", kTimed}}},
                 {"joins_stream", {"passed"}},
                 {"leaves_thread", {"wrong", {kOtherStream, kThreads, kTimed}}},
                 {"returns_nan", {"wrong", {"returned NaN at out[2097152]"}}},
                 {"launches_late", {"wrong", {kOtherStream, kThreads, kTimed}}},
                 {"ends_profiler", {"passed"}},
                 {"skips_when_profiled", {"passed"}},
                 {"idle_traffic", {"passed"}},
                 {"crashes", {"crashed", {"cudaErrorIllegalAddress"}}},
                 {"hangs", {"timed_out", {"did not finish within 15 s"}}}}));
}

TEST(LiesOnGpu, that_only_a_profiler_or_a_ceiling_sees_are_found) {
  const MachineInfo machine = read_machine(true);
  if (machine.gpus.empty()) {
    GTEST_SKIP() << "the GPU's lies were not tried: " << machine.no_gpu_reason;
  }
  std::vector<std::string> arguments = {"--backend", "cuda", "--profile", "minimal"};
  for (const char* name :
       {"honest", "inflated_cost", "idle_traffic", "skips_when_profiled", "ends_profiler"}) {
    arguments.insert(arguments.end(), {"--targets", std::string("lies:") + name});
  }
  const LiesRun run(arguments);
  expect_answers(run,
                 {{"honest", {"passed"}},
                  {"inflated_cost",
                   {"wrong", {"is faster than this machine can be", "moves less than its work"}}},
                  {"idle_traffic", {"wrong", {"moves less than its work needs"}}},
                  {"skips_when_profiled", {"wrong", {"(profiled)"}}},
                  {"ends_profiler", {"no_gain", {"DRAM traffic could not be read"}}}});
}

}  // namespace
}  // namespace gauntlet::tests
