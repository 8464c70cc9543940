// A thread of a side's own that does what it is told.
#pragma once
#include <sched.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace gauntlet::lies {

/// Off the CPU that the lab pinned its caller to.
inline void use_any_cpu() {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &all);
  sched_setaffinity(0, sizeof(all), &all);
}

class Servant {
 public:
  explicit Servant(std::function<void()> work)
      : work_(std::move(work)), thread_([this] { serve(); }) {}
  ~Servant() {
    set(told_, -1);
    thread_.join();
  }
  Servant(const Servant&) = delete;
  Servant& operator=(const Servant&) = delete;

  void tell() { set(told_, told_ + 1); }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return done_ == told_; });
  }

 private:
  void set(int& value, int to) {
    const std::lock_guard lock(mutex_);
    value = to;
    changed_.notify_all();
  }
  void serve() {
    use_any_cpu();
    for (int seen = 0;;) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return told_ != seen; });
        seen = told_;
      }
      if (seen < 0) return;
      work_();
      set(done_, seen);
    }
  }
  std::function<void()> work_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int told_ = 0, done_ = 0;
  std::thread thread_;
};

}  // namespace gauntlet::lies
