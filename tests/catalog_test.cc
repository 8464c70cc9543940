// Is the catalogue sound: are its declarations complete, its coverage true and its counters real?
#include "lab/targets/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <list>
#include <map>
#include <regex>
#include <set>
#include <vector>

#include "lab/profile/profiler.h"
#include "lab/profile/trace_summary.h"
#include "lab/run/capability.h"
#include "lab/targets/coverage.h"
#include "lab/targets/needs.h"
#include "lab/targets/suites.h"
#include "tests/program.h"

namespace gauntlet::tests {
namespace {

using lab::BackendKind;
using testing::HasSubstr;
using testing::IsEmpty;

/// The buffers of a pair in host memory, filled from a seed.
class HostBuffers final : public lab::Binder {
 public:
  HostBuffers(const lab::Knobs& knobs, lab::Reference& reference)
      : Binder(knobs), reference_(reference) {
    // One rank alone: what ranks have of each other is its own.
    reference.set_peers([this](const std::string& name, int) { return inputs_[name]; });
  }

 protected:
  void* add(lab::BufferSpec spec) override {
    if (spec.role != lab::Role::input) {
      if (spec.role == lab::Role::output) reference_.declare(spec.name, spec.type, spec.count);
      return nullptr;
    }
    const std::size_t bytes = static_cast<std::size_t>(spec.count) * size_of(spec.type);
    memory_.emplace_back(bytes);
    EXPECT_FALSE(spec.fill.whole) << spec.name << " is not a function of the element's index";
    const Random random(memory_.size());
    spec.fill.write(memory_.back().data(), 0, spec.count, size_of(spec.type), random);
    inputs_[spec.name] = memory_.back().data();
    return memory_.back().data();
  }

 private:
  lab::Reference& reference_;
  std::map<std::string, const void*> inputs_;
  std::list<std::vector<unsigned char>> memory_;
};

/// Sizes of about 64, so that every reference is computed in no time.
lab::Knobs small_knobs(const lab::Target& target, BackendKind backend) {
  lab::Knobs::Overrides values;
  const lab::Knobs defaults = lab::Knobs::defaults(target.pair.knobs, backend);
  for (const lab::Knob& knob : target.pair.knobs) {
    const std::int64_t wanted = std::max<std::int64_t>(knob.min, 64);
    const std::int64_t fitting = (wanted + knob.multiple_of - 1) / knob.multiple_of;
    values[knob.name] = std::min(defaults[knob.name], fitting * knob.multiple_of);
  }
  const auto knobs = defaults.with(target.pair.knobs, values);
  EXPECT_TRUE(knobs) << target.id() << ": " << knobs.error().message;
  return *knobs;
}

/// What is said of all chapters says nothing of a build of some (-DGAUNTLET_CHAPTERS).
class WholeCatalogue : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::string(GAUNTLET_ONLY_CHAPTERS).empty()) {
      GTEST_SKIP() << "this build has chapters " << GAUNTLET_ONLY_CHAPTERS << " alone";
    }
  }
};

TEST(Catalogue, has_no_problems) { EXPECT_THAT(lab::load_catalog().problems(), IsEmpty()); }

TEST_F(WholeCatalogue, is_covered_as_coverage_tsv_says) {
  const auto rows = lab::load_coverage();
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_THAT(lab::coverage_problems(*rows, lab::load_catalog()), IsEmpty());
}

TEST(Catalogue, names_features_that_the_program_has) {
  const auto rows = lab::load_coverage();
  ASSERT_TRUE(rows) << rows.error().message;
  std::map<std::string, std::string> help;  // of each command
  int features = 0;
  for (const lab::CoverageRow& row : *rows) {
    if (row.state != "feature") continue;
    const auto feature = lab::named_feature(row);
    ASSERT_TRUE(feature) << row.technique;
    ++features;
    if (!help.contains(feature->command)) {
      const Outcome outcome = run_program({GAUNTLET_BINARY, feature->command, "--help"});
      EXPECT_EQ(outcome.code, 0) << row.technique << " names gauntlet " << feature->command;
      help[feature->command] = outcome.out;
    }
    EXPECT_THAT(help[feature->command], HasSubstr(feature->option)) << row.technique;
  }
  EXPECT_GT(features, 10);
}

TEST(Catalogue, needs_only_what_the_lab_can_check) {
  const lab::Catalog catalog = lab::load_catalog();
  for (const lab::Target& target : catalog.targets()) {
    for (BackendKind backend : lab::kBackends) {
      for (const std::string& need : target.needs(backend)) {
        EXPECT_TRUE(lab::is_need(need)) << target.id() << " needs " << need;
      }
    }
  }
}

