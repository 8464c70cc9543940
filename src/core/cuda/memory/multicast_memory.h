// Memory of several GPUs at one address: what is stored there reaches all of them, and a load can
// bring the sum of what they hold (NVLink SHARP).
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "core/expected.h"

namespace gauntlet {

class MulticastMemory {
 public:
  /// As many bytes on each device. An error says what the driver refused.
  static Expected<std::unique_ptr<MulticastMemory>> make(const std::vector<int>& devices,
                                                         std::int64_t bytes);
  virtual ~MulticastMemory() = default;

  /// The memory of one of them, which all reach.
  virtual void* own(int index) const = 0;
  /// The memory of all of them, for multimem instructions (ptx/multimem.cuh) alone.
  virtual void* all() const = 0;
};

}  // namespace gauntlet
