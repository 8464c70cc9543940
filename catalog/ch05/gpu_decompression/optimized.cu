// The compressed blocks are copied; on the device a warp inflates each.
#include <cuda_runtime.h>

#include <cstring>
#include <memory>

#include "catalog/ch05/gpu_decompression/pair.h"
#include "core/cuda/lz4_inflate.h"
#include "core/cuda/memory.h"
#include "core/cuda/stream_copies.h"
#include "lab/author/counted.h"

namespace gauntlet::ch05::gpu_decompression::cuda {

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  p.packed->load();
  const std::int64_t most = p.blocks * p.packed->most_bytes();
  const auto places_bytes = p.blocks * static_cast<std::int64_t>(sizeof(Lz4Place));
  const auto host = std::make_shared<PinnedMemory>(most);
  const auto device = std::make_shared<DeviceMemory>(most);
  const auto host_places = std::make_shared<PinnedMemory>(places_bytes);
  const auto device_places = std::make_shared<DeviceMemory>(places_bytes);
  const auto copies = std::make_shared<StreamCopies>();
  return lab::counted(
      {.name = "link_bytes", .total = [copies] { return static_cast<double>(copies->bytes()); }},
      [=, stream = cuda.stream] {
        auto* places = reinterpret_cast<Lz4Place*>(host_places->data());
        std::int64_t end = 0;
        for (std::int64_t i = 0; i < p.blocks; ++i) {
          const auto block = p.packed->block(p.pick[i]);
          const auto bytes = static_cast<std::int64_t>(block.size());
          std::memcpy(host->data() + end, block.data(), block.size());
          places[i] = {.begin = end, .bytes = bytes, .block = i};
          end += bytes;
        }
        copies->copy(device_places->data(), places, static_cast<std::size_t>(places_bytes), stream);
        copies->copy(device->data(), host->data(), static_cast<std::size_t>(end), stream);
        inflate_lz4_blocks({.compressed = device->data(),
                            .places = reinterpret_cast<const Lz4Place*>(device_places->data()),
                            .count = p.blocks,
                            .out = reinterpret_cast<unsigned char*>(p.out),
                            .came_to = p.came_to,
                            .block_bytes = 4 * p.block_tokens},
                           stream);
      });
}

}  // namespace gauntlet::ch05::gpu_decompression::cuda
