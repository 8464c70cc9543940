#include "lab/run/profile_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/measure/fake_backend.h"

namespace gauntlet::lab::inline run {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

/// Runs the work in two passes and counts them.
class FakeProfiler final : public Profiler {
 public:
  Expected<std::map<std::string, double>> collect(
      const std::vector<std::string>& metrics, const std::function<void()>& work,
      const std::function<void()>& before_pass) override {
    asked = metrics;
    if (!refusal.empty()) return Error{refusal};
    for (int pass = 0; pass < 2; ++pass) {
      before_pass();
      work();
    }
    return std::map<std::string, double>{{"collected", ++collected}};
  }
  std::vector<std::string> asked;
  std::string refusal;
  int collected = 0;
};

class ProfileTarget : public testing::Test {
 protected:
  ProfileOutcome profile(const TwiceFactory& optimized) {
    target_.source.cuda[1] = twice_target(optimized, optimized).source.cuda[1];
    const Knobs knobs = Knobs::defaults(target_.pair.knobs, BackendKind::cuda);
    return profile_target({.target = target_, .knobs = knobs, .backend = backend_}, profiler_);
  }
  void trace(ProfileOutcome& outcome, const Tracer& tracer) {
    const Knobs knobs = Knobs::defaults(target_.pair.knobs, BackendKind::cuda);
    trace_target({.target = target_, .knobs = knobs, .backend = backend_}, tracer, outcome);
  }
  static Side right(const TwiceParams& p) {
    return Side([p] { twice(p); });
  }

  Target target_ = twice_target();
  FakeBackend backend_;
  FakeProfiler profiler_;
};

TEST_F(ProfileTarget, reads_the_counters_of_every_side_and_asks_for_the_witness) {
  target_.pair.cuda->witness =
      Witness::counter("sectors", Witness::Moves::falls, 2, "fewer sectors");
  const ProfileOutcome outcome = profile(right);
  EXPECT_EQ(outcome.wrong, "");
  EXPECT_EQ(outcome.why_not, "");
  ASSERT_EQ(outcome.sides.size(), 2u);
  EXPECT_EQ(outcome.sides[0].counters.at("collected"), 1);
  EXPECT_EQ(outcome.sides[1].counters.at("collected"), 2);
  EXPECT_THAT(profiler_.asked, Contains("sectors"));
}

TEST_F(ProfileTarget, verifies_what_a_side_leaves_while_it_is_profiled) {
  int calls = 0;
  const ProfileOutcome outcome = profile([&](const TwiceParams& p) {
    return Side([p, &calls] {
      if (++calls == 1) twice(p);
    });
  });
  EXPECT_THAT(outcome.wrong, StartsWith("optimized left part of its output unwritten"));
  EXPECT_THAT(outcome.wrong, HasSubstr("(profiled)"));
}

TEST_F(ProfileTarget, does_not_profile_a_side_that_is_wrong_at_once) {
  int calls = 0;
  const ProfileOutcome outcome =
      profile([&](const TwiceParams&) { return Side([&] { ++calls; }); });
  EXPECT_THAT(outcome.wrong, HasSubstr("never stored"));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(profiler_.collected, 1);
}

TEST_F(ProfileTarget, poisons_before_every_pass) {
  bool poisoned = true;
  profile([&](const TwiceParams& p) {
    return Side([p, &poisoned] {
      poisoned = poisoned && p.out[0] != p.out[0];
      twice(p);
    });
  });
  EXPECT_TRUE(poisoned);
}

TEST_F(ProfileTarget, enters_and_leaves_a_side_around_its_passes) {
  std::string order;
  profile([&](const TwiceParams& p) {
    Side side([&order, p] {
      order += "run ";
      twice(p);
    });
    side.enter = [&] { order += "enter "; };
    side.leave = [&] { order += "leave "; };
    return side;
  });
  EXPECT_EQ(order, "enter run leave enter run run leave ");
}

TEST_F(ProfileTarget, says_which_counter_could_not_be_had) {
  profiler_.refusal = "no permission";
  const ProfileOutcome outcome = profile(right);
  EXPECT_EQ(outcome.why_not, "no permission");
  EXPECT_TRUE(outcome.sides.empty());
}

/// A tracer that runs the work, and saw two kernels of which half was beside the other.
Expected<GpuTrace> two_kernels(const std::function<void()>& work) {
  work();
  const auto kernel = [](std::int64_t start_ns, std::int64_t call) {
    return TraceEvent{.name = "k",
                      .category = "kernel",
                      .start_ns = start_ns,
                      .duration_ns = 10,
                      .args = {{"correlation", call}}};
  };
  return GpuTrace{.events = {kernel(0, 1), kernel(5, 2)}};
}

TEST_F(ProfileTarget, adds_what_a_trace_of_each_side_says) {
  ProfileOutcome outcome = profile(right);
  trace(outcome, two_kernels);
  EXPECT_EQ(outcome.wrong, "");
  ASSERT_EQ(outcome.sides.size(), 2u);
  for (const SideProfile& side : outcome.sides) {
    EXPECT_EQ(side.trace.at("at_a_time"), 20.0 / 15);
    EXPECT_EQ(side.trace.at("launch_calls"), 2);
  }
}

TEST_F(ProfileTarget, verifies_what_a_side_leaves_while_it_is_traced) {
  ProfileOutcome outcome = profile(right);
  trace(outcome, [](const std::function<void()>&) { return GpuTrace{}; });
  EXPECT_THAT(outcome.wrong, StartsWith("baseline left part of its output unwritten"));
  EXPECT_THAT(outcome.wrong, HasSubstr("(traced)"));
}

TEST_F(ProfileTarget, does_not_trust_a_trace_that_lost_records) {
  ProfileOutcome outcome = profile(right);
  trace(outcome, [](const std::function<void()>& work) {
    work();
    return GpuTrace{.events = {}, .dropped_records = 3};
  });
  EXPECT_EQ(outcome.why_not, "the trace lost records");
  outcome.why_not.clear();
  trace(outcome, [](const std::function<void()>&) { return Error{"no CUPTI"}; });
  EXPECT_EQ(outcome.why_not, "no CUPTI");
}

TEST_F(ProfileTarget, traces_nothing_where_the_counters_could_not_be_had) {
  profiler_.refusal = "no permission";
  ProfileOutcome outcome = profile(right);
  trace(outcome, [](const std::function<void()>&) -> Expected<GpuTrace> {
    ADD_FAILURE() << "it was traced";
    return Error{"it was traced"};
  });
  EXPECT_EQ(outcome.why_not, "no permission");
}

TEST_F(ProfileTarget, says_why_there_is_no_profiler) {
  if (make_profiler(BackendKind::cuda)) GTEST_SKIP() << "there is a GPU with counters here";
  const Knobs knobs = Knobs::defaults(target_.pair.knobs, BackendKind::cuda);
  EXPECT_NE(profile_target({.target = target_, .knobs = knobs, .backend = backend_}).why_not, "");
}

}  // namespace
}  // namespace gauntlet::lab::inline run
