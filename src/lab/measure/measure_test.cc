#include "lab/measure/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "lab/measure/fake_backend.h"

namespace gauntlet::lab::inline measure {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Sample = FakeBackend::Sample;

/// No real time is waited for, and the budget never ends a measurement.
MeasureOptions quick(int fixed_blocks = 0) {
  return {.budget_s = 1e6,
          .fixed_blocks = fixed_blocks,
          .warmup_s = 0,
          .warmup_runs = 1,
          .checked_blocks = 0,
          .seed = 5};
}

class Measure : public testing::Test {
 protected:
  /// A right side that takes so long, then does whatever else.
  TwiceFactory taking(double ns, std::function<void(const TwiceParams&)> extra = {}) {
    return [this, ns, extra](const TwiceParams& p) {
      return Side([this, ns, extra, p] {
        twice(p);
        backend_.spend(ns);
        if (extra) extra(p);
      });
    };
  }
  Measurement measure(const Target& target, const MeasureOptions& options,
                      const std::function<void(const MeasureProgress&)>& progress = {}) {
    const Knobs knobs = Knobs::defaults(target.pair.knobs, backend_.kind());
    return measure_pair(target, knobs, backend_, options, progress);
  }
  Measurement measure(const TwiceFactory& baseline, const TwiceFactory& optimized,
                      const MeasureOptions& options) {
    return measure(twice_target(baseline, optimized), options);
  }
  /// The samples of the last blocks that count, four each; ahead of each goes a run that does not.
  std::vector<Sample> last_blocks(std::size_t blocks) const {
    EXPECT_GE(backend_.samples.size(), 8 * blocks);
    std::vector<Sample> counted;
    for (std::size_t i = backend_.samples.size() - 8 * blocks; i < backend_.samples.size();
         i += 2) {
      EXPECT_EQ(backend_.samples[i].runs, 1);
      EXPECT_EQ(backend_.samples[i].side, backend_.samples[i + 1].side);
      EXPECT_EQ(backend_.samples[i].params, backend_.samples[i + 1].params);
      counted.push_back(backend_.samples[i + 1]);
    }
    return counted;
  }

