#include "server/http/large_body_pool.h"

#include <malloc.h>

#include <algorithm>

namespace gauntlet::server::inline http {
namespace {

/// Many times what a byte takes to be parsed: even behind a dozen large bodies, a small one that
/// comes late is next.
constexpr std::chrono::nanoseconds kRankPerByte(1000);
/// Less than this is what the next requests will take again.
constexpr std::size_t kWorthTrimming = 4 << 20;
constexpr std::size_t kWorthCounting = 64 << 10;
constexpr std::chrono::milliseconds kTrimDelay(500);  // one sweep for many that end together

}  // namespace

LargeBodyPool::LargeBodyPool(std::size_t express_bytes) : express_bytes_(express_bytes) {
  threads_.emplace_back([this] { work(Lane::any); });
  threads_.emplace_back([this] { work(Lane::express); });
}

LargeBodyPool::~LargeBodyPool() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void LargeBodyPool::post(std::size_t body_bytes, std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.emplace(Clock::now() + kRankPerByte * body_bytes,
                  Job{.body_bytes = body_bytes, .run = std::move(job)});
  }
  changed_.notify_all();
}

void LargeBodyPool::note_freed(std::size_t bytes) {
  if (bytes < kWorthCounting) return;
  {
    const std::lock_guard lock(mutex_);
    freed_bytes_ += bytes;
    if (freed_bytes_ < kWorthTrimming) return;
  }
  changed_.notify_all();
}

void LargeBodyPool::work(Lane lane) {
  std::unique_lock lock(mutex_);
  while (true) {
    auto next = jobs_.end();
    const auto has_news = [&] {
      next = std::ranges::find_if(jobs_, [&](const auto& job) {
        return lane == Lane::any || job.second.body_bytes <= express_bytes_;
      });
      return ending_ || next != jobs_.end();
    };
    const auto is_trim_due = [&] { return lane == Lane::any && freed_bytes_ >= kWorthTrimming; };
    changed_.wait(lock, [&] { return has_news() || is_trim_due(); });
    if (ending_) return;
    if (next == jobs_.end() && !changed_.wait_for(lock, kTrimDelay, has_news)) {
      freed_bytes_ = 0;
      lock.unlock();
      malloc_trim(0);
      lock.lock();
    }
    if (ending_ || next == jobs_.end()) continue;
    const std::function<void()> run = std::move(next->second.run);
    jobs_.erase(next);
    lock.unlock();
    run();
    lock.lock();
  }
}

}  // namespace gauntlet::server::inline http
