#include "core/cuda/managed.h"

#include "core/cuda/check.h"

namespace gauntlet {

void move_pages_to_host(const void* managed, std::size_t bytes) {
  const cudaMemLocation host = {.type = cudaMemLocationTypeHost, .id = 0};
  cuda_check(cudaMemPrefetchAsync(managed, bytes, host, 0, nullptr));
  cuda_check(cudaStreamSynchronize(nullptr));
}

}  // namespace gauntlet
