// Does a gain count only when what should have caused it was seen to move?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lab/run/fake_evidence.h"

namespace gauntlet::lab::inline run {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

using Moves = Witness::Moves;

class JudgeWitness : public Judging {};

TEST_F(JudgeWitness, that_did_not_move_blocks_the_gain) {
  cuda().witness = Witness::fact("launches", Moves::falls, 4, "fewer launches");
  set_fact("launches", {100, 26});
  const Result result = judged();
  EXPECT_EQ(result.status, Status::no_gain);
  EXPECT_THAT(result.reason,
              StartsWith("the witness did not move: launches went from 100 to 26, but "
                         "falls by at least 4x was claimed"));
  set_fact("launches", {100, 25});
  EXPECT_EQ(judged().status, Status::passed);
  EXPECT_TRUE(witness(judged()).shows_mechanism());
}

TEST_F(JudgeWitness, may_rise) {
  cuda().witness = Witness::fact("occupancy", Moves::rises, 2, "more warps");
  set_fact("occupancy", {30, 61});
  EXPECT_TRUE(witness(judged()).moved);
  set_fact("occupancy", {61, 30});
  EXPECT_FALSE(witness(judged()).moved);
}

TEST_F(JudgeWitness, that_falls_to_zero_moved_by_any_factor_and_from_zero_by_none) {
  cuda().witness = Witness::fact("conflicts", Moves::falls, 10, "no conflicts");
  set_fact("conflicts", {5, 0});
  EXPECT_TRUE(witness(judged()).moved);
  set_fact("conflicts", {0, 0});
  EXPECT_FALSE(witness(judged()).moved);
}

TEST_F(JudgeWitness, that_no_side_reports_blocks_the_gain) {
  cuda().witness = Witness::fact("launches", Moves::falls, 4, "fewer launches");
  Result result = judged();
  EXPECT_EQ(result.status, Status::no_gain);
  EXPECT_EQ(result.reason,
            "faster, but the mechanism could not be witnessed: the baseline side did not report "
            "launches");
  set_fact("launches", {100, NAN});
  result = judged();
  EXPECT_EQ(result.status, Status::no_gain);
  EXPECT_EQ(witness(result).why_not, "the optimized side did not report launches");
}

TEST_F(JudgeWitness, that_is_an_outcome_is_read_after_the_run) {
  cuda().witness = Witness::outcome("hit_rate", Moves::rises, 2, "more hits");
  EXPECT_EQ(judged().status, Status::no_gain);
  set_outcome("hit_rate", {0.2, 0.9});
  const Result result = judged();
  EXPECT_EQ(result.status, Status::passed) << result.reason;
  EXPECT_EQ(witness(result).source, "outcome");
}

TEST_F(JudgeWitness, is_not_asked_of_a_process_that_was_too_hot) {
  cuda().witness = Witness::outcome("hit_rate", Moves::rises, 2, "more hits");
  set_outcome("hit_rate", {0.2, 0.9});
  evidence_.processes[0] = too_hot(2);
  const Result result = judged();
  EXPECT_EQ(result.status, Status::passed) << result.reason;
}

TEST_F(JudgeWitness, that_is_a_counter_leaves_the_gain_open_where_nobody_profiled) {
  cuda().witness = Witness::counter("sectors", Moves::falls, 2, "fewer sectors");
  const Result result = judged();
  EXPECT_EQ(result.status, Status::passed);
  EXPECT_FALSE(witness(result).collected);
  EXPECT_EQ(witness(result).why_not, "run with --profile minimal");
  EXPECT_EQ(unwitnessed(result), "mechanism not witnessed: run with --profile minimal");
  EXPECT_THAT(result.notes, IsEmpty()) << "it is said once";
}

TEST_F(JudgeWitness, that_is_a_counter_blocks_the_gain_where_profiling_could_not_read_it) {
  cuda().witness = Witness::counter("sectors", Moves::falls, 2, "fewer sectors");
  evidence_.profile = ProfileOutcome{.why_not = "no permission"};
  EXPECT_EQ(judged().status, Status::no_gain);
  EXPECT_EQ(judged().reason, "faster, but the mechanism could not be witnessed: no permission");
  evidence_.profile.reset();
  set_counter("other", {1, 1});
  EXPECT_EQ(judged().status, Status::no_gain);
  EXPECT_EQ(witness(judged()).why_not, "the baseline side did not report sectors");
}

TEST_F(JudgeWitness, that_is_of_a_trace_is_like_a_counter) {
  cuda().witness = Witness::trace("at_a_time", Moves::rises, 1.2, "copies beside kernels");
  EXPECT_EQ(judged().status, Status::passed);
  EXPECT_EQ(unwitnessed(judged()), "mechanism not witnessed: run with --profile minimal");
  set_counter("at_a_time", {1, 2});
  EXPECT_EQ(judged().status, Status::no_gain) << "a counter of that name is another thing";
  evidence_.profile->sides[0].trace["at_a_time"] = 1;
  evidence_.profile->sides[1].trace["at_a_time"] = 1.1;
  EXPECT_EQ(judged().status, Status::no_gain);
  evidence_.profile->sides[1].trace["at_a_time"] = 1.9;
  const Result result = judged();
  EXPECT_EQ(result.status, Status::passed) << result.reason;
  EXPECT_EQ(witness(result).source, "trace");
  EXPECT_EQ(witness(result).after, 1.9);
}

TEST_F(JudgeWitness, that_is_a_counter_is_read_from_the_profile) {
  cuda().witness = Witness::counter("sectors", Moves::falls, 2, "fewer sectors");
  set_counter("sectors", {32, 4});
  const Result result = judged();
  EXPECT_EQ(result.status, Status::passed);
  EXPECT_TRUE(witness(result).shows_mechanism());
  EXPECT_EQ(witness(result).before, 32);
  EXPECT_EQ(witness(result).after, 4);
  EXPECT_EQ(witness(result).source, "counter");
  EXPECT_EQ(witness(result).expected, "falls by at least 2x");
  EXPECT_THAT(result.counters.at("sectors"), ElementsAre(32, 4));
  EXPECT_THAT(result.notes, IsEmpty());
}

TEST_F(JudgeWitness, does_not_change_the_reason_of_what_gained_nothing) {
  cuda().witness = Witness::fact("launches", Moves::falls, 4, "fewer launches");
  all_measure({1000, 1000});
  EXPECT_THAT(judged().reason, StartsWith("speedup 1.000"));
}

TEST_F(JudgeWitness, may_be_absent_with_a_reason) {
  cuda().witness = Witness::none("nothing shows it");
  const Result result = judged();
  EXPECT_EQ(result.status, Status::passed);
  EXPECT_EQ(witness(result).why_not, "nothing shows it");
  EXPECT_EQ(unwitnessed(result), "mechanism not witnessed: nothing shows it");
}

}  // namespace
}  // namespace gauntlet::lab::inline run
