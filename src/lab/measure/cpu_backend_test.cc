// Does the watch over a CPU see what really goes on beside the clock?
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "core/os/threads.h"
#include "lab/measure/buffer_set.h"
#include "lab/measure/fake_backend.h"

namespace gauntlet::lab::inline measure {
namespace {

using namespace std::chrono_literals;

// As OutsideWork counts it.
constexpr double kWorkNs = 5e3;

void spin_for(std::chrono::nanoseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

/// Uses so much CPU time of the calling thread, however long a loaded machine takes to give it.
void use_cpu(std::chrono::nanoseconds time) {
  const double begin = read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
  while (read_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin < static_cast<double>(time.count())) {
  }
}

class CpuBackendTest : public testing::Test {
 protected:
  void SetUp() override {
    auto backend = make_cpu_backend();
    ASSERT_TRUE(backend) << backend.error().message;
    backend_ = std::move(*backend);
  }
  Timing time(const std::function<void()>& work) {
    backend_->watch();
    return backend_->time(work, Backend::Caches::as_they_are);
  }
  /// In how many of a hundred samples a figure says that there was work.
  int seen(double Timing::*figure, const std::function<Timing()>& sample) {
    int count = 0;
    for (int i = 0; i < 100; ++i) count += sample().*figure > kWorkNs;
    return count;
  }
  /// Whether ten samples say so before a machine that is busy with others had time enough.
  bool seen_often(double Timing::*figure, const std::function<Timing()>& sample) {
    const auto end = std::chrono::steady_clock::now() + 10s;
    int count = 0;
    while (count < 10 && std::chrono::steady_clock::now() < end) {
      count += sample().*figure > kWorkNs;
    }
    return count == 10;
  }

  std::unique_ptr<Backend> backend_;
};

/// A thread that works until it is told to stop, on another CPU than the one that is timed.
class BusyThread {
 public:
  BusyThread()
      : thread_([this] {
          pin_this_thread(allowed_cpus().front());
          while (!stop_) {
          }
        }) {}
  ~BusyThread() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

TEST_F(CpuBackendTest, times_the_work) {
  const Timing timing = time([] { spin_for(2ms); });
  EXPECT_GE(timing.ns, 2e6);
  EXPECT_FALSE(timing.left_process);
}

TEST_F(CpuBackendTest, sees_nothing_beside_honest_work) {
  const auto sample = [&] { return time([] { spin_for(100us); }); };
  EXPECT_LT(seen(&Timing::before_ns, sample), 5);
  EXPECT_LT(seen(&Timing::after_ns, sample), 5);
}

TEST_F(CpuBackendTest, does_not_take_the_renewing_of_inputs_for_work_of_a_side) {
  Target target = twice_target();
  target.pair.knobs[0].cpu = 1 << 19;  // 2 MiB: made by the pool
  const Knobs knobs = Knobs::defaults(target.pair.knobs, BackendKind::cpu);
  BufferSet set(target, knobs, *backend_);
  std::uint64_t seed = 0;
  const auto sample = [&] {
    backend_->watch();
    set.renew(++seed);
    return backend_->time([] {}, Backend::Caches::as_they_are);
  };
  EXPECT_LT(seen(&Timing::before_ns, sample), 5);
}

TEST_F(CpuBackendTest, sees_a_thread_that_ends_some_time_after_the_return_until_it_rests) {
  const auto sample = [&] {
    std::jthread late;
    return time([&] { late = std::jthread([] { use_cpu(2ms); }); });
  };
  int seen = 0;
  for (int i = 0; i < 10; ++i) {
    const Timing timing = sample();
    seen += timing.after_ns > 0.2e6 && !timing.restless;
  }
  EXPECT_GE(seen, 5);
}

TEST_F(CpuBackendTest, gives_up_on_a_thread_that_does_not_rest) {
  if (allowed_cpus().size() < 2) GTEST_SKIP() << "one CPU does one thing at a time";
  const BusyThread busy;
  int restless = 0;
  for (int i = 0; i < 10; ++i) restless += time([] {}).restless;
  EXPECT_GE(restless, 5);
}

TEST_F(CpuBackendTest, knows_the_threads_of_ranks_that_share_its_process) {
  const auto known = std::make_shared<KnownThreads>();
  backend_.reset();
  backend_ = make_cpu_backend(0, 2, known);
  std::atomic<bool> stop = false, ready = false;
  std::jthread other([&] {
    const auto rank = make_cpu_backend(1, 2, known);
    ready = true;
    while (!stop) {
    }
  });
  while (!ready) std::this_thread::yield();
  const auto sample = [&] { return time([] { spin_for(100us); }); };
  EXPECT_LT(seen(&Timing::after_ns, sample), 5);
  EXPECT_LT(seen(&Timing::before_ns, sample), 5);
  stop = true;
}

TEST_F(CpuBackendTest, counts_what_a_child_process_does_after_the_return_and_not_before) {
  int request[2], answer[2];
  ASSERT_EQ(pipe(request), 0);
  ASSERT_EQ(pipe(answer), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // Answers after a while, and goes on for as long as it is told.
    for (std::int64_t us = 0; read(request[0], &us, sizeof(us)) == sizeof(us);) {
      use_cpu(1ms);
      if (write(answer[1], &us, 1) != 1) break;
      use_cpu(std::chrono::microseconds(us));
    }
    _exit(0);
  }
  const auto after_ns = [&](std::int64_t us) {
    std::vector<double> all;
    for (int i = 0; i < 9; ++i) {
      const Timing timing = time([&] {
        char byte = 0;
        EXPECT_EQ(write(request[1], &us, sizeof(us)), ssize_t{sizeof(us)});
        EXPECT_EQ(read(answer[0], &byte, 1), 1);
      });
      EXPECT_TRUE(timing.left_process);
      all.push_back(timing.after_ns);
    }
    std::ranges::sort(all);
    return all[4];
  };
  EXPECT_LT(after_ns(0), 0.5e6) << "what it did to answer was timed";
  EXPECT_GT(after_ns(3000), 0.5e6);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  for (const int end : {request[0], request[1], answer[0], answer[1]}) close(end);
}

TEST_F(CpuBackendTest, sees_a_thread_that_works_after_the_clock) {
  if (allowed_cpus().size() < 2) GTEST_SKIP() << "one CPU does one thing at a time";
  const BusyThread busy;
  EXPECT_TRUE(seen_often(&Timing::after_ns, [&] { return time([] {}); }));
}

TEST_F(CpuBackendTest, sees_a_thread_that_works_before_the_clock) {
  const BusyThread busy;
  const auto sample = [&] {
    backend_->watch();
    std::this_thread::sleep_for(1ms);  // inputs are made
    return backend_->time([] {}, Backend::Caches::as_they_are);
  };
  EXPECT_TRUE(seen_often(&Timing::before_ns, sample));
}

TEST_F(CpuBackendTest, allows_threads_that_a_side_joins_before_it_returns) {
  const auto sample = [&] { return time([] { std::jthread([] { spin_for(100us); }); }); };
  EXPECT_LT(seen(&Timing::after_ns, sample), 5);
}

TEST_F(CpuBackendTest, sees_its_own_pool_put_to_work_by_others) {
  const Target target = twice_target();
  ThreadPool* pool = nullptr;
  Target spying = target;
  spying.source.cpu[0].cpu = [&](const void*, const Cpu& cpu) {
    pool = cpu.pool;
    return Side([] {});
  };
  BufferSet set(spying, Knobs::defaults(spying.pair.knobs, BackendKind::cpu), *backend_);
  backend_->make_side(spying, 0, set.params());
  if (pool->size() < 2) GTEST_SKIP() << "a pool of one CPU has no workers";
  const auto work = [&] { pool->run([](int worker) { use_cpu(worker == 0 ? 0us : 300us); }); };
  EXPECT_LT(time(work).after_ns, 0.2e6) << "what it does in the call is timed";
  backend_->watch();
  work();
  EXPECT_GT(backend_->time([] {}, Backend::Caches::as_they_are).before_ns, 0.2e6);
  Timing timing = time([] {});
  work();
  timing.after_ns = 0;
  backend_->listen_again(timing);
  EXPECT_GT(timing.after_ns, 0.2e6);
}

TEST_F(CpuBackendTest, sees_a_thread_that_works_while_outputs_are_copied) {
  Timing timing = time([] {});
  timing.after_ns = 0;
  std::thread([] { use_cpu(1ms); }).join();
  backend_->listen_again(timing);
  EXPECT_GT(timing.after_ns, 0.5e6);
}

TEST_F(CpuBackendTest, sees_a_child_process_that_ends_inside_of_the_call) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    pause();
    _exit(0);
  }
  const Timing timing = time([&] {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  });
  EXPECT_TRUE(timing.left_process) << "it was there before";
}

TEST_F(CpuBackendTest, sees_a_child_process_until_it_is_gone) {
  EXPECT_FALSE(time([] {}).left_process);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    pause();
    _exit(0);
  }
  EXPECT_TRUE(time([] {}).left_process);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(time([] {}).left_process);
}

TEST_F(CpuBackendTest, sees_a_grandchild_whose_parent_ended) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      pause();
      _exit(0);
    }
    const bool told = write(ends[1], &grandchild, sizeof(grandchild)) == sizeof(grandchild);
    _exit(told ? 0 : 1);
  }
  pid_t grandchild = 0;
  ASSERT_EQ(read(ends[0], &grandchild, sizeof(grandchild)), ssize_t{sizeof(grandchild)});
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(time([] {}).left_process);
  kill(grandchild, SIGKILL);
  EXPECT_EQ(waitpid(grandchild, nullptr, 0), grandchild) << "it was adopted";
  close(ends[0]);
  close(ends[1]);
}

