// One element too many.
#include "lab/author/side.h"
#include "tests/lies/lies/writes_past_output/pair.h"
#include "tests/lies/scale.cuh"

namespace gauntlet::lies::writes_past_output::cuda {
namespace {

__global__ void write_one(float* x) { *x = 1.0f; }

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    scale(p, stream);
    write_one<<<1, 1, 0, stream>>>(p.out + p.count);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::lies::writes_past_output::cuda
