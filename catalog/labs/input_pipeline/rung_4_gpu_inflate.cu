// When all blocks have been read, they are copied as they are, and a warp inflates each.
#include <memory>

#include "catalog/labs/input_pipeline/device_blocks.h"
#include "catalog/labs/input_pipeline/tail.h"
#include "lab/author/counted.h"

namespace gauntlet::labs::input_pipeline::cuda {

lab::Side gpu_inflate(const Params& p, const lab::Cuda& cuda) {
  const auto blocks = std::make_shared<DeviceBlocks>(p);
  const auto tail = std::make_shared<Tail>();
  return Tail::reported(
      tail,
      lab::counted({.name = "link_bytes",
                    .total = [blocks] { return static_cast<double>(blocks->copies.bytes()); }},
                   [p, blocks, tail, stream = cuda.stream] {
                     blocks->queue.start();
                     while (blocks->queue.next() >= 0) {
                     }
                     tail->begin(stream);
                     blocks->inflate(0, p.blocks, stream);
                     tail->end(stream);
                   }));
}

}  // namespace gauntlet::labs::input_pipeline::cuda
