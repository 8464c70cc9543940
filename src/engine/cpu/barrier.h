// Where the threads of a step wait for each other: spinning, since the next phase is microseconds
// away; after a while asleep, for machines with fewer free CPUs than threads.
#pragma once
#include <atomic>
#include <cstdint>

namespace gauntlet::engine::cpu {

inline constexpr int kSpins = 2000;

inline void spin_once() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// All threads meet. Its atomics are std's, or those of a test that orders memory as it likes.
template <template <class> class Atomic>
class BasicSpinBarrier {
 public:
  explicit BasicSpinBarrier(int threads) : threads_(threads) {}

  void wait() {
    if (threads_ == 1) return;
    const std::uint32_t round = round_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      // Sequentially consistent: libstdc++ wakes only those whom it has counted as asleep. Were
      // this store still under way when it counts, one who falls asleep in between would never
      // wake.
      round_.store(round + 1, std::memory_order_seq_cst);
      round_.notify_all();
      return;
    }
    for (int spin = 0; spin < kSpins; ++spin) {
      if (round_.load(std::memory_order_acquire) != round) return;
      spin_once();
    }
    round_.wait(round, std::memory_order_acquire);
  }

 private:
  const int threads_;
  alignas(64) Atomic<int> arrived_{0};
  alignas(64) Atomic<std::uint32_t> round_{0};
};
using SpinBarrier = BasicSpinBarrier<std::atomic>;

/// Every thread says once that its part is done; those who need all parts wait, nobody else does.
class alignas(64) Milestone {
 public:
  void arrive(int threads) {
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads) arrived_.notify_all();
  }
  void wait(int threads) const {
    for (int spin = 0; spin < kSpins; ++spin) {
      if (arrived_.load(std::memory_order_acquire) == threads) return;
      spin_once();
    }
    for (int seen; (seen = arrived_.load(std::memory_order_acquire)) != threads;) {
      arrived_.wait(seen, std::memory_order_acquire);
    }
  }
  /// While nobody arrives or waits.
  void reset() { arrived_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<int> arrived_{0};
};

}  // namespace gauntlet::engine::cpu
