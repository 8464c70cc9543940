// How fast do L2, L1 and shared memory answer? Working sets that fit, read over and over.
#include <cuda_runtime.h>

#include <algorithm>

#include "core/cuda/check.h"
#include "lab/ceilings/ceilings_cuda.h"

namespace gauntlet::lab::inline ceilings {
namespace {

constexpr int kL2Threads = 256;
constexpr int kL2Unroll = 4;
constexpr int kL2TileVectors = kL2Threads * kL2Unroll;
constexpr double kL2SampleBytes = 8e9;

constexpr int kSmThreads = 1024;
constexpr int kSmBytes =
    32 << 10;  // per SM: fits L1 beside a carve-out for shared memory, and a block
constexpr int kSmUnroll = 8;
constexpr int kSmIterations = 4096;

__device__ __forceinline__ unsigned fold(uint4 v) { return v.x ^ v.y ^ v.z ^ v.w; }
__device__ __forceinline__ unsigned fold(uint2 v) { return v.x ^ v.y; }

/// Reads `turns` tiles per block from a working set of `tiles`; .cg passes L1 by.
__global__ __launch_bounds__(kL2Threads) void read_l2(const uint4* from, int tiles, int turns,
                                                      unsigned* sink) {
  unsigned sum = 0;
  int tile = static_cast<int>(blockIdx.x) % tiles;
  const int step = static_cast<int>(gridDim.x) % tiles;
  for (int turn = 0; turn < turns; ++turn) {
    const uint4* mine = from + tile * kL2TileVectors + threadIdx.x;
    uint4 v[kL2Unroll];
#pragma unroll
    for (int i = 0; i < kL2Unroll; ++i) v[i] = __ldcg(mine + i * kL2Threads);
#pragma unroll
    for (int i = 0; i < kL2Unroll; ++i) sum ^= fold(v[i]);
    tile += step;
    if (tile >= tiles) tile -= tiles;
  }
  if (sum == 0x9E3779B9u) *sink = sum;
}

/// Each turn starts `stride` vectors further on, so that no load repeats the one before and can be
/// kept in a register. Warps stay on whole lines: the stride is a multiple of 32.
template <class Vector, class Load>
__device__ __forceinline__ unsigned sweep(int stride, Load load) {
  constexpr int kMask = kSmBytes / static_cast<int>(sizeof(Vector)) - 1;
  unsigned sum = 0;
  int at = static_cast<int>(threadIdx.x);
  for (int iteration = 0; iteration < kSmIterations; ++iteration) {
    Vector v[kSmUnroll];
#pragma unroll
    for (int i = 0; i < kSmUnroll; ++i) {
      v[i] = load(at & kMask);
      at += stride;
    }
#pragma unroll
    for (int i = 0; i < kSmUnroll; ++i) sum ^= fold(v[i]);
  }
  return sum;
}

template <class Vector>
__global__ __launch_bounds__(kSmThreads) void read_l1(const Vector* from, int stride,
                                                      unsigned* sink) {
  const Vector* mine = from + std::int64_t{blockIdx.x} * (kSmBytes / sizeof(Vector));
  const unsigned sum = sweep<Vector>(stride, [&](int i) { return __ldca(mine + i); });
  if (sum == 0x9E3779B9u) *sink = sum;
}

template <class Vector>
__global__ __launch_bounds__(kSmThreads) void read_shared(const Vector* from, int stride,
                                                          unsigned* sink) {
  constexpr int kVectors = kSmBytes / static_cast<int>(sizeof(Vector));
  __shared__ Vector tile[kVectors];
  for (int i = static_cast<int>(threadIdx.x); i < kVectors; i += kSmThreads) tile[i] = from[i];
  __syncthreads();
  const unsigned sum = sweep<Vector>(stride, [&](int i) { return tile[i]; });
  if (sum == 0x9E3779B9u) *sink = sum;
}

template <class Vector>
void add_sm_reads(std::vector<Probe>& probes, const CudaSpace& space) {
  const std::string method = std::to_string(sizeof(Vector)) + "-byte loads";
  const double bytes =
      1.0 * space.num_sms * kSmThreads * kSmIterations * kSmUnroll * sizeof(Vector);
  const auto* from = static_cast<const Vector*>(space.from);
  auto* sink = static_cast<unsigned*>(space.to);
  const auto blocks = static_cast<unsigned>(space.num_sms);
  constexpr int kStride = kSmThreads + 32;
  probes.push_back({"l1_read", method, bytes, [=, stream = space.stream] {
                      read_l1<Vector><<<blocks, kSmThreads, 0, stream>>>(from, kStride, sink);
                      cuda_check(cudaGetLastError());
                    }});
  probes.push_back({"shared_read", method, bytes, [=, stream = space.stream] {
                      read_shared<Vector><<<blocks, kSmThreads, 0, stream>>>(from, kStride, sink);
                      cuda_check(cudaGetLastError());
                    }});
}

}  // namespace

std::vector<Probe> cuda_cache_probes(const CudaSpace& space) {
  std::vector<Probe> probes;
  const auto blocks =
      static_cast<unsigned>(space.num_sms * (space.max_threads_per_sm / kL2Threads));
  constexpr std::int64_t kTileBytes = kL2TileVectors * static_cast<std::int64_t>(sizeof(uint4));
  // An L2 in two halves may keep what both sides read twice, so half of it is the most that surely
  // fits.
  for (const int share : {2, 4}) {
    const std::int64_t set_bytes = std::min(space.l2_bytes / share, space.bytes);
    const int tiles = static_cast<int>(std::max<std::int64_t>(set_bytes / kTileBytes, 1));
    const int turns =
        static_cast<int>(kL2SampleBytes / static_cast<double>(kTileBytes * blocks)) + 1;
    probes.push_back({"l2_read", "working set of L2 / " + std::to_string(share),
                      1.0 * turns * blocks * kTileBytes, [=] {
                        read_l2<<<blocks, kL2Threads, 0, space.stream>>>(
                            static_cast<const uint4*>(space.from), tiles, turns,
                            static_cast<unsigned*>(space.to));
                        cuda_check(cudaGetLastError());
                      }});
  }
  add_sm_reads<uint4>(probes, space);
  add_sm_reads<uint2>(probes, space);
  return probes;
}

}  // namespace gauntlet::lab::inline ceilings
