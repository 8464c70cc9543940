// Does measuring find the sides that save work where it could go unseen? The planted lies
// (tests/lies) in miniature, on a clock that the test moves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "lab/measure/fake_measuring.h"

namespace gauntlet::lab::inline measure {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// A right baseline against a cheat, in several processes.
class Cheats : public FakeMeasuring {
 protected:
  /// A side whose single run is what `make` returns, and costs 1 ms.
  TwiceFactory side(const std::function<std::function<void()>(const TwiceParams&)>& make) {
    return [this, make](const TwiceParams& p) {
      return Side([this, run = make(p)] {
        run();
        backend_.spend(1e6);
      });
    };
  }
  Measurement against(const TwiceFactory& cheat, std::uint64_t seed = 5, int blocks = 40) {
    Target target = twice_target(taking(1e6), cheat);
    target.pair.knobs[0].cuda = n_;
    MeasureOptions options = quick(blocks);
    options.least_traps = least_traps_;
    options.seed = seed;
    return measure(target, options);
  }
  /// Every one of several processes finds the cheat, and when.
  void expect_caught(const TwiceFactory& cheat, const std::string& when) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const Measurement m = against(cheat, seed);
      EXPECT_FALSE(m.ok) << "seed " << seed;
      EXPECT_EQ(m.side, "optimized");
      EXPECT_THAT(m.reason, HasSubstr(when));
    }
  }

  std::int64_t n_ = 500;
  int least_traps_ = 2;
};

constexpr const char* kTimed = "(output of a timed sample)";
constexpr const char* kBefore = "(before timing)";

TEST_F(Cheats, pass_when_they_are_none) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Measurement m = against(taking(1e6), seed);
    EXPECT_TRUE(m.ok) << m.reason;
  }
}

TEST_F(Cheats, that_are_wrong_at_once_are_not_timed) {
  const auto spoil = [](const TwiceParams& p) { p.out[0] += 1; };
  const Measurement m = measure(taking(1e6), taking(1e6, spoil), quick(3));
  EXPECT_FALSE(m.ok);
  EXPECT_EQ(m.side, "optimized");
  EXPECT_THAT(m.reason, StartsWith("optimized gave a wrong result: out[0]"));
  EXPECT_THAT(m.reason, HasSubstr(kBefore));
  EXPECT_TRUE(backend_.samples.empty());
  EXPECT_TRUE(m.blocks.empty());
  EXPECT_EQ(measure(taking(1e6, spoil), taking(1e6), quick(3)).side, "baseline");
}

TEST_F(Cheats, that_trust_outputs_without_poison_are_wrong) {
  expect_caught(side([](const TwiceParams& p) {
                  return [p] {
                    if (std::isnan(p.out[0])) twice(p);
                  };
                }),
                kTimed);
}

TEST_F(Cheats, that_trust_outputs_which_fit_a_few_inputs_are_wrong) {
  n_ = 1 << 16;
  least_traps_ = 12;
  expect_caught(side([](const TwiceParams& p) {
                  return [p] {
                    for (std::int64_t i = 0; i < 8; ++i) {
                      const std::int64_t at = i * (p.n - 1) / 7;
                      if (p.out[at] != 2 * p.in[at]) return twice(p);
                    }
                  };
                }),
                kTimed);
}

TEST_F(Cheats, that_compare_a_few_words_of_their_inputs_are_wrong) {
  n_ = 1 << 16;
  least_traps_ = 12;
  expect_caught(side([](const TwiceParams& p) {
                  const auto known = std::make_shared<std::array<float, 8>>();
                  return [p, known] {
                    std::array<float, 8> words;
                    for (std::size_t i = 0; i < 8; ++i) {
                      words[i] = p.in[static_cast<std::int64_t>(i) * (p.n - 1) / 7];
                    }
                    if (words == *known && !std::isnan(p.out[0])) return;
                    twice(p);
                    *known = words;
                  };
                }),
                kTimed);
}

