// Evidence for tests: processes whose times do not vary, and what a test adds to them.
#pragma once
#include <gtest/gtest.h>

#include <vector>

#include "lab/measure/fake_backend.h"
#include "lab/run/judge.h"

namespace gauntlet::lab::inline run {

/// What one process measured: blocks whose times do not vary.
inline Measurement measured(const std::vector<double>& ns, int blocks = 8) {
  Measurement m;
  stats::Block block;
  for (const double side : ns) block.ns.push_back({side, side});
  m.blocks.assign(static_cast<std::size_t>(blocks), block);
  m.sides.resize(ns.size());
  for (SideMeasurement& side : m.sides) side.repetitions = 1;
  m.conditions.blocks = blocks;
  m.verification.checks = 6;
  m.verification.timed_checks = 4;
  m.sets = 1;
  m.set_bytes = 4000;
  return m;
}

/// What one process found when the GPU was hot throughout.
inline Measurement too_hot(std::size_t sides) {
  Measurement m;
  m.ok = false;
  m.reason = "all 6 blocks were dropped";
  m.sides.resize(sides);
  m.conditions.dropped_blocks = 6;
  return m;
}

/// Three processes of the doubling pair: 3000 ns against 2000.
class Judging : public testing::Test {
 protected:
  Judging() : target_(twice_target()) { all_measure({3000, 2000}); }

  Result judged(BackendKind backend = BackendKind::cuda) {
    const Knobs knobs = Knobs::defaults(target_.pair.knobs, backend);
    Result result = describe(target_, backend, knobs);
    judge(result, target_, knobs, evidence_);
    return result;
  }
  void all_measure(const std::vector<double>& ns, std::size_t processes = 3) {
    evidence_.processes.assign(processes, measured(ns));
  }
  void set_fact(const std::string& name, const std::vector<double>& sides) {
    for (Measurement& m : evidence_.processes) {
      for (std::size_t i = 0; i < sides.size(); ++i) m.sides[i].facts[name] = sides[i];
    }
  }
  void set_outcome(const std::string& name, const std::vector<double>& sides) {
    for (Measurement& m : evidence_.processes) {
      for (std::size_t i = 0; i < sides.size(); ++i) m.sides[i].outcomes[name] = sides[i];
    }
  }
  void set_counter(const std::string& name, const std::vector<double>& sides) {
    if (!evidence_.profile) {
      // A profile has the traffic, as much as declared; tests of it say otherwise.
      evidence_.profile.emplace();
      evidence_.profile->sides.assign(
          sides.size(),
          {.counters = {{"dram__bytes_read.sum", 2000}, {"dram__bytes_write.sum", 2000}}});
    }
    for (std::size_t i = 0; i < sides.size(); ++i) {
      evidence_.profile->sides[i].counters[name] = sides[i];
    }
  }
  BackendFacts& cuda() { return *target_.pair.cuda; }
  static const WitnessResult& witness(const Result& result) { return result.headline().witness; }

  Target target_;
  Evidence evidence_;
};

}  // namespace gauntlet::lab::inline run
