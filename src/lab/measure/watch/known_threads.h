// KnownThreads: the threads of this process that are the lab's own: those that measure, one per
// rank, the workers of their pools, and the GPU driver's. CPU time of any other thread is work of a
// side's.
#pragma once
#include <sys/types.h>

#include <mutex>
#include <vector>

#include "core/os/threads.h"

namespace gauntlet::lab::inline measure {

/// One per process that measures; ranks that are threads of it share it. Safe to use from all of
/// them at once.
class KnownThreads {
 public:
  /// The threads are known while this lives. The CPU time that they used until then stays known.
  class [[nodiscard]] Lease {
   public:
    Lease() = default;
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&& other) noexcept;
    ~Lease();

   private:
    friend KnownThreads;
    Lease(KnownThreads& owner, std::vector<clockid_t> clocks);
    void give_back();
    KnownThreads* owner_ = nullptr;
    std::vector<clockid_t> clocks_;
  };

  Lease add_this_thread();
  /// Its workers, but not the thread that calls it. The lease must go before the pool.
  Lease add(const ThreadPool& pool);
  /// What runs now and did not run then: threads that a library began meanwhile.
  Lease add_younger_than(const std::vector<pid_t>& then);
  /// Time of threads that came and went, such as those of parallel_for.
  void add_spent(double ns);

  bool contains(pid_t thread) const;
  /// CPU time that all of them have used so far.
  double cpu_ns() const;

 private:
  /// A thread that ended has no clock any more. What it used stays known, and whoever is given its
  /// id later is a stranger.
  struct Thread {
    clockid_t clock{};
    double last_ns = 0;
    bool ended = false;

    double cpu_ns();
  };
  Lease lease(std::vector<clockid_t> clocks);
  void remove(const std::vector<clockid_t>& clocks);

  mutable std::mutex mutex_;
  mutable std::vector<Thread> threads_;
  double spent_ns_ = 0;
};

/// The kernel's clock of a thread's CPU time, and back.
clockid_t clock_of_thread(pid_t thread);
pid_t thread_of_clock(clockid_t clock);
/// 0 where there is no such clock (any more).
double read_clock_ns(clockid_t clock);

}  // namespace gauntlet::lab::inline measure