TEST_F(Cheats, that_stop_working_after_a_while_are_wrong) {
  for (const int honest : {5, 12, 40}) {
    const auto calls = std::make_shared<int>(0);
    const Measurement m = against(side([&](const TwiceParams& p) {
      return [p, calls, honest] {
        if (++*calls <= honest) twice(p);
      };
    }));
    EXPECT_FALSE(m.ok) << honest;
    EXPECT_THAT(m.reason, HasSubstr(kTimed));
  }
}

TEST_F(Cheats, that_skip_three_runs_in_ten_are_wrong) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto random = std::make_shared<Random>(seed);
    const auto skipping = side([&](const TwiceParams& p) {
      return [p, random] {
        if (random->next_below(10) >= 3) twice(p);
      };
    });
    EXPECT_FALSE(against(skipping, seed).ok) << seed;
  }
}

TEST_F(Cheats, that_skip_three_of_the_runs_of_a_sample_are_wrong) {
  // A sample of ten runs, of whose outputs one is looked at.
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    int calls = 0;
    const TwiceFactory skipping = [&](const TwiceParams& p) {
      return Side([this, &calls, p] {
        if (++calls % 10 >= 3) twice(p);
        backend_.spend(1e5);
      });
    };
    EXPECT_FALSE(against(skipping, seed).ok) << seed;
  }
}

TEST_F(Cheats, that_work_in_the_first_run_of_a_sample_alone_are_wrong) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    bool first = false;
    const TwiceFactory once = [&](const TwiceParams& p) {
      Side side([this, &first, p] {
        if (first) twice(p);
        first = false;
        backend_.spend(1e5);
      });
      side.enter = [&first] { first = true; };
      return side;
    };
    EXPECT_THAT(against(once, seed).reason, HasSubstr(kTimed));
  }
}

TEST_F(Cheats, that_replay_answers_to_old_inputs_are_wrong) {
  int calls = 0;
  const TwiceFactory replaying = side([&](const TwiceParams& p) {
    const auto kept = std::make_shared<std::vector<float>>();
    return [p, kept, &calls] {
      if (++calls < 4 || kept->empty()) {
        twice(p);
        kept->assign(p.out, p.out + p.n);
      }
      std::copy(kept->begin(), kept->end(), p.out);
    };
  });
  EXPECT_THAT(against(replaying).reason, HasSubstr(kTimed));
}

TEST_F(Cheats, that_work_in_enter_or_leave_are_wrong) {
  expect_caught(
      [this](const TwiceParams& p) {
        Side lazy([this] { backend_.spend(1); });
        lazy.enter = [p] { twice(p); };
        return lazy;
      },
      kBefore);
  expect_caught(
      [this](const TwiceParams& p) {
        Side lazy([this] { backend_.spend(1); });
        lazy.leave = [p] { twice(p); };
        return lazy;
      },
      kBefore);
}

TEST_F(Cheats, that_work_in_enter_or_leave_once_they_are_timed_are_wrong) {
  for (const bool in_enter : {true, false}) {
    int calls = 0;
    const TwiceFactory cheat = [&](const TwiceParams& p) {
      Side lazy([this, &calls, p] {
        backend_.spend(1e6);
        if (++calls < 5) twice(p);
      });
      (in_enter ? lazy.enter : lazy.leave) = [p] { twice(p); };
      return lazy;
    };
    EXPECT_THAT(against(cheat).reason, HasSubstr(kTimed));
  }
}

TEST_F(Cheats, that_go_wrong_after_the_last_sample_are_found_by_the_last_check) {
  bool late = false;
  const auto spoil = [&](const TwiceParams& p) { p.out[0] += late ? 1.0f : 0.0f; };
  const Measurement m =
      measure(twice_target(taking(1e6), taking(1e6, spoil)), quick(3),
              [&](const MeasureProgress& p) { late = p.phase == "verify again"; });
  EXPECT_FALSE(m.ok);
  EXPECT_EQ(m.blocks.size(), 3u);
  EXPECT_THAT(m.reason, HasSubstr("(after timing)"));
}

