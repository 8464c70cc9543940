// Workers that sleep between steps, as those of a service do, and where they may run.
#pragma once
#include <sched.h>

#include <barrier>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "catalog/ch03/thread_pinning/pair.h"
#include "core/os/threads.h"

namespace gauntlet::ch03::thread_pinning {

class Workers {
 public:
  /// `place` is called by each worker when it starts.
  Workers(const Params& p, std::function<void(std::int64_t worker)> place)
      : p_(p), place_(std::move(place)), gate_(p.workers + 1) {
    for (std::int64_t worker = 0; worker < p.workers; ++worker) {
      threads_.emplace_back([this, worker] { work(worker); });
    }
    gate_.arrive_and_wait();
  }
  ~Workers() {
    ends_ = true;
    gate_.arrive_and_wait();
    for (std::thread& thread : threads_) thread.join();
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// All steps; every worker waits for the others after each.
  void run() {
    for (std::int64_t number = 0; number <= p_.steps; ++number) gate_.arrive_and_wait();
  }

 private:
  void work(std::int64_t worker) {
    place_(worker);
    gate_.arrive_and_wait();
    for (;;) {
      gate_.arrive_and_wait();
      if (ends_) return;
      for (std::int64_t number = 0; number < p_.steps; ++number) {
        step(p_, worker, number);
        gate_.arrive_and_wait();
      }
    }
  }

  Params p_;
  std::function<void(std::int64_t)> place_;
  std::barrier<> gate_;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace gauntlet::ch03::thread_pinning
