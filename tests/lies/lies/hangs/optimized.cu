// A kernel that never ends.
#include "lab/author/side.h"
#include "tests/lies/lies/hangs/pair.h"
#include "tests/lies/scale.cuh"

namespace gauntlet::lies::hangs::cuda {
namespace {

__global__ void sleep_forever() {
  while (true) __nanosleep(1000);
}

}  // namespace

lab::Side optimized(const Params&, const lab::Cuda& cuda) {
  return [stream = cuda.stream] {
    sleep_forever<<<1, 1, 0, stream>>>();
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::lies::hangs::cuda
