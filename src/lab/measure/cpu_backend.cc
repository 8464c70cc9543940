// The CPU as a backend: pinned threads, page-touched buffers, the steady clock, and a watch over
// threads, processes and signal handlers that would work while nothing is timed.
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <vector>

#include "core/check.h"
#include "core/machine.h"
#include "core/threads.h"
#include "lab/measure/backend.h"
#include "lab/measure/child_processes.h"

namespace gauntlet::lab::inline measure {
namespace {

using Clock = std::chrono::steady_clock;

// How long a thread that a side left behind is listened for. Its outputs are copied right after,
// so a thread that waits for longer has not written them.
constexpr auto kListenFor = std::chrono::microseconds(100);
constexpr std::size_t kFillTogether = std::size_t{1} << 20;

double clock_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

/// Keeps signals from the calling thread, and from those it starts, but for stretches that are
/// timed: a handler would work outside of the clock.
class SignalBlock {
 public:
  SignalBlock() {
    sigfillset(&all_);
    pthread_sigmask(SIG_SETMASK, &all_, &before_);
  }
  ~SignalBlock() {
    // What is still waiting finds its buffers gone.
    const timespec now{};
    while (sigtimedwait(&all_, nullptr, &now) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalBlock(const SignalBlock&) = delete;
  SignalBlock& operator=(const SignalBlock&) = delete;

  void lift() const { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  void restore() const { pthread_sigmask(SIG_SETMASK, &all_, nullptr); }

 private:
  sigset_t all_{}, before_{};
};

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(std::vector<int> cpus)
      : pool_(std::move(cpus)), machine_(read_machine(false)) {
    adopt_orphans();
  }

  BackendKind kind() const override { return BackendKind::cpu; }

  void* allocate(std::size_t bytes, Memory) override {
    void* pointer =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pointer == MAP_FAILED) throw std::bad_alloc();
    std::memset(pointer, 0, bytes);
    sizes_[pointer] = bytes;
    return pointer;
  }
  void release(void* pointer, Memory) noexcept override {
    const auto size = sizes_.find(pointer);
    if (size == sizes_.end()) return;
    munmap(pointer, size->second);
    sizes_.erase(size);
  }
  void upload(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  /// Through the kernel, which does not call a side's handler for pages it protected.
  bool download(void* to, const void* from, std::size_t bytes) override {
    auto* out = static_cast<char*>(to);
    const auto* in = static_cast<const char*>(from);
    while (bytes > 0) {
      iovec local{.iov_base = out, .iov_len = bytes};
      iovec remote{.iov_base = const_cast<char*>(in), .iov_len = bytes};
      const ssize_t count = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
      if (count < 0 && (errno == ENOSYS || errno == EPERM)) {
        std::memcpy(out, in, bytes);
        return true;
      }
      if (count <= 0) return false;
      out += count;
      in += count;
      bytes -= static_cast<std::size_t>(count);
    }
    return true;
  }
  void set_bytes(void* to, unsigned char value, std::size_t bytes) override {
    std::memset(to, value, bytes);
  }
  void renew(const InputJob& job) override {
    auto* data = static_cast<unsigned char*>(job.data);
    const std::size_t element = size_of(job.spec.type);
    const std::size_t bytes = static_cast<std::size_t>(job.spec.count) * element;
    if (job.spec.fill.whole || bytes < kFillTogether) {
      job.write(data, 0, job.spec.count);
      return;
    }
    pool_.for_ranges(job.spec.count, [&](std::int64_t begin, std::int64_t end) {
      job.write(data + static_cast<std::size_t>(begin) * element, begin, end);
    });
  }

  Side make_side(const Target& target, std::size_t side, const void* params) override {
    return target.source.cpu[side].cpu(params, {.pool = &pool_, .threads = pool_.size()});
  }

  void synchronize() override {}

  void watch() override { unknown_at_watch_ns_ = unknown_threads_ns(); }

  Timing time(const std::function<void()>& work, Caches caches) override {
    if (caches == Caches::flushed) flush_caches();
    const double unknown_before = unknown_threads_ns();
    signals_.lift();
    const auto start = Clock::now();
    work();
    const auto stop = Clock::now();
    signals_.restore();
    const double unknown_after = unknown_threads_ns();
    while (Clock::now() - stop < kListenFor) {
    }
    Timing timing{.ns = std::chrono::duration<double, std::nano>(stop - start).count(),
                  .before_ns = unknown_before - unknown_at_watch_ns_,
                  .after_ns = unknown_threads_ns() - unknown_after};
    timing.left_process = has_child_process();
    return timing;
  }

  void flush_caches() override {
    // Made when first needed: on a server it is gigabytes, and most runs are hot.
    if (flush_.empty()) {
      const auto cache = std::max<std::int64_t>(machine_.cpu.last_level_bytes, 8 << 20);
      flush_.resize(static_cast<std::size_t>(3 * cache) / sizeof(std::uint64_t));
    }
    for (std::uint64_t& word : flush_) ++word;
    asm volatile("" : : "r"(flush_.data()) : "memory");
  }

  double min_sample_ns() const override { return 1e6; }
  std::int64_t set_bytes_limit(Cost::Level level) const override {
    switch (level) {
      case Cost::Level::l1_cache:
        return machine_.cpu.l1d_bytes / 2;
      case Cost::Level::cache:
        return machine_.cpu.last_level_bytes / 2;
      case Cost::Level::dram:
      case Cost::Level::host_link:
        break;
    }
    return std::int64_t{512} << 20;
  }
  std::optional<GpuState> sensors() override { return std::nullopt; }

 private:
  /// CPU time of all threads but this one and the pool's.
  double unknown_threads_ns() const {
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID) - clock_ns(CLOCK_THREAD_CPUTIME_ID) -
           static_cast<double>(pool_.workers_cpu_ns());
  }

  SignalBlock signals_;  // before the pool, whose threads inherit it
  ThreadPool pool_;
  MachineInfo machine_;
  double unknown_at_watch_ns_ = 0;
  std::map<void*, std::size_t> sizes_;
  std::vector<std::uint64_t> flush_;
};

}  // namespace

Expected<std::unique_ptr<Backend>> make_cpu_backend() {
  // CPU 0 takes most of the system's interrupts: measure on the last one first.
  const std::vector<int> cpus = allowed_cpus();
  return std::unique_ptr<Backend>(
      std::make_unique<CpuBackend>(std::vector<int>(cpus.rbegin(), cpus.rend())));
}

std::unique_ptr<Backend> make_cpu_backend(int rank, int num_ranks) {
  const std::vector<int> cpus = allowed_cpus();
  // MPI's launcher may have given this process a CPU of its own already.
  const bool shared = static_cast<int>(cpus.size()) >= num_ranks;
  const int own = cpus[static_cast<std::size_t>(rank) % cpus.size()];
  return std::make_unique<CpuBackend>(shared ? std::vector<int>{own} : cpus);
}

Expected<std::unique_ptr<Backend>> make_backend(BackendKind kind) {
  check(kind != BackendKind::ranks, "a backend of ranks is made by each rank");
  return kind == BackendKind::cpu ? make_cpu_backend() : make_cuda_backend();
}

}  // namespace gauntlet::lab::inline measure
