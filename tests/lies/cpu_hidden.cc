// Sides on a CPU that work where the clock does not look: in threads, processes, signal handlers
// and page faults; and honest twins that do the same within a run.
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "tests/lies/lie.h"
#include "tests/lies/scale.h"
#include "tests/lies/servant.h"

namespace gauntlet::lies {
namespace {

/// Waits for it while it is verified, and no longer once it is timed.
lab::Side leaves_thread(const Params& p, const lab::Cpu&) {
  const auto servant = std::make_shared<Servant>([p] { scale(p, kSlowPasses); });
  return [servant, calls = 0]() mutable {
    servant->tell();
    if (++calls < 6) servant->wait();
  };
}

lab::Side joins_thread(const Params& p, const lab::Cpu&) {
  const auto servant = std::make_shared<Servant>([p] { scale(p); });
  return [servant] {
    servant->tell();
    servant->wait();
  };
}

/// The same, and says that it holds a thread: what that does after the return is counted then.
lab::Side declares_thread(const Params& p, const lab::Cpu&) {
  lab::Side side = joins_thread(p, {});
  side.helpers = lab::Helpers::threads;
  return side;
}
/// As much work as the next one does before it returns, and after.
lab::Side without_thread(const Params& p, const lab::Cpu&) {
  return [p] { scale(p, 2); };
}
/// Answers, and lets its thread do another five passes when it has returned.
lab::Side declares_thread_and_leaves_it(const Params& p, const lab::Cpu&) {
  const auto own = std::make_shared<std::vector<float>>(static_cast<std::size_t>(2 * p.count));
  const auto servant = std::make_shared<Servant>(
      [own, count = p.count] { scale({own->data(), own->data() + count, count}, 5); });
  lab::Side side([p, servant] {
    scale(p);
    servant->tell();
  });
  side.helpers = lab::Helpers::threads;
  return side;
}

/// Right by itself, but keeps the other core busy while the baseline runs. It writes to memory of its
/// own: in the baseline's outputs it would be seen as a wrong result.
lab::Side hinders_baseline(const Params& p, const lab::Cpu&) {
  const auto own = std::make_shared<std::vector<float>>(static_cast<std::size_t>(p.count));
  const Params elsewhere{.in = p.in, .out = own->data(), .count = p.count};
  const auto servant =
      std::make_shared<Servant>([own, elsewhere] { scale(elsewhere, 64 * kSlowPasses); });
  return [p, servant] {
    scale(p);
    servant->tell();
  };
}

/// Sees the inputs of a set change, and computes ahead of the clock.
class Watcher {
 public:
  explicit Watcher(const Params& p) : thread_([this, p] { watch(p); }) {}
  ~Watcher() {
    stop_ = true;
    thread_.join();
  }
  /// By then most of it is done.
  void wait(float last) const {
    while (done_ != last) sched_yield();
  }

 private:
  void watch(const Params& p) {
    use_any_cpu();
    const volatile float* last = p.in + p.count - 1;
    for (float seen = -100; !stop_;) {
      if (*last == seen) continue;
      seen = *last;
      scale(p);
      done_ = seen;
    }
  }
  std::atomic<bool> stop_{false};
  std::atomic<float> done_{-100};
  std::thread thread_;
};

/// One set is enough to show it; a watcher for each would stop the machine.
lab::Side watches_inputs(const Params& p, const lab::Cpu&) {
  static std::atomic<int> sides{0};
  if (sides++ > 0) return [p] { scale(p); };
  const auto watcher = std::make_shared<Watcher>(p);
  return [p, watcher] { watcher->wait(p.in[p.count - 1]); };
}

/// A child computes from its copy of the inputs and writes into the parent's memory.
void compute_in_child(const Params& p, pid_t parent) {
  std::vector<float> out(static_cast<std::size_t>(p.count));
  scale({p.in, out.data(), p.count}, kSlowPasses);
  iovec local{.iov_base = out.data(), .iov_len = out.size() * sizeof(float)};
  iovec remote{.iov_base = p.out, .iov_len = local.iov_len};
  process_vm_writev(parent, &local, 1, &remote, 1, 0);
  _exit(0);
}

lab::Side leaves_process(const Params& p, const lab::Cpu&) {
  return [p] {
    const pid_t parent = getpid();
    if (fork() == 0) compute_in_child(p, parent);
  };
}

template <int passes>
lab::Side joins_process(const Params& p, const lab::Cpu&) {
  return [p] {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
    scale(p, passes);
  };
}

/// What a handler finds to do. Handlers take no argument, so this is a variable of the file.
Params handler_params;

void compute_on_alarm(int) { scale(handler_params); }

/// A timer's handler computes a little later, on the lab's own thread.
lab::Side works_on_alarm(const Params& p, const lab::Cpu&) {
  return [p] {
    handler_params = p;
    signal(SIGALRM, compute_on_alarm);
    const itimerval soon{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_usec = 20}};
    setitimer(ITIMER_REAL, &soon, nullptr);
  };
}

constexpr std::uintptr_t kPage = 4096;

void compute_on_fault(int, siginfo_t*, void*) {
  const Params& p = handler_params;
  const auto first = reinterpret_cast<std::uintptr_t>(p.out) & ~(kPage - 1);
  mprotect(reinterpret_cast<void*>(first), static_cast<std::size_t>(p.count) * sizeof(float),
           PROT_READ | PROT_WRITE);
  scale(p);
}

/// Protects its output, and computes when somebody looks.
lab::Side computes_when_read(const Params& p, const lab::Cpu&) {
  return [p] {
    handler_params = p;
    struct sigaction action{};
    action.sa_sigaction = compute_on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, nullptr);
    const auto first = reinterpret_cast<std::uintptr_t>(p.out) & ~(kPage - 1);
    mprotect(reinterpret_cast<void*>(first), static_cast<std::size_t>(p.count) * sizeof(float),
             PROT_NONE);
  };
}

}  // namespace

std::vector<CpuLie<Params>> cpu_hidden_lies() {
  return {{"leaves_thread", leaves_thread},
          {"joins_thread", joins_thread},
          {"declares_thread", declares_thread},
          {"declares_thread_and_leaves_it", declares_thread_and_leaves_it, without_thread},
          {"hinders_baseline", hinders_baseline},
          {"watches_inputs", watches_inputs},
          {"leaves_process", leaves_process},
          {"joins_process", joins_process<1>, joins_process<16 * kSlowPasses>},
          {"works_on_alarm", works_on_alarm},
          {"computes_when_read", computes_when_read}};
}

}  // namespace gauntlet::lies
