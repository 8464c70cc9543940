#include "lab/measure/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <memory>
#include <set>

#include "core/check.h"

namespace gauntlet::lab::inline measure {
namespace {

// Event time may miss this much of the wall time before work is said to have escaped: launch and
// synchronisation cost tens of microseconds, a sample takes milliseconds.
constexpr double kEscapeRatio = 1.3;
constexpr double kEscapeSlackNs = 300e3;
// Work that escapes does so in every sample; a host that was not scheduled for a while does not.
constexpr int kEscapeStrikes = 5;
constexpr int kAlwaysRun = 3;  // blocks, however slow a side is
constexpr std::int64_t kMaxRepetitions = 100000;
constexpr std::int64_t kMaxSetBytes = std::int64_t{3} << 30;

class PairMeasurer {
 public:
  PairMeasurer(const Target& target, const Knobs& knobs, Backend& backend,
               const MeasureOptions& options,
               const std::function<void(const MeasureProgress&)>& progress)
      : target_(target),
        backend_(backend),
        options_(options),
        progress_(progress),
        random_(options.seed) {
    make_sets(knobs);
    single_run_ = options.cold || target.pair.reset != nullptr;
    result_.conditions.cold = options.cold;
  }

  Measurement run() {
    if (!verify_fresh("verify", 2)) return std::move(result_);
    for (auto& set : sets_) set->fill(random_.next());
    warm_up_and_calibrate();
    if (!measure_blocks()) return std::move(result_);
    verify_fresh("verify again", 1);
    return std::move(result_);
  }

 private:
  void make_sets(const Knobs& knobs) {
    std::int64_t bytes = 0;
    // Small sets are cheap to rotate more; large ones leave the caches by themselves.
    const auto wanted = [&] { return bytes < (64 << 20) ? 3u : 2u; };
    do {
      sets_.push_back(std::make_unique<BufferSet>(target_, knobs, backend_));
      bytes = sets_.back()->bytes();
      auto& sides = sides_.emplace_back();
      for (SideIndex side : {kBaseline, kOptimized}) {
        sides.push_back(backend_.make_side(target_, side, sets_.back()->params()));
      }
    } while (sets_.size() < wanted() &&
             bytes * static_cast<std::int64_t>(sets_.size() + 1) < kMaxSetBytes);
    for (SideIndex side : {kBaseline, kOptimized}) result_.facts[side] = sides_[0][side].facts;
  }

  void report(const std::string& phase, int side) {
    if (progress_) {
      progress_({.phase = phase,
                 .side = side < 0 ? "" : side_name(side),
                 .ratio = ratio_,
                 .blocks = static_cast<int>(result_.blocks.size())});
    }
  }

  bool accept(const Verdict& verdict, int side, const std::string& when) {
    ++result_.verification.checks;
    if (!verdict.ok) {
      result_.ok = false;
      result_.side = side_name(side);
      result_.reason = fmt::format("{} {} ({})", side_name(side), verdict.reason, when);
    }
    result_.side_error[side] = std::max(result_.side_error[side], verdict.max_error);
    if (verdict.max_error >= result_.verification.max_error) {
      result_.verification.max_error = verdict.max_error;
      result_.verification.bound = verdict.bound;
    }
    result_.verification.checked_percent =
        std::min(result_.verification.checked_percent, verdict.checked_percent);
    return verdict.ok;
  }

  /// Both sides on fresh inputs in the same buffers, `rounds` times over.
  bool verify_fresh(const std::string& phase, int rounds) {
    for (int round = 0; round < rounds; ++round) {
      sets_[0]->fill(random_.next());
      for (SideIndex side : {kBaseline, kOptimized}) {
        report(phase, side);
        const Verdict verdict = verifier_.run(*sets_[0], sides_[0][side], side);
        if (!accept(verdict, side, phase == "verify" ? "before timing" : "after timing")) {
          return false;
        }
      }
    }
    return true;
  }

  /// Time of one sample, in ns per run.
  double sample(std::size_t set, SideIndex side, std::int64_t repetitions) {
    const Side& runner = sides_[set][side];
    if (runner.enter) runner.enter();
    if (single_run_) {
      sets_[set]->reset();
      if (options_.cold) backend_.flush_caches();
    }
    const Timing timing = backend_.time([&] {
      for (std::int64_t i = 0; i < repetitions; ++i) runner.run();
    });
    if (runner.leave) runner.leave();
    watch_for_escape(timing, side);
    return timing.ns / static_cast<double>(repetitions);
  }

