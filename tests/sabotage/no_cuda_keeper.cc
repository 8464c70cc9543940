// Without a CUDA toolkit no side is made on a GPU.
#include "core/check.h"
#include "tests/sabotage/spoil.h"

namespace gauntlet::sabotage {

Keeper cuda_keeper(const std::vector<Extent>&, const lab::Cuda&) {
  fail("this build has no CUDA sides");
}

}  // namespace gauntlet::sabotage
