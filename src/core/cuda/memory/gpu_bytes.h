// Memory of a GPU for code that is compiled with and without a toolkit, as sides of ranks are.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/expected.h"

namespace gauntlet {

/// Copies start in the order of calls, and are over when wait() returns.
class GpuBytes {
 public:
  /// On the GPU of that number, or of what is left of it after all GPUs of this host.
  static Expected<std::unique_ptr<GpuBytes>> make(int number, std::size_t bytes);
  virtual ~GpuBytes() = default;

  virtual std::byte* data() const = 0;
  virtual void upload(std::size_t to, const void* from, std::size_t bytes) = 0;
  virtual void download(void* to, std::size_t from, std::size_t bytes) = 0;
  virtual void wait() = 0;
  /// What uploads and downloads moved so far.
  virtual std::uint64_t link_bytes() const = 0;
};

/// Page-locked memory of the host.
Expected<std::shared_ptr<std::byte>> pinned_bytes(std::size_t bytes);

}  // namespace gauntlet
