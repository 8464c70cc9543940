// Is a results.json that somebody damaged either understood or refused in one sentence?
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/os/files.h"
#include "core/random.h"
#include "study/results/compare.h"
#include "study/results/findings.h"
#include "study/results/study_results.h"
#include "study/results/text/markdown.h"

namespace gauntlet::study {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

json golden(const char* name) {
  return json::parse(read_file(std::string(GAUNTLET_SOURCE_DIR "/tests/golden/") + name).value());
}

std::string fault_of(const json& document) {
  const auto results = results_from_json(document);
  return results ? "" : results.error().message;
}

TEST(DamagedResults, are_refused_with_the_path_of_the_field) {
  const json whole = golden("study-whole.json");
  const auto fault_with = [&](const char* path, const json& value) {
    json changed = whole;
    changed[json::json_pointer(path)] = value;
    return fault_of(changed);
  };
  EXPECT_EQ(fault_of(whole), "");
  EXPECT_EQ(fault_with("/layers/2/gain/ratio/value", "fast"),
            "layers[2].gain.ratio.value is no number");
  EXPECT_EQ(fault_with("/layers/2/gain/label", "win"),
            "layers[2].gain.label is none of gain, no_gain, loss");
  EXPECT_EQ(fault_with("/layers/1/figures/0", 7), "layers[1].figures[0] is no object");
  EXPECT_EQ(fault_with("/layers/1/options", "threads"), "layers[1].options is no list");
  EXPECT_EQ(fault_with("/layers/1/index", 1.5), "layers[1].index is no whole number");
  EXPECT_EQ(fault_with("/layers/1/index", 5'000'000'000), "layers[1].index is out of range");
  EXPECT_EQ(fault_with("/layers/1/verification/verified", 1),
            "layers[1].verification.verified is neither true nor false");
  EXPECT_EQ(fault_with("/layers/1/energy/points", json::array()),
            "layers[1].energy.points is empty");
  EXPECT_EQ(fault_with("/router/most_uneven_layer", 99),
            "router.most_uneven_layer is no layer of imbalance");
  EXPECT_EQ(fault_with("/counters/counters/ipc", "x"), "counters.counters.ipc is no number");
  EXPECT_EQ(fault_with("/machine/cpu/cores", "two"),
            "machine has a field that is not as docs/results.md says");
  EXPECT_EQ(fault_with("/build", 5), "build is no object");
  EXPECT_EQ(fault_with("/ceilings", json::object()), "ceilings is no list");
  json less = whole;
  less["sweeps"]["batch"][3].erase("tok_s");
  EXPECT_EQ(fault_of(less), "sweeps.batch[3].tok_s is missing");
}

/// The paths of all values of a document, the inner ones included, by their keys: all items of a
/// list are alike.
using Paths = std::map<std::string, std::vector<std::string>>;

void list_paths(const json& at, const json::json_pointer& path, const std::string& keys,
                Paths& out) {
  if (!path.empty()) out[keys].push_back(path.to_string());
  if (at.is_object()) {
    for (const auto& [key, value] : at.items())
      list_paths(value, path / key, keys + "." + key, out);
  } else if (at.is_array()) {
    for (std::size_t i = 0; i < at.size(); ++i) list_paths(at[i], path / i, keys + "[]", out);
  }
}

class Vandal {
 public:
  explicit Vandal(std::uint64_t seed) : random_(seed) {}

  void damage(json& document) {
    Paths paths;
    list_paths(document, json::json_pointer(), "", paths);
    const auto alike = std::next(paths.begin(), static_cast<std::ptrdiff_t>(below(paths.size())));
    const json::json_pointer path(alike->second[below(alike->second.size())]);
    json& around = document[path.parent_pointer()];
    if (around.is_object() && below(2) == 0) {
      around.erase(path.back());
    } else {
      document[path] = anything();
    }
  }

 private:
  std::size_t below(std::size_t end) { return random_.next_below(end); }
  json anything() {
    const std::array<json, 16> values = {nullptr,
                                         true,
                                         false,
                                         0,
                                         -1,
                                         1.5,
                                         1e308,
                                         -1e-300,
                                         "",
                                         "text",
                                         json::array(),
                                         json::object(),
                                         {1, "2"},
                                         {{"gap", "x"}},
                                         {{"gap", 3}},
                                         std::numeric_limits<std::int64_t>::min()};
    return values[below(values.size())];
  }

  Random random_;
};

/// One line that ends a report of what is wrong, without the words of a library.
void expect_sentence(const std::string& fault, const std::string& document) {
  EXPECT_FALSE(fault.empty());
  EXPECT_LT(fault.size(), 300u);
  EXPECT_THAT(fault, Not(HasSubstr("\n"))) << document;
  EXPECT_THAT(fault, Not(HasSubstr("json.exception"))) << document;
}

TEST(DamagedResults, are_understood_or_refused_in_one_sentence) {
  constexpr std::uint64_t kRounds = 300;
  int understood = 0, refused = 0;
  for (const char* name : {"study-whole.json", "study-broken.json"}) {
    const json sound = golden(name);
    const StudyResults before = results_from_json(sound).value();
    for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
      Vandal vandal(seed);
      json damaged = sound;
      for (std::uint64_t i = 0; i < 1 + seed % 3; ++i) vandal.damage(damaged);
      SCOPED_TRACE(fmt::format("{}, seed {}", name, seed));
      const auto results = results_from_json(damaged);
      if (!results) {
        ++refused;
        expect_sentence(results.error().message, damaged.dump());
        continue;
      }
      ++understood;
      const json written = to_json(*results);
      const auto again = results_from_json(written);
      ASSERT_TRUE(again) << again.error().message;
      EXPECT_EQ(to_json(*again).dump(), written.dump());
      EXPECT_NO_THROW(findings_of(*results));
      EXPECT_NO_THROW(render_markdown(*results));
      EXPECT_NO_THROW(compare_studies(before, *results));
      EXPECT_NO_THROW(different_subjects(before, *results));
    }
  }
  EXPECT_GT(understood, 20) << "what a file may lack is among the damage";
  EXPECT_GT(refused, 200);
}

}  // namespace
}  // namespace gauntlet::study
