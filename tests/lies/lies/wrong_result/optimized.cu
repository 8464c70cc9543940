// Wrong in its last element only.
#include "lab/author/side.h"
#include "tests/lies/lies/wrong_result/pair.h"
#include "tests/lies/scale.cuh"

namespace gauntlet::lies::wrong_result::cuda {
namespace {

__global__ void add_one(float* x) { *x += 1.0f; }

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    scale(p, stream);
    add_one<<<1, 1, 0, stream>>>(p.out + p.count - 1);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::lies::wrong_result::cuda
