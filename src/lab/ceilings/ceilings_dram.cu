// How fast does device memory read, write and copy? Vectorised loops that differ in loads in
// flight, in the number of blocks and in the cache hint, and the driver's own copies.
#include <cuda_runtime.h>

#include "core/cuda/check.h"
#include "core/random.h"
#include "lab/ceilings/ceilings_cuda.h"

namespace gauntlet::lab::inline ceilings {
namespace {

constexpr int kThreads = 512;
enum class Hint { none, streaming };

template <int kUnroll>
constexpr std::int64_t tile_vectors() {
  return std::int64_t{kThreads} * kUnroll;
}
static_assert(kCudaGranule % (tile_vectors<8>() * sizeof(uint4)) == 0);

template <Hint kHint>
__device__ __forceinline__ uint4 load(const uint4* from) {
  if constexpr (kHint == Hint::streaming) {
    return __ldcs(from);
  } else {
    return __ldg(from);
  }
}

template <Hint kHint>
__device__ __forceinline__ void store(uint4* to, uint4 value) {
  if constexpr (kHint == Hint::streaming) {
    __stcs(to, value);
  } else {
    *to = value;
  }
}

template <int kUnroll, Hint kHint>
__global__ __launch_bounds__(kThreads) void read_all(const uint4* from, std::int64_t vectors,
                                                     unsigned* sink) {
  unsigned sum = 0;
  for (std::int64_t tile = blockIdx.x; tile * tile_vectors<kUnroll>() < vectors;
       tile += gridDim.x) {
    const uint4* mine = from + tile * tile_vectors<kUnroll>() + threadIdx.x;
    uint4 v[kUnroll];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) v[i] = load<kHint>(mine + i * kThreads);
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) sum ^= v[i].x ^ v[i].y ^ v[i].z ^ v[i].w;
  }
  // Almost never true, and never known to the compiler.
  if (sum == 0x9E3779B9u) *sink = sum;
}

template <int kUnroll, Hint kHint>
__global__ __launch_bounds__(kThreads) void write_all(uint4* to, std::int64_t vectors,
                                                      unsigned value) {
  for (std::int64_t tile = blockIdx.x; tile * tile_vectors<kUnroll>() < vectors;
       tile += gridDim.x) {
    uint4* mine = to + tile * tile_vectors<kUnroll>() + threadIdx.x;
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      store<kHint>(mine + i * kThreads, make_uint4(value, threadIdx.x, blockIdx.x, ~value));
    }
  }
}

template <int kUnroll, Hint kHint>
__global__ __launch_bounds__(kThreads) void copy_all(const uint4* from, uint4* to,
                                                     std::int64_t vectors) {
  for (std::int64_t tile = blockIdx.x; tile * tile_vectors<kUnroll>() < vectors;
       tile += gridDim.x) {
    const std::int64_t begin = tile * tile_vectors<kUnroll>() + threadIdx.x;
    uint4 v[kUnroll];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) v[i] = load<kHint>(from + begin + i * kThreads);
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) store<kHint>(to + begin + i * kThreads, v[i]);
  }
}

__global__ void fill_words(std::uint32_t* to, std::int64_t count, RandomWords words) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const auto random = static_cast<std::uint32_t>(mix64(static_cast<std::uint64_t>(i)));
    to[i] = (random & words.keep) | words.set;
  }
}

/// Adds read, write and copy by one kind of loop, with as many blocks as fit at once and with a
/// block for every tile.
template <int kUnroll, Hint kHint>
void add_loops(std::vector<Probe>& probes, const CudaSpace& space) {
  const auto* from = static_cast<const uint4*>(space.from);
  auto* to = static_cast<uint4*>(space.to);
  const std::int64_t vectors = space.bytes / static_cast<std::int64_t>(sizeof(uint4));
  const auto bytes = static_cast<double>(space.bytes);
  const auto resident =
      static_cast<unsigned>(space.num_sms * (space.max_threads_per_sm / kThreads));
  const auto every = static_cast<unsigned>(vectors / tile_vectors<kUnroll>());
  for (const unsigned blocks : {resident, every}) {
    const std::string method = std::to_string(kUnroll) + " × 16 bytes per thread" +
                               (kHint == Hint::streaming ? ", streaming" : "") +
                               (blocks == resident ? ", resident blocks" : ", a block per tile");
    probes.push_back({"dram_read", method, bytes, [=, stream = space.stream] {
                        read_all<kUnroll, kHint><<<blocks, kThreads, 0, stream>>>(
                            from, vectors, reinterpret_cast<unsigned*>(to));
                        cuda_check(cudaGetLastError());
                      }});
    probes.push_back({"dram_write", method, bytes, [=, stream = space.stream] {
                        write_all<kUnroll, kHint><<<blocks, kThreads, 0, stream>>>(to, vectors, 7);
                        cuda_check(cudaGetLastError());
                      }});
    probes.push_back({"dram_copy", method, 2 * bytes, [=, stream = space.stream] {
                        copy_all<kUnroll, kHint>
                            <<<blocks, kThreads, 0, stream>>>(from, to, vectors);
                        cuda_check(cudaGetLastError());
                      }});
  }
}

}  // namespace

void fill_random(void* to, std::int64_t bytes, RandomWords words, CUstream_st* stream) {
  fill_words<<<1024, 256, 0, stream>>>(static_cast<std::uint32_t*>(to), bytes / 4, words);
  cuda_check(cudaGetLastError());
}

std::vector<Probe> cuda_dram_probes(const CudaSpace& space) {
  std::vector<Probe> probes;
  add_loops<2, Hint::none>(probes, space);
  add_loops<4, Hint::none>(probes, space);
  add_loops<8, Hint::none>(probes, space);
  add_loops<4, Hint::streaming>(probes, space);
  add_loops<8, Hint::streaming>(probes, space);
  const auto size = static_cast<std::size_t>(space.bytes);
  const auto bytes = static_cast<double>(space.bytes);
  probes.push_back({"dram_write", "cudaMemsetAsync", bytes,
                    [=] { cuda_check(cudaMemsetAsync(space.to, 0x5a, size, space.stream)); }});
  probes.push_back({"dram_copy", "cudaMemcpyAsync", 2 * bytes, [=] {
                      cuda_check(cudaMemcpyAsync(space.to, space.from, size,
                                                 cudaMemcpyDeviceToDevice, space.stream));
                    }});
  return probes;
}

}  // namespace gauntlet::lab::inline ceilings
