// A side of a pair. Its factory is called once per input set, untimed, and sees addresses but no
// data: inputs are filled in later, so nothing can be computed ahead. What it returns is run, and
// only that is timed.
#pragma once
#include <concepts>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

struct CUstream_st;

namespace gauntlet {
class ThreadPool;
}
namespace gauntlet::ranks {
class Group;
}

namespace gauntlet::lab::inline author {

/// What a CPU side may use. The calling thread is pinned and is worker 0 of the pool.
struct Cpu {
  ThreadPool* pool = nullptr;
  int threads = 1;
};

/// What a side that runs as several ranks may use: each rank calls its closure, and all of them
/// together are one run.
struct Ranks {
  ranks::Group* group = nullptr;
  int rank = 0;
  int size = 1;
};

/// What a CUDA side may use. All work goes to `stream` (or joins it): work that escapes is found
/// and refused.
struct Cuda {
  CUstream_st* stream = nullptr;  // is a cudaStream_t
  int num_sms = 0;
  int max_threads_per_sm = 0;
  std::size_t shared_bytes_per_sm = 0;
  std::size_t l2_bytes = 0;
};

/// What a side may hold between its calls: workers of an engine, a server. Asleep they cost
/// nothing. CPU time that they use after a call returned, until they sleep, is added to the time of
/// the call; helpers that do not come to rest, or work before a call, are refused. A side that does
/// not say that it has them may have none that works, and no process.
enum class Helpers { none, threads, processes, threads_and_processes };

struct Outcomes {
  std::map<std::string, double> values;
  std::string stated;  // the name of a count of the lab's that the side stated; that does not count
};

struct Side {
  std::function<void()> run;
  Helpers helpers = Helpers::none;

  /// For device- or process-wide state that must hold while this side runs and must not while the
  /// other does. `enter` is called before the inputs of a sample exist, `leave` after its outputs
  /// were judged.
  std::function<void()> enter = {};
  std::function<void()> leave = {};

  /// Named facts of this side read from the system (registers, shared bytes, launches): witnesses
  /// and metrics.
  std::map<std::string, double> facts = {};
  /// Like facts, but of what the side did since it was last asked: hit rates, bytes held, energy.
  /// It is asked before `enter` and after `leave` of a sample, so that only timed runs count, and
  /// the answers are averaged.
  std::function<std::map<std::string, double>()> outcomes = {};
  /// Its outcomes and those that the lab counted while it ran (counted.h), whose names are not the
  /// side's to use.
  Outcomes take_outcomes() const;
  /// What the side observed since it was last asked (seconds of each request, say), in the order it
  /// happened; asked like `outcomes`, and kept by block.
  std::function<std::map<std::string, std::vector<float>>()> distributions = {};

  template <std::invocable F>
  Side(F f) : run(std::move(f)) {}
  Side(std::function<void()> run_, std::map<std::string, double> facts_)
      : run(std::move(run_)), facts(std::move(facts_)) {}

 private:
  friend struct LabCounts;
  std::function<std::map<std::string, double>()> counted_by_lab_;
};

}  // namespace gauntlet::lab::inline author
