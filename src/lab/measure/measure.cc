#include "lab/measure/measure.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>

#include "core/check.h"
#include "core/os/threads.h"
#include "lab/measure/buffer_set.h"
#include "lab/measure/check_schedule.h"
#include "lab/measure/observations.h"
#include "lab/measure/turns.h"
#include "lab/measure/verify.h"
#include "lab/measure/watch/outside_work.h"
#include "lab/measure/watch/shared_state.h"

namespace gauntlet::lab::inline measure {
namespace {

using Clock = std::chrono::steady_clock;
using Renewed = InputVersion::Renewed;

constexpr int kAlwaysRun = 3;  // blocks, however slow a side is
constexpr std::int64_t kMostSets = 64;
// A side whose samples turn out shorter than this share of what they should be was slow when it was
// calibrated, and is calibrated again.
constexpr double kShortSample = 0.5;
constexpr int kMostCalibrations = 3;
constexpr int kMostExtraBlocks = 100;  // for checks that chance left out

double since_s(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// The least that was seen of what happens outside of the clock.
struct SetUp {
  double factory_s = INFINITY;
  double enter_s = INFINITY;  // until there is one

  double total_s() const { return factory_s + (std::isinf(enter_s) ? 0 : enter_s); }
};

class TargetMeasurer {
 public:
  TargetMeasurer(const Target& target, const Knobs& knobs, Backend& backend,
                 const MeasureOptions& options,
                 const std::function<void(const MeasureProgress&)>& progress)
      : target_(target),
        knobs_(knobs),
        backend_(backend),
        options_(options),
        progress_(progress),
        names_(target.sides(backend.kind())),
        random_(options.seed),
        verifier_(random_.next()),
        schedule_(
            {.least_checks = options.least_checks,
             .least_traps = options.least_traps,
             .sure_samples = 2 * (options.fixed_blocks ? options.fixed_blocks : options.min_blocks),
             .budget_s = options.budget_s},
            names_.size(), random_.next()),
        outside_(backend.kind(), names_.size()),
        observations_(names_.size()) {
    single_run_ = options.cold || target.pair.managed_pages == ManagedPages::on_host;
    result_.conditions.cold = options.cold;
    result_.sides.resize(names_.size());
    sample_ns_.resize(names_.size());
    setup_.resize(names_.size());
  }

  Measurement run() {
    // All ranks of this process have their threads, and no side is made yet.
    backend_.synchronize();
    lab_threads_ = thread_ids(getpid());
    backend_.synchronize();
    add_set();
    // What sides changed when they were made is alike for each.
    state_ = SharedState::read(lab_threads_);
    result_.set_bytes = sets_[0]->bytes();
    if (!verify_fresh("verify", 2)) return std::move(result_);
    warm_up_and_calibrate();
    if (!measure_blocks()) return std::move(result_);
    observations_.write_to(result_.sides);
    for (std::size_t side = 0; side < names_.size(); ++side) {
      result_.sides[side].outcomes[kSetupUs] = setup_[side].total_s() * 1e6;
    }
    verify_fresh("verify again", 1);
    return std::move(result_);
  }

 private:
  void add_set() {
    sets_.push_back(std::make_unique<BufferSet>(target_, knobs_, backend_));
    auto& sides = sides_.emplace_back();
    for (std::size_t side = 0; side < names_.size(); ++side) {
      const auto begin = Clock::now();
      sides.push_back(backend_.make_side(target_, side, sets_.back()->params()));
      setup_[side].factory_s = std::min(setup_[side].factory_s, since_s(begin));
      if (sets_.size() == 1) result_.sides[side].facts = sides.back().facts;
    }
  }

  void report(const std::string& phase, const std::string& side = "") {
    if (!progress_) return;
    progress_({.phase = phase,
               .side = side,
               .ratio = ratio_,
               .blocks = static_cast<int>(result_.blocks.size())});
  }

  Backend::Caches caches() const {
    return options_.cold ? Backend::Caches::flushed : Backend::Caches::as_they_are;
  }

  bool refuse(std::size_t side, const std::string& what) {
    result_.ok = false;
    result_.side = names_[side].name;
    result_.reason = names_[side].name + " " + what;
    return false;
  }

  bool accept(const Verdict& verdict, std::size_t side, const std::string& when) {
    VerificationResult& total = result_.verification;
    ++total.checks;
    result_.sides[side].error = std::max(result_.sides[side].error, verdict.max_error);
    if (verdict.max_error >= total.max_error) {
      total.max_error = verdict.max_error;
      total.bound = verdict.bound;
    }
    total.recomputed_percent = std::min(total.recomputed_percent, verdict.recomputed_percent);
    total.seen_percent = std::min(total.seen_percent, verdict.seen_percent);
    if (!verdict.ok) refuse(side, fmt::format("{} ({})", verdict.reason, when));
    if (!backend_.all_agree(verdict.ok)) {
      if (verdict.ok) refuse(side, fmt::format("failed {} ({})", kOnAnotherRank, when));
      return false;
    }
    return true;
  }

  /// All sides on fresh inputs in the same buffers, `rounds` times over.
  bool verify_fresh(const std::string& phase, int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t side = 0; side < names_.size(); ++side) {
        report(phase, names_[side].name);
        const auto begin = Clock::now();
        const Verdict verdict = verifier_.run(*sets_[0], sides_[0][side], side, random_.next());
        schedule_.check_took(backend_.agree(since_s(begin)));
        if (!accept(verdict, side, phase == "verify" ? "before timing" : "after timing")) {
          return false;
        }
      }
    }
    return true;
  }

