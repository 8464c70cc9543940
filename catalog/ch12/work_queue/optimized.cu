// A queue: a lane whose sequence has ended takes the next one that nobody has taken yet.
#include <cuda_runtime.h>

#include <memory>

#include "catalog/ch12/work_queue/pair.h"
#include "core/cuda/check.h"
#include "core/cuda/memory.h"
#include "lab/author/side.h"

namespace gauntlet::ch12::work_queue::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kSteps = 16;  // until lanes that have ended take the next
constexpr unsigned kWarp = 0xFFFFFFFFu;

__global__ void __launch_bounds__(kThreads) continue_all(Params p, unsigned* queue) {
  const auto items = static_cast<unsigned>(p.items);
  const unsigned lane = threadIdx.x % 32;
  unsigned item = 0;
  Sequence sequence;
  bool busy = false, has_more = true;  // the latter alike in all lanes
  for (;;) {
    const unsigned idle = __ballot_sync(kWarp, !busy);
    if (has_more && idle != 0) {
      // One addition for all lanes that need a sequence.
      unsigned first = 0;
      if (lane == 0) first = atomicAdd(queue, static_cast<unsigned>(__popc(idle)));
      first = __shfl_sync(kWarp, first, 0);
      has_more = first < items;
      if (!busy) {
        item = first + static_cast<unsigned>(__popc(idle & ((1u << lane) - 1)));
        busy = item < items;
        if (busy) sequence = begin_sequence(p, item);
      }
    }
    if (!__any_sync(kWarp, busy)) return;
    for (int step = 0; step < kSteps && busy; ++step) {
      if (!advance(sequence)) {
        p.out[item] = result_of(sequence);
        busy = false;
      }
    }
  }
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  const auto queue = std::make_shared<DeviceMemory>(sizeof(unsigned));
  int blocks_per_sm = 0;
  cuda_check(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_per_sm, continue_all, kThreads, 0));
  const auto blocks = static_cast<unsigned>(blocks_per_sm * cuda.num_sms);
  return [p, queue, blocks, stream = cuda.stream] {
    auto* next = reinterpret_cast<unsigned*>(queue->data());
    cuda_check(cudaMemsetAsync(next, 0, sizeof(*next), stream));
    continue_all<<<blocks, kThreads, 0, stream>>>(p, next);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch12::work_queue::cuda
