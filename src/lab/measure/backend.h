// Backend: the device a pair runs on, as measuring and verifying see it: memory, time, caches,
// clocks.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/expected.h"
#include "core/nvml.h"
#include "lab/author/target.h"

namespace gauntlet::lab::inline measure {

struct Timing {
  double ns = 0;       // by the backend's own clock: events on a GPU
  double wall_ns = 0;  // by the host's clock, until the whole device was idle
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual BackendKind kind() const = 0;

  virtual void* allocate(std::size_t bytes, Memory memory) = 0;
  virtual void release(void* pointer, Memory memory) noexcept = 0;
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
  virtual void download(void* to, const void* from, std::size_t bytes) = 0;
  virtual void set_bytes(void* to, unsigned char value, std::size_t bytes) = 0;

  virtual Side make_side(const Target& target, SideIndex side, const void* params) = 0;

  /// Waits for everything on the device, on any stream.
  virtual void synchronize() = 0;
  virtual Timing time(const std::function<void()>& work) = 0;
  /// Displaces at least three times the last-level cache.
  virtual void flush_caches() = 0;

  /// The smallest sample worth taking: well above the clock's resolution and the cost of starting.
  virtual double min_sample_ns() const = 0;
  /// Clocks, power and throttling now; nothing where the backend has no sensors.
  virtual std::optional<GpuState> sensors() = 0;
};

Expected<std::unique_ptr<Backend>> make_cpu_backend();
/// Device 0. Without toolkit or device, an error that says which.
Expected<std::unique_ptr<Backend>> make_cuda_backend();
Expected<std::unique_ptr<Backend>> make_backend(BackendKind kind);

}  // namespace gauntlet::lab::inline measure
