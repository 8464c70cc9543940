// Times the CPU's loops over working sets cut from its caches, on one pinned thread and on all.
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <vector>

#include "core/check.h"
#include "core/os/threads.h"
#include "lab/ceilings/ceiling_backends.h"
#include "lab/ceilings/ceilings_cpu_kernels.h"

namespace gauntlet::lab::inline ceilings {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kProbeSeconds = 0.1;  // per method; about 70 of them must stay below 12 s
constexpr std::size_t kSampleBytes = std::size_t{16}
                                     << 20;          // moved per thread and sample, in caches
constexpr std::int64_t kSampleIterations = 200'000;  // of arithmetic: about a millisecond
// A sample covers one part of a DRAM buffer and the next sample the next part: short samples catch
// a quiet moment of a shared machine, and a part has long left the caches when its turn comes
// again.
constexpr std::size_t kParts = 8;

class AffinityKeeper {
 public:
  AffinityKeeper() { known_ = sched_getaffinity(0, sizeof(set_), &set_) == 0; }
  ~AffinityKeeper() {
    if (known_) sched_setaffinity(0, sizeof(set_), &set_);
  }
  AffinityKeeper(const AffinityKeeper&) = delete;
  AffinityKeeper& operator=(const AffinityKeeper&) = delete;

 private:
  cpu_set_t set_;
  bool known_ = false;
};

/// Pages of one worker, touched by it (so they are near it), in huge pages where the system has
/// them.
class Pages {
 public:
  explicit Pages(std::size_t bytes) : bytes_(bytes) {
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return;
    madvise(data, bytes, MADV_HUGEPAGE);
    data_ = static_cast<std::byte*>(data);
    for (std::size_t i = 0; i < bytes; i += 4096) data_[i] = static_cast<std::byte>(i >> 12);
  }
  ~Pages() {
    if (data_) munmap(data_, bytes_);
  }
  Pages(Pages&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  Pages& operator=(Pages&&) = delete;

  explicit operator bool() const { return data_ != nullptr; }
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_;
};

struct Buffers {
  Pages from;
  Pages to;
};

std::size_t granules(double bytes) {
  return std::max<std::size_t>(static_cast<std::size_t>(bytes) / kMoveGranule, 1) * kMoveGranule;
}

/// Bytes per worker that stay within a level, and fall out of the one before it.
struct WorkingSets {
  std::size_t l1 = 0, l2 = 0, llc = 0;  // 0: the CPU does not say
  std::size_t dram = 0;                 // of each buffer, in kParts parts

  WorkingSets(const CpuInfo& cpu, int workers) {
    const auto l1_bytes = static_cast<double>(cpu.l1d_bytes);
    const auto l2_bytes = static_cast<double>(cpu.l2_bytes);
    const auto llc_bytes = static_cast<double>(cpu.last_level_bytes);
    if (l1_bytes > 0) l1 = granules(l1_bytes / 2);
    if (l2_bytes > l1_bytes) l2 = granules(l2_bytes / 2);
    // Where the last level is no larger than all second levels together it holds what they evict,
    // and one and a half of a second level spills into it.
    if (llc_bytes > l2_bytes) llc = granules(std::max(llc_bytes / 2 / workers, 1.5 * l2_bytes));

    constexpr double kSmallest = 256 << 20, kLargest = 2048.0 * (1 << 20);
    double all = std::clamp(4 * llc_bytes, kSmallest, kLargest);
    if (cpu.memory_bytes > 0) all = std::min(all, static_cast<double>(cpu.memory_bytes) / 8);
    dram = granules(all / workers / kParts) * kParts;
  }
};

/// The probes of one width of the machine; `suffix` is the end of their ceilings' names.
class CpuProbes {
 public:
  CpuProbes(const CpuInfo& cpu, std::vector<int> cpus, std::string suffix)
      : pool_(std::move(cpus)), suffix_(std::move(suffix)), sets_(cpu, pool_.size()) {
    std::vector<std::unique_ptr<Buffers>> made(static_cast<std::size_t>(pool_.size()));
    pool_.run([&](int worker) {
      made[worker] = std::make_unique<Buffers>(Pages(sets_.dram), Pages(sets_.dram));
    });
    buffers_ = std::move(made);
  }

  bool has_memory() const {
    return std::all_of(buffers_.begin(), buffers_.end(),
                       [](const auto& buffer) { return buffer->from && buffer->to; });
  }