  FakeBackend backend_;
};

TEST_F(Measure, takes_blocks_in_abba_order_and_lets_either_side_begin) {
  const Measurement m = measure(taking(3e6), taking(2e6), quick(20));
  ASSERT_TRUE(m.ok) << m.reason;
  const auto samples = last_blocks(20);
  std::set<int> began;
  for (std::size_t i = 0; i < samples.size(); i += 4) {
    EXPECT_EQ(samples[i].side, samples[i + 3].side);
    EXPECT_EQ(samples[i + 1].side, samples[i + 2].side);
    EXPECT_NE(samples[i].side, samples[i + 1].side);
    began.insert(samples[i].side);
  }
  EXPECT_EQ(began, (std::set<int>{kBaseline, kOptimized}));
}

TEST_F(Measure, rotates_the_inputs_and_gives_both_sides_the_same) {
  ASSERT_TRUE(measure(taking(3e6), taking(2e6), quick(6)).ok);
  const auto samples = last_blocks(6);
  std::vector<const void*> sets;
  for (std::size_t i = 0; i < samples.size(); i += 2) {
    EXPECT_EQ(samples[i].params, samples[i + 1].params);
    sets.push_back(samples[i].params);
  }
  EXPECT_EQ(std::set<const void*>(sets.begin(), sets.begin() + 3).size(), 3u);
  for (std::size_t i = 0; i + 3 < sets.size(); ++i) EXPECT_EQ(sets[i], sets[i + 3]);
}

TEST_F(Measure, reports_the_time_of_one_run) {
  const Measurement m = measure(taking(3e6), taking(2e3), quick(4));
  ASSERT_EQ(m.blocks.size(), 4u);
  EXPECT_EQ(m.conditions.blocks, 4);
  for (const Block& block : m.blocks) {
    for (int i : {0, 1}) {
      EXPECT_DOUBLE_EQ(block.baseline_ns[i], 3e6);
      EXPECT_DOUBLE_EQ(block.optimized_ns[i], 2e3);
    }
  }
}

TEST_F(Measure, keeps_the_times_of_each_half_apart) {
  double step = 0;
  const auto growing = [&](const TwiceParams&) { backend_.spend(1e3 * ++step); };
  const Measurement m = measure(taking(2e6, growing), taking(2e6), quick(1));
  ASSERT_EQ(m.blocks.size(), 1u);
  // The run ahead of the second sample grows it, too.
  EXPECT_DOUBLE_EQ(m.blocks[0].baseline_ns[1] - m.blocks[0].baseline_ns[0], 2e3);
  EXPECT_EQ(m.blocks[0].optimized_ns[0], m.blocks[0].optimized_ns[1]);
}

TEST_F(Measure, repeats_short_runs_until_a_sample_is_long_enough) {
  const Measurement m = measure(taking(5e6), taking(1e3), quick(2));
  EXPECT_EQ(m.repetitions[kBaseline], 1);
  EXPECT_EQ(m.repetitions[kOptimized], 1000);
  for (const Sample& sample : last_blocks(2)) {
    EXPECT_EQ(sample.runs, sample.side == kBaseline ? 1 : 1000);
  }
}

TEST_F(Measure, is_not_misled_by_what_a_single_run_costs_to_start) {
  backend_.overhead_ns = 9e3;
  // Alone a run takes 10 us, which says 100; a hundred together take 109 us.
  EXPECT_EQ(measure(taking(1e3), taking(1e6), quick(1)).repetitions[kBaseline], 918);
}

TEST_F(Measure, limits_the_repetitions) {
  Target target = twice_target(taking(0.5), taking(1e6));
  target.pair.knobs[0].cuda = 1;
  EXPECT_EQ(measure(target, quick(1)).repetitions[kBaseline], 100000);
}

TEST_F(Measure, flushes_the_caches_before_each_cold_run) {
  MeasureOptions options = quick(3);
  options.cold = true;
  const Measurement m = measure(taking(1e3), taking(1e3), options);
  ASSERT_TRUE(m.ok) << m.reason;
  EXPECT_TRUE(m.conditions.cold);
  EXPECT_EQ(m.repetitions[kBaseline], 1);
  EXPECT_EQ(static_cast<std::size_t>(backend_.flushes), backend_.samples.size());
  for (const Sample& sample : backend_.samples) EXPECT_EQ(sample.runs, 1);
}

TEST_F(Measure, never_flushes_when_hot) {
  measure(taking(1e6), taking(1e6), quick(3));
  EXPECT_EQ(backend_.flushes, 0);
}

TEST_F(Measure, resets_before_each_run_of_a_pair_that_consumes_its_state) {
  int fresh = 0, stale = 0;
  bool ready = false;
  const auto consume = [&](const TwiceParams&) {
    ++(ready ? fresh : stale);
    ready = false;
  };
  Target target = twice_target(taking(1e3, consume), taking(1e3, consume));
  target.pair.reset = [&](const std::shared_ptr<const void>&) { ready = true; };
  ASSERT_TRUE(measure(target, quick(3)).ok);
  EXPECT_EQ(stale, 0);
  EXPECT_GT(fresh, 12);
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
  EXPECT_EQ(backend_.samples.size(), 7u + 7u + 8u);
  backend_.samples.clear();
  options.warmup_runs = 0;
  measure(taking(2e6), taking(1e6), options);
  EXPECT_EQ(backend_.samples.size(), 3u + 3u + 8u) << "every set is met once before it counts";
}

TEST_F(Measure, refuses_a_wrong_side_before_anything_is_timed) {
  const auto spoil = [](const TwiceParams& p) { p.out[0] += 1; };
  const Measurement m = measure(taking(1e6), taking(1e6, spoil), quick(3));
  EXPECT_FALSE(m.ok);
  EXPECT_EQ(m.side, "optimized");
  EXPECT_THAT(m.reason, StartsWith("optimized gave a wrong result: out[0]"));
  EXPECT_THAT(m.reason, HasSubstr("(before timing)"));
  EXPECT_TRUE(backend_.samples.empty());
  EXPECT_TRUE(m.blocks.empty());
  const Measurement other = measure(taking(1e6, spoil), taking(1e6), quick(3));
  EXPECT_EQ(other.side, "baseline");
}

TEST_F(Measure, verifies_again_after_timing) {
  int calls = 0;
  const auto late = [&](const TwiceParams& p) {
    p.out[0] += ++calls > 2 + 3 + 3 * 4 ? 1.0f : 0.0f;
  };
  const Measurement m = measure(taking(1e6), taking(1e6, late), quick(3));
  EXPECT_FALSE(m.ok);
  EXPECT_EQ(m.blocks.size(), 3u);
  EXPECT_THAT(m.reason, HasSubstr("(after timing)"));
}

TEST_F(Measure, counts_its_checks_and_keeps_the_error_of_each_side) {
  const auto round = [](const TwiceParams& p) { p.out[0] = std::nextafter(p.out[0], 10.0f); };
  MeasureOptions options = quick(6);
  options.checked_blocks = 2;
  const Measurement m = measure(taking(1e6), taking(1e6, round), options);
  ASSERT_TRUE(m.ok) << m.reason;
  // Both sides on two seeds before and one after, and both in each checked block.
  EXPECT_EQ(m.verification.checks, 2 * 2 + 2 * 2 + 2);
  EXPECT_EQ(m.side_error[kBaseline], 0);
  EXPECT_GT(m.side_error[kOptimized], 0);
  EXPECT_EQ(m.verification.max_error, m.side_error[kOptimized]);
  EXPECT_EQ(m.verification.bound, Rounding{.length = 1}.bound());
}

/// Gives the right answer while it is verified, and from then on something else.
struct Cheat {
  int honest_calls = 2 + 3;  // two seeds before timing, a warm-up on each set
  int calls = 0;
  bool cheating() { return ++calls > honest_calls; }
};

TEST_F(Measure, catches_a_side_that_does_nothing_once_it_is_timed) {
  Cheat cheat;
  const TwiceFactory lazy = [&](const TwiceParams& p) {
    return Side([this, &cheat, p] {
      if (!cheat.cheating()) twice(p);
      backend_.spend(1e6);
    });
  };
  MeasureOptions options = quick(8);
  options.checked_blocks = 1;
  const Measurement m = measure(taking(1e6), lazy, options);
  EXPECT_FALSE(m.ok);
  EXPECT_EQ(m.side, "optimized");
  EXPECT_THAT(m.reason, HasSubstr("unwritten"));
  EXPECT_THAT(m.reason, HasSubstr("(output of a timed sample)"));
}

TEST_F(Measure, catches_a_side_that_replays_its_answer_to_old_inputs) {
  Cheat cheat;
  std::map<float*, std::vector<float>> kept;  // by set
  const TwiceFactory replaying = [&](const TwiceParams& p) {
    return Side([this, &cheat, &kept, p] {
      backend_.spend(1e6);
      std::vector<float>& answer = kept[p.out];
      if (!cheat.cheating() || answer.empty()) {
        twice(p);
        answer.assign(p.out, p.out + p.n);
      }
      std::copy(answer.begin(), answer.end(), p.out);
    });
  };
  MeasureOptions options = quick(8);
  options.checked_blocks = 1;
  const Measurement m = measure(taking(1e6), replaying, options);
  EXPECT_FALSE(m.ok);
  EXPECT_THAT(m.reason, HasSubstr("(output of a timed sample)"));
}

TEST_F(Measure, counts_a_checked_block_like_any_other) {
  MeasureOptions options = quick(5);
  options.checked_blocks = 5;
  const Measurement m = measure(taking(2e6), taking(1e6), options);
  ASSERT_TRUE(m.ok) << m.reason;
  ASSERT_EQ(m.blocks.size(), 5u);
  for (const Block& block : m.blocks) EXPECT_DOUBLE_EQ(block.ratio(), 2);
}

TEST_F(Measure, checks_timed_outputs_of_a_side_so_slow_that_only_the_first_blocks_are_run) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    MeasureOptions options = quick();
    options.budget_s = 0;
    options.checked_blocks = 2;
    options.seed = seed;
    const Measurement m = measure(taking(2e6), taking(1e6), options);
    ASSERT_TRUE(m.ok) << m.reason;
    EXPECT_GE(m.verification.checks, 6) << "four fresh ones and a block's two";
  }
}

