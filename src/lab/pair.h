// Pair: everything about a baseline/optimized pair except its two sides. A pair's pair.cc returns
// one.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lab/binder.h"
#include "lab/knobs.h"
#include "lab/reference.h"
#include "lab/side.h"

namespace gauntlet::lab {

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
  enum class Level { dram, cache, l1_cache, host_link } level = Level::dram;
};

/// The counter or fact that must move if the technique is what made the difference.
struct Witness {
  enum class Source { counter, fact, none };
  enum class Moves { falls, rises };
  Source source = Source::none;
  std::string name;  // a CUPTI metric or perf event, or the name of a side's fact
  Moves moves = Moves::falls;
  double factor = 1.1;  // by at least this ratio
  std::string meaning;  // what it shows, or for `none` why there is nothing to read

  static Witness counter(std::string name, Moves moves, double factor, std::string meaning) {
    return {Source::counter, std::move(name), moves, factor, std::move(meaning)};
  }
  static Witness fact(std::string name, Moves moves, double factor, std::string meaning) {
    return {Source::fact, std::move(name), moves, factor, std::move(meaning)};
  }
  static Witness none(std::string why) {
    return {Source::none, {}, Moves::falls, 1, std::move(why)};
  }
};

/// A named number of each side beyond its time.
struct Metric {
  std::string name;
  std::string unit;
  enum class Better { lower, higher } better = Better::lower;
  enum class From {
    fact,   // the side's fact of the same name
    rate,   // `amount(knobs)` per second of the side's median time
    error,  // the side's largest verification error, relative to magnitude
  } from = From::fact;
  std::function<double(const Knobs&)> amount = {};
};

/// What a pair says about one backend.
struct BackendFacts {
  std::string claim;  // one sentence
  std::function<Cost(const Knobs&)> cost;
  Witness witness;
};

template <class Params>
struct Pair {
  std::string title;      // baseline → optimized, as the catalogue says it
  std::string technique;  // from the chapter's list
  Kind kind = Kind::comparison;
  Goal goal = Goal::speed;
  std::string goal_metric = {};         // a metric below, for goals other than speed
  double bar = 1.02;                    // the interval of the improvement must clear this
  std::vector<std::string> needs = {};  // capabilities: "sm_80", "cublas", "2 GPUs"
  std::vector<std::string> tags = {};
  std::vector<Knob> knobs = {};
  std::optional<BackendFacts> cpu = {};
  std::optional<BackendFacts> cuda = {};
  std::vector<Metric> metrics = {};
  bool cold = false;  // measure with flushed caches by default

  /// Declares the buffers and returns the parameters both sides take.
  std::function<Params(Binder&)> bind;
  /// Computes what the outputs must be from host copies of the inputs (output pointers are null).
  std::function<void(const Params&, Reference&)> reference;
  /// Untimed, before every single run: puts state back that a run consumes (such as where pages
  /// live).
  std::function<void(const Params&)> reset = {};
};

}  // namespace gauntlet::lab
