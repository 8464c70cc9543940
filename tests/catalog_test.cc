// Is the catalogue sound: are its declarations complete, its coverage true and its counters real?
#include "lab/author/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>

#include "lab/author/coverage.h"
#include "lab/author/suites.h"
#include "lab/profile/profiler.h"
#include "lab/run/capability.h"
#include "tests/program.h"

namespace gauntlet::tests {
namespace {

using lab::BackendKind;
using testing::IsEmpty;

TEST(Catalogue, has_no_problems) { EXPECT_THAT(lab::load_catalog().problems(), IsEmpty()); }

TEST(Catalogue, is_covered_as_coverage_tsv_says) {
  const auto rows = lab::load_coverage();
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_THAT(lab::coverage_problems(*rows, lab::load_catalog()), IsEmpty());
}

TEST(Catalogue, needs_only_what_the_lab_can_check) {
  const lab::Catalog catalog = lab::load_catalog();
  for (const lab::Target& target : catalog.targets()) {
    for (const BackendKind backend : lab::kBackends) {
      for (const std::string& need : target.needs(backend)) {
        EXPECT_TRUE(lab::known_capability(need)) << target.id() << " needs " << need;
      }
    }
  }
}

TEST(Catalogue, has_the_targets_that_its_suites_name) {
  const lab::Catalog catalog = lab::load_catalog();
  const auto suites = lab::load_suites();
  ASSERT_TRUE(suites) << suites.error().message;
  for (const lab::Suite& suite : *suites) {
    for (const std::string& pattern : suite.patterns) {
      if (pattern.find_first_of("*?[") != std::string::npos) continue;
      EXPECT_NE(catalog.find(pattern), nullptr) << suite.name << " names " << pattern;
    }
  }
}

TEST(Catalogue, has_the_targets_and_suites_that_the_acts_walk_through) {
  const lab::Catalog catalog = lab::load_catalog();
  const std::string text = read_text(std::filesystem::path(GAUNTLET_SOURCE_DIR) / "docs/acts.md");
  const std::regex id("ch[0-9]{2}:[a-z0-9_]+");
  int ids = 0;
  for (std::sregex_iterator found(text.begin(), text.end(), id), end; found != end;
       ++found, ++ids) {
    EXPECT_NE(catalog.find(found->str()), nullptr) << found->str();
  }
  EXPECT_GT(ids, 5) << "the scan found too little to mean anything";
  const auto suites = lab::load_suites();
  ASSERT_TRUE(suites) << suites.error().message;
  for (const lab::Suite& suite : *suites) {
    if (!suite.name.starts_with("act")) continue;
    EXPECT_NE(text.find("--suite " + suite.name), std::string::npos) << suite.name;
  }
}

TEST(Catalogue, has_knobs_whose_defaults_are_valid) {
  const lab::Catalog catalog = lab::load_catalog();
  for (const lab::Target& target : catalog.targets()) {
    for (BackendKind backend : {BackendKind::cpu, BackendKind::cuda}) {
      if (!target.has(backend)) continue;
      const lab::Knobs defaults = lab::Knobs::defaults(target.pair.knobs, backend);
      const auto accepted = defaults.with(target.pair.knobs, defaults.all());
      EXPECT_TRUE(accepted) << target.id() << " " << lab::name_of(backend) << ": "
                            << accepted.error().message;
    }
  }
}

TEST(Catalogue, names_gpu_counters_that_hopper_has) {
  std::set<std::string> names;
  const lab::Catalog catalog = lab::load_catalog();
  for (const lab::Target& target : catalog.targets()) {
    if (!target.has(BackendKind::cuda)) continue;
    const lab::Witness& witness = target.facts(BackendKind::cuda).witness;
    if (witness.source == lab::Witness::Source::counter) names.insert(witness.name);
  }
  for (lab::ProfileLevel level :
       {lab::ProfileLevel::minimal, lab::ProfileLevel::roofline, lab::ProfileLevel::deep_dive}) {
    for (const std::string& name : lab::profile_metrics(level, BackendKind::cuda)) {
      names.insert(name);
    }
  }
  ASSERT_FALSE(names.empty());
  const auto unknown = lab::unknown_gpu_metrics("GH100", {names.begin(), names.end()});
  if (!unknown) {
    GTEST_SKIP() << "the counters' names were not checked: " << unknown.error().message;
  }
  EXPECT_THAT(*unknown, IsEmpty());
  const auto nonsense = lab::unknown_gpu_metrics("GH100", {"no__such_counter.sum"});
  ASSERT_TRUE(nonsense);
  EXPECT_THAT(*nonsense, testing::ElementsAre("no__such_counter.sum"));
}

}  // namespace
}  // namespace gauntlet::tests
