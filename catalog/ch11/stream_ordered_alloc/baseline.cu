// Memory of the device for every step: given back, it makes the host wait until the step is done.
#include <cuda_runtime.h>

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

/// Memory from the device, and how much of it was asked for.
class Allocator {
 public:
  std::uint32_t* take(std::size_t bytes) {
    void* memory = nullptr;
    cuda_check(cudaMalloc(&memory, bytes));
    from_device_ += bytes;
    return static_cast<std::uint32_t*>(memory);
  }
  void give_back(std::uint32_t* memory) { cuda_check(cudaFree(memory)); }

  double bytes_from_device() const { return static_cast<double>(from_device_); }

 private:
  std::size_t from_device_ = 0;
};

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  const auto memory = std::make_shared<Allocator>();
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