TEST_F(Measure, chooses_the_checked_blocks_by_the_seed) {
  std::set<std::size_t> chosen;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    backend_.samples.clear();
    MeasureOptions options = quick(3);
    options.checked_blocks = 1;
    options.seed = seed;
    measure(taking(2e6), taking(1e6), options);
    // A checked block stays on one set.
    const auto samples = last_blocks(3);
    for (std::size_t block = 0; block < 3; ++block) {
      if (samples[4 * block].params == samples[4 * block + 3].params) chosen.insert(block);
    }
  }
  EXPECT_EQ(chosen, (std::set<std::size_t>{0, 1, 2}));
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
  ASSERT_EQ(m.blocks.size(), 4u);
  for (const Block& kept : m.blocks) EXPECT_DOUBLE_EQ(kept.ratio(), 2);
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
}

TEST_F(Measure, records_the_extremes_of_clock_power_and_temperature) {
  int reads = 0;
  backend_.read_sensors = [&] {
    ++reads;
    return GpuState{.sm_clock_mhz = reads == 2 ? 1500.0 : 1980.0,
                    .power_w = 300.0 + reads,
                    .temperature_c = reads == 1 ? 70.0 : 60.0,
                    .throttle_reasons = reads == 3 ? std::vector<std::string>{"power cap"}
                                                   : std::vector<std::string>{"power cap", "sync"}};
  };
  const Conditions c = measure(taking(2e6), taking(1e6), quick(4)).conditions;
  EXPECT_EQ(c.sm_clock_mhz_min, 1500);
  EXPECT_EQ(c.sm_clock_mhz_max, 1980);
  EXPECT_EQ(c.power_w_max, 304);
  EXPECT_EQ(c.temperature_c_max, 70);
  EXPECT_EQ(c.throttle_reasons, (std::vector<std::string>{"power cap", "sync"}));
}

