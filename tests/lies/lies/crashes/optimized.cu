// Writes where nothing is.
#include "lab/author/side.h"
#include "tests/lies/lies/crashes/pair.h"
#include "tests/lies/scale.cuh"

namespace gauntlet::lies::crashes::cuda {
namespace {

__global__ void write_nowhere(float* nowhere) { *nowhere = 1.0f; }

}  // namespace

lab::Side optimized(const Params&, const lab::Cuda& cuda) {
  return [stream = cuda.stream] {
    write_nowhere<<<1, 1, 0, stream>>>(nullptr);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::lies::crashes::cuda