  std::vector<Probe> list() {
    const CpuMethods methods = cpu_methods();
    std::vector<Probe> probes;
    for (const ArithmeticMethod& method : methods.arithmetic) {
      add(probes, method.ceiling, method.name,
          method.operations * static_cast<double>(kSampleIterations),
          [run = method.run](const Buffers&) { run(kSampleIterations); });
    }
    for (const ReadMethod& method : methods.reads) {
      add_cache_read(probes, "l1_read", sets_.l1, method);
      add_cache_read(probes, "l2_read", sets_.l2, method);
      add_cache_read(probes, "llc_read", sets_.llc, method);
    }
    const std::size_t part = sets_.dram / kParts;
    const auto part_bytes = static_cast<double>(part);
    for (const ReadMethod& method : methods.reads) {
      add(probes, "dram_read", method.name, part_bytes,
          [this, part, run = method.run](const Buffers& b) {
            run(b.from.data() + offset(), part);
          });
    }
    for (const WriteMethod& method : methods.writes) {
      add(probes, "dram_write", method.name, part_bytes,
          [this, part, run = method.run](const Buffers& b) { run(b.to.data() + offset(), part); });
    }
    for (const CopyMethod& method : methods.copies) {
      add(probes, "dram_copy", method.name, 2 * part_bytes,
          [this, part, run = method.run](const Buffers& b) {
            run(b.to.data() + offset(), b.from.data() + offset(), part);
          });
    }
    return probes;
  }

 private:
  std::size_t offset() const { return turn_ % kParts * (sets_.dram / kParts); }

  void add_cache_read(std::vector<Probe>& probes, const char* ceiling, std::size_t bytes,
                      const ReadMethod& method) {
    if (bytes == 0 || bytes > sets_.dram) return;
    const std::size_t passes = std::max<std::size_t>(kSampleBytes / bytes, 1);
    add(probes, ceiling, method.name, static_cast<double>(bytes * passes),
        [bytes, passes, run = method.run](const Buffers& b) {
          for (std::size_t pass = 0; pass < passes; ++pass) run(b.from.data(), bytes);
        });
  }

  template <class Work>
  void add(std::vector<Probe>& probes, const char* ceiling, const char* method, double amount,
           Work work) {
    probes.push_back({.ceiling = ceiling + suffix_,
                      .method = method,
                      .amount = amount * pool_.size(),
                      .run = [this, work] {
                        pool_.run([&](int worker) { work(*buffers_[worker]); });
                        ++turn_;
                      }});
  }

  ThreadPool pool_;
  std::string suffix_;
  WorkingSets sets_;
  std::vector<std::unique_ptr<Buffers>> buffers_;
  std::size_t turn_ = 0;
};

std::vector<double> sample_seconds(const Probe& probe) {
  probe.run();
  std::vector<double> times;
  const auto begin = Clock::now();
  double elapsed = 0;
  for (int samples = 0; samples < 3 || elapsed < kProbeSeconds; ++samples) {
    const auto start = Clock::now();
    probe.run();
    const auto end = Clock::now();
    times.push_back(std::chrono::duration<double>(end - start).count());
    elapsed = std::chrono::duration<double>(end - begin).count();
  }
  return times;
}

}  // namespace

Expected<Ceilings> measure_cpu_ceilings(const MachineInfo& machine,
                                        const CeilingProgress& progress) {
  const AffinityKeeper affinity;
  const std::vector<int> all = allowed_cpus();
  Ceilings ceilings;
  for (const Threads threads : {Threads::one, Threads::all}) {
    const bool one = threads == Threads::one;
    CpuProbes probes(machine.cpu, one ? std::vector<int>{all[0]} : all, one ? "_1t" : "");
    if (!probes.has_memory()) {
      return Error{"not enough memory to measure the CPU's ceilings; free an eighth of it"};
    }
    std::string last;
    for (const Probe& probe : probes.list()) {
      if (probe.ceiling != last) progress(probe.ceiling);
      last = probe.ceiling;
      record(ceilings, probe, sample_seconds(probe));
    }
  }
  progress("disk_read");
  add_disk_ceiling(std::filesystem::temp_directory_path(), ceilings);
  return ceilings;
}

}  // namespace gauntlet::lab::inline ceilings