TEST_F(Measure, refuses_work_that_escapes_its_stream) {
  const auto escape = [&](const TwiceParams&) { backend_.spend_elsewhere(4e6); };
  const Measurement m = measure(taking(5e6), taking(1e6, escape), quick(8));
  EXPECT_FALSE(m.ok);
  EXPECT_EQ(m.side, "optimized");
  EXPECT_EQ(m.reason,
            "optimized does work outside of its stream: events saw 1.00 ms, but the device was "
            "busy for 5.00 ms");
}

TEST_F(Measure, allows_what_launching_costs_and_a_stray_interruption) {
  const auto launch = [&](const TwiceParams&) { backend_.spend_elsewhere(500e3); };
  EXPECT_TRUE(measure(taking(1e6, launch), taking(1e6, launch), quick(8)).ok);
  int samples = 0;
  const auto interrupted = [&](const TwiceParams&) {
    if (++samples == 5 || samples == 8) backend_.spend_elsewhere(50e6);
  };
  EXPECT_TRUE(measure(taking(1e6, interrupted), taking(1e6), quick(8)).ok);
}

TEST_F(Measure, does_not_look_for_escaped_work_on_a_cpu_or_after_a_flush) {
  const auto escape = [&](const TwiceParams&) { backend_.spend_elsewhere(50e6); };
  MeasureOptions cold = quick(5);
  cold.cold = true;
  EXPECT_TRUE(measure(taking(1e6, escape), taking(1e6), cold).ok);
  FakeBackend cpu(BackendKind::cpu);
  const Target target = twice_target(
      [&](const TwiceParams& p) {
        return Side([&, p] {
          twice(p);
          cpu.spend(1e6);
          cpu.spend_elsewhere(50e6);
        });
      },
      taking(1e6));
  const Knobs knobs = Knobs::defaults(target.pair.knobs, BackendKind::cpu);
  EXPECT_TRUE(measure_pair(target, knobs, cpu, quick(5), {}).ok);
}

TEST_F(Measure, enters_and_leaves_a_side_around_each_of_its_samples) {
  const char* inside = "nobody";
  bool mixed = false;
  const auto stateful = [&](const char* name) -> TwiceFactory {
    return [this, &inside, &mixed, name](const TwiceParams& p) {
      Side side([this, &inside, &mixed, name, p] {
        mixed = mixed || inside != name;
        twice(p);
        backend_.spend(1e6);
      });
      side.enter = [&inside, &mixed, name] {
        mixed = mixed || std::string_view(inside) != "nobody";
        inside = name;
      };
      side.leave = [&inside] { inside = "nobody"; };
      return side;
    };
  };
  MeasureOptions options = quick(4);
  options.checked_blocks = 1;
  ASSERT_TRUE(measure(stateful("baseline"), stateful("optimized"), options).ok);
  EXPECT_FALSE(mixed);
  EXPECT_STREQ(inside, "nobody");
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
  EXPECT_EQ(m.facts[kOptimized].at("registers"), 32);
  EXPECT_TRUE(m.facts[kBaseline].empty());
  EXPECT_EQ(phases, (std::set<std::string>{"verify", "calibrate", "measure", "verify again"}));
  EXPECT_DOUBLE_EQ(ratio, 3);
}

TEST_F(Measure, gives_all_memory_back) {
  measure(taking(1e6), taking(1e6), quick(2));
  EXPECT_EQ(backend_.live_buffers(), 0u);
}

}  // namespace
}  // namespace gauntlet::lab::inline measure
