// The CPU inflates the blocks into a page-locked buffer, which is copied to the device.
#include <cuda_runtime.h>

#include <memory>

#include "catalog/ch05/gpu_decompression/pair.h"
#include "core/cuda/memory.h"
#include "core/cuda/stream_copies.h"
#include "core/storage/lz4_library.h"
#include "lab/author/counted.h"

namespace gauntlet::ch05::gpu_decompression::cuda {

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  p.packed->load();
  const std::int64_t block_bytes = 4 * p.block_tokens;
  const auto inflated = std::make_shared<PinnedMemory>(p.blocks * block_bytes);
  const auto copies = std::make_shared<StreamCopies>();
  return lab::counted(
      {.name = "link_bytes", .total = [copies] { return static_cast<double>(copies->bytes()); }},
      [p, inflated, copies, block_bytes, stream = cuda.stream] {
        for (std::int64_t i = 0; i < p.blocks; ++i) {
          p.came_to[i] = inflate_lz4_block(
              p.packed->block(p.pick[i]),
              {inflated->data() + i * block_bytes, static_cast<std::size_t>(block_bytes)});
        }
        copies->copy(p.out, inflated->data(), static_cast<std::size_t>(p.blocks * block_bytes),
                     stream);
      });
}

}  // namespace gauntlet::ch05::gpu_decompression::cuda
