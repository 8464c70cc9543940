// Does results.json keep its form? tests/golden has the files that these made-up studies gave
// before their results were types; GAUNTLET_WRITE_GOLDEN=1 writes them anew.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/os/fake_tree.h"
#include "core/os/files.h"
#include "study/results/assemble.h"
#include "study/results/sample_study.h"

namespace gauntlet::study {
namespace {

using nlohmann::json;

/// A sample with what a real study has beside it: ceilings, conditions, replayed experts, gaps.
struct GoldenStudy {
  FakeTree tree;
  SampleStudy sample;
  Journal full = Journal::begin(tree.root() / "full.jsonl", {}, 0).value();
  Journal journal = Journal::begin(tree.root() / "journal.jsonl", {}, 1794709000).value();

  explicit GoldenStudy(engine::Backend backend) : sample(backend) {
    sample.fill(full);
    sample.facts.ceilings = lab::Ceilings{
        .machine_key = "sample-2c",
        .backend =
            backend == engine::Backend::cuda ? lab::BackendKind::cuda : lab::BackendKind::cpu,
        .measured_at = 1794708000,
        .caches = {.l1_bytes = 65536, .l2_bytes = 1 << 21, .last_bytes = 1 << 25},
        .values = {{"dram_read", {20.5, "GB/s", "sum", 0.01, {{"sum", 20.5}, {"copy", 19}}}}}};
  }

