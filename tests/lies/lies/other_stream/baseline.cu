// Honest, and slow on purpose.
#include "lab/author/side.h"
#include "tests/lies/lies/other_stream/pair.h"
#include "tests/lies/scale.cuh"

namespace gauntlet::lies::other_stream::cuda {

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] { scale(p, stream, kSlowPasses); };
}

}  // namespace gauntlet::lies::other_stream::cuda
