#include "lab/measure/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <thread>

#include "lab/measure/fake_measuring.h"

namespace gauntlet::lab::inline measure {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Sample = FakeBackend::Sample;

class Measure : public FakeMeasuring {};

TEST_F(Measure, takes_blocks_in_abba_order_and_lets_either_side_begin) {
  const Measurement m = measure(taking(3e6), taking(2e6), quick(20));
  ASSERT_TRUE(m.ok) << m.reason;
  const auto samples = counted(20);
  std::set<std::size_t> began;
  for (std::size_t i = 0; i < samples.size(); i += 4) {
    EXPECT_EQ(samples[i].side, samples[i + 3].side);
    EXPECT_EQ(samples[i + 1].side, samples[i + 2].side);
    EXPECT_NE(samples[i].side, samples[i + 1].side);
    began.insert(samples[i].side);
  }
  EXPECT_EQ(began, (std::set<std::size_t>{0, 1}));
}

TEST_F(Measure, takes_turns_among_any_number_of_sides) {
  const Measurement m =
      measure(twice_ladder({taking(8e6), taking(4e6), taking(2e6), taking(1e6)}), quick(12));
  ASSERT_TRUE(m.ok) << m.reason;
  ASSERT_EQ(m.sides.size(), 4u);
  ASSERT_EQ(m.blocks.size(), 12u);
  const auto samples = counted(12, 4);
  for (std::size_t block = 0; block < 12; ++block) {
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(samples[8 * block + i].side, samples[8 * block + 7 - i].side);
    }
    for (std::size_t side = 0; side < 4; ++side) {
      EXPECT_EQ(m.blocks[block].mean(side), 8e6 / std::pow(2, side));
    }
  }
}

TEST_F(Measure, renews_all_inputs_of_every_sample_and_gives_each_run_a_set_of_its_own) {
  std::vector<const void*> ran, renewed;
  bool calibrating = true;
  int samples = 0;
  const auto note = [&](const TwiceParams& p) { ran.push_back(p.in); };
  const auto compare = [&] {
    std::ranges::sort(ran);
    std::ranges::sort(renewed);
    EXPECT_EQ(ran, renewed) << "sample " << samples;
    EXPECT_EQ(std::ranges::adjacent_find(ran), ran.end()) << "a set twice in a sample";
    ++samples;
  };
  backend_.on_event = [&](const char* event) {
    if (std::string_view(event) == "watch") {
      if (!calibrating) compare();
      calibrating = false;
      backend_.renewals.clear();
    } else if (std::string_view(event) == "time") {
      renewed.clear();
      for (const auto& renewal : backend_.renewals) renewed.push_back(renewal.data);
      ran.clear();
    }
  };
  const Measurement m = measure(taking(1e5, note), taking(4e4, note), quick(20));
  ASSERT_TRUE(m.ok) << m.reason;
  EXPECT_EQ(m.sides[0].repetitions, 10);
  EXPECT_EQ(m.sides[1].repetitions, 25);
  EXPECT_EQ(m.sets, 25);
  EXPECT_GE(samples, 79);
}

TEST_F(Measure, never_makes_the_same_inputs_twice) {
  ASSERT_TRUE(measure(taking(1e5), taking(4e4), quick(20)).ok);
  std::set<std::uint64_t> seeds;
  for (const auto& renewal : backend_.renewals) seeds.insert(renewal.version.seed);
  EXPECT_EQ(seeds.size(), backend_.renewals.size());
}

TEST_F(Measure, uses_all_sets_alike) {
  ASSERT_TRUE(measure(taking(5e5), taking(1e5), quick(100)).ok);
  std::map<const void*, int> runs;
  for (const Sample& sample : counted(100)) {
    if (sample.side == 0) {
      for (const void* set : sample.sets) ++runs[set];
    }
  }
  EXPECT_EQ(runs.size(), 10u);
  for (const auto& [set, count] : runs) EXPECT_NEAR(count, 40, 30);
}

TEST_F(Measure, leaves_old_results_in_outputs_as_often_as_it_poisons_them) {
  int poisoned = 0, plausible = 0;
  const TwiceFactory looking = [&](const TwiceParams& p) {
    return Side([this, &poisoned, &plausible, p] {
      if (std::isnan(p.out[0])) {
        ++poisoned;
      } else {
        EXPECT_LE(std::abs(p.out[0]), 2);
        EXPECT_NE(p.out[0], 0);
        ++plausible;
      }
      twice(p);
      backend_.spend(1e6);
    });
  };
  ASSERT_TRUE(measure(looking, looking, quick(100)).ok);
  EXPECT_GT(poisoned + plausible, 400);
  EXPECT_NEAR(static_cast<double>(poisoned) / (poisoned + plausible), 0.45, 0.1)
      << "half of the samples, and none of the few whose inputs change in part";
}

