#include "server/http/work_pool.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "core/os/cpu_time.h"

namespace gauntlet::server::inline http {
namespace {

struct Worker {
  std::size_t most_bytes;  // that it takes
  int niceness;
};
/// The first takes any job, so that what the largest bodies are parsed into exists once; the others
/// are there for jobs that need not wait for those. Tokens that are due come before heavy work.
constexpr Worker kWorkers[] = {
    {.most_bytes = std::numeric_limits<std::size_t>::max(), .niceness = 10},
    {.most_bytes = 1 << 20, .niceness = 5},
    {.most_bytes = 64 << 10, .niceness = 0}};
/// Many times what a byte takes to be parsed: even behind a dozen large bodies, a small one that
/// comes late is next.
constexpr std::chrono::nanoseconds kRankPerByte(1000);
/// Clients that wait for nothing are forgotten when there are so many.
constexpr std::size_t kManyClients = 1024;
/// Less than this is what the next requests will take again.
constexpr std::size_t kWorthTrimming = 4 << 20;
constexpr std::size_t kWorthCounting = 64 << 10;
constexpr std::chrono::milliseconds kTrimDelay(500);  // one sweep for many that end together

}  // namespace

WorkPool::WorkPool(Limits limits) : limits_(limits), is_busy_(std::size(kWorkers)) {
  for (std::size_t i = 0; i < std::size(kWorkers); ++i) {
    threads_.emplace_back([this, i] { work(i); });
  }
}

WorkPool::~WorkPool() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

WorkPool::Posted WorkPool::post(Job job) {
  {
    const std::lock_guard lock(mutex_);
    const bool is_limited = job.stage == Job::Stage::first;
    if (is_limited && num_waiting_ >= limits_.jobs) return Posted::queue_is_full;
    if (clients_.size() >= kManyClients) {
      std::erase_if(clients_, [](const auto& client) {
        return client.second.waiting.empty() && client.second.num_running == 0;
      });
    }
    State& client = clients_[job.client.name];
    if (is_limited && client.waiting.size() >= limits_.jobs_of_client) {
      return Posted::client_has_too_many;
    }
    // Who asked for nothing has saved nothing up, and what it used before is remembered.
    client.used_s = std::max(client.used_s, clock_s_);
    client.waiting.emplace(Clock::now() + kRankPerByte * job.weight_bytes, std::move(job));
    ++num_waiting_;
  }
  changed_.notify_all();
  return Posted::yes;
}

void WorkPool::note_freed(std::size_t bytes) {
  if (bytes < kWorthCounting) return;
  {
    const std::lock_guard lock(mutex_);
    freed_bytes_ += bytes;
    if (freed_bytes_ < kWorthTrimming) return;
  }
  changed_.notify_all();
}

bool WorkPool::takes(std::size_t worker, const Job& job) const {
  if (job.weight_bytes > kWorkers[worker].most_bytes) return false;
  for (std::size_t i = worker + 1; i < std::size(kWorkers); ++i) {
    if (job.weight_bytes <= kWorkers[i].most_bytes && !is_busy_[i]) return false;
  }
  return true;
}

bool WorkPool::find_next(std::size_t worker, Next& next) {
  using Order = std::tuple<double, double, Clock::time_point>;
  bool found = false;
  Order least;
  for (auto client = clients_.begin(); client != clients_.end(); ++client) {
    State& state = client->second;
    const auto job = std::ranges::find_if(
        state.waiting, [&](const auto& waiting) { return takes(worker, waiting.second); });
    if (job == state.waiting.end()) continue;
    const Order order{state.num_running / job->second.client.share, state.used_s, job->first};
    if (found && order >= least) continue;
    found = true;
    least = order;
    next = {.client = client, .job = job};
  }
  return found;
}

void WorkPool::run(const Next& next, std::unique_lock<std::mutex>& lock) {
  State& client = next.client->second;
  Job job = std::move(next.job->second);
  client.waiting.erase(next.job);
  --num_waiting_;
  ++client.num_running;
  clock_s_ = std::max(clock_s_, client.used_s);
  lock.unlock();
  const double begin_s = thread_cpu_s();
  job.run();
  const double used_s = thread_cpu_s() - begin_s;
  const double share = job.client.share;
  job = {};  // what it holds goes while nobody waits for the lock
  lock.lock();
  --client.num_running;
  client.used_s += used_s / share;
}

void WorkPool::trim(std::unique_lock<std::mutex>& lock) {
  freed_bytes_ = 0;
  lock.unlock();
  malloc_trim(0);
  lock.lock();
}

void WorkPool::work(std::size_t worker) {
  // On Linux, of this thread alone. Where it is not allowed, workers are as good as others.
  if (kWorkers[worker].niceness > 0) static_cast<void>(!nice(kWorkers[worker].niceness));
  const bool trims = worker == 0;
  std::unique_lock lock(mutex_);
  while (true) {
    Next next;
    bool found = false;
    const auto has_news = [&] {
      found = find_next(worker, next);
      return ending_ || found;
    };
    changed_.wait(lock, [&] { return has_news() || (trims && freed_bytes_ >= kWorthTrimming); });
    if (!ending_ && !found && !changed_.wait_for(lock, kTrimDelay, has_news)) trim(lock);
    if (ending_) return;
    if (!found) continue;
    is_busy_[worker] = true;
    if (num_waiting_ > 1) changed_.notify_all();  // what was left to this one, others take now
    run(next, lock);
    is_busy_[worker] = false;
  }
}

}  // namespace gauntlet::server::inline http
