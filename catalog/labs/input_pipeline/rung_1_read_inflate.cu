// A block is read, then inflated, then the next one is read; the batch is copied when it is whole.
#include <cuda_runtime.h>

#include <memory>

#include "catalog/labs/input_pipeline/lab.h"
#include "core/cuda/check.h"
#include "core/os/pages.h"
#include "lab/author/counted.h"

namespace gauntlet::labs::input_pipeline::cuda {

lab::Side read_inflate(const Params& p, const lab::Cuda& cuda) {
  const int file = p.shard->file().direct();
  const auto buffer = std::make_shared<HugePages>(p.shard->index().most_padded_bytes());
  const auto batch = std::make_shared<HugePages>(p.blocks * p.block_bytes());
  return lab::counted(lab::waiting_ms(), [p, file, buffer, batch, stream = cuda.stream] {
    for (std::int64_t i = 0; i < p.blocks; ++i) {
      const ShardBlock& block = block_of(p, i);
      check(bool(read_fully(file, {buffer->data(), static_cast<std::size_t>(block.padded_bytes())},
                            block.offset)),
            "a block can be read");
      inflate(p, i, buffer->data(), batch->data() + i * p.block_bytes());
    }
    cuda_check(cudaMemcpyAsync(p.out, batch->data(),
                               static_cast<std::size_t>(p.blocks * p.block_bytes()),
                               cudaMemcpyHostToDevice, stream));
  });
}

}  // namespace gauntlet::labs::input_pipeline::cuda
