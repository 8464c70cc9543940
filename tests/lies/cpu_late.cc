// Sides on a CPU that work shortly before or after their clock, or where it is least looked: in the
// slack that is granted, while outputs are copied, in the lab's own pool, in processes that are
// gone in time or that nobody counts as children; and honest twins.
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/os/threads.h"
#include "tests/lies/lie.h"
#include "tests/lies/scale.h"
#include "tests/lies/servant.h"

namespace gauntlet::lies {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

Params last_part(const Params& p) {
  const std::int64_t begin = p.count / 4 * 3;
  return {p.in + begin, p.out + begin, p.count - begin};
}

/// What `enter` started computes once the inputs are there, and before the clock starts.
lab::Side works_after_enter(const Params& p, const lab::Cpu&) {
  const auto servant = std::make_shared<Servant>([p] {
    std::this_thread::sleep_for(microseconds(300));
    scale(p, kSlowPasses);
  });
  lab::Side side([servant] { servant->wait(); });
  side.enter = [servant] { servant->tell(); };
  return side;
}

/// Begins its last quarter when the first listening is over and the outputs are being copied.
lab::Side computes_while_copied(const Params& p, const lab::Cpu&) {
  const auto servant = std::make_shared<Servant>([p] {
    std::this_thread::sleep_for(microseconds(250));
    scale(last_part(p));
  });
  return [p, servant, calls = 0]() mutable {
    const std::int64_t first = p.count / 4 * 3;
    scale({p.in, p.out, first});
    servant->tell();
    if (++calls < 6) servant->wait();
  };
}

/// Dawdles while it is calibrated, so that a sample is one run, and then hides the whole of it in
/// what a thread is granted to fall asleep.
lab::Side hides_in_slack(const Params& p, const lab::Cpu&) {
  static const auto begin = Clock::now();
  const auto servant = std::make_shared<Servant>([p] { scale(p, 2); });
  return [servant] {
    servant->tell();
    if (Clock::now() - begin > std::chrono::milliseconds(200)) return;
    servant->wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
}
lab::Side two_passes(const Params& p, const lab::Cpu&) {
  return [p] { scale(p, 2); };
}

/// Puts the lab's own pool to work when the clock has stopped.
lab::Side uses_pool_later(const Params& p, const lab::Cpu& cpu) {
  static std::mutex one_at_a_time;
  const auto servant = std::make_shared<Servant>([p, pool = cpu.pool] {
    std::this_thread::sleep_for(microseconds(30));
    const std::lock_guard lock(one_at_a_time);
    pool->run([p](int worker) {
      if (worker != 0) scale(p, kSlowPasses);
    });
  });
  return [p, servant, calls = 0]() mutable {
    if (++calls < 6) return scale(p, kSlowPasses);
    servant->tell();
  };
}
lab::Side uses_pool(const Params& p, const lab::Cpu& cpu) {
  return [p, pool = cpu.pool] {
    pool->for_ranges(p.count, [p](std::int64_t begin, std::int64_t end) {
      scale({p.in + begin, p.out + begin, end - begin});
    });
  };
}

/// Waits in a child for the inputs to change, and computes from them into the parent's memory.
void compute_in_time(const Params& p, pid_t parent) {
  std::vector<float> in(static_cast<std::size_t>(p.count)), out(in.size());
  const float old = p.in[p.count - 1];
  const std::size_t bytes = in.size() * sizeof(float);
  // Inputs that change in part may leave this word as it was.
  const auto patience = Clock::now() + std::chrono::milliseconds(50);
  for (float now = old; now == old && Clock::now() < patience;) {
    iovec to{.iov_base = &now, .iov_len = sizeof(now)};
    iovec from{.iov_base = const_cast<float*>(p.in + p.count - 1), .iov_len = sizeof(now)};
    if (process_vm_readv(parent, &to, 1, &from, 1, 0) < 0) _exit(1);
  }
  iovec to{.iov_base = in.data(), .iov_len = bytes};
  iovec from{.iov_base = const_cast<float*>(p.in), .iov_len = bytes};
  process_vm_readv(parent, &to, 1, &from, 1, 0);
  scale({in.data(), out.data(), p.count}, kSlowPasses);
  iovec local{.iov_base = out.data(), .iov_len = bytes};
  iovec remote{.iov_base = p.out, .iov_len = bytes};
  process_vm_writev(parent, &local, 1, &remote, 1, 0);
  _exit(0);
}

/// The child of `enter` is gone when the clock stops. One set is enough to show it.
lab::Side reaps_in_time(const Params& p, const lab::Cpu&) {
  static int sides = 0;
  if (sides++ > 0) return [p] { scale(p); };
  const auto child = std::make_shared<pid_t>(0);
  lab::Side side([child] { waitpid(*child, nullptr, 0); });
  side.enter = [p, child] {
    const pid_t parent = getpid();
    *child = fork();
    if (*child == 0) compute_in_time(p, parent);
  };
  return side;
}

/// A process that keeps a CPU busy for a while, and ends.
void burn() {
  use_any_cpu();
  const auto end = Clock::now() + std::chrono::milliseconds(30);
  while (Clock::now() < end) {
  }
  _exit(0);
}

/// Right, but every so often leaves a process behind that is no child by the usual signs.
template <unsigned long flags>
lab::Side leaves_clone(const Params& p, const lab::Cpu&) {
  return [p, calls = 0]() mutable {
    scale(p);
    if (++calls % 8 != 6) return;
    if (syscall(SYS_clone, flags, nullptr, nullptr, nullptr, nullptr) == 0) burn();
  };
}

/// Writes what it computed to a file, and reads it back.
template <int passes>
lab::Side uses_file(const Params& p, const lab::Cpu&) {
  return [p] {
    scale(p, passes);
    const auto count = static_cast<std::size_t>(p.count);
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
    if (!file || std::fwrite(p.out, sizeof(float), count, file.get()) != count) return;
    if (std::fseek(file.get(), 0, SEEK_SET) != 0) return;
    if (std::fread(p.out, sizeof(float), count, file.get()) != count) p.out[0] = 0;
  };
}

}  // namespace

std::vector<CpuLie<Params>> cpu_late_lies() {
  return {{"works_after_enter", works_after_enter},
          {"computes_while_copied", computes_while_copied},
          {"hides_in_slack", hides_in_slack, two_passes},
          {"uses_pool_later", uses_pool_later},
          {"uses_pool", uses_pool},
          {"reaps_in_time", reaps_in_time},
          {"leaves_silent_clone", leaves_clone<0>},
          {"leaves_sibling", leaves_clone<CLONE_PARENT | SIGCHLD>},
          {"uses_file", uses_file<1>, uses_file<16 * kSlowPasses>}};
}

}  // namespace gauntlet::lies