  /// A sample of a block. Which side is the first to meet a set must not show, so an untimed run
  /// goes ahead.
  double hot_sample(std::size_t set, SideIndex side) {
    if (!single_run_) sample(set, side, 1);
    return sample(set, side, result_.repetitions[side]);
  }

  void watch_for_escape(const Timing& timing, SideIndex side) {
    // A flush queued ahead of a cold sample is in the wall time, too.
    if (backend_.kind() == BackendKind::cpu || options_.cold) return;
    ++watched_[side];
    if (timing.wall_ns < kEscapeRatio * timing.ns + kEscapeSlackNs) return;
    escaped_[side].push_back(timing);
  }

  void warm_up_and_calibrate() {
    for (SideIndex side : {kBaseline, kOptimized}) {
      report("calibrate", side);
      double best_ns = INFINITY, spent_ns = 0;
      int runs = 0;
      // Every set at least once, so that no block is the first to meet one.
      const int least = std::max(options_.warmup_runs, static_cast<int>(sets_.size()));
      while (runs < least || spent_ns < options_.warmup_s * 1e9) {
        const auto begin = std::chrono::steady_clock::now();
        best_ns = std::min(best_ns, sample(static_cast<std::size_t>(runs) % sets_.size(), side, 1));
        const std::chrono::duration<double, std::nano> took =
            std::chrono::steady_clock::now() - begin;
        spent_ns += took.count();
        ++runs;
      }
      escaped_[side].clear();
      watched_[side] = 0;
      std::int64_t repetitions = 1;
      if (!single_run_) {
        // A single cold-started run overstates short work: refine with a first guess. A disturbed
        // refinement is slower than the best single run and must not make this side's samples
        // shorter than the other's.
        const auto guess = [&](double ns) {
          return std::clamp<std::int64_t>(
              static_cast<std::int64_t>(std::ceil(backend_.min_sample_ns() / std::max(ns, 1.0))), 1,
              kMaxRepetitions);
        };
        repetitions = guess(best_ns);
        if (repetitions > 1) repetitions = guess(std::min(best_ns, sample(0, side, repetitions)));
      }
      result_.repetitions[side] = repetitions;
    }
  }

  bool measure_blocks() {
    const auto begin = std::chrono::steady_clock::now();
    double checking_s = 0;
    const auto elapsed_s = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() -
             checking_s;
    };
    const int planned = options_.fixed_blocks ? options_.fixed_blocks : options_.min_blocks;
    // One of them is among the first blocks, which are run however slow a side is.
    std::set<int> checked;
    if (options_.checked_blocks > 0) {
      checked.insert(static_cast<int>(
          random_.next_below(static_cast<std::uint64_t>(std::min(planned, kAlwaysRun)))));
    }
    while (static_cast<int>(checked.size()) < std::min(options_.checked_blocks, planned)) {
      checked.insert(static_cast<int>(random_.next_below(static_cast<std::uint64_t>(planned))));
    }
    int attempted = 0;
    for (; !finished(attempted, elapsed_s()); ++attempted) {
      const std::size_t first = static_cast<std::size_t>(2 * attempted) % sets_.size();
      const std::size_t second = (first + 1) % sets_.size();
      if (checked.contains(attempted)) {
        const auto check_begin = std::chrono::steady_clock::now();
        if (!checked_block(first)) return false;
        checking_s +=
            std::chrono::duration<double>(std::chrono::steady_clock::now() - check_begin).count();
        continue;
      }
      Block block;
      const auto order = block_order();
      for (int i = 0; i < 4; ++i) {
        const SideIndex side = order[static_cast<std::size_t>(i)];
        double* ns = side == kBaseline ? block.baseline_ns : block.optimized_ns;
        ns[i / 2] = hot_sample(i < 2 ? first : second, side);
      }
      keep(block);
      if (!escape_ok()) return false;
    }
    if (result_.blocks.empty()) {
      result_.ok = false;
      result_.reason = fmt::format(
          "all {} blocks were dropped: the GPU was slowed by its "
          "temperature throughout",
          result_.conditions.dropped_blocks);
      return false;
    }
    return true;
  }