  /// The sets of a sample in a random order: as many as it has runs, so that each run has its own.
  /// Half of the time those of the sample before, so that a sample whose inputs change in part,
  /// which has to be on them, does not stand out.
  const std::vector<std::size_t>& draw_sets(std::size_t count, Renewed renewed) {
    const bool again = random_.next_below(2) == 0;
    if (renewed == Renewed::all && (order_.size() != count || !again)) {
      order_.resize(sets_.size());
      std::iota(order_.begin(), order_.end(), std::size_t{0});
      shuffle();
      order_.resize(count);
    }
    shuffle();
    return order_;
  }
  void shuffle() {
    for (std::size_t left = order_.size(); left > 1; --left) {
      std::swap(order_[left - 1], order_[random_.next_below(left)]);
    }
  }

  /// One sample from the making of its inputs to the judging of its outputs. The side's code runs
  /// only inside the clock, but for `enter`, before the inputs exist, and `leave`, after the
  /// judging. ns of one run.
  Expected<double> sample(std::size_t side, Renewed renewed,
                          bool (CheckSchedule::*draw_check)(std::size_t)) {
    const std::int64_t runs = result_.sides[side].repetitions;
    const std::vector<std::size_t>& order = draw_sets(static_cast<std::size_t>(runs), renewed);
    const auto sample_begin = Clock::now();
    for (const std::size_t set : order) {
      Observations::discard(sides_[set][side]);
      if (const Side& runner = sides_[set][side]; runner.enter) {
        const auto begin = Clock::now();
        runner.enter();
        setup_[side].enter_s = std::min(setup_[side].enter_s, since_s(begin));
      }
    }
    // What `enter` started on a device is over before there are inputs.
    backend_.synchronize();
    backend_.watch();
    for (const std::size_t set : order) {
      sets_[set]->renew(random_.next(), renewed);
      sets_[set]->place_pages();
      // As often what an earlier run left as a pattern that no run leaves; where inputs change in
      // part, what was right before that.
      if (renewed == Renewed::all && random_.next_below(2) == 0) sets_[set]->poison_outputs();
    }
    Timing timing = backend_.time(
        [&] {
          for (const std::size_t set : order) sides_[set][side].run();
        },
        caches());
    schedule_.sample_took(backend_.agree(since_s(sample_begin)));
    const std::size_t drawn = order[random_.next_below(order.size())];
    const bool checked = (schedule_.*draw_check)(side);
    const bool right = !checked || verify_timed(drawn, side, timing);
    const Helpers helpers = sides_[order[0]][side].helpers;
    outside_.see(side, timing, helpers);
    for (const std::size_t set : order) {
      if (const Side& runner = sides_[set][side]; runner.leave) runner.leave();
    }
    if (!right || !left_as_found(side)) return Error{result_.reason};
    // Where inputs changed in part only, a side may have had less to do.
    if (renewed == Renewed::all) sample_ns_[side] = timing.ns;
    return outside_.with_uncounted(side, timing, helpers) / static_cast<double>(runs);
  }

  /// After a side's turn the process is as it was before: the other side must not run in what one
  /// left.
  bool left_as_found(std::size_t side) {
    const std::string changed = SharedState::read(lab_threads_).changed_since(state_);
    if (!changed.empty()) {
      refuse(side, fmt::format("left {} changed, which other sides would run with", changed));
    }
    if (!backend_.all_agree(changed.empty())) {
      if (changed.empty()) refuse(side, "left its process changed on another rank");
      return false;
    }
    return true;
  }

  bool verify_timed(std::size_t set, std::size_t side, Timing& timing) {
    const auto begin = Clock::now();
    Verdict verdict = verifier_.copy(*sets_[set]);
    backend_.listen_again(timing);
    if (verdict.ok) verdict = verifier_.judge_copy(*sets_[set]);
    const double seconds = backend_.agree(since_s(begin));
    schedule_.check_took(seconds);
    checking_s_ += seconds;
    ++result_.verification.timed_checks;
    return accept(verdict, side, "output of a timed sample");
  }

