// In place of the toolkit's: words of the language, vectors, and launches on an emulated GPU.
#pragma once
#include <cuda_runtime_api.h>

#include <bit>
#include <cstdint>

#include "tests/emulated/cluster.h"

// The names are CUDA's.
// NOLINTBEGIN(bugprone-reserved-identifier)
#define __global__
#define __device__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
inline thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

struct [[gnu::may_alias]] alignas(16) float4 {
  float x, y, z, w;
};
struct [[gnu::may_alias]] alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }

inline void __syncwarp() { gauntlet::emulated::Cluster::current().sync_warp(); }
inline void __syncthreads() { gauntlet::emulated::Cluster::current().sync_block(); }
// NOLINTEND(bugprone-reserved-identifier)

enum cudaLaunchAttributeID { cudaLaunchAttributeClusterDimension };
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  struct {
    dim3 clusterDim;
  } val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim;
  dim3 blockDim;
  std::size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};

enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel*, cudaFuncAttribute, int bytes) {
  constexpr int kMost = 227 * 1024;
  return bytes <= kMost ? cudaSuccess : cudaErrorEmulated;
}

/// Clusters one after the other, the blocks of one at the same time.
template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               const Arguments&... arguments) {
  using gauntlet::emulated::Cluster;
  const unsigned of_cluster = config->numAttrs == 0 ? 1 : config->attrs->val.clusterDim.x;
  const dim3 grid = config->gridDim, block = config->blockDim;
  if (grid.x % of_cluster != 0 || grid.z != 1 || block.y * block.z != 1) return cudaErrorEmulated;
  for (unsigned first = 0; first < grid.x * grid.y; first += of_cluster) {
    Cluster cluster(config->stream->random, {.blocks = static_cast<int>(of_cluster),
                                             .threads = static_cast<int>(block.x),
                                             .shared_bytes = config->dynamicSmemBytes});
    const std::string fault = cluster.run([&](int rank, int thread) {
      const unsigned number = first + static_cast<unsigned>(rank);
      threadIdx = {static_cast<unsigned>(thread), 0, 0};
      blockIdx = {number % grid.x, number / grid.x, 0};
      blockDim = block;
      gridDim = grid;
      kernel(arguments...);
    });
    if (config->stream->fault.empty()) config->stream->fault = fault;
  }
  return cudaSuccess;
}
