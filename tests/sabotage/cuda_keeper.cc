// Half of each output on a GPU, kept on the device and put back in the stream of the side, so that
// no device code and no second stream gives the sabotage away.
#include <cuda_runtime_api.h>

#include <memory>
#include <utility>

#include "core/cuda/check.h"
#include "core/cuda/memory.h"
#include "tests/sabotage/spoil.h"

namespace gauntlet::sabotage {
namespace {

struct Kept {
  Extent extent;
  DeviceMemory content;
};

}  // namespace

Keeper cuda_keeper(const std::vector<Extent>& extents, const lab::Cuda& cuda) {
  const auto all = std::make_shared<std::vector<Kept>>();
  for (const Extent& extent : extents) {
    all->push_back({extent, DeviceMemory(static_cast<std::int64_t>(extent.bytes))});
  }
  const auto copy = [stream = cuda.stream](void* to, const void* from, std::size_t bytes) {
    cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
  };
  return {.keep =
              [all, copy] {
                for (const Kept& kept : *all) {
                  copy(kept.content.data(), kept.extent.data, kept.extent.bytes);
                }
              },
          .restore =
              [all, copy] {
                for (const Kept& kept : *all) {
                  copy(kept.extent.data, kept.content.data(), kept.extent.bytes);
                }
              }};
}

}  // namespace gauntlet::sabotage