  /// A sample that counts, and now and then one that does not, whose inputs changed in part only:
  /// a side that looks at a few words of them to see whether there is anything to do is wrong then.
  Expected<double> counted_sample(std::size_t side) {
    auto ns = sample(side, Renewed::all, &CheckSchedule::draw_check);
    if (ns) {
      for (const std::size_t set : order_) observations_.take(side, sides_[set][side]);
    }
    if (!ns || !sets_[0]->mixes() || !schedule_.draw_trap(side)) return ns;
    // One block most of the time: who looks at some words is likely to miss just that.
    const Renewed part = random_.next_below(4) == 0 ? Renewed::half : Renewed::one;
    const auto trap = sample(side, part, &CheckSchedule::draw_trap_check);
    if (!trap) return trap.error();
    return ns;
  }

  /// Time of some runs in a row, in ns per run: for deciding how many make a sample.
  double trial(std::size_t side, std::int64_t runs) {
    const Side& runner = sides_[0][side];
    if (runner.enter) runner.enter();
    backend_.synchronize();
    sets_[0]->renew(random_.next());
    sets_[0]->place_pages();
    const Timing timing = backend_.time(
        [&] {
          for (std::int64_t i = 0; i < runs; ++i) runner.run();
        },
        caches());
    if (runner.leave) runner.leave();
    return timing.ns / static_cast<double>(runs);
  }

  void warm_up_and_calibrate() {
    constexpr std::int64_t kMostTrialRuns = 1 << 14;
    std::int64_t most = 1;
    for (std::size_t side = 0; side < names_.size(); ++side) {
      report("calibrate", names_[side].name);
      const auto begin = Clock::now();
      double best_ns = INFINITY;
      std::int64_t runs = 1;
      for (int trials = 0;
           trials < options_.warmup_runs || backend_.agree(since_s(begin)) < options_.warmup_s;
           ++trials) {
        const double ns = trial(side, runs);
        best_ns = std::min(best_ns, ns);
        // A single run overstates short work by what it costs to start.
        if (!single_run_ && ns * static_cast<double>(runs) < backend_.min_sample_ns()) {
          runs = std::min(2 * runs, kMostTrialRuns);
        }
      }
      result_.sides[side].repetitions = single_run_ ? 1 : runs_per_sample(best_ns);
      most = std::max(most, result_.sides[side].repetitions);
    }
    make_sets(most);
  }

  std::int64_t runs_per_sample(double run_ns) const {
    const double wanted = std::ceil(backend_.min_sample_ns() / std::max(run_ns, 1.0));
    return static_cast<std::int64_t>(std::clamp(wanted, 1.0, static_cast<double>(kMostSets)));
  }

  /// A side that was slow while it was calibrated would have short samples, of which what its clock
  /// does not see is a large part. What was measured so far does not count then.
  bool calibrate_again() {
    bool again = false;
    std::int64_t most = result_.sets;
    for (std::size_t side = 0; side < names_.size(); ++side) {
      std::int64_t& runs = result_.sides[side].repetitions;
      const double ns = sample_ns_[side];  // alike on every rank
      if (single_run_ || ns >= kShortSample * backend_.min_sample_ns()) continue;
      const std::int64_t needed =
          std::min(runs_per_sample(ns / static_cast<double>(runs)), most_sets());
      again |= needed > runs;
      runs = std::max(runs, needed);
      most = std::max(most, runs);
    }
    if (!again) return false;
    make_sets(most);
    result_.blocks.clear();
    observations_ = Observations(names_.size());
    ++calibrations_;
    return true;
  }

  /// A sample never meets a set twice, so there are as many sets as runs in the longest sample,
  /// where they fit: into the memory that the target's bytes come from.
  void make_sets(std::int64_t wanted) {
    const std::int64_t count = std::clamp<std::int64_t>(wanted, 1, most_sets());
    const std::size_t before = result_.sets == 0 ? 0 : sets_.size();
    while (static_cast<std::int64_t>(sets_.size()) < count) add_set();
    result_.sets = static_cast<int>(sets_.size());
    for (SideMeasurement& side : result_.sides)
      side.repetitions = std::min(side.repetitions, count);
    // Outputs that an earlier run left must be there from the first sample on.
    for (std::size_t set = before; set < sets_.size(); ++set) {
      const Side& side = sides_[set][random_.next_below(names_.size())];
      if (side.enter) side.enter();
      backend_.synchronize();
      sets_[set]->renew(random_.next());
      sets_[set]->place_pages();
      backend_.call(side.run);
      backend_.synchronize();
      if (side.leave) side.leave();
    }
  }
  std::int64_t most_sets() const {
    const Cost cost = target_.facts(backend_.kind()).cost(knobs_);
    const std::int64_t bytes = std::max<std::int64_t>(sets_[0]->bytes(), 1);
    return std::max<std::int64_t>(backend_.set_bytes_limit(cost.level) / bytes, 1);
  }

