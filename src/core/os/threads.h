// Threads with a place: pinning, and a pool of pinned workers whose fork and join cost little.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace gauntlet {

/// The CPUs this process may run on, in order (respects cpusets and taskset), as they were when
/// this was first asked.
std::vector<int> allowed_cpus();

/// The kernel's ids of a process's threads; none when it is gone.
std::vector<pid_t> thread_ids(pid_t process);

/// Pins the calling thread; false where the system refuses.
bool pin_this_thread(int cpu);

/// Workers pinned one per CPU. run(f) calls f(worker) once on each and returns when all are done;
/// the calling thread is worker 0.
class ThreadPool {
 public:
  explicit ThreadPool(std::vector<int> cpus);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const;
  /// CPU clocks of the workers other than the caller, for clock_gettime.
  std::vector<clockid_t> worker_clocks() const;
  void run(const std::function<void(int worker)>& task);
  /// How often run() was called; for_ranges() calls it once.
  std::uint64_t forks() const { return forks_.load(std::memory_order_relaxed); }
  /// Whether a worker is still at its task; seen from a thread that did not call run().
  bool busy() const;

  /// Splits [0, count) into one contiguous range per worker.
  void for_ranges(std::int64_t count,
                  const std::function<void(std::int64_t begin, std::int64_t end)>& body);

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::atomic<std::uint64_t> forks_ = 0;
};

/// Splits [0, count) over short-lived threads on all CPUs: for set-up and checking, never for
/// timing. Below `grain` items it stays on the calling thread. Returns the CPU time in ns that the
/// short-lived threads used.
std::int64_t parallel_for(std::int64_t count,
                          const std::function<void(std::int64_t begin, std::int64_t end)>& body,
                          std::int64_t grain = 4096);

}  // namespace gauntlet