TEST_F(Measure, reports_the_time_of_one_run) {
  const Measurement m = measure(taking(3e6), taking(2e3), quick(4));
  ASSERT_EQ(m.blocks.size(), 4u);
  EXPECT_EQ(m.conditions.blocks, 4);
  for (const stats::Block& block : m.blocks) {
    for (std::size_t half : {0, 1}) {
      EXPECT_DOUBLE_EQ(block.ns[0][half], 3e6);
      EXPECT_DOUBLE_EQ(block.ns[1][half], 2e3);
    }
  }
}

TEST_F(Measure, keeps_the_times_of_each_half_apart) {
  double step = 0;
  const auto growing = [&](const TwiceParams&) { backend_.spend(1e3 * ++step); };
  MeasureOptions options = quick(1);
  options.seed = 8;
  const Measurement m = measure(taking(2e6, growing), taking(2e6), options);
  ASSERT_EQ(m.blocks.size(), 1u);
  EXPECT_GT(m.blocks[0].ns[0][1], m.blocks[0].ns[0][0]);
  EXPECT_EQ(m.blocks[0].ns[1][0], m.blocks[0].ns[1][1]);
}

TEST_F(Measure, repeats_short_runs_until_a_sample_is_long_enough) {
  const Measurement m = measure(taking(5e6), taking(4e4), quick(2));
  EXPECT_EQ(m.sides[0].repetitions, 1);
  EXPECT_EQ(m.sides[1].repetitions, 25);
  for (const Sample& sample : counted(2)) EXPECT_EQ(sample.runs(), sample.side == 0 ? 1u : 25u);
}

TEST_F(Measure, has_no_more_than_64_sets) {
  const Measurement m = measure(taking(0.5), taking(1e6), quick(1));
  EXPECT_EQ(m.sides[0].repetitions, 64);
  EXPECT_EQ(m.sets, 64);
}

TEST_F(Measure, has_no_more_sets_than_fit_into_the_memory_that_the_bytes_come_from) {
  Target target = twice_target(taking(1e4), taking(1e6));
  target.pair.cuda->cost = [](const Knobs&) {
    return Cost{.read_bytes = 1, .level = Cost::Level::cache};
  };
  backend_.limit = [](Cost::Level level) {
    return std::int64_t{level == Cost::Level::cache ? 5 : 50} * 4000;
  };
  const Measurement m = measure(target, quick(2));
  EXPECT_EQ(m.set_bytes, 4000);
  EXPECT_EQ(m.sets, 5);
  EXPECT_EQ(m.sides[0].repetitions, 5);
  backend_.limit = [](Cost::Level) { return 10; };
  EXPECT_EQ(measure(target, quick(2)).sets, 1) << "one at least";
}

TEST_F(Measure, is_not_misled_by_what_a_single_run_costs_to_start) {
  backend_.overhead_ns = 8e4;
  MeasureOptions options = quick(1);
  options.warmup_runs = 10;
  // Alone a run takes 100 us, which says 10; of 64 together each takes 21.25 us.
  EXPECT_EQ(measure(taking(2e4), taking(1e6), options).sides[0].repetitions, 48);
}

TEST_F(Measure, flushes_the_caches_before_each_cold_run) {
  MeasureOptions options = quick(3);
  options.cold = true;
  const Measurement m = measure(taking(1e3), taking(1e3), options);
  ASSERT_TRUE(m.ok) << m.reason;
  EXPECT_TRUE(m.conditions.cold);
  EXPECT_EQ(m.sides[0].repetitions, 1);
  for (const Sample& sample : backend_.samples) {
    EXPECT_TRUE(sample.cold);
    EXPECT_EQ(sample.runs(), 1u);
  }
  backend_.samples.clear();
  EXPECT_FALSE(measure(taking(1e6), taking(1e6), quick(3)).conditions.cold);
  for (const Sample& sample : backend_.samples) EXPECT_FALSE(sample.cold);
}

