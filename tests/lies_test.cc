// Does the lab see through pairs that cheat, say how they did, and go on to the next?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "core/machine.h"
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

struct Answer {
  std::string status;
  std::string reason;  // part of it
};
using Answers = std::map<std::string, Answer>;

/// A finished run of some lies.
struct LiesRun {
  TemporaryFolder artifacts;
  Outcome outcome;
  std::map<std::string, json> results;  // by name of the lie

  explicit LiesRun(const std::vector<std::string>& arguments) {
    std::vector<std::string> argv = {GAUNTLET_LIES_BINARY, "run",  "--no-ceilings",
                                     "--format",           "json", "--artifacts-dir",
                                     artifacts.path()};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    outcome = run_program(argv);
    const json answer = json::parse(outcome.out, nullptr, false);
    if (!answer.is_object()) {
      ADD_FAILURE() << "no JSON: " << outcome.out << outcome.err;
      return;
    }
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

void expect_answers(const LiesRun& run, const Answers& answers) {
  for (const auto& [name, answer] : answers) {
    SCOPED_TRACE(name);
    const auto result = run.results.find(name);
    if (result == run.results.end()) {
      ADD_FAILURE() << "the run has no result of it";
      continue;
    }
    EXPECT_EQ(result->second.at("status"), answer.status) << result->second.at("reason");
    EXPECT_THAT(result->second.at("reason").get<std::string>(), HasSubstr(answer.reason));
    if (answer.status == "wrong" || answer.status == "crashed" || answer.status == "timed_out") {
      EXPECT_TRUE(result->second.at("speedup").is_null()) << "a lie must not get a speedup";
    }
  }
}

std::vector<std::string> quick(const std::string& backend, const std::string& timeout_s,
                               const std::string& memory_gib) {
  return {"--targets",    "lies", "--backend", backend,   "--repeat",       "3",
          "--iterations", "12",   "--timeout", timeout_s, "--memory-limit", memory_gib};
}

TEST(LiesOnCpu, are_all_found_in_one_run_that_goes_on) {
  // A sanitized side is many times slower: what a side that hangs is given must not catch one that works.
  const std::string timeout_s = kSanitized ? "20" : "5";
  const LiesRun run(quick("cpu", timeout_s, "1"));
  EXPECT_EQ(run.outcome.code, 1) << run.outcome.err;
  // Sanitizers catch the signal and end the process with a code of their own.
  const std::string crash =
      kSanitized ? "before reporting a result" : "segmentation fault (SIGSEGV)";
  const std::string exit = kSanitized
                               ? "before reporting a result"
                               : "ended its process with exit code 0 before reporting a result";
  expect_answers(
      run,
      {{"honest", {"passed", ""}},
       {"wrong_result", {"wrong", "optimized gave a wrong result: out[32767] is "}},
       {"right_only_first", {"wrong", "is right for the first inputs, not for fresh ones"}},
       {"caches_answer", {"wrong", "an answer is kept between calls"}},
       {"mutates_input", {"wrong", "optimized changed its input 'in'"}},
       {"writes_past_output", {"wrong", "wrote outside of its buffers: past the end of 'out'"}},
       {"leaves_unwritten", {"wrong", "left part of its output unwritten: out[24576]"}},
       {"returns_nan", {"wrong", "returned NaN at out[16384]"}},
       {"witness_still", {"no_gain", "the witness did not move: passes went from 32 to 32"}},
       {"crashes", {"crashed", crash}},
       {"exits", {"crashed", exit}},
       {"hangs", {"timed_out", "did not finish within " + timeout_s + " s"}},
       {"allocates", {"crashed", "used more than 1 GiB of memory and was stopped"}},
       {"prints_garbage", {"passed", ""}},
       {"prints_forever", {"crashed", "printed more than 64 MiB and was stopped"}},
       {"other_stream", {"skipped", "has no cpu sides"}}});
  EXPECT_GT(run.results.at("honest").at("speedup").at("lo"), 2.0);
  EXPECT_THAT(run.log("prints_garbage"), HasSubstr("\xff\xfe\x01 {\"type\""))
      << "what a side prints belongs in its log";
  EXPECT_THAT(run.log("prints_garbage"), HasSubstr("working"));
}

TEST(LiesOnCpu, equal_sides_have_no_gain) {
  const LiesRun run(
      {"--targets", "lies:equal_sides", "--backend", "cpu", "--repeat", "3", "--iterations", "24"});
  EXPECT_EQ(run.outcome.code, 0) << run.outcome.err;
  expect_answers(run, {{"equal_sides", {"no_gain", "does not clear 1.02"}}});
}

TEST(LiesOnGpu, are_all_found_in_one_run_that_goes_on) {
  const MachineInfo machine = read_machine(true);
  if (machine.gpus.empty()) {
    GTEST_SKIP() << "the GPU's lies were not tried: " << machine.no_gpu_reason;
  }
  const LiesRun run(quick("cuda", "20", "8"));
  EXPECT_EQ(run.outcome.code, 1) << run.outcome.err;
  expect_answers(
      run,
      {{"honest", {"passed", ""}},
       {"wrong_result", {"wrong", "optimized gave a wrong result: out[4194303] is "}},
       {"writes_past_output", {"wrong", "wrote outside of its buffers: past the end of 'out'"}},
       {"other_stream", {"wrong", "optimized does work outside of its stream"}},
       {"crashes", {"crashed", "cudaErrorIllegalAddress"}},
       {"hangs", {"timed_out", "did not finish within 20 s"}}});
}

}  // namespace
}  // namespace gauntlet::tests