TEST_F(CpuBackendTest, reads_memory_and_says_when_a_page_is_protected) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  auto* memory = static_cast<unsigned char*>(backend_->allocate(4 * page, Memory::device));
  backend_->set_bytes(memory, 7, 4 * page);
  std::vector<unsigned char> copy(4 * page);
  EXPECT_TRUE(backend_->download(copy.data(), memory, copy.size()));
  EXPECT_EQ(copy, std::vector<unsigned char>(4 * page, 7));
  for (const std::size_t at : {std::size_t{0}, page, 3 * page}) {
    ASSERT_EQ(mprotect(memory + at, page, PROT_NONE), 0);
    EXPECT_FALSE(backend_->download(copy.data(), memory, copy.size())) << at / page;
    ASSERT_EQ(mprotect(memory + at, page, PROT_READ | PROT_WRITE), 0);
  }
  EXPECT_TRUE(backend_->download(copy.data(), memory, copy.size()));
  backend_->release(memory, Memory::device);
}

std::atomic<int> handled = 0;

TEST_F(CpuBackendTest, lets_no_signal_handler_run_beside_the_clock) {
  struct sigaction counting {};
  counting.sa_handler = [](int) { ++handled; };
  struct sigaction before {};
  sigaction(SIGUSR1, &counting, &before);
  handled = 0;
  // To the process: any thread that does not block it would take it, one of the pool as well.
  kill(getpid(), SIGUSR1);
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(handled, 0);
  time([] {});
  EXPECT_EQ(handled, 0) << "it would be timed with whoever comes next";
  time([] { raise(SIGUSR1); });
  EXPECT_EQ(handled, 1) << "where it is timed it may";
  backend_->call([] { raise(SIGUSR1); });
  EXPECT_EQ(handled, 2) << "nor can a side tell that it is not timed";
  handled = 1;
  kill(getpid(), SIGUSR1);
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(handled, 1);
  backend_.reset();
  EXPECT_EQ(handled, 1) << "what waited finds its buffers gone";
  kill(getpid(), SIGUSR1);
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(handled, 2) << "whoever comes after the backend has its signals again";
  sigaction(SIGUSR1, &before, nullptr);
}

