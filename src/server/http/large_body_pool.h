// Where large bodies are parsed: not on the threads of the sockets, whose streams would be seen to
// stop, and small ones before large ones.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace gauntlet::server::inline http {

class LargeBodyPool {
 public:
  /// Two threads: one takes any body, so that what the largest are parsed into exists once; the
  /// other only bodies of up to `express_bytes`.
  explicit LargeBodyPool(std::size_t express_bytes = 1 << 20);
  /// Waits for the jobs that have begun; the others are dropped.
  ~LargeBodyPool();
  LargeBodyPool(const LargeBodyPool&) = delete;
  LargeBodyPool& operator=(const LargeBodyPool&) = delete;

  /// From any thread. Jobs do not throw.
  void post(std::size_t body_bytes, std::function<void()> job);
  /// From any thread, when a request has ended that held so much: the allocator keeps what is
  /// freed, and is made to give it back to the system once no job is left.
  void note_freed(std::size_t bytes);

 private:
  using Clock = std::chrono::steady_clock;
  struct Job {
    std::size_t body_bytes = 0;
    std::function<void()> run;
  };
  enum class Lane { any, express };
  void work(Lane lane);

  const std::size_t express_bytes_;
  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  /// By rank: arrival, later by what its size costs. Small ones overtake, and nobody for ever.
  std::multimap<Clock::time_point, Job> jobs_;
  std::size_t freed_bytes_ = 0;  // since memory was given back
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace gauntlet::server::inline http
