// griddepcontrol: a kernel that starts before the one in front of it has ended (programmatic
// dependent launch, sm_90). Elsewhere, and where a launch did not ask for it, both do nothing.
#pragma once

namespace gauntlet::ptx {

/// Waits until the kernel in front has ended and its writes can be seen.
__device__ __forceinline__ void grid_dependency_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Lets the next kernel start once every block has said so or ended.
__device__ __forceinline__ void grid_dependency_launch() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

}  // namespace gauntlet::ptx
