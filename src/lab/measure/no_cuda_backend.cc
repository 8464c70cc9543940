// The CUDA backend of a build without a toolkit.
#include "lab/measure/backend.h"

namespace gauntlet::lab::inline measure {

Expected<std::unique_ptr<Backend>> make_cuda_backend() {
  return Error{"built without CUDA", ErrorKind::environment};
}

}  // namespace gauntlet::lab::inline measure
