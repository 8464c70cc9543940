// Threads that feed a GPU as the workers of a loader do: each gathers rows into one slot of its own
// while the other one is sent. Host code: where they run, where the slots lie and what sends them
// is told.
#pragma once
#include <sched.h>

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "catalog/ch03/gpu_numa_affinity/pair.h"
#include "core/check.h"

namespace gauntlet::ch03::gpu_numa_affinity {

/// Sends slots to where the rows go. All feeders call it at once, each for slots of its own.
class Link {
 public:
  virtual ~Link() = default;
  /// Called first, on the thread of each feeder.
  virtual void begin_thread() = 0;
  /// Until what was sent from a slot has left it.
  virtual void wait(std::int64_t slot) = 0;
  virtual void send(std::int64_t slot, void* to, const void* from, std::size_t bytes) = 0;
};

class Feeders {
 public:
  struct Place {
    std::vector<int> cpus;       // that the feeders may run on
    std::uint64_t* slots;        // [2 * feeders, slot_rows, kRowWords]
    std::shared_ptr<Link> link;  // sends them
  };
  Feeders(const Params& p, Place place)
      : p_(p), place_(std::move(place)), gate_(static_cast<std::ptrdiff_t>(p.feeders) + 1) {
    for (std::int64_t feeder = 0; feeder < p.feeders; ++feeder) {
      threads_.emplace_back([this, feeder] { work(feeder); });
    }
    gate_.arrive_and_wait();
  }
  ~Feeders() {
    ends_ = true;
    gate_.arrive_and_wait();
    for (std::thread& thread : threads_) thread.join();
  }
  Feeders(const Feeders&) = delete;
  Feeders& operator=(const Feeders&) = delete;

  /// Until all rows were given to the link; the caller's thread stays where it is.
  void run() {
    gate_.arrive_and_wait();
    gate_.arrive_and_wait();
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

  /// The CPU of each feeder at the end of each run since this was last asked.
  std::vector<int> take_cpus() {
    const std::lock_guard lock(mutex_);
    return std::exchange(cpus_, {});
  }

 private:
  template <class Work>
  void keeping_errors(const Work& work) {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }

  void work(std::int64_t feeder) {
    keeping_errors([this] {
      run_on(place_.cpus);
      place_.link->begin_thread();
    });
    gate_.arrive_and_wait();
    for (;;) {
      gate_.arrive_and_wait();
      if (ends_) return;
      keeping_errors([this, feeder] { feed(feeder); });
      gate_.arrive_and_wait();
    }
  }

  static void run_on(const std::vector<int>& cpus) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : cpus) CPU_SET(cpu, &set);
    check(sched_setaffinity(0, sizeof(set), &set) == 0, "a feeder may run on its node");
  }

  /// Every `feeders`-th slotful.
  void feed(std::int64_t feeder) {
    int turn = 0;
    for (std::int64_t begin = feeder * p_.slot_rows; begin < p_.rows;
         begin += p_.feeders * p_.slot_rows) {
      const std::int64_t slot = 2 * feeder + turn;
      const std::int64_t rows = std::min(p_.slot_rows, p_.rows - begin);
      std::uint64_t* const to = place_.slots + slot * p_.slot_rows * kRowWords;
      place_.link->wait(slot);
      for (std::int64_t row = 0; row < rows; ++row) {
        std::memcpy(to + row * kRowWords, p_.table + p_.order[begin + row] * kRowWords,
                    sizeof(std::uint64_t) * kRowWords);
      }
      place_.link->send(slot, p_.out + begin * kRowWords, to,
                        sizeof(std::uint64_t) * static_cast<std::size_t>(rows * kRowWords));
      turn = 1 - turn;
    }
    const std::lock_guard lock(mutex_);
    cpus_.push_back(sched_getcpu());
  }

  Params p_;
  Place place_;
  std::barrier<> gate_;
  bool ends_ = false;
  std::mutex mutex_;
  std::exception_ptr error_;
  std::vector<int> cpus_;
  std::vector<std::thread> threads_;
};

}  // namespace gauntlet::ch03::gpu_numa_affinity
