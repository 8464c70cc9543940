#include "core/cuda/memory/gpu_bytes.h"

namespace gauntlet {
namespace {

Error no_toolkit() { return {"this gauntlet was built without CUDA", ErrorKind::environment}; }

}  // namespace

Expected<std::unique_ptr<GpuBytes>> GpuBytes::make(int, std::size_t) { return no_toolkit(); }
Expected<std::shared_ptr<std::byte>> pinned_bytes(std::size_t) { return no_toolkit(); }

}  // namespace gauntlet
