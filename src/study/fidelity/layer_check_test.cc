// Are real stacks verified against one another, and is the second look taken only where it must be?
#include "study/fidelity/layer_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/os/fake_tree.h"
#include "study/bench/small_bench.h"
#include "study/cells.h"
#include "study/results/cell_json.h"

namespace gauntlet::study::inline fidelity {
namespace {

struct LayerChecks : testing::Test {
  FakeTree tree;
  SmallBench small;
  Workbench& bench = small.bench;
  const Sizes sizes = small.sizes();
  Journal journal = Journal::begin(tree.root() / "journal.jsonl", {}, 0).value();

  CheckedLayer checked(const LayerCheck& test) {
    auto measured = check_layer(bench, journal, sizes, test);
    EXPECT_TRUE(measured) << measured.error().message;
    return measured ? std::move(*measured) : CheckedLayer();
  }
  void keep_baseline(const CheckedLayer& layer) {
    ASSERT_TRUE(journal.append(keys::verify(0), cell_to_json(layer)));
  }
};

TEST_F(LayerChecks, of_a_layer_that_says_the_same_need_no_second_look) {
  const CheckedLayer before = checked({.layer = 0, .before = {}});
  keep_baseline(before);
  const CheckedLayer own = checked({.layer = 1, .before = 0});
  EXPECT_FALSE(own.replayed);
  EXPECT_EQ(own.run.tokens, before.run.tokens);
}

/// The layer before is made to have said something else, at a choice that was sure.
TEST_F(LayerChecks, of_a_layer_that_differs_are_looked_at_again_and_found_wrong_without_a_reason) {
  CheckedLayer before = checked({.layer = 0, .before = {}});
  std::int32_t& token = before.run.tokens[1][0];
  token = (token + 1) % 128;
  for (auto& margins : before.run.margins) std::ranges::fill(margins, 1.0);
  keep_baseline(before);
  const auto replayed = checked({.layer = 1, .before = 0}).replayed;
  ASSERT_TRUE(replayed);
  EXPECT_EQ(replayed->where, "prompt 2, token 1");
  EXPECT_NE(replayed->replay.wrong, "");
  const std::int64_t inputs = sizes.verify_prompts * (sizes.verify_prompt_tokens - 1 + 8);
  EXPECT_EQ(replayed->replay.experts, 2 * inputs) << "a choice per layer and token";
}

TEST_F(LayerChecks, of_a_layer_that_says_the_same_up_to_early_ties_are_looked_at_again) {
  CheckedLayer before = checked({.layer = 0, .before = {}});
  for (auto& margins : before.run.margins) margins[1] = 0;
  keep_baseline(before);
  const auto replayed = checked({.layer = 1, .before = 0}).replayed;
  ASSERT_TRUE(replayed);
  EXPECT_EQ(replayed->replay.wrong, "");
  EXPECT_EQ(replayed->where, "");
  EXPECT_GT(replayed->replay.compared, sizes.verify_prompts) << "more than a token of each prompt";
}

TEST_F(LayerChecks, of_the_serving_layer_come_from_the_serving_loop) {
  const CheckedLayer served = checked({.layer = 6, .before = {}});
  EXPECT_EQ(std::ssize(served.run.tokens), 2 * sizes.verify_prompts);
  EXPECT_FALSE(served.score);
}

/// Rounding activations to 8 bits takes other experts now and then: replayed, they are the
/// same.
TEST_F(LayerChecks, can_be_told_with_the_experts_of_another_stack) {
  const auto exact = bench.executor({}, study_room(sizes)).value();
  OptionIds lossy = bench.ladder().all();
  lossy.erase("threads");  // which would wait for one another
  const auto rounded = bench.executor(lossy, study_room(sizes)).value();
  const Texts prompts = {{1, 2, 3}, {40, 50, 60, 70}};
  const GreedyRun run = greedy(*exact, prompts, 100).value();
  Recording recording = record(*exact, prompts, run.tokens).value();
  EXPECT_EQ(recording.chosen.tokens, run.tokens);
  const Replay same = replay(*exact, recording, run.tokens, 0.02).value();
  EXPECT_EQ(same.replaced, 0);
  EXPECT_EQ(same.wrong, "");
  const Replay other = replay(*rounded, recording, run.tokens, 0.02).value();
  EXPECT_EQ(other.experts, 2 * (3 + 99 + 4 + 99));
  EXPECT_GT(other.replaced, 0);
}

}  // namespace
}  // namespace gauntlet::study::inline fidelity