TEST_F(Cheats, on_another_stream_are_found_however_they_space_it) {
  // Always 28% of the work; all of it but in one honest sample; in every fourth sample.
  int samples = 0;
  const auto always = [&](const TwiceParams&) { backend_.spend_after(0.28e6); };
  const auto but_one = [&](const TwiceParams&) {
    if (++samples != 6) backend_.spend_after(10e6);
  };
  const auto now_and_then = [&](const TwiceParams&) {
    if (++samples % 4 == 0) backend_.spend_after(10e6);
  };
  for (const std::function<void(const TwiceParams&)>& escape :
       {std::function<void(const TwiceParams&)>(always), {but_one}, {now_and_then}}) {
    const Measurement m = against(taking(1e6, escape));
    EXPECT_EQ(m.side, "optimized");
    EXPECT_THAT(m.reason, StartsWith("optimized does work outside of its stream: events saw "));
  }
}

TEST_F(Cheats, that_work_before_their_clock_are_found) {
  // A thread of the side's works while the lab makes inputs.
  bool busy = false;
  backend_.on_event = [&](const char* event) {
    if (busy && std::string_view(event) == "time") backend_.spend_before(3e6);
  };
  const TwiceFactory cheat = [&](const TwiceParams& p) {
    Side early = taking(1e6)(p);
    early.enter = [&] { busy = true; };
    early.leave = [&] { busy = false; };
    return early;
  };
  EXPECT_THAT(against(cheat).reason, StartsWith("optimized does work before its clock starts"));
}

TEST_F(Cheats, that_leave_a_process_are_found_by_the_first_sample) {
  const Measurement m = against(taking(1e6, [&](const TwiceParams&) { backend_.leave_process(); }));
  EXPECT_THAT(m.reason, StartsWith("optimized left a process of its own running"));
  EXPECT_LE(m.blocks.size(), 1u);
}

TEST_F(Cheats, are_not_seen_in_what_launching_costs_and_a_stray_interruption) {
  const auto launch = [&](const TwiceParams&) { backend_.spend_after(20e3); };
  EXPECT_TRUE(measure(taking(1e6, launch), taking(1e6, launch), quick(8)).ok);
  int samples = 0;
  const auto interrupted = [&](const TwiceParams&) {
    if (++samples == 9 || samples == 14) backend_.spend_after(50e6);
  };
  EXPECT_TRUE(measure(taking(1e6, interrupted), taking(1e6), quick(8)).ok);
}

TEST_F(Cheats, have_escaped_work_counted_before_they_are_found_out) {
  const auto escape = [&](const TwiceParams&) { backend_.spend_after(4e6); };
  const Measurement m = measure(taking(1e6), taking(1e6, escape), quick(8));
  ASSERT_FALSE(m.blocks.empty());
  EXPECT_DOUBLE_EQ(m.blocks[0].mean(1), 5e6);
}

TEST_F(Cheats, are_looked_for_in_every_side_as_often_as_asked) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    // So short a measurement that chance alone would often leave a side unchecked.
    MeasureOptions options = quick(1);
    options.seed = seed;
    options.least_checks = 3;
    options.least_traps = 2;
    backend_.samples.clear();
    const Measurement m = measure(taking(1e6), taking(1e6), options);
    ASSERT_TRUE(m.ok) << m.reason;
    for (const std::size_t side : {0, 1}) {
      int samples = 0, checks = 0, traps = 0;
      for (const FakeBackend::Sample& sample : backend_.samples) {
        if (sample.side != side || !sample.watched) continue;
        if (sample.checked) ++(sample.partial ? traps : checks);
        samples += !sample.partial;
      }
      EXPECT_GE(checks, 3);
      EXPECT_GE(traps, 2);
      EXPECT_LE(samples, 2 + 3) << "beside the block no more than what is lacking";
    }
    EXPECT_EQ(m.verification.timed_checks,
              std::ranges::count_if(backend_.samples, [](const FakeBackend::Sample& sample) {
                return sample.watched && sample.checked;
              }));
    // Both sides on two seeds before and one after.
    EXPECT_EQ(m.verification.checks, m.verification.timed_checks + 6);
    EXPECT_EQ(m.blocks.size(), 1u) << "what is made up for does not count";
  }
}