  /// ABBA or its mirror image by chance. What disturbs at the pace of the blocks themselves
  /// (another process that takes turns with this one) would else always hit the same side.
  std::array<SideIndex, 4> block_order() {
    const bool mirrored = random_.next_below(2) == 1;
    const SideIndex a = mirrored ? kOptimized : kBaseline;
    const SideIndex b = mirrored ? kBaseline : kOptimized;
    return {a, b, b, a};
  }

  /// A block whose inputs are new and whose timed outputs are verified. It counts like any other.
  bool checked_block(std::size_t set) {
    report("check timed outputs", -1);
    sets_[set]->fill(random_.next());
    Block block;
    const auto order = block_order();
    for (int i = 0; i < 4; ++i) {
      const SideIndex side = order[static_cast<std::size_t>(i)];
      sample(set, side, 1);  // re-warms what the new inputs displaced
      sets_[set]->poison_outputs();
      double* ns = side == kBaseline ? block.baseline_ns : block.optimized_ns;
      ns[i / 2] = sample(set, side, result_.repetitions[side]);
      if (i >= 2) continue;
      if (!accept(verifier_.judge(*sets_[set]), side, "output of a timed sample")) return false;
    }
    keep(block);
    return escape_ok();
  }

  void keep(const Block& block) {
    if (const auto state = backend_.sensors()) {
      Conditions& c = result_.conditions;
      c.sm_clock_mhz_min = c.sm_clock_mhz_min == 0
                               ? state->sm_clock_mhz
                               : std::min(c.sm_clock_mhz_min, state->sm_clock_mhz);
      c.sm_clock_mhz_max = std::max(c.sm_clock_mhz_max, state->sm_clock_mhz);
      c.power_w_max = std::max(c.power_w_max, state->power_w);
      c.temperature_c_max = std::max(c.temperature_c_max, state->temperature_c);
      for (const std::string& reason : state->throttle_reasons) {
        if (std::ranges::find(c.throttle_reasons, reason) == c.throttle_reasons.end()) {
          c.throttle_reasons.push_back(reason);
        }
      }
      if (state->thermal_slowdown) {
        ++c.dropped_blocks;
        return;
      }
    }
    result_.blocks.push_back(block);
    ++result_.conditions.blocks;
  }

  bool escape_ok() {
    for (SideIndex side : {kBaseline, kOptimized}) {
      const auto strikes = static_cast<int>(escaped_[side].size());
      if (strikes < kEscapeStrikes || 2 * strikes < watched_[side]) continue;
      const Timing& timing = escaped_[side].back();
      result_.ok = false;
      result_.side = side_name(side);
      result_.reason = fmt::format(
          "{} does work outside of its stream: events saw {:.2f} ms, but the device was busy for "
          "{:.2f} ms",
          side_name(side), timing.ns / 1e6, timing.wall_ns / 1e6);
      return false;
    }
    return true;
  }

  bool finished(int attempted, double elapsed_s) {
    const auto kept = static_cast<int>(result_.blocks.size());
    if (options_.fixed_blocks) return attempted >= options_.fixed_blocks;
    if (attempted >= options_.max_blocks) return true;
    if (attempted < kAlwaysRun) return false;
    if (elapsed_s > options_.budget_s) return true;
    if (kept < options_.min_blocks) return false;
    if (kept % 4 != 0) return false;
    const Estimate ratio =
        estimate({result_.blocks}, [](const Block& b) { return b.ratio(); }, options_.seed);
    ratio_ = ratio.median;
    report("measure", -1);
    return relative_half_width(ratio) < options_.half_width;
  }

  const Target& target_;
  Backend& backend_;
  const MeasureOptions& options_;
  const std::function<void(const MeasureProgress&)>& progress_;
  Random random_;
  std::vector<std::unique_ptr<BufferSet>> sets_;
  std::vector<std::vector<Side>> sides_;  // [set][side]
  bool single_run_ = false;
  Verifier verifier_;
  std::vector<Timing> escaped_[2];
  int watched_[2] = {0, 0};
  double ratio_ = 0;
  Measurement result_;
};

}  // namespace

Measurement measure_pair(const Target& target, const Knobs& knobs, Backend& backend,
                         const MeasureOptions& options,
                         const std::function<void(const MeasureProgress&)>& progress) {
  return PairMeasurer(target, knobs, backend, options, progress).run();
}

}  // namespace gauntlet::lab::inline measure
