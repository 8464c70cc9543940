// Memory out of a pool, in the order of the stream: it goes back when the step is done, and nobody
// waits.
#include <cuda_runtime.h>

#include <limits>
#include <memory>

#include "catalog/ch11/stream_ordered_alloc/pair.h"
#include "core/cuda/check.h"
#include "lab/author/counted.h"

namespace gauntlet::ch11::stream_ordered_alloc::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    enter(const std::uint32_t* from, std::uint32_t* working, std::int64_t words) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < words) working[i] = 3 * from[i];
}

__global__ void __launch_bounds__(kThreads)
    take_out(const std::uint32_t* working, std::uint32_t* to, std::int64_t words,
             std::uint32_t step) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < words) to[i] = working[words - 1 - i] + step;
}

void run_step(const Params& p, std::int64_t step, std::uint32_t* working, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((p.words + kThreads - 1) / kThreads);
  enter<<<blocks, kThreads, 0, stream>>>(step == 0 ? p.in : p.out, working, p.words);
  take_out<<<blocks, kThreads, 0, stream>>>(working, p.out, p.words,
                                            static_cast<std::uint32_t>(step));
  cuda_check(cudaGetLastError());
}

/// The device's default pool, told to keep what it was given. All that use it share what it has.
class Allocator {
 public:
  explicit Allocator(cudaStream_t stream) : stream_(stream) {
    int device = 0;
    cuda_check(cudaGetDevice(&device));
    cuda_check(cudaDeviceGetDefaultMemPool(&pool_, device));
    std::uint64_t keep = std::numeric_limits<std::uint64_t>::max();
    cuda_check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep));
  }
  std::uint32_t* take(std::size_t bytes) {
    void* memory = nullptr;
    cuda_check(cudaMallocFromPoolAsync(&memory, bytes, pool_, stream_));
    return static_cast<std::uint32_t*>(memory);
  }
  void give_back(std::uint32_t* memory) { cuda_check(cudaFreeAsync(memory, stream_)); }

  /// What the pool has of it: it never gives any back.
  double bytes_from_device() const {
    std::uint64_t reserved = 0;
    cuda_check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &reserved));
    return static_cast<double>(reserved);
  }

 private:
  cudaStream_t stream_;
  cudaMemPool_t pool_ = nullptr;
};

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  const auto memory = std::make_shared<Allocator>(cuda.stream);
  return lab::counted(
      {.name = "bytes_from_device", .total = [memory] { return memory->bytes_from_device(); }},
      [p, memory, stream = cuda.stream] {
        for (std::int64_t step = 0; step < p.steps; ++step) {
          std::uint32_t* working = memory->take(working_bytes(p, step));
          run_step(p, step, working, stream);
          memory->give_back(working);
        }
      });
}

}  // namespace gauntlet::ch11::stream_ordered_alloc::cuda
