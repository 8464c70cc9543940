// Does everybody come through a barrier, and nobody before the last has arrived?
#include "engine/cpu/barrier.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace gauntlet::engine::cpu {
namespace {

/// When the last thread arrives, seen from one that waits as libstdc++ does: it counts itself as a
/// sleeper, compares, and sleeps.
enum class Arrival { while_spinning, before_counting, before_comparing, while_asleep };

/// What two threads share. The last one runs inside the first, at the moment chosen. Its stores,
/// unless they are sequentially consistent, stay in a store buffer for as long as they may.
struct Memory {
  Arrival arrival;
  std::function<void()> last_thread;
  bool first_has_arrived = false;
  int sleepers = 0;
  bool woken = false;
  bool sleeps_for_ever = false;
  std::vector<std::function<void()>> store_buffer;

  void reach(Arrival point) {
    if (point == arrival && first_has_arrived && last_thread) {
      std::exchange(last_thread, nullptr)();
    }
  }
  void drain() {
    for (const auto& store : std::exchange(store_buffer, {})) store();
  }
};
thread_local Memory* memory = nullptr;

/// As much of std::atomic as the barrier uses.
template <class T>
class BufferedAtomic {
 public:
  BufferedAtomic(T value) : value_(value) {}

  T load(std::memory_order) const {
    memory->reach(Arrival::while_spinning);
    return value_;
  }
  void store(T value, std::memory_order order) {
    memory->store_buffer.push_back([this, value] { value_ = value; });
    if (order == std::memory_order_seq_cst) memory->drain();
  }
  T fetch_add(T term, std::memory_order) {
    memory->drain();
    memory->first_has_arrived = true;
    return std::exchange(value_, value_ + term);
  }
  void wait(T old, std::memory_order) const {
    memory->reach(Arrival::before_counting);
    ++memory->sleepers;
    memory->reach(Arrival::before_comparing);
    if (value_ == old) {
      memory->woken = false;
      memory->reach(Arrival::while_asleep);
      memory->drain();
      memory->sleeps_for_ever = !memory->woken;
    }
    --memory->sleepers;
  }
  /// Skips the system call, which would be a fence, where nobody is counted.
  void notify_all() {
    if (memory->sleepers == 0) return;
    memory->drain();
    memory->woken = true;
  }

 private:
  T value_;
};

TEST(SpinBarrier, wakes_whoever_falls_asleep_as_the_last_arrives) {
  for (const Arrival arrival : {Arrival::while_spinning, Arrival::before_counting,
                                Arrival::before_comparing, Arrival::while_asleep}) {
    Memory shared{.arrival = arrival};
    memory = &shared;
    BasicSpinBarrier<BufferedAtomic> barrier(2);
    for (int round = 0; round < 3; ++round) {
      shared.first_has_arrived = false;
      shared.last_thread = [&] { barrier.wait(); };
      barrier.wait();
      ASSERT_FALSE(shared.last_thread) << "the first came through alone";
      ASSERT_FALSE(shared.sleeps_for_ever)
          << "arrival " << static_cast<int>(arrival) << ", round " << round;
      shared.drain();
    }
    memory = nullptr;
  }
}

/// Runs body(thread) on as many threads. Those that hang are left behind, so that the test ends.
bool all_end(int threads, std::function<void(int)> body) {
  struct Ended {
    std::mutex mutex;
    std::condition_variable changed;
    int count = 0;
  };
  const auto ended = std::make_shared<Ended>();
  for (int thread = 0; thread < threads; ++thread) {
    std::thread([ended, body, thread] {
      body(thread);
      const std::lock_guard lock(ended->mutex);
      ++ended->count;
      ended->changed.notify_one();
    }).detach();
  }
  std::unique_lock lock(ended->mutex);
  return ended->changed.wait_for(lock, std::chrono::seconds(60),
                                 [&] { return ended->count == threads; });
}

TEST(SpinBarrier, lets_nobody_through_before_the_last_has_arrived) {
  for (const int threads : {1, 2, 3, 7}) {
    struct Shared {
      explicit Shared(int count) : barrier(count) {}
      SpinBarrier barrier;
      std::atomic<int> arrivals{0};
      std::atomic<int> early{0};
    };
    const auto shared = std::make_shared<Shared>(threads);
    constexpr int kRounds = 200;
    ASSERT_TRUE(all_end(threads,
                        [shared, threads](int thread) {
                          for (int round = 1; round <= kRounds; ++round) {
                            // Now and then one is late enough for the others to fall asleep.
                            if (round % 20 == 0 && round / 20 % threads == thread) {
                              std::this_thread::sleep_for(std::chrono::milliseconds(1));
                            }
                            shared->arrivals.fetch_add(1);
                            shared->barrier.wait();
                            if (shared->arrivals.load() < round * threads)
                              shared->early.fetch_add(1);
                          }
                        }))
        << threads << " threads";
    EXPECT_EQ(shared->early.load(), 0) << threads << " threads";
    EXPECT_EQ(shared->arrivals.load(), kRounds * threads);
  }
}

TEST(Milestone, holds_those_who_need_all_parts_and_nobody_else) {
  for (const auto late : {std::chrono::milliseconds(0), std::chrono::milliseconds(5)}) {
    struct Shared {
      Milestone parts;
      std::atomic<int> done{0};
      std::atomic<int> seen{-1};
    };
    const auto shared = std::make_shared<Shared>();
    for (int use = 0; use < 2; ++use) {
      shared->done = 0;
      ASSERT_TRUE(all_end(3, [shared, late](int thread) {
        if (thread == 0) {
          shared->parts.wait(2);
          shared->seen = shared->done.load();
          return;
        }
        if (thread == 2) std::this_thread::sleep_for(late);
        shared->done.fetch_add(1);
        shared->parts.arrive(2);  // returns at once
      }));
      EXPECT_EQ(shared->seen.load(), 2);
      shared->parts.reset();
    }
  }
}

}  // namespace
}  // namespace gauntlet::engine::cpu
