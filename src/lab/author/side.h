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

struct Side {
  std::function<void()> run;

  /// For device- or process-wide state that must hold while this side runs and must not while the
  /// other does. `enter` is called before the inputs of a sample exist, `leave` after its outputs
  /// were judged.
  std::function<void()> enter = {};
  std::function<void()> leave = {};

  /// Named facts of this side read from the system (registers, shared bytes, launches): witnesses
  /// and metrics.
  std::map<std::string, double> facts = {};
  /// Like facts, but read once after the last timed sample: hit rates, bytes held, energy. Sides of
  /// all input sets are asked, and their answers averaged.
  std::function<std::map<std::string, double>()> outcomes = {};
  /// What the side observed while it was timed (seconds of each request, say), in the order it
  /// happened; read once after the last timed sample.
  std::function<std::map<std::string, std::vector<float>>()> distributions = {};

  template <std::invocable F>
  Side(F f) : run(std::move(f)) {}
  Side(std::function<void()> run_, std::map<std::string, double> facts_)
      : run(std::move(run_)), facts(std::move(facts_)) {}
};

}  // namespace gauntlet::lab::inline author
