// Does the journal give back what a cell measured?
#include "study/results/cell_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/os/fake_tree.h"
#include "study/bench/duel.h"
#include "study/results/sample_study.h"
#include "study/serving.h"

namespace gauntlet::study {
namespace {

using nlohmann::json;

struct Cells : testing::Test {
  FakeTree tree;
  Journal journal = Journal::begin(tree.root() / "journal.jsonl", {}, 0).value();

  template <class T>
  T kept(const T& value) {
    EXPECT_TRUE(journal.append("cell", cell_to_json(value)));
    const auto read = read_cell<T>(journal, "cell");
    EXPECT_TRUE(read) << read.error().message;
    EXPECT_EQ(cell_to_json(**read), cell_to_json(value));
    return **read;
  }
};

TEST_F(Cells, keep_a_duel_with_its_rounds_limits_and_conditions) {
  const Duel duel{
      .a = {.plan = {"threads: 1"}, .weight_bytes = 100, .read_from = ""},
      .b = {.plan = {"threads: 2"}, .weight_bytes = 50, .read_from = "l2_read"},
      .bouts =
          {{.workload = {.name = "prompt",
                         .test = {.kind = engine::SpeedKind::prefill, .batch = 1, .tokens = 9}},
            .blocks = {{.ns = {{1, 2}, {3, 4}}}, {.ns = {{5, 6}, {7, 8}}}},
            .bytes = {10, 5},
            .limits = {engine::SpeedLimit{}, {.seconds = 0.5, .bound_by = "memory"}},
            .experts_per_layer = 2.5}},
      .conditions = lab::Conditions{.dropped_blocks = 2,
                                    .sm_clock_mhz_min = 900,
                                    .sm_clock_mhz_max = 1500,
                                    .throttle_reasons = {"thermal"}}};
  const Duel again = kept(duel);
  EXPECT_EQ(again.bouts[0].blocks[1].ns, duel.bouts[0].blocks[1].ns);
  EXPECT_EQ(again.bouts[0].workload.test.kind, engine::SpeedKind::prefill);
  EXPECT_EQ(again.bouts[0].limits[0].bound_by, "");
  EXPECT_EQ(again.bouts[0].limits[1].seconds, 0.5);
  EXPECT_EQ(again.conditions->sm_clock_mhz_max, 1500);
  EXPECT_EQ(cell_to_json(duel).at("bouts")[0].at("ns")[0], (json{1.0, 3.0, 4.0, 2.0}))
      << "as the turns were taken";
}

TEST_F(Cells, keep_what_was_served) {
  ServeOutcome outcome{.seconds = 2, .output_tokens = 80};
  outcome.first_token_ms = {10, 20, 30};
  outcome.answer_ms = {100};
  const ServeFigures again = kept(figures_of(outcome));
  EXPECT_EQ(again.requests, 3);
  EXPECT_EQ(again.tok_s, 40);
  EXPECT_EQ(again.ttft_ms.p50, 20);
  EXPECT_EQ(again.answer_ms.p95, 100);
  EXPECT_FALSE(again.speculation);
  outcome.speculation = {.steps = 9, .drafted = 20, .accepted = 8, .by_position = {5, 3}};
  const ServeFigures guessed = kept(figures_of(outcome));
  ASSERT_TRUE(guessed.speculation);
  EXPECT_EQ(guessed.speculation->by_position, (std::vector<std::int64_t>{5, 3}));
}

TEST_F(Cells, keep_a_part_of_a_step_whose_limit_is_unknown) {
  const TimeSplits again =
      kept(TimeSplits{{.parts = {{.name = "attention", .us = 10},
                                 {.name = "head", .us = 5, .floor_us = 2, .bound_by = "memory"}}}});
  EXPECT_EQ(again[0].parts[0].bound_by, "");
  EXPECT_EQ(again[0].parts[1].floor_us, 2);
}

TEST_F(Cells, tell_a_gap_from_a_cell_that_was_not_reached) {
  ASSERT_TRUE(journal.append("gap", gap_to_json("no memory")));
  const auto gap = read_cell<Duel>(journal, "gap"), missing = read_cell<Duel>(journal, "missing");
  ASSERT_TRUE(gap && missing);
  EXPECT_FALSE(*gap);
  EXPECT_EQ(gap->gap, "no memory");
  EXPECT_FALSE(*missing);
  EXPECT_EQ(missing->gap, "");
}

/// The sample's cells have the journal's form; `beside` alone may be left out where it is false.
template <class T>
void expect_form(const Journal& journal, const std::string& key) {
  const auto cell = read_cell<T>(journal, key);
  ASSERT_TRUE(cell) << cell.error().message;
  ASSERT_TRUE(*cell) << key;
  json written = cell_to_json(**cell);
  if constexpr (std::is_same_v<T, ServeDuel>) {
    for (json& bout : written["bouts"]) {
      if (!bout.at("beside").template get<bool>()) bout.erase("beside");
    }
  }
  EXPECT_EQ(written, journal.at(key)) << key;
}

TEST_F(Cells, have_the_form_that_journals_have) {
  SampleStudy sample;
  sample.fill(journal);
  expect_form<Duel>(journal, keys::layer(1));
  expect_form<ServeDuel>(journal, keys::layer(6));
  expect_form<ServeFigures>(journal, keys::kSaturation);
  expect_form<LoadTest>(journal, keys::load(sample.facts.sizes.loads.front()));
  expect_form<RepeatedTest>(journal, keys::batch(8));
  expect_form<PrecisionTest>(journal, keys::precision({}));
  expect_form<CheckedLayer>(journal, keys::verify(1));
  expect_form<EnergyUse>(journal, keys::energy(1));
  expect_form<RouterLoads>(journal, keys::kRouter);
  expect_form<TimeSplits>(journal, keys::kTime);
}

}  // namespace
}  // namespace gauntlet::study
