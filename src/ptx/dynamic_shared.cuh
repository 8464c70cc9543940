// The shared memory that a launch asks for.
#pragma once

namespace gauntlet::ptx {

/// As a T at its beginning.
template <class T>
__device__ __forceinline__ T& dynamic_shared() {
  extern __shared__ __align__(1024) unsigned char dynamic_shared_bytes[];
  static_assert(alignof(T) <= 1024);
  return *reinterpret_cast<T*>(dynamic_shared_bytes);
}

}  // namespace gauntlet::ptx