TEST_F(Cheats, cannot_tell_a_checked_sample_by_its_place) {
  // Which of the ten counted samples of a side are checked, over many processes.
  std::vector<int> checked(10);
  constexpr int kProcesses = 300;
  for (std::uint64_t seed = 0; seed < kProcesses; ++seed) {
    backend_.samples.clear();
    MeasureOptions options = quick(5);
    options.least_checks = options.least_traps = 0;
    options.seed = seed;
    ASSERT_TRUE(measure(taking(1e6), taking(1e6), options).ok);
    std::size_t place = 0;
    for (const FakeBackend::Sample& sample : counted(5)) {
      if (sample.side == 0) checked[place++] += sample.checked;
    }
  }
  // Half of 300, and five standard deviations.
  for (const int count : checked) EXPECT_NEAR(count, 150, 44);
}

TEST_F(Cheats, leave_the_error_of_each_side_apart) {
  const auto round = [](const TwiceParams& p) { p.out[0] = std::nextafter(p.out[0], 10.0f); };
  const Measurement m = measure(taking(1e6), taking(1e6, round), quick(6));
  ASSERT_TRUE(m.ok) << m.reason;
  EXPECT_EQ(m.sides[0].error, 0);
  EXPECT_GT(m.sides[1].error, 0);
  EXPECT_EQ(m.verification.max_error, m.sides[1].error);
  EXPECT_GT(m.verification.bound, m.verification.max_error);
}

TEST_F(Cheats, enter_before_their_inputs_exist_and_leave_after_the_judging) {
  std::string order;
  std::set<std::string> seen;
  const auto note = [&](const std::string& what) {
    if (what != "enter" && order.empty()) return;
    if (what == "enter" && !order.empty()) {
      seen.insert(order);
      order.clear();
    }
    if (!order.ends_with(what + " ")) order += what + " ";
  };
  const TwiceFactory noting = [&](const TwiceParams& p) {
    Side side([this, &note, p] {
      note("run");
      twice(p);
      backend_.spend(1e6);
    });
    side.enter = [&note] { note("enter"); };
    side.leave = [&note] { note("leave"); };
    return side;
  };
  backend_.on_event = note;
  ASSERT_TRUE(measure(noting, noting, quick(20)).ok);
  // Checked and not, poisoned and not, in a sample, in calibration, and when verified by itself.
  EXPECT_THAT(seen,
              testing::IsSupersetOf({"enter watch renew time run leave ",
                                     "enter watch renew set_bytes time run leave ",
                                     "enter watch renew time run download leave ",
                                     "enter watch renew set_bytes time run download leave "}));
  for (const std::string& one : seen) {
    EXPECT_THAT(one, StartsWith("enter "));
    EXPECT_THAT(one, testing::EndsWith("leave "));
    EXPECT_LT(one.find("renew"), one.find("run")) << one;
  }
}

TEST_F(Cheats, find_no_other_side_inside_of_their_state) {
  const char* inside = "nobody";
  bool mixed = false;
  const auto stateful = [&](const char* name) -> TwiceFactory {
    return [this, &inside, &mixed, name](const TwiceParams& p) {
      Side side([this, &inside, &mixed, name, p] {
        mixed = mixed || inside != name;
        twice(p);
        backend_.spend(1e5);
      });
      side.enter = [&inside, &mixed, name] {
        mixed = mixed || (std::string_view(inside) != "nobody" && inside != name);
        inside = name;
      };
      side.leave = [&inside] { inside = "nobody"; };
      return side;
    };
  };
  ASSERT_TRUE(measure(stateful("baseline"), stateful("optimized"), quick(4)).ok);
  EXPECT_FALSE(mixed);
  EXPECT_STREQ(inside, "nobody");
}

}  // namespace
}  // namespace gauntlet::lab::inline measure
