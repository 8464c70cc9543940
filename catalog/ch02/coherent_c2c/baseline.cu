// Each block is copied by a command of its own.
#include <cuda_runtime.h>

#include <vector>

#include "catalog/ch02/coherent_c2c/pair.h"
#include "core/cuda/captured_work.h"
#include "core/cuda/memory.h"
#include "lab/author/side.h"

namespace gauntlet::ch02::coherent_c2c::cuda {
namespace {

void copy_blocks(const Params& p, const unsigned char* table, const std::int32_t* pick,
                 cudaStream_t stream) {
  for (std::int64_t i = 0; i < p.blocks; ++i) {
    cuda_check(cudaMemcpyAsync(p.out + i * p.block_bytes, table + pick[i] * p.block_bytes,
                               static_cast<std::size_t>(p.block_bytes), cudaMemcpyHostToDevice,
                               stream));
  }
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  const unsigned char* const table = p.table->data();
  // What is captured is not run, so a block that can be captured stands in for all.
  const PinnedMemory block(p.block_bytes);
  const std::vector<std::int32_t> first(static_cast<std::size_t>(p.blocks));
  const int copies = captured_copies(
      cuda.stream, [&] { copy_blocks(p, block.data(), first.data(), cuda.stream); });
  return {[p, table, stream = cuda.stream] { copy_blocks(p, table, p.pick, stream); },
          {{"copies", copies}}};
}

}  // namespace gauntlet::ch02::coherent_c2c::cuda
