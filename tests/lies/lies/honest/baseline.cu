// Honest, and slow on purpose.
#include "lab/author/side.h"
#include "tests/lies/lies/honest/pair.h"
#include "tests/lies/scale.cuh"

namespace gauntlet::lies::honest::cuda {

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] { scale(p, stream, kSlowPasses); };
}

}  // namespace gauntlet::lies::honest::cuda
