// Blocks are inflated into page-locked slots, each of which is copied while the next one fills.
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <memory>

#include "catalog/labs/input_pipeline/queued_blocks.h"
#include "core/cuda/memory.h"
#include "core/cuda/registered_pages.h"
#include "core/cuda/stream_copies.h"
#include "lab/author/counted.h"

namespace gauntlet::labs::input_pipeline::cuda {
namespace {

constexpr std::int64_t kSlots = 4;
constexpr std::int64_t kSlotBlocks = 128;

struct Ring {
  explicit Ring(const Params& p) : queue(p), memory(kSlots * kSlotBlocks * p.block_bytes()) {}
  QueuedBlocks<> queue;
  RegisteredPages memory;                 // [kSlots, kSlotBlocks, block_bytes]
  std::array<CudaEvent, kSlots> drained;  // a slot was copied out of
  StreamCopies copies;
};

}  // namespace

lab::Side pinned_ring(const Params& p, const lab::Cuda& cuda) {
  const auto ring = std::make_shared<Ring>(p);
  lab::Side side = lab::counted(
      {.name = "link_bytes", .total = [ring] { return static_cast<double>(ring->copies.bytes()); }},
      [p, ring, stream = cuda.stream] {
        ring->queue.start();
        std::int64_t slot = 0;
        for (std::int64_t begin = 0; begin < p.blocks; begin += kSlotBlocks) {
          const std::int64_t end = std::min(begin + kSlotBlocks, p.blocks);
          const CudaEvent& drained = ring->drained[static_cast<std::size_t>(slot)];
          unsigned char* const to = ring->memory.data() + slot * kSlotBlocks * p.block_bytes();
          drained.wait();
          for (std::int64_t i = begin; i < end; ++i) {
            ring->queue.wait_for(i);
            inflate(p, i, ring->queue.compressed(i), to + (i - begin) * p.block_bytes());
          }
          ring->copies.copy(p.out + begin * p.block_tokens, to,
                            static_cast<std::size_t>((end - begin) * p.block_bytes()), stream);
          drained.record(stream);
          slot = (slot + 1) % kSlots;
        }
      });
  side.facts["page_locked"] = page_locked(ring->memory.data());
  return side;
}

}  // namespace gauntlet::labs::input_pipeline::cuda