TEST_F(Measure, moves_managed_pages_back_before_each_run_and_runs_once_per_sample) {
  int runs = 0;
  const auto count = [&](const TwiceParams&) { ++runs; };
  Target target = twice_target(taking(1e3, count), taking(1e3, count));
  target.pair.managed_pages = ManagedPages::on_host;
  target.pair.bind = [](Binder& b) -> std::shared_ptr<const void> {
    const std::int64_t n = b.knob("n");
    return std::make_shared<const TwiceParams>(
        b.input<float>("in", n, Fill::uniform(), Memory::managed), b.output<float>("out", n), n);
  };
  const Measurement m = measure(target, quick(3));
  ASSERT_TRUE(m.ok) << m.reason;
  EXPECT_EQ(m.sides[0].repetitions, 1);
  EXPECT_EQ(backend_.moved_to_host.size(), static_cast<std::size_t>(runs));
}

TEST_F(Measure, calibrates_again_when_samples_turn_out_short) {
  // Slow for its first runs, then a thousand times as fast.
  int runs = 0;
  const Measurement m = measure(
      taking(1e6),
      [&](const TwiceParams& p) {
        return Side([this, p, &runs] {
          twice(p);
          backend_.spend(++runs < 12 ? 1e6 : 1e5);
        });
      },
      quick(8));
  ASSERT_TRUE(m.ok) << m.reason;
  EXPECT_EQ(m.sides[1].repetitions, 10);
  EXPECT_EQ(m.sets, 10);
  ASSERT_EQ(m.blocks.size(), 8u);
  EXPECT_EQ(m.conditions.blocks, 8);
  for (const stats::Block& block : m.blocks) EXPECT_NEAR(block.mean(1), 1e5, 1);
}

TEST_F(Measure, does_not_calibrate_by_samples_that_left_a_side_little_to_do) {
  // Quick where inputs changed in part only, as a side may be that works on what changed.
  const auto by_changes = [&](const TwiceParams&) {
    const bool is_trap = backend_.renewals.back().version.renewed != InputVersion::Renewed::all;
    backend_.spend(is_trap ? 1e3 : 2e6);
  };
  const Measurement m = measure(taking(2e6), taking(0, by_changes), quick(40));
  ASSERT_TRUE(m.ok) << m.reason;
  EXPECT_EQ(m.sides[1].repetitions, 1);
  EXPECT_EQ(m.sets, 1);
}

TEST_F(Measure, makes_checks_up_in_blocks_that_count) {
  // Dear checks, of which chance leaves some out, and a budget that ends after three blocks.
  backend_.on_agree = {};
  MeasureOptions options = quick();
  options.budget_s = 0;
  options.least_checks = options.least_traps = 12;
  const Measurement m = measure(taking(1e6), taking(1e6), options);
  ASSERT_TRUE(m.ok) << m.reason;
  EXPECT_GE(m.blocks.size(), 6u) << "twelve checks of a side need six blocks";
  EXPECT_EQ(counted(m.blocks.size()).size(), 4 * m.blocks.size());
  EXPECT_GE(m.verification.timed_checks, 24);
}

TEST_F(Measure, stops_at_the_fewest_blocks_when_there_is_no_noise) {
  MeasureOptions options = quick();
  options.min_blocks = 8;
  EXPECT_EQ(measure(taking(2e6), taking(1e6), options).blocks.size(), 8u);
  options.min_blocks = 10;
  EXPECT_EQ(measure(taking(2e6), taking(1e6), options).blocks.size(), 12u)
      << "the interval is looked at every fourth block";
}

TEST_F(Measure, goes_on_while_the_interval_is_wide) {
  Random random(3);
  const auto noise = [&](double scale) {
    return [this, &random, scale](const TwiceParams&) {
      backend_.spend(scale * static_cast<double>(random.next_below(1000)));
    };
  };
  MeasureOptions options = quick();
  options.max_blocks = 40;
  EXPECT_EQ(measure(taking(1e6, noise(2e3)), taking(1e6, noise(2e3)), options).blocks.size(), 40u);
  options.max_blocks = 400;
  options.half_width = 0.02;
  const auto some =
      measure(taking(1e6, noise(200)), taking(1e6, noise(200)), options).blocks.size();
  EXPECT_GT(some, 8u);
  EXPECT_LT(some, 400u);
}

TEST_F(Measure, goes_on_while_the_interval_of_any_comparison_is_wide) {
  Random random(3);
  const auto noise = [&](const TwiceParams&) {
    backend_.spend(2e3 * static_cast<double>(random.next_below(1000)));
  };
  MeasureOptions options = quick();
  options.max_blocks = 40;
  // The headline, from the first rung to the third, is as quiet as can be.
  const Measurement m =
      measure(twice_ladder({taking(4e6), taking(2e6, noise), taking(1e6), taking(1e6)}), options);
  EXPECT_EQ(m.blocks.size(), 40u);
}

