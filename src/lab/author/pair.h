// Pair: everything about a target except its sides. A pair's pair.cc returns one; a lab, whose
// sides are rungs, says in addition what each rung adds.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lab/author/binder.h"
#include "lab/author/knobs.h"
#include "lab/author/reference.h"
#include "lab/author/side.h"

namespace gauntlet::lab::inline author {

/// What the optimized side is supposed to improve. Anything but speed is judged by the pair's goal
/// metric.
enum class Goal { speed, memory, accuracy, tail_latency };

/// A demonstration has a baseline that exists to teach (one thread, 32-way conflicts) and stays out
/// of headlines.
enum class Kind { comparison, demonstration };

/// Bytes and operations that any correct implementation must spend: what the roofline is computed
/// from.
struct Cost {
  double read_bytes = 0;
  double write_bytes = 0;
  double flops = 0;
  DType rate = DType::f32;                                 // the arithmetic the FLOPs run at
  enum class Unit { vector, matrix } unit = Unit::vector;  // FMA units or tensor cores
  /// Where the bytes come from; `cache` is the last level that the sides share.
  enum class Level { dram, cache, l1_cache, host_link, disk } level = Level::dram;
};

/// What must move if the technique is what made the difference: a hardware counter, a number from a
/// trace of what the GPU did, a fact that the side read from an API when it was made, or an outcome
/// that was counted while it ran.
struct Witness {
  enum class Source { counter, trace, fact, outcome, none };
  enum class Moves { falls, rises };
  Source source = Source::none;
  // A CUPTI metric or perf event, "at_a_time" or "launch_calls" of a trace, or the name of a side's
  // fact or outcome.
  std::string name;
  Moves moves = Moves::falls;
  double factor = 1.1;  // by at least this ratio
  std::string meaning;  // what it shows, or for `none` why there is nothing to read

  static Witness counter(std::string name, Moves moves, double factor, std::string meaning) {
    return {Source::counter, std::move(name), moves, factor, std::move(meaning)};
  }
  /// On a GPU: kernels and copies under way at a time, or calls of the host that put them there.
  static Witness trace(std::string name, Moves moves, double factor, std::string meaning) {
    return {Source::trace, std::move(name), moves, factor, std::move(meaning)};
  }
  static Witness fact(std::string name, Moves moves, double factor, std::string meaning) {
    return {Source::fact, std::move(name), moves, factor, std::move(meaning)};
  }
  /// Read after the samples, from Side::outcomes.
  static Witness outcome(std::string name, Moves moves, double factor, std::string meaning) {
    return {Source::outcome, std::move(name), moves, factor, std::move(meaning)};
  }
  static Witness none(std::string why) {
    return {Source::none, {}, Moves::falls, 1, std::move(why)};
  }
};

/// An outcome that the lab measures for every side: the least that its factory took for a set of
/// buffers, and `enter` before a sample. For metrics of what is outside of the time.
inline constexpr const char* kSetupUs = "setup_us";

/// A named number of each side beyond its time.
struct Metric {
  std::string name;
  std::string unit;
  enum class Better { lower, higher } better = Better::lower;
  enum class From {
    fact,        // the side's fact of the same name
    rate,        // `amount(knobs)` per second of the side's median time
    error,       // the side's largest verification error, relative to magnitude
    outcome,     // the side's outcome of the same name, read after its samples (Side::outcomes)
    percentile,  // `percent` of the side's distribution `distribution`, in its unit
  } from = From::fact;
  std::function<double(const Knobs&)> amount = {};
  double percent = 0;             // 99 for p99
  std::string distribution = {};  // a name among Side::distributions
};

/// What one rung of a lab adds to the one before.
struct Rung {
  std::string name;  // as in its file's name: rung_3_tma.cu is "tma"
  std::string claim;
  Witness witness = {};
};

/// A yardstick with needs of its own: where they are not met, it alone is left out.
struct Yardstick {
  std::string name;                // as in its file's name: yardstick_cudnn.cu is "cudnn"
  std::vector<std::string> needs;  // "cudnn"
};

/// What a pair says about one backend.
struct BackendFacts {
  Kind kind = Kind::comparison;
  std::string claim;  // one sentence
  std::function<Cost(const Knobs&)> cost;
  Witness witness;                         // of a pair; a lab's are with its rungs
  std::vector<std::string> needs = {};     // capabilities of this backend: "sm_80", "cublas"
  std::vector<Yardstick> yardsticks = {};  // those with needs of their own
  std::vector<Rung> rungs = {};            // of a lab, from the second on
};

/// Where the pages of managed inputs are when a run starts.
enum class ManagedPages { anywhere, on_host };

template <class Params>
struct Pair {
  std::string title;      // baseline → optimized, as the catalogue says it
  std::string technique;  // from the chapter's list
  Goal goal = Goal::speed;
  std::string goal_metric = {};         // a metric below, for goals other than speed
  double bar = 1.02;                    // the interval of the improvement must clear this
  std::vector<std::string> needs = {};  // capabilities on any backend: "io_uring", "2 ranks"
  std::vector<std::string> tags = {};
  std::vector<Knob> knobs = {};
  std::optional<BackendFacts> cpu = {};
  std::optional<BackendFacts> cuda = {};
  std::optional<BackendFacts> ranks = {};
  std::vector<Metric> metrics = {};
  bool cold = false;  // measure with flushed caches by default

  /// Declares the buffers and returns the parameters both sides take.
  std::function<Params(Binder&)> bind;
  /// Computes what the outputs must be from host copies of the inputs (output pointers are null).
  std::function<void(const Params&, Reference&)> reference;
  /// A run moves pages, so with `on_host` a sample is one run, and the lab moves them back before.
  ManagedPages managed_pages = ManagedPages::anywhere;
};

/// A lab is declared like a pair; its sides are rungs.
template <class Params>
using Lab = Pair<Params>;

}  // namespace gauntlet::lab::inline author
