// The 32-bit shared-memory address that PTX instructions take.
#pragma once
#include <cstdint>

namespace gauntlet::ptx {

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

}  // namespace gauntlet::ptx