TEST_F(CpuBackendTest, gives_more_room_to_what_comes_from_memory_than_to_what_stays_in_caches) {
  using Level = Cost::Level;
  EXPECT_GE(backend_->set_bytes_limit(Level::dram), backend_->set_bytes_limit(Level::cache));
  EXPECT_GE(backend_->set_bytes_limit(Level::cache), backend_->set_bytes_limit(Level::l1_cache));
}

TEST_F(CpuBackendTest, renews_large_inputs_like_small_ones) {
  Target target = twice_target();
  for (const std::int64_t n : {std::int64_t{1001}, (std::int64_t{1} << 19) + 3}) {
    target.pair.knobs[0].cpu = n;
    const Knobs knobs = Knobs::defaults(target.pair.knobs, BackendKind::cpu);
    BufferSet set(target, knobs, *backend_);
    FakeBackend plain(BackendKind::cpu);
    BufferSet expected(target, knobs, plain);
    for (const auto renewed : {InputVersion::Renewed::all, InputVersion::Renewed::half}) {
      set.renew(3, renewed);
      expected.renew(3, renewed);
      const auto& a = set.buffers()[0];
      EXPECT_EQ(std::memcmp(a.data, expected.buffers()[0].data, a.bytes), 0) << n;
    }
  }
}

}  // namespace
}  // namespace gauntlet::lab::inline measure
