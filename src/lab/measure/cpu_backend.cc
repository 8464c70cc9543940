// The CPU as a backend: pinned threads, page-touched buffers, the steady clock.
#include <sys/mman.h>

#include <chrono>
#include <cstring>
#include <map>
#include <vector>

#include "core/check.h"
#include "core/machine.h"
#include "core/threads.h"
#include "lab/measure/backend.h"

namespace gauntlet::lab::inline measure {
namespace {

class CpuBackend final : public Backend {
 public:
  CpuBackend() : pool_(cpus_last_first()) {}

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
  void download(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void set_bytes(void* to, unsigned char value, std::size_t bytes) override {
    std::memset(to, value, bytes);
  }

  Side make_side(const Target& target, SideIndex side, const void* params) override {
    return (*target.source.cpu)[side](params, {.pool = &pool_, .threads = pool_.size()});
  }

  void synchronize() override {}

  Timing time(const std::function<void()>& work) override {
    const auto start = std::chrono::steady_clock::now();
    work();
    const auto ns =
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start);
    return {.ns = ns.count(), .wall_ns = ns.count()};
  }

  void flush_caches() override {
    // Made when first needed: on a server it is gigabytes, and most runs are hot.
    if (flush_.empty()) {
      const auto cache = std::max<std::int64_t>(read_machine(false).cpu.last_level_bytes, 8 << 20);
      flush_.resize(static_cast<std::size_t>(3 * cache) / sizeof(std::uint64_t));
    }
    for (std::uint64_t& word : flush_) ++word;
    asm volatile("" : : "r"(flush_.data()) : "memory");
  }

  double min_sample_ns() const override { return 1e6; }
  std::optional<GpuState> sensors() override { return std::nullopt; }

 private:
  // CPU 0 takes most of the system's interrupts: measure on the last one first.
  static std::vector<int> cpus_last_first() {
    std::vector<int> cpus = allowed_cpus();
    return {cpus.rbegin(), cpus.rend()};
  }

  ThreadPool pool_;
  std::map<void*, std::size_t> sizes_;
  std::vector<std::uint64_t> flush_;
};

}  // namespace

Expected<std::unique_ptr<Backend>> make_cpu_backend() {
  return std::unique_ptr<Backend>(std::make_unique<CpuBackend>());
}

Expected<std::unique_ptr<Backend>> make_backend(BackendKind kind) {
  return kind == BackendKind::cpu ? make_cpu_backend() : make_cuda_backend();
}

}  // namespace gauntlet::lab::inline measure
