// Is each row of the table what it says: one switch, in its layer, over an honest off position?
#include "study/ladder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "study/cells.h"

namespace gauntlet::study {
namespace {

using engine::Backend;
using testing::IsEmpty;
using testing::Not;

/// All that a stack can differ in, as text.
std::string written(const Stack& stack) {
  std::string text;
  for (const engine::OptionEntry& entry : engine::option_table()) {
    const std::string value = entry.flag.value(stack.engine);
    text += (value.empty() ? "unset" : value) + " ";
  }
  const engine::SchedulerConfig& s = stack.serving.scheduler;
  for (const int value :
       {static_cast<int>(s.batching), static_cast<int>(s.chunking),
        static_cast<int>(s.prefix_caching), static_cast<int>(stack.serving.guesses)}) {
    text += std::to_string(value) + " ";
  }
  return text;
}

std::size_t num_differences(const Stack& a, const Stack& b) {
  std::size_t count = 0;
  const std::string x = written(a), y = written(b);
  std::size_t i = 0, j = 0;
  while (i < x.size() && j < y.size()) {
    const std::size_t i_end = x.find(' ', i), j_end = y.find(' ', j);
    count += x.substr(i, i_end - i) != y.substr(j, j_end - j);
    i = i_end + 1;
    j = j_end + 1;
  }
  return count;
}

class Ladders : public testing::TestWithParam<Backend> {
 protected:
  Ladder ladder = ladder_for(GetParam());
};

TEST_P(Ladders, switch_exactly_one_thing_per_option) {
  for (const Option& option : ladder.options) {
    EXPECT_EQ(num_differences(ladder.baseline, ladder.stack({option.id})), 1u) << option.id;
    OptionIds others = ladder.all();
    others.erase(option.id);
    EXPECT_EQ(num_differences(ladder.stack(ladder.all()), ladder.stack(others)), 1u) << option.id;
  }
}

TEST_P(Ladders, differ_between_layers_by_the_options_of_the_upper_one) {
  for (int layer = 1; layer < std::ssize(ladder.layers); ++layer) {
    EXPECT_EQ(
        num_differences(ladder.stack(ladder.up_to(layer - 1)), ladder.stack(ladder.up_to(layer))),
        ladder.options_of(layer).size())
        << ladder.layers[layer].name;
  }
}

TEST_P(Ladders, have_an_option_in_every_layer) {
  for (int layer = 1; layer < std::ssize(ladder.layers); ++layer) {
    EXPECT_THAT(ladder.options_of(layer), Not(IsEmpty())) << ladder.layers[layer].name;
  }
}

TEST_P(Ladders, keep_options_in_order_of_their_layers_with_ids_of_their_own) {
  int layer = 0;
  OptionIds seen;
  for (const Option& option : ladder.options) {
    EXPECT_GE(option.layer, layer) << option.id;
    EXPECT_TRUE(seen.insert(option.id).second) << option.id;
    EXPECT_THAT(option.title, Not(IsEmpty()));
    layer = option.layer;
  }
  EXPECT_EQ(ladder.all(), seen);
}

TEST_P(Ladders, plan_a_cell_once) {
  const model::ModelConfig model{.max_positions = 4096};
  const auto cells = plan_cells(ladder, sizes_for(Depth::full, GetParam(), model, 0),
                                lab::ProfileLevel::deep_dive);
  OptionIds keys;
  Rank rank = Rank::layers;
  for (const Cell& cell : cells) {
    EXPECT_TRUE(keys.insert(cell.key).second) << cell.key;
    EXPECT_GT(cell.time.setup_s, 0) << cell.key;
    EXPECT_GE(cell.time.rank, rank) << cell.key << " comes after what matters less";
    rank = cell.time.rank;
  }
  for (const Option& option : ladder.options) {
    EXPECT_TRUE(keys.contains(keys::without(option.id))) << option.id;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Ladders, testing::Values(Backend::cpu, Backend::cuda));

TEST(Ladder, has_a_row_for_an_option_made_up) {
  engine::OptionTable table = engine::option_table();
  table.push_back(
      {.flag = {},
       .cpu = {.row = engine::LadderRow{.id = "made_up",
                                        .title = "made up",
                                        .layer = 2,
                                        .targets = {"ch01:tf32_matmul"},
                                        .off = [](engine::EngineOptions& o) { o.threads = 7; },
                                        .on = [](engine::EngineOptions& o) { o.threads = 8; }}}});
  const Ladder ladder = ladder_for(Backend::cpu, table);
  EXPECT_EQ(ladder.options_of(2).back()->id, "made_up");
  EXPECT_EQ(ladder.baseline.engine.threads, 7);
  EXPECT_EQ(ladder.stack({"made_up"}).engine.threads, 8);
  EXPECT_EQ(ladder_for(Backend::cuda, table).all(), ladder_for(Backend::cuda).all());
}

TEST(Ladder, tells_what_changes_the_executor_from_what_is_asked_of_it) {
  const Ladder cpu = ladder_for(Backend::cpu), cuda = ladder_for(Backend::cuda);
  EXPECT_EQ(executor_options(cpu, {"simd", "prefix_cache"}), OptionIds{"simd"});
  EXPECT_EQ(executor_options(cuda, {"paged_kv", "prefix_cache"}), OptionIds{"paged_kv"});
  EXPECT_EQ(cpu.stage_of(6), Stage::serving);
  EXPECT_EQ(cuda.stage_of(6), Stage::serving);
}

/// Seconds beside repetitions of a 20b shape with random weights on an NVIDIA H200: three to make a
/// stack, contexts of 64 sequences, four rounds at least, serving runs of a second.
double h200_seconds(const Cell& cell) {
  const std::string& kind = cell.time.kind;
  const bool makes_a_stack = cell.time.rank == Rank::company || cell.key == keys::kTotal;
  if (kind == "verify") return 6;
  if (kind == "duel") return (cell.key == keys::layer(1) ? 9 : 2) + (makes_a_stack ? 4 : 0);
  if (kind == "serve") return 6;
  if (kind == "energy" || kind == "saturation" || kind == "time" || kind == "precision") return 3;
  if (kind == "context") return 2 * cell.time.setup_s;
  return 0.5;
}

TEST(Ladder, fits_a_quick_study_of_a_large_model_into_five_minutes) {
  const Ladder ladder = ladder_for(Backend::cuda);
  const auto model = model::random_shape("gpt-oss-20b").value();
  const Sizes sizes = sizes_for(Depth::quick, Backend::cuda, model, 0);
  const auto cells = plan_cells(ladder, sizes, lab::ProfileLevel::minimal);
  std::vector<CellTime> times;
  for (const Cell& cell : cells) times.push_back(cell.time);
  TimeBudget budget(times, {.repeat_s = sizes.budget_seconds, .end_s = sizes.end_seconds});
  double passed = 20;  // ceilings, the model's shape, the doctor
  budget.spend(passed);
  int left_out = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto seconds = budget.allot(i);
    if (!seconds) {
      EXPECT_GT(cells[i].time.rank, Rank::company) << cells[i].key;
      budget.leave(i);
      ++left_out;
      continue;
    }
    const double took = *seconds + h200_seconds(cells[i]);
    passed += took;
    budget.finish(i, took);
  }
  EXPECT_LT(passed, 300);
  EXPECT_LT(left_out, 20);
}

TEST(Ladder, sweeps_every_combination_of_the_lossy_layer) {
  EXPECT_EQ(precision_points(ladder_for(Backend::cpu)).size(), 8u);
}

}  // namespace
}  // namespace gauntlet::study
