// Does a study keep to its time without losing a layer, and say what it left out?
#include "study/study.h"

#include <gtest/gtest.h>

#include "core/os/fake_tree.h"
#include "study/bench/small_bench.h"

namespace gauntlet::study {
namespace {

TEST(Studies, leave_out_what_does_not_fit_but_never_a_layer) {
  const FakeTree tree;
  SmallBench small;
  StudyConfig config{.folder = tree.root() / "study",
                     .facts = {.id = "study",
                               .model = small.weights.config,
                               .ladder = small.bench.ladder(),
                               .sizes = small.sizes()},
                     .spent_s = 1000};
  config.facts.sizes.budget_seconds = 0.2;
  config.facts.sizes.end_seconds = 10;
  std::int64_t least = 0;
  for (const Cell& cell :
       plan_cells(config.facts.ladder, config.facts.sizes, lab::ProfileLevel::minimal)) {
    least += cell.time.rank == Rank::layers ? 0 : 1;
  }
  const auto end = run_study(config, small.bench);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_TRUE(end->complete);
  const auto results = load_results(config.folder);
  ASSERT_TRUE(results) << results.error().message;
  EXPECT_EQ(results->cells.left_out, least);
  for (const LayerResult& layer : results->layers) {
    ASSERT_TRUE(layer.verification) << layer.verification.gap;
    EXPECT_TRUE(layer.verification->verified) << layer.verification->sentence;
    EXPECT_EQ(layer.gain.has_value(), layer.index > 0) << layer.gap;
    EXPECT_NE(layer.energy.gap, "") << "nobody told";
  }
  for (const OptionWorth& option : results->leave_one_out) {
    EXPECT_EQ(option.worth.gap, kLeftOut);
  }
}

}  // namespace
}  // namespace gauntlet::study
