// Blocks are inflated in the order in which the disk brings them, while it reads others.
#include "catalog/labs/input_pipeline/queued_blocks.h"
#include "lab/author/counted.h"
#include "lab/author/side.h"

namespace gauntlet::labs::input_pipeline::cpu {

lab::Side io_uring(const Params& p, const lab::Cpu&) {
  const auto queue = std::make_shared<QueuedBlocks<>>(p);
  return lab::counted({lab::waiting_ms(), lab::working_threads()}, [p, queue] {
    queue->start();
    for (std::int64_t i = queue->next(); i >= 0; i = queue->next()) {
      inflate(p, i, queue->compressed(i), p.out + i * p.block_tokens);
    }
  });
}

}  // namespace gauntlet::labs::input_pipeline::cpu
