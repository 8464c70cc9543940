// Compressed blocks on their way to the device, and inflated there.
#pragma once
#include <cstdint>

#include "catalog/labs/input_pipeline/queued_blocks.h"
#include "core/cuda/lz4_inflate.h"
#include "core/cuda/memory.h"
#include "core/cuda/registered_pages.h"
#include "core/cuda/stream_copies.h"

namespace gauntlet::labs::input_pipeline {

class DeviceBlocks {
 public:
  explicit DeviceBlocks(const Params& p)
      : queue(p),
        p_(p),
        compressed_(queue.most_bytes()),
        host_places_(p.blocks * kPlaceBytes),
        places_(p.blocks * kPlaceBytes) {}

  /// Hands the blocks [begin, end), which were read, to the stream.
  void inflate(std::int64_t begin, std::int64_t end, cudaStream_t stream) {
    auto* host_places = reinterpret_cast<Lz4Place*>(host_places_.data());
    for (std::int64_t i = begin; i < end; ++i) {
      host_places[i] = {.begin = queue.begin(i), .bytes = block_of(p_, i).bytes, .block = i};
    }
    auto* places = reinterpret_cast<Lz4Place*>(places_.data()) + begin;
    copies.copy(places, host_places + begin, static_cast<std::size_t>((end - begin) * kPlaceBytes),
                stream);
    copies.copy(compressed_.data() + queue.begin(begin), queue.compressed(begin),
                static_cast<std::size_t>(queue.begin(end) - queue.begin(begin)), stream);
    inflate_lz4_blocks({.compressed = compressed_.data(),
                        .places = places,
                        .count = end - begin,
                        .out = reinterpret_cast<unsigned char*>(p_.out),
                        .came_to = p_.came_to,
                        .block_bytes = p_.block_bytes()},
                       stream);
  }

  QueuedBlocks<RegisteredPages> queue;
  StreamCopies copies;

 private:
  static constexpr auto kPlaceBytes = static_cast<std::int64_t>(sizeof(Lz4Place));

  Params p_;
  DeviceMemory compressed_;
  PinnedMemory host_places_;  // [blocks]
  DeviceMemory places_;       // [blocks]
};

}  // namespace gauntlet::labs::input_pipeline
