// Measuring on a fake backend, so that the clock of the machine decides nothing.
#pragma once
#include <gtest/gtest.h>

#include "lab/measure/fake_backend.h"
#include "lab/measure/measure.h"

namespace gauntlet::lab::inline measure {

/// No real time is waited for, and the budget never ends a measurement.
inline MeasureOptions quick(int fixed_blocks = 0) {
  return {
      .budget_s = 1e6, .fixed_blocks = fixed_blocks, .warmup_s = 0, .warmup_runs = 1, .seed = 5};
}

/// Every sample and every check take a millisecond by the machine's clock, so that half of the
/// samples are checked.
class FakeMeasuring : public testing::Test {
 protected:
  FakeMeasuring() {
    backend_.on_agree = [](double) { return 1e-3; };
  }

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
    return measure_target(target, knobs, backend_, options, progress);
  }
  Measurement measure(const TwiceFactory& baseline, const TwiceFactory& optimized,
                      const MeasureOptions& options) {
    return measure(twice_target(baseline, optimized), options);
  }
  /// The samples that are part of a block.
  std::vector<FakeBackend::Sample> counted(std::size_t blocks, std::size_t sides = 2) const {
    std::vector<FakeBackend::Sample> counted;
    for (const FakeBackend::Sample& sample : backend_.samples) {
      const bool full = counted.size() == 2 * sides * blocks;
      if (sample.watched && !sample.partial && !full) counted.push_back(sample);
    }
    EXPECT_EQ(counted.size(), 2 * sides * blocks);
    return counted;
  }

  FakeBackend backend_;
};

}  // namespace gauntlet::lab::inline measure
