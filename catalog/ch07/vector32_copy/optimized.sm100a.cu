// The same grid-stride loop over eight floats at a time: a warp's load asks for 1024 bytes.
#include <cuda_runtime.h>

#include "catalog/ch07/vector32_copy/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"
#include "ptx/vector32.cuh"

namespace gauntlet::ch07::vector32_copy::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kLanes = sizeof(ptx::Float8) / sizeof(float);

__global__ void __launch_bounds__(kThreads, 2048 / kThreads) copy_float8s(Params p) {
  const auto* in = reinterpret_cast<const ptx::Float8*>(p.in);
  auto* out = reinterpret_cast<ptx::Float8*>(p.out);
  const std::int64_t thread = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * kThreads;
  const std::int64_t vectors = p.count / kLanes;
  for (std::int64_t i = thread; i < vectors; i += threads) {
    ptx::store_global_v8(out + i, ptx::load_global_v8(in + i));
  }

  const std::int64_t rest = vectors * kLanes + thread;
  if (rest < p.count) p.out[rest] = p.in[rest];
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  // As many threads as the GPU holds at once.
  const auto blocks = static_cast<unsigned>(cuda.num_sms * (cuda.max_threads_per_sm / kThreads));
  return [p, blocks, stream = cuda.stream] {
    copy_float8s<<<blocks, kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch07::vector32_copy::cuda
