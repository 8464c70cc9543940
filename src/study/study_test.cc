// Does a study keep to its time without losing a layer, and say what it left out?
#include "study/study.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/fake_tree.h"
#include "study/small_bench.h"

namespace gauntlet::study {
namespace {

using nlohmann::json;

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
  std::size_t least = 0;
  for (const Cell& cell :
       plan_cells(config.facts.ladder, config.facts.sizes, lab::ProfileLevel::minimal)) {
    least += cell.time.rank == Rank::layers ? 0 : 1;
  }
  const auto end = run_study(config, small.bench);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_TRUE(end->complete);
  const json results = load_results(config.folder).value();
  EXPECT_EQ(results.at("cells").at("left_out"), least);
  for (const json& layer : results.at("layers")) {
    EXPECT_TRUE(layer.at("verification").at("verified").get<bool>()) << layer.at("verification");
    EXPECT_EQ(layer.contains("gain"), layer.at("index") > 0) << layer;
    EXPECT_TRUE(layer.at("energy").contains("gap")) << "nobody told";
  }
  for (const json& entry : results.at("leave_one_out")) EXPECT_EQ(entry.at("gap"), kLeftOut);
}

}  // namespace
}  // namespace gauntlet::study