TEST_F(Measure, takes_three_blocks_though_the_budget_is_spent) {
  MeasureOptions options = quick();
  options.budget_s = 0;
  EXPECT_EQ(measure(taking(2e6), taking(1e6), options).blocks.size(), 3u);
}

TEST_F(Measure, ignores_budget_and_interval_for_a_fixed_number_of_blocks) {
  MeasureOptions options = quick(25);
  options.budget_s = 0;
  EXPECT_EQ(measure(taking(2e6), taking(1e6), options).blocks.size(), 25u);
}

TEST_F(Measure, warms_up_each_side_as_often_as_told) {
  MeasureOptions options = quick(1);
  options.warmup_runs = 7;
  measure(taking(2e6), taking(1e6), options);
  EXPECT_EQ(std::ranges::count(backend_.samples, false, &Sample::watched), 7 + 7);
  backend_.samples.clear();
  options.warmup_runs = 1;
  options.warmup_s = 0.1;
  // The clock of the warm-up starts over with each side.
  int asked = 0;
  backend_.on_agree = [&](double) { return 0.03 * (++asked % 5); };
  measure(taking(2e6), taking(1e6), options);
  EXPECT_EQ(std::ranges::count(backend_.samples, false, &Sample::watched), 5 + 5);
}

TEST_F(Measure, drops_blocks_slowed_by_heat_whole_and_counts_them) {
  int block = 0;
  backend_.read_sensors = [&] {
    const bool hot = block == 1 || block == 4;
    ++block;
    return GpuState{.sm_clock_mhz = hot ? 900.0 : 1980.0, .thermal_slowdown = hot};
  };
  // While hot, every sample takes longer.
  const auto slowed = [&](const TwiceParams&) {
    if (block == 1 || block == 4) backend_.spend(5e6);
  };
  const Measurement m = measure(taking(2e6, slowed), taking(1e6), quick(6));
  ASSERT_TRUE(m.ok) << m.reason;
  EXPECT_EQ(m.conditions.dropped_blocks, 2);
  EXPECT_EQ(m.conditions.blocks, 4);
  EXPECT_EQ(m.conditions.sm_clock_mhz_min, 900);
  ASSERT_EQ(m.blocks.size(), 4u);
  for (const stats::Block& kept : m.blocks) EXPECT_DOUBLE_EQ(kept.ratio(0, 1), 2);
}

TEST_F(Measure, replaces_dropped_blocks_before_it_stops) {
  int reads = 0;
  backend_.read_sensors = [&] { return GpuState{.thermal_slowdown = ++reads <= 5}; };
  const Measurement m = measure(taking(2e6), taking(1e6), quick());
  EXPECT_EQ(m.conditions.dropped_blocks, 5);
  EXPECT_EQ(m.blocks.size(), 8u);
}

TEST_F(Measure, says_so_when_heat_left_nothing) {
  backend_.read_sensors = [] { return GpuState{.thermal_slowdown = true}; };
  const Measurement m = measure(taking(2e6), taking(1e6), quick(6));
  EXPECT_FALSE(m.ok);
  EXPECT_THAT(m.reason, StartsWith("all 6 blocks were dropped"));
  EXPECT_EQ(m.side, "") << "no side is at fault";
}

TEST_F(Measure, reports_facts_and_progress) {
  const TwiceFactory with_fact = [&](const TwiceParams& p) {
    return Side(
        [this, p] {
          twice(p);
          backend_.spend(1e6);
        },
        {{"registers", 32}});
  };
  std::set<std::string> phases;
  double ratio = 0;
  const Measurement m =
      measure(twice_target(taking(3e6), with_fact), quick(), [&](const MeasureProgress& p) {
        phases.insert(p.phase);
        ratio = std::max(ratio, p.ratio);
      });
  EXPECT_EQ(m.sides[1].facts.at("registers"), 32);
  EXPECT_TRUE(m.sides[0].facts.empty());
  EXPECT_EQ(phases, (std::set<std::string>{"verify", "calibrate", "measure", "verify again"}));
  EXPECT_DOUBLE_EQ(ratio, 3);
}

TEST_F(Measure, tells_the_ratio_of_the_headline_while_it_runs) {
  double ratio = 0;
  measure(twice_ladder({taking(8e6), taking(4e6), taking(2e6), taking(1e6)}), quick(),
          [&](const MeasureProgress& p) { ratio = p.ratio; });
  EXPECT_DOUBLE_EQ(ratio, 4);
}

