#include "tests/gpu/outcome.h"

#include <nlohmann/json.hpp>
#include <regex>

namespace gauntlet::tests::gpu {
namespace {

using nlohmann::json;

/// The speedup that a target is judged by; null without one.
json headline(const json& result) {
  json speedup;
  if (result.contains("comparisons")) {
    for (const json& comparison : result.at("comparisons")) {
      const std::string kind = comparison.value("kind", "");
      if (kind == "pair" || kind == "total") speedup = comparison.value("speedup", json());
    }
  } else {
    speedup = result.value("speedup", json());
  }
  if (!speedup.is_object()) return nullptr;
  const char* middle = speedup.contains("value") ? "value" : "median";
  return {{"value", speedup.value(middle, json())},
          {"lo", speedup.value("lo", json())},
          {"hi", speedup.value("hi", json())}};
}

/// What had to move between the sides of a pair, or of each step of a lab.
json witnesses(const json& result) {
  json all = json::array();
  for (const json& comparison : result.value("comparisons", json::array())) {
    const json witness = comparison.value("witness", json());
    if (!witness.is_object() || !witness.value("collected", false)) continue;
    all.push_back({{"to", comparison.value("to", "")},
                   {"name", witness.value("name", "")},
                   {"before", witness.value("before", json())},
                   {"after", witness.value("after", json())},
                   {"moved", witness.value("moved", false)},
                   {"verdict", comparison.value("verdict", "")}});
  }
  return all;
}

/// Of the sides whose place under the ceilings is known.
json ceiling_percent(const json& result) {
  json percent = json::object();
  for (const json& side : result.value("sides", json::array())) {
    const json of_side = side.value("ceiling_percent", json());
    if (of_side.is_number() && of_side > 0) percent[side.at("name").get<std::string>()] = of_side;
  }
  return percent;
}

Verdict target_verdict(const json& result) {
  Verdict verdict{.status = result.at("status"),
                  .reason = result.value("reason", ""),
                  .seconds = result.value("seconds", 0.0),
                  .kind = result.value("kind", "")};
  if (const json all = witnesses(result); !all.empty()) verdict.witnesses = all.dump();
  if (const json all = ceiling_percent(result); !all.empty()) verdict.ceiling_percent = all.dump();
  const json speedup = headline(result);
  if (!speedup.is_null()) verdict.speedup = speedup.dump();
  return verdict;
}

/// What the tests of a GoogleTest file came to.
struct Counts {
  int run = 0;
  int skipped = 0;
  std::string failed;  // the first, with its message
  std::string why_skipped;
};

/// A failure names its file as the compiler was given it, with the folders of one machine in front.
std::string without_machine(const std::string& failure) {
  static const std::regex kInFront(R"(/\S*/(?=(src|tests|catalog)/))");
  return std::regex_replace(failure, kInFront, "");
}

Counts count(const json& whole) {
  Counts counts;
  for (const json& suite : whole.value("testsuites", json::array())) {
    for (const json& test : suite.value("testsuite", json::array())) {
      if (test.value("status", "") != "RUN") continue;
      ++counts.run;
      const std::string name = suite.value("name", "") + "." + test.value("name", "");
      if (test.contains("failures") && counts.failed.empty()) {
        counts.failed = name + ": " + without_machine(test["failures"].at(0).value("failure", ""));
      }
      if (test.value("result", "") == "SKIPPED") {
        ++counts.skipped;
        if (test.contains("skipped") && counts.why_skipped.empty()) {
          counts.why_skipped = test["skipped"].at(0).value("message", "");
        }
      }
    }
  }
  return counts;
}

/// A record keeps one line per unit.
std::string one_line(std::string text) {
  for (char& c : text) c = c == '\n' ? ' ' : c;
  constexpr std::size_t kMost = 300;
  return text.size() > kMost ? text.substr(0, kMost) + "..." : text;
}

}  // namespace

Expected<TargetVerdicts> target_verdicts(const std::string& json_text) {
  TargetVerdicts verdicts;
  try {
    const json whole = json::parse(json_text);
    verdicts.run_id = whole.at("run_id");
    for (const json& result : whole.at("results")) {
      if (result.at("backend") != "cuda") continue;
      Verdict verdict = target_verdict(result);
      verdict.reason = one_line(verdict.reason);
      verdicts.by_id[result.at("id")] = std::move(verdict);
    }
  } catch (const json::exception& error) {
    return Error{std::string("these are no results of a run: ") + error.what()};
  }
  return verdicts;
}

Expected<Verdict> test_verdict(const TestEnd& end) {
  Verdict verdict{.status = "passed", .reason = "", .speedup = "", .seconds = end.seconds};
  const auto with = [&](const char* status, const std::string& reason) {
    verdict.status = status;
    verdict.reason = one_line(reason);
    return verdict;
  };
  if (end.exit_code == 124 || end.exit_code == 137) return with("timed_out", "it did not end");
  const json whole = json::parse(end.json_text, nullptr, false);
  if (!whole.is_object()) {
    return with("crashed", "it ended with exit code " + std::to_string(end.exit_code) +
                               " before it wrote its results");
  }
  try {
    const Counts counts = count(whole);
    if (counts.run == 0) return Error{"the program has no such tests: build it from this tree"};
    if (!counts.failed.empty()) return with("failed", counts.failed);
    if (end.exit_code != 0) {
      return with("failed",
                  "its tests passed, but it ended with exit code " + std::to_string(end.exit_code));
    }
    if (counts.skipped == counts.run) return with("skipped", counts.why_skipped);
  } catch (const json::exception& error) {
    return Error{std::string("these are no results of a test program: ") + error.what()};
  }
  return verdict;
}

}  // namespace gauntlet::tests::gpu