  void keep(const std::string& key, const json& cell) {
    check(static_cast<bool>(full.append(key, cell)), "the journal cannot be written");
  }
  void change(const std::string& key, const json& patch) {
    json cell = full.at(key);
    cell.update(patch);
    keep(key, cell);
  }
  void leave_gap(const std::string& key, const std::string& why) { keep(key, {{"gap", why}}); }
  /// Every planned cell but those whose key begins so was reached.
  StudyResults assembled(const std::vector<std::string>& not_reached) {
    for (const Cell& cell :
         plan_cells(sample.facts.ladder, sample.facts.sizes, lab::ProfileLevel::roofline)) {
      const auto is_missing = [&](const std::string& begin) { return cell.key.starts_with(begin); };
      if (std::ranges::any_of(not_reached, is_missing) || !full.has(cell.key)) continue;
      check(static_cast<bool>(journal.append(cell.key, full.at(cell.key))), "cannot be written");
    }
    return assemble(sample.facts, journal).value();
  }
};

json replayed(const std::string& where, const std::string& wrong) {
  return {{"replayed",
           {{"compared", 5},
            {"of", 6},
            {"experts", 48},
            {"replaced", 3},
            {"wrong", wrong},
            {"where", where}}}};
}

const json kOtherTokens = {{"tokens", {{1, 99, 3}, {4, 5, 6}}}};
const json kHot = {{"conditions",
                    {{"dropped_blocks", 3},
                     {"sm_clock_mhz", {1200.0, 1980.0}},
                     {"throttle_reasons", {"thermal"}}}}};
const json kCool = {
    {"conditions",
     {{"dropped_blocks", 0}, {"sm_clock_mhz", nullptr}, {"throttle_reasons", json::array()}}}};

/// All that a study can measure.
StudyResults whole_study() {
  GoldenStudy study(engine::Backend::cpu);
  study.change(keys::layer(1), kCool);
  study.change(keys::layer(6), kCool);
  study.change(keys::verify(2), replayed("prompt 1, token 2", ""));
  study.change(keys::verify(2), kOtherTokens);
  study.change(keys::verify(3), kOtherTokens);
  study.change(keys::verify(4), replayed("", ""));
  study.change(keys::verify(4), kOtherTokens);
  json served = study.full.at(keys::verify(6));
  for (const char* key : {"perplexity", "scored_tokens"}) served.erase(key);
  study.keep(keys::verify(6), served);
  study.change(keys::kRouter, {{"together", {{{"layer", 2}, {"counts", {0, 1, 1, 0}}}}}});
  study.keep(keys::kCounters, {{"steps", 8}, {"counters", {{"cycles", 1e6}, {"ipc", 1.5}}}});
  return study.assembled({});
}

/// What a GPU refuses, what is wrong, and what time did not allow.
StudyResults broken_study() {
  GoldenStudy study(engine::Backend::cuda);
  study.sample.facts.machine.gpus = {{.name = "Sample GPU", .num_sms = 132, .uuid = "GPU-1"}};
  study.sample.facts.depth = Depth::full;
  study.sample.facts.weights = "random";
  study.change(keys::layer(1), kHot);
  study.change(keys::verify(1), kOtherTokens);
  study.change(keys::verify(2), replayed("prompt 1, token 2", "prompt 2, token 1: not the 4"));
  study.change(keys::verify(3), replayed("", "prompt 2, token 1: not the 4"));
  study.leave_gap(keys::verify(4), "out of memory");
  study.leave_gap(keys::layer(3), "too hot to judge by");
  study.leave_gap(keys::energy(0), "not told by this machine");
  study.leave_gap(keys::kRouter, "out of memory");
  study.leave_gap(keys::batch(1), kLeftOut);
  study.leave_gap(keys::load(study.sample.facts.sizes.loads.front()), kLeftOut);
  study.leave_gap(keys::kCounters, "libcupti.so.13 not found");
  json layer = study.full.at(keys::layer(2));
  for (json& bout : layer["bouts"]) {
    bout["limits"] = {nullptr, nullptr};
    bout["ns"] = {bout["ns"][0]};  // too few rounds for an interval
  }
  layer["a"]["read_from"] = layer["b"]["read_from"] = nullptr;
  study.keep(keys::layer(2), layer);
  json time = study.full.at(keys::kTime);
  for (json& part : time[0]["parts"]) part["limit_us"] = part["bound_by"] = nullptr;
  study.keep(keys::kTime, time);
  json batch = study.full.at(keys::batch(8));
  batch["limit_ms"] = batch["bound_by"] = nullptr;
  study.keep(keys::batch(8), batch);
  return study.assembled(
      {"total", "saturation", "energy/2", "without/g", "prompts/", "precision/"});
}

std::string golden_path(const std::string& name) {
  return GAUNTLET_SOURCE_DIR "/tests/golden/" + name;
}

/// Floats may differ in their last digits: libraries round pow and log on their own.
bool is_same_number(const json& a, const json& b) {
  if (!a.is_number_float() || !b.is_number_float()) return false;
  return std::abs(a.get<double>() - b.get<double>()) <= 1e-12 * std::abs(a.get<double>());
}

void expect_golden(const json& results, const std::string& name) {
  if (std::getenv("GAUNTLET_WRITE_GOLDEN") != nullptr) {
    ASSERT_TRUE(atomic_write_file(golden_path(name), results.dump() + "\n"));
  }
  const auto text = read_file(golden_path(name));
  ASSERT_TRUE(text) << text.error().message;
  const json golden = json::parse(*text);
  for (const json& change : json::diff(golden, results)) {
    const json::json_pointer at(change.at("path").get<std::string>());
    const bool is_rounding =
        change.at("op") == "replace" && is_same_number(golden.at(at), results.at(at));
    EXPECT_TRUE(is_rounding) << name << ": " << change;
  }
}

TEST(ResultsJson, has_the_form_of_the_golden_file_where_all_was_measured) {
  expect_golden(to_json(whole_study()), "study-whole.json");
}

TEST(ResultsJson, has_the_form_of_the_golden_file_where_much_is_missing) {
  expect_golden(to_json(broken_study()), "study-broken.json");
}

TEST(ResultsJson, is_written_as_it_was_read_to_the_last_byte) {
  for (const char* name : {"study-whole.json", "study-broken.json"}) {
    const std::string text = read_file(golden_path(name)).value();
    const auto results = results_from_json(json::parse(text));
    ASSERT_TRUE(results) << name << ": " << results.error().message;
    EXPECT_EQ(to_json(*results).dump() + "\n", text);
  }
}

}  // namespace
}  // namespace gauntlet::study
