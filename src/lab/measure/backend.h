// Backend: the device a target runs on, as measuring and verifying see it: memory, time, caches,
// clocks, and what went on outside of the clock.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/expected.h"
#include "core/machine/nvml.h"
#include "lab/measure/inputs.h"
#include "lab/measure/watch/known_threads.h"
#include "lab/targets/target.h"

namespace gauntlet::lab::inline measure {

struct Timing {
  double ns = 0;  // by the backend's own clock: events on a GPU
  /// Work of nobody's asking: on a GPU the time it was busy, on a CPU the CPU time of threads that
  /// the lab does not know, before the clock started and after it stopped.
  double before_ns = 0;
  double after_ns = 0;
  double host_ns = 0;  // on a GPU, CPU time of such threads before and after: they can launch
  bool left_process = false;  // a process of the side's was there before or after
  bool restless = false;      // what goes on after the clock did not end while it was listened to
};

/// One input of a set, to be made from its version.
struct InputJob {
  const BufferSpec& spec;
  void* data = nullptr;
  InputVersion version;
  std::uint64_t name_hash = 0;   // buffers of a set differ, and those of ranks
  std::int64_t first_block = 0;  // of this buffer, in the version's count

  Random random(std::uint64_t seed) const { return Random(seed ^ name_hash); }
  /// Makes elements [begin, end) in host memory: `out` is where `begin` goes. Inputs that do not
  /// mix may only be made whole.
  void write(void* out, std::int64_t begin, std::int64_t end) const;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual BackendKind kind() const = 0;

  virtual void* allocate(std::size_t bytes, Memory memory) = 0;
  virtual void release(void* pointer, Memory memory) noexcept = 0;
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
  /// False where the memory cannot be read: a side may have protected it.
  virtual bool download(void* to, const void* from, std::size_t bytes) = 0;
  virtual void set_bytes(void* to, unsigned char value, std::size_t bytes) = 0;
  /// Writes an input's renewed blocks; the others are there already.
  virtual void renew(const InputJob& job) = 0;

  /// Puts pages of managed memory into the host's.
  virtual void move_to_host(void* /*managed*/, std::size_t /*bytes*/) {}

  virtual Side make_side(const Target& target, std::size_t side, const void* params) = 0;

  /// Waits for everything on the device, on any stream.
  virtual void synchronize() = 0;
  /// Calls a side's code untimed, in the state in which it is timed: it cannot tell.
  virtual void call(const std::function<void()>& work) { work(); }
  /// Watches from now on for work outside of the clock: called before inputs are renewed.
  virtual void watch() = 0;
  enum class Caches { as_they_are, flushed };
  /// On ranks `ns` is the time of all of them together, the same on each.
  virtual Timing time(const std::function<void()>& work, Caches caches) = 0;
  struct Extent {
    const void* data = nullptr;
    std::size_t bytes = 0;
  };
  /// Takes outputs into safety where that is quicker than to download them; downloads then read
  /// what they were. An empty list ends it.
  virtual void freeze(std::span<const Extent> /*outputs*/) {}
  /// Adds what went on since time() returned: outputs are in safety now.
  virtual void listen_again(Timing& /*timing*/) {}
  /// Displaces at least three times the last-level cache.
  virtual void flush_caches() = 0;

  /// A sample should be this long: well above the clock's resolution and the cost of starting.
  virtual double min_sample_ns() const = 0;
  /// Bytes that all buffer sets together may take.
  virtual std::int64_t set_bytes_limit(Cost::Level level) const = 0;
  /// Clocks, power and throttling now; nothing where the backend has no sensors.
  virtual std::optional<GpuState> sensors() = 0;

  virtual int rank() const { return 0; }
  virtual int num_ranks() const { return 1; }
  /// Ranks decide alike: rank 0's value, and whether all of them say yes.
  virtual double agree(double value) { return value; }
  virtual bool all_agree(bool yes) { return yes; }
};

Expected<std::unique_ptr<Backend>> make_cpu_backend();
/// One rank's share of the CPUs: one of them, or all where there are fewer than ranks. Ranks that
/// are threads of one process pass the same `known`, and so know each other's threads; without it
/// the calling thread and its pool are known.
std::unique_ptr<Backend> make_cpu_backend(int rank, int num_ranks,
                                          std::shared_ptr<KnownThreads> known = nullptr);
/// Device 0. Without toolkit or device, an error that says which.
Expected<std::unique_ptr<Backend>> make_cuda_backend();
Expected<std::unique_ptr<Backend>> make_backend(BackendKind kind);

}  // namespace gauntlet::lab::inline measure
