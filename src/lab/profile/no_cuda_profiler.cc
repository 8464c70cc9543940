// The GPU profiler of a build without the CUDA toolkit: says so.
#include "lab/profile/profiler_backends.h"

namespace gauntlet::lab::inline profile {
namespace {

Error no_toolkit() {
  return {.message =
              "GPU profiling is not in this binary: it was built without the CUDA toolkit; "
              "install the toolkit and build again"};
}

}  // namespace

Expected<std::unique_ptr<Profiler>> make_cuda_profiler() { return no_toolkit(); }

Expected<std::vector<std::string>> unknown_gpu_metrics(const std::string&,
                                                       const std::vector<std::string>&) {
  return no_toolkit();
}

Expected<GpuTrace> record_gpu(const std::function<void()>&) { return no_toolkit(); }

}  // namespace gauntlet::lab::inline profile
