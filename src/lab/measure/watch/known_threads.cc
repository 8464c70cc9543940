#include "lab/measure/watch/known_threads.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace gauntlet::lab::inline measure {
namespace {

// Linux makes the number of a CPU clock from a thread's id, inverted, and three bits: "of a thread,
// not a process" and "by the scheduler's count".
constexpr int kClockBits = 3;
constexpr unsigned kScheduledThread = 6;

}  // namespace

clockid_t clock_of_thread(pid_t thread) {
  return static_cast<clockid_t>(~static_cast<unsigned>(thread) << kClockBits | kScheduledThread);
}

pid_t thread_of_clock(clockid_t clock) { return ~(clock >> kClockBits); }

double read_clock_ns(clockid_t clock) {
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

KnownThreads::Lease::Lease(KnownThreads& owner, std::vector<clockid_t> clocks)
    : owner_(&owner), clocks_(std::move(clocks)) {}

KnownThreads::Lease::Lease(Lease&& other) noexcept
    : owner_(std::exchange(other.owner_, nullptr)), clocks_(std::move(other.clocks_)) {}

KnownThreads::Lease& KnownThreads::Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  owner_ = std::exchange(other.owner_, nullptr);
  clocks_ = std::move(other.clocks_);
  return *this;
}

KnownThreads::Lease::~Lease() { give_back(); }

void KnownThreads::Lease::give_back() {
  if (KnownThreads* owner = std::exchange(owner_, nullptr)) owner->remove(clocks_);
}

double KnownThreads::Thread::cpu_ns() {
  const double now_ns = ended ? 0 : read_clock_ns(clock);
  ended = now_ns < last_ns;
  last_ns = std::max(last_ns, now_ns);
  return last_ns;
}

KnownThreads::Lease KnownThreads::lease(std::vector<clockid_t> clocks) {
  const std::lock_guard lock(mutex_);
  for (const clockid_t clock : clocks) threads_.push_back({.clock = clock});
  return {*this, std::move(clocks)};
}

KnownThreads::Lease KnownThreads::add_this_thread() {
  clockid_t clock{};
  pthread_getcpuclockid(pthread_self(), &clock);
  return lease({clock});
}

KnownThreads::Lease KnownThreads::add(const ThreadPool& pool) {
  return lease(pool.worker_clocks());
}

KnownThreads::Lease KnownThreads::add_younger_than(const std::vector<pid_t>& then) {
  std::vector<clockid_t> younger;
  for (const pid_t thread : thread_ids(getpid())) {
    const bool old = std::ranges::find(then, thread) != then.end();
    if (!old && !contains(thread)) younger.push_back(clock_of_thread(thread));
  }
  return lease(std::move(younger));
}

void KnownThreads::remove(const std::vector<clockid_t>& clocks) {
  const std::lock_guard lock(mutex_);
  for (const clockid_t clock : clocks) {
    const auto thread = std::ranges::find(threads_, clock, &Thread::clock);
    spent_ns_ += thread->cpu_ns();
    threads_.erase(thread);
  }
}

void KnownThreads::add_spent(double ns) {
  const std::lock_guard lock(mutex_);
  spent_ns_ += ns;
}

bool KnownThreads::contains(pid_t thread) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(threads_, [clock = clock_of_thread(thread)](const Thread& known) {
    return known.clock == clock && !known.ended;
  });
}

double KnownThreads::cpu_ns() const {
  const std::lock_guard lock(mutex_);
  double total = spent_ns_;
  for (Thread& thread : threads_) total += thread.cpu_ns();
  return total;
}

}  // namespace gauntlet::lab::inline measure
