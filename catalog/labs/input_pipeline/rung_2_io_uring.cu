// Blocks are inflated in the order in which the disk brings them, while it reads others.
#include <cuda_runtime.h>

#include <memory>

#include "catalog/labs/input_pipeline/queued_blocks.h"
#include "core/cuda/check.h"
#include "core/cuda/registered_pages.h"
#include "lab/author/counted.h"

namespace gauntlet::labs::input_pipeline::cuda {

lab::Side io_uring(const Params& p, const lab::Cuda& cuda) {
  const auto queue = std::make_shared<QueuedBlocks<>>(p);
  const auto batch = std::make_shared<HugePages>(p.blocks * p.block_bytes());
  lab::Side side = lab::counted(lab::waiting_ms(), [p, queue, batch, stream = cuda.stream] {
    queue->start();
    for (std::int64_t i = queue->next(); i >= 0; i = queue->next()) {
      inflate(p, i, queue->compressed(i), batch->data() + i * p.block_bytes());
    }
    cuda_check(cudaMemcpyAsync(p.out, batch->data(),
                               static_cast<std::size_t>(p.blocks * p.block_bytes()),
                               cudaMemcpyHostToDevice, stream));
  });
  side.facts["page_locked"] = page_locked(batch->data());
  return side;
}

}  // namespace gauntlet::labs::input_pipeline::cuda
