#include "core/os/threads.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <thread>

#include "core/check.h"

namespace gauntlet {

namespace {

std::vector<int> cpus_of_this_thread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    }
  }
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

}  // namespace

std::vector<int> allowed_cpus() {
  // Read once: a pool pins the thread that makes it, and the next one must not see that one CPU
  // only.
  static const std::vector<int> kAtStart = cpus_of_this_thread();
  return kAtStart;
}

std::vector<pid_t> thread_ids(pid_t process) {
  const std::string path = "/proc/" + std::to_string(process) + "/task";
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
  std::vector<pid_t> ids;
  while (const dirent* entry = folder ? readdir(folder.get()) : nullptr) {
    const long id = std::strtol(entry->d_name, nullptr, 10);
    if (id > 0) ids.push_back(static_cast<pid_t>(id));
  }
  return ids;
}

bool pin_this_thread(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return sched_setaffinity(0, sizeof(set), &set) == 0;
}

struct ThreadPool::State {
  const std::function<void(int)>* task = nullptr;
  std::atomic<std::uint64_t> generation{0};
  std::atomic<int> pending{0};
  std::atomic<bool> stop{false};
  std::vector<std::jthread> workers;

  void work(int worker, int cpu) {
    pin_this_thread(cpu);
    std::uint64_t seen = 0;
    while (true) {
      // Spin briefly (a fork within a timed region must not pay a wake-up), then sleep.
      for (int spin = 0; spin < 4000 && generation.load(std::memory_order_acquire) == seen;
           ++spin) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      }
      generation.wait(seen, std::memory_order_acquire);
      seen = generation.load(std::memory_order_acquire);
      if (stop.load(std::memory_order_acquire)) return;
      (*task)(worker);
      if (pending.fetch_sub(1, std::memory_order_acq_rel) == 1) pending.notify_one();
    }
  }
};

ThreadPool::ThreadPool(std::vector<int> cpus) : state_(std::make_unique<State>()) {
  check(!cpus.empty(), "a thread pool needs at least one CPU");
  pin_this_thread(cpus[0]);
  for (int worker = 1; worker < static_cast<int>(cpus.size()); ++worker) {
    state_->workers.emplace_back([this, worker, cpu = cpus[worker]] { state_->work(worker, cpu); });
  }
}

ThreadPool::~ThreadPool() {
  state_->stop.store(true, std::memory_order_release);
  state_->generation.fetch_add(1, std::memory_order_acq_rel);
  state_->generation.notify_all();
}

std::vector<clockid_t> ThreadPool::worker_clocks() const {
  std::vector<clockid_t> clocks;
  for (std::jthread& worker : state_->workers) {
    clockid_t clock{};
    if (pthread_getcpuclockid(worker.native_handle(), &clock) == 0) clocks.push_back(clock);
  }
  return clocks;
}

bool ThreadPool::busy() const { return state_->pending.load(std::memory_order_acquire) != 0; }

int ThreadPool::size() const { return static_cast<int>(state_->workers.size()) + 1; }

void ThreadPool::run(const std::function<void(int)>& task) {
  forks_.fetch_add(1, std::memory_order_relaxed);
  const int others = size() - 1;
  state_->task = &task;
  state_->pending.store(others, std::memory_order_release);
  state_->generation.fetch_add(1, std::memory_order_acq_rel);
  state_->generation.notify_all();
  // The others use `task` until they are done, so what worker 0 throws has to wait for them.
  std::exception_ptr error;
  try {
    task(0);
  } catch (...) {
    error = std::current_exception();
  }
  for (int spin = 0; spin < 4000 && state_->pending.load(std::memory_order_acquire) != 0; ++spin) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  for (int left; (left = state_->pending.load(std::memory_order_acquire)) != 0;) {
    state_->pending.wait(left, std::memory_order_acquire);
  }
  if (error) std::rethrow_exception(error);
}

void ThreadPool::for_ranges(std::int64_t count,
                            const std::function<void(std::int64_t, std::int64_t)>& body) {
  const std::int64_t workers = size();
  run([&](int worker) {
    const std::int64_t begin = count * worker / workers;
    const std::int64_t end = count * (worker + 1) / workers;
    if (begin < end) body(begin, end);
  });
}

std::int64_t parallel_for(std::int64_t count,
                          const std::function<void(std::int64_t, std::int64_t)>& body,
                          std::int64_t grain) {
  const auto workers = static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  if (workers == 1 || count < grain) {
    if (count > 0) body(0, count);
    return 0;
  }
  std::exception_ptr first_error;
  std::atomic<bool> failed{false};
  std::atomic<std::int64_t> used_ns{0};
  {
    std::vector<std::jthread> threads;
    for (std::int64_t worker = 0; worker < workers; ++worker) {
      threads.emplace_back([&, worker] {
        // A pinned caller passes its one CPU on; a helper must be free to use the others.
        cpu_set_t all;
        CPU_ZERO(&all);
        for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &all);
        sched_setaffinity(0, sizeof(all), &all);
        try {
          body(count * worker / workers, count * (worker + 1) / workers);
        } catch (...) {
          if (!failed.exchange(true)) first_error = std::current_exception();
        }
        timespec time{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        used_ns += std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
      });
    }
  }
  if (first_error) std::rethrow_exception(first_error);
  return used_ns;
}

}  // namespace gauntlet