TEST_F(Measure, hears_of_timed_runs_alone_what_sides_observed) {
  // A side numbers its runs over all sets. Verification, warm-up and traps run it, too.
  int runs = 0;
  const auto observing = [&](double ns) -> TwiceFactory {
    return [this, &runs, ns](const TwiceParams& p) {
      const auto seen = std::make_shared<std::vector<float>>();
      Side side([this, &runs, ns, p, seen] {
        twice(p);
        backend_.spend(ns);
        seen->push_back(static_cast<float>(++runs));
      });
      side.distributions = [seen]() -> std::map<std::string, std::vector<float>> {
        return {{"run", std::exchange(*seen, {})}};
      };
      return side;
    };
  };
  const Measurement m = measure(twice_target(observing(4e5), taking(1e6)), quick(5));
  ASSERT_TRUE(m.ok) << m.reason;
  ASSERT_EQ(m.sides[0].repetitions, 3);
  const auto& blocks = m.sides[0].distributions.at("run");
  ASSERT_EQ(blocks.size(), 5u);
  std::size_t num_values = 0;
  for (const auto& block : blocks) {
    EXPECT_EQ(block.size(), 6u) << "two samples of three runs";
    num_values += block.size();
  }
  EXPECT_GT(runs, static_cast<int>(num_values) + 3) << "it ran at other times, too";
  EXPECT_GT(blocks.front().front(), 2) << "the first runs verified it";
  EXPECT_TRUE(m.sides[1].distributions.empty());
}

TEST_F(Measure, averages_outcomes_over_timed_samples_and_their_sets) {
  // Asked before each sample, where the answer is dropped, and after it.
  std::vector<double> told;
  const TwiceFactory telling = [&](const TwiceParams& p) {
    Side side = taking(1e6)(p);
    side.outcomes = [&told]() -> std::map<std::string, double> {
      told.push_back(static_cast<double>(told.size()));
      return {{"hit_rate", told.back()}};
    };
    return side;
  };
  MeasureOptions options = quick(2);
  options.least_traps = 0;
  options.least_checks = 0;
  const Measurement m = measure(telling, taking(1e6), options);
  ASSERT_TRUE(m.ok) << m.reason;
  ASSERT_GE(told.size(), 8u);
  EXPECT_GT(m.sides[0].outcomes.at("hit_rate"), 0);
  EXPECT_FALSE(m.sides[1].outcomes.contains("hit_rate"));
}

TEST_F(Measure, says_what_a_side_needs_before_its_clock_starts) {
  const auto sleep = [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
  const auto prepared = [&](const TwiceParams& p) {
    sleep();
    Side side = taking(1000)(p);
    side.enter = sleep;
    return side;
  };
  const Measurement m = measure(taking(1000), prepared, quick(3));
  EXPECT_GE(m.sides[1].outcomes.at(kSetupUs), 4000);
  EXPECT_LT(m.sides[0].outcomes.at(kSetupUs), 2000);
}

TEST_F(Measure, decides_alike_on_every_rank_whatever_its_own_clock_says) {
  // Rank 0 notes what it says; rank 1, whose clock differs, hears it.
  std::vector<double> said;
  double clock = 0;
  backend_.on_agree = [&](double) {
    clock += 3e-4;
    said.push_back(std::fmod(clock, 0.01));
    return said.back();
  };
  MeasureOptions options = quick(20);
  ASSERT_TRUE(measure(taking(1e6), taking(5e5), options).ok);
  const auto plain = [&] {
    std::vector<std::pair<std::size_t, std::size_t>> list;
    for (const Sample& sample : backend_.samples) list.push_back({sample.side, sample.runs()});
    return list;
  };
  const auto on_rank_0 = plain();
  backend_.samples.clear();
  std::size_t heard = 0;
  backend_.on_agree = [&](double) { return said.at(heard++); };
  ASSERT_TRUE(measure(taking(1e6), taking(5e5), options).ok);
  EXPECT_EQ(plain(), on_rank_0);
  EXPECT_EQ(heard, said.size());
}

TEST_F(Measure, ends_when_another_rank_found_something) {
  backend_.on_all_agree = [](bool) { return false; };
  const Measurement m = measure(taking(1e6), taking(1e6), quick(3));
  EXPECT_FALSE(m.ok);
  EXPECT_EQ(m.reason, "baseline failed on another rank (before timing)");
}

TEST_F(Measure, gives_all_memory_back) {
  measure(taking(1e6), taking(1e6), quick(2));
  EXPECT_EQ(backend_.live_buffers(), 0u);
}

}  // namespace
}  // namespace gauntlet::lab::inline measure