  bool measure_blocks() {
    const auto begin = Clock::now();
    const auto elapsed_s = [&] { return backend_.agree(since_s(begin) - checking_s_); };
    for (int attempted = 0; !finished(attempted, elapsed_s()); ++attempted) {
      if (!measure_block()) return false;
      if (calibrations_ < kMostCalibrations && calibrate_again()) attempted = -1;
    }
    if (result_.blocks.empty()) {
      result_.ok = false;
      result_.reason = fmt::format(
          "all {} blocks were dropped: the GPU was slowed by its temperature throughout",
          result_.conditions.dropped_blocks);
      return false;
    }
    // Checks that chance left out are made up for in blocks like any other.
    schedule_.hurry();
    for (int more = 0; more < kMostExtraBlocks && !all_checked(); ++more) {
      if (!measure_block()) return false;
    }
    if (options_.fixed_blocks) {
      const auto asked = static_cast<std::size_t>(options_.fixed_blocks);
      result_.blocks.resize(std::min(result_.blocks.size(), asked));
    }
    result_.conditions.blocks = static_cast<int>(result_.blocks.size());
    return true;
  }

  bool measure_block() {
    auto block = take_block(
        names_.size(), random_, [&](std::size_t side, int) { return counted_sample(side); },
        [&] { return backend_.sensors(); }, result_.conditions);
    if (!block) return false;
    const bool is_asked_for = options_.fixed_blocks == 0 ||
                              static_cast<int>(result_.blocks.size()) < options_.fixed_blocks;
    if (*block && is_asked_for) {
      observations_.keep_block();
    } else {
      observations_.drop_block();
    }
    if (*block) result_.blocks.push_back(std::move(**block));
    return nothing_outside();
  }

  bool all_checked() const {
    for (std::size_t side = 0; side < names_.size(); ++side) {
      if (!schedule_.complete(side, sets_[0]->mixes())) return false;
    }
    return true;
  }

  bool nothing_outside() {
    for (std::size_t side = 0; side < names_.size(); ++side) {
      const auto found = outside_.found(side);
      if (found) refuse(side, *found);
      if (!backend_.all_agree(!found)) {
        if (!found) refuse(side, fmt::format("does work outside of its clock {}", kOnAnotherRank));
        return false;
      }
    }
    return true;
  }

  bool finished(int attempted, double elapsed_s) {
    const auto kept = static_cast<int>(result_.blocks.size());
    if (options_.fixed_blocks) return attempted >= options_.fixed_blocks;
    if (attempted >= options_.max_blocks) return true;
    if (attempted < kAlwaysRun) return false;
    if (elapsed_s > options_.budget_s) return true;
    if (kept < options_.min_blocks || kept % 4 != 0) return false;
    const auto ratio_of = [&](const SidePair& pair) {
      return stats::estimate_ratio({result_.blocks}, pair.from, pair.to, options_.seed);
    };
    ratio_ = ratio_of(target_.headline(backend_.kind())).value;
    double widest = 0;
    for (const SidePair& pair : target_.comparisons(backend_.kind())) {
      widest = std::max(widest, ratio_of(pair).relative_half_width());
    }
    report("measure");
    return widest < options_.half_width;
  }

  const Target& target_;
  const Knobs& knobs_;
  Backend& backend_;
  const MeasureOptions& options_;
  const std::function<void(const MeasureProgress&)>& progress_;
  const std::vector<SideSource>& names_;
  Random random_;
  std::vector<std::unique_ptr<BufferSet>> sets_;
  std::vector<std::vector<Side>> sides_;  // [set][side]
  std::vector<std::size_t> order_;        // sets of the last sample
  bool single_run_ = false;
  std::vector<double> sample_ns_;  // of each side's last sample that counts
  std::vector<SetUp> setup_;
  int calibrations_ = 0;
  std::vector<pid_t> lab_threads_;
  SharedState state_;  // in which every turn begins
  Verifier verifier_;
  CheckSchedule schedule_;
  OutsideWork outside_;
  Observations observations_;
  double checking_s_ = 0;
  double ratio_ = 0;
  Measurement result_;
};

}  // namespace

Measurement measure_target(const Target& target, const Knobs& knobs, Backend& backend,
                           const MeasureOptions& options,
                           const std::function<void(const MeasureProgress&)>& progress) {
  return TargetMeasurer(target, knobs, backend, options, progress).run();
}

}  // namespace gauntlet::lab::inline measure
