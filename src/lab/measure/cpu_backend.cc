// The CPU as a backend: pinned threads, page-touched buffers, the steady clock, and a watch over
// threads, processes and signal handlers that would work while nothing is timed.
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/machine/machine.h"
#include "core/os/threads.h"
#include "lab/measure/backend.h"
#include "lab/measure/watch/child_processes.h"
#include "lab/measure/watch/signal_block.h"
#include "lab/measure/watch/unknown_work.h"

namespace gauntlet::lab::inline measure {
namespace {

using Clock = std::chrono::steady_clock;

// What the lab's own short-lived threads need to end, before anything counts as a side's.
constexpr auto kThreadsEnd = std::chrono::milliseconds(2);
constexpr std::size_t kFillTogether = std::size_t{1} << 20;

class CpuBackend final : public Backend {
 public:
  CpuBackend(std::vector<int> cpus, const std::shared_ptr<KnownThreads>& known)
      : pool_(std::move(cpus)),
        unknown_(known),
        this_thread_(known->add_this_thread()),
        pool_threads_(known->add(pool_)),
        machine_(read_machine(false)) {
    adopt_orphans();
    // Workers pin themselves when they start: from here on nobody but a side moves them.
    ++own_forks_;
    pool_.run([](int) {});
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
    ++own_forks_;
    pool_.for_ranges(job.spec.count, [&](std::int64_t begin, std::int64_t end) {
      job.write(data + static_cast<std::size_t>(begin) * element, begin, end);
    });
  }

  Side make_side(const Target& target, std::size_t side, const void* params) override {
    return target.source.cpu[side].cpu(params, {.pool = &pool_, .threads = pool_.size()});
  }

  void synchronize() override {}

  void call(const std::function<void()>& work) override {
    const SignalBlock::Lifted lifted(signals_);
    work();
  }

  void watch() override {
    // Threads of the lab's own that compared outputs may be just about to end.
    const auto begin = Clock::now();
    do {
      at_watch_ = unknown_.read();
    } while (at_watch_.threads_awake > 0 && Clock::now() - begin < kThreadsEnd);
    forks_at_watch_ = forks_of_sides();
    pool_at_watch_ns_ = pool_cpu_ns();
  }

  Timing time(const std::function<void()>& work, Caches caches) override {
    if (caches == Caches::flushed) flush_caches();
    const UnknownWork::Reading before = unknown_.read();
    Timing timing{.before_ns = UnknownWork::threads_ns(at_watch_, before)};
    hear_pool(timing.before_ns, pool_at_watch_ns_, forks_at_watch_);
    const auto [start, stop] = [&] {
      const SignalBlock::Lifted lifted(signals_);
      const auto begin = Clock::now();
      work();
      return std::pair(begin, Clock::now());
    }();
    timing.ns = std::chrono::duration<double, std::nano>(stop - start).count();
    forks_at_stop_ = forks_of_sides();
    pool_at_stop_ns_ = pool_cpu_ns();
    const UnknownWork::Heard heard = unknown_.listen(stop);
    at_rest_ = heard.last;
    timing.after_ns = heard.ns;
    hear_pool(timing.after_ns, pool_at_stop_ns_, forks_at_stop_);
    timing.restless = heard.restless;
    timing.left_process = at_watch_.has_process || before.has_process || at_rest_.has_process ||
                          has_younger_sibling();
    return timing;
  }

  void listen_again(Timing& timing) override {
    const UnknownWork::Reading now = unknown_.read();
    timing.after_ns += UnknownWork::threads_ns(at_rest_, now);
    hear_pool(timing.after_ns, pool_at_stop_ns_, forks_at_stop_);
    timing.left_process |= now.has_process;
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
      case Cost::Level::disk:
        break;
    }
    return std::int64_t{512} << 20;
  }
  std::optional<GpuState> sensors() override { return std::nullopt; }

 private:
  /// The pool's forks that are not the lab's own.
  std::uint64_t forks_of_sides() const { return pool_.forks() - own_forks_; }
  /// CPU time of the pool's workers counts when somebody else put them to work beside the clock.
  void hear_pool(double& ns, double pool_ns, std::uint64_t forks) const {
    if (forks_of_sides() != forks || pool_.busy()) ns += pool_cpu_ns() - pool_ns;
  }
  double pool_cpu_ns() const {
    double total = 0;
    for (const clockid_t clock : pool_.worker_clocks()) total += read_clock_ns(clock);
    return total;
  }

  SignalBlock signals_;  // before the pool, whose threads inherit it
  ThreadPool pool_;
  UnknownWork unknown_;
  KnownThreads::Lease this_thread_, pool_threads_;
  MachineInfo machine_;
  UnknownWork::Reading at_watch_, at_rest_;
  std::uint64_t own_forks_ = 0, forks_at_watch_ = 0, forks_at_stop_ = 0;
  double pool_at_watch_ns_ = 0, pool_at_stop_ns_ = 0;
  std::map<void*, std::size_t> sizes_;
  std::vector<std::uint64_t> flush_;
};

}  // namespace

Expected<std::unique_ptr<Backend>> make_cpu_backend() {
  // CPU 0 takes most of the system's interrupts: measure on the last one first.
  const std::vector<int> cpus = allowed_cpus();
  return std::unique_ptr<Backend>(std::make_unique<CpuBackend>(
      std::vector<int>(cpus.rbegin(), cpus.rend()), std::make_shared<KnownThreads>()));
}

std::unique_ptr<Backend> make_cpu_backend(int rank, int num_ranks,
                                          std::shared_ptr<KnownThreads> known) {
  const std::vector<int> cpus = allowed_cpus();
  // MPI's launcher may have given this process a CPU of its own already.
  const bool shared = static_cast<int>(cpus.size()) >= num_ranks;
  const int own = cpus[static_cast<std::size_t>(rank) % cpus.size()];
  if (!known) known = std::make_shared<KnownThreads>();
  return std::make_unique<CpuBackend>(shared ? std::vector<int>{own} : cpus, known);
}

Expected<std::unique_ptr<Backend>> make_backend(BackendKind kind) {
  check(kind != BackendKind::ranks, "a backend of ranks is made by each rank");
  return kind == BackendKind::cpu ? make_cpu_backend() : make_cuda_backend();
}

}  // namespace gauntlet::lab::inline measure