TEST_F(WholeCatalogue, is_skipped_by_name_where_one_gpu_stands_alone) {
  MachineInfo machine;
  machine.gpus.push_back({.name = "NVIDIA H200", .compute_major = 9});
  machine.cpu.simd = {"avx2"};
  const lab::Probes probes = {
      {"O_DIRECT", [] { return Expected<void>{}; }},
      {"gds", []() -> Expected<void> { return Error{"nvidia-fs is not loaded"}; }},
      {"gpu numa node", []() -> Expected<void> { return Error{"its node is not known"}; }},
      {"grace", []() -> Expected<void> { return Error{"this CPU is another"}; }},
      {"mpi", [] { return Expected<void>{}; }},
      {"nvls", []() -> Expected<void> { return Error{"there is no switch"}; }},
      {"rdma", []() -> Expected<void> { return Error{"there is no adapter"}; }}};
  const lab::Catalog catalog = lab::load_catalog();
  const auto missing = [&](const char* id, BackendKind backend = BackendKind::cuda) {
    const lab::Target* target = catalog.find(id);
    return target == nullptr ? "not in the catalogue"
                             : lab::missing_capability(*target, backend, machine, {}, probes);
  };
  EXPECT_EQ(missing("ch02:peer_copy"), "needs 2 GPUs, there is 1");
  EXPECT_EQ(missing("ch02:coherent_c2c"), "needs grace: this CPU is another");
  EXPECT_EQ(missing("ch04:copy_engine_collectives"), "needs 2 GPUs, there is 1");
  EXPECT_EQ(missing("ch04:nvls_collectives"), "needs nvls: there is no switch");
  EXPECT_EQ(missing("ch04:rdma_direct", BackendKind::ranks), "needs rdma: there is no adapter");
  EXPECT_EQ(missing("ch05:direct_storage"), "needs gds: nvidia-fs is not loaded");
  EXPECT_EQ(missing("ch02:pinned_transfer"), "");
  EXPECT_THAT(missing("ch03:gpu_numa_affinity"), HasSubstr("needs 2 NUMA nodes, there is 1: "));
  machine.cpu.numa_nodes = 2;
  EXPECT_EQ(missing("ch03:gpu_numa_affinity"), "needs gpu numa node: its node is not known");
}

TEST_F(WholeCatalogue, has_the_targets_that_its_suites_name) {
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

TEST_F(WholeCatalogue, has_the_targets_and_suites_that_the_acts_walk_through) {
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
    for (BackendKind backend : lab::kBackends) {
      if (!target.has(backend)) continue;
      const lab::Knobs defaults = lab::Knobs::defaults(target.pair.knobs, backend);
      const auto accepted = defaults.with(target.pair.knobs, defaults.all());
      EXPECT_TRUE(accepted) << target.id() << " " << lab::name_of(backend) << ": "
                            << accepted.error().message;
    }
  }
}

TEST(Catalogue, expects_every_element_of_every_output) {
  const lab::Catalog catalog = lab::load_catalog();
  for (const lab::Target& target : catalog.targets()) {
    for (BackendKind backend : lab::kBackends) {
      if (!target.has(backend)) continue;
      SCOPED_TRACE(target.id() + " on " + lab::name_of(backend));
      const lab::Knobs knobs = small_knobs(target, backend);
      lab::Reference reference(3);
      HostBuffers buffers(knobs, reference);
      target.pair.reference(target.pair.bind(buffers), reference);
      EXPECT_FALSE(reference.outputs().empty());
      for (const auto& [name, output] : reference.outputs()) {
        if (output.rows.empty()) continue;
        // Rows alone would leave the others to chance; the sums of the rows that are there in full
        // must say the same.
        ASSERT_TRUE(output.has_row_sums) << name;
        ASSERT_FALSE(output.norms.empty()) << name;
        const auto length = static_cast<std::size_t>(output.row_length);
        for (std::size_t i = 0; i < output.rows.size(); ++i) {
          double sum = 0, squares = 0;
          for (std::size_t k = 0; k < length; ++k) {
            const double weight = output.weights[k], norm = output.norms[i * length + k];
            sum += weight * output.values[i * length + k];
            squares += weight * weight * norm * norm;
          }
          const auto row = static_cast<std::size_t>(output.rows[i]);
          EXPECT_NEAR(output.sums[row], sum, 1e-12 * std::sqrt(squares)) << name << " row " << row;
          EXPECT_NEAR(output.squares[row], squares, 1e-12 * squares) << name << " row " << row;
        }
      }
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

TEST(Catalogue, reads_from_traces_what_they_say) {
  const auto says =
      lab::trace_summary({{.name = "k", .category = "kernel", .start_ns = 0, .duration_ns = 1}});
  const lab::Catalog catalog = lab::load_catalog();
  for (const lab::Target& target : catalog.targets()) {
    for (BackendKind backend : lab::kBackends) {
      if (!target.has(backend)) continue;
      for (const lab::SidePair& sides : target.comparisons(backend)) {
        const lab::Witness witness = target.witness(backend, sides);
        if (witness.source != lab::Witness::Source::trace) continue;
        EXPECT_TRUE(says.contains(witness.name)) << target.id() << " reads " << witness.name;
        EXPECT_EQ(backend, BackendKind::cuda) << target.id() << " has nothing to trace";
      }
    }
  }
}

}  // namespace
}  // namespace gauntlet::tests
