// UnknownWork: CPU time of threads that the lab does not know, in this process, and of processes
// that a side started.
#pragma once
#include <chrono>
#include <memory>

#include "lab/measure/watch/known_threads.h"

namespace gauntlet::lab::inline measure {

class UnknownWork {
 public:
  explicit UnknownWork(std::shared_ptr<KnownThreads> known) : known_(std::move(known)) {}

  /// So far. The clocks are read one after the other while threads run: the time of the threads
  /// lies between two bounds.
  struct Reading {
    double least_ns = 0, most_ns = 0;
    double processes_ns = 0;
    // Threads that run, or would if they had a CPU: on a loaded machine work that is not over may
    // use no CPU time for a while.
    int threads_awake = 0;
    int processes_awake = 0;
    bool has_process = false;
  };
  Reading read() const;

  /// What was heard after a stop, until there was nothing to hear for a while.
  struct Heard {
    double ns = 0;          // CPU time of threads and processes
    bool restless = false;  // it did not end while anybody listened
    Reading last;
  };
  Heard listen(std::chrono::steady_clock::time_point stop) const;

  /// What threads used from one reading to another, at least: 0 where there is none but the lab's.
  static double threads_ns(const Reading& from, const Reading& to);

 private:
  std::shared_ptr<KnownThreads> known_;
};

}  // namespace gauntlet::lab::inline measure
