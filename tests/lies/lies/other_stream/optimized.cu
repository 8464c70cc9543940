// The same slow work as the baseline, on a stream that the events around a sample do not see.
#include <memory>

#include "lab/author/side.h"
#include "tests/lies/lies/other_stream/pair.h"
#include "tests/lies/scale.cuh"

namespace gauntlet::lies::other_stream::cuda {

lab::Side optimized(const Params& p, const lab::Cuda&) {
  cudaStream_t own = nullptr;
  cuda_check(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
  const std::shared_ptr<CUstream_st> kept(own, [](cudaStream_t s) { cudaStreamDestroy(s); });
  return [p, kept] { scale(p, kept.get(), kSlowPasses); };
}

}  // namespace gauntlet::lies::other_stream::cuda
